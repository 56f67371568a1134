"""Samples as the stages read them: in chunks, in halves, and without those that would outweigh all others."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import betainc

from quartic._arrays import (
    Array,
    array_namespace,
    from_numpy,
    median,
    quantile,
    rows_of,
    squared_norms,
    take_rows,
    to_numpy,
)
from quartic.algorithms.refine import Chunk, Pass, Signals, Statistics, statistics
from quartic.frame import Frame
from quartic.halves import places, row_hash
from quartic.moments import Covariance, FourthMoment

TRIM = 4.0  # times m^(1/4) and the 90% quantile: such a norm outweighs all other fourth moments 250 times
SIGNIFICANT = 5.0  # standard errors of the kurtosis of Gaussian samples
GLANCE = 1 << 14  # rows, at least, that tell how long samples are; an atom active in 0.2% of all comes 30 times
SMALL = 1e-8  # of the largest feature: smaller ones are rounding
TYLER = 10  # steps, each of which halves what is not yet white, or better
COMPARED = 4096  # long samples, at most, whose directions are compared
FEW = 16  # long samples that tell whether they are outliers; arbitrary
TRIED, SPANNING = 256, 48  # long samples, at most, that lines and planes are looked for among, and that span them
CHANCE = 1e-3  # that random directions share a line or plane which is taken for atoms
HUGE = 1e70  # times an ordinary norm: products of four overflow, and no source is as strong
ABSURD = 1000.0  # times the energy of all others: a few rows of another unit; measured: sources of equal variance 730
BESIDE = 3.0  # ordinary norms: what a sample of an atom may have beside it; longer ones are a few in a thousand
ALIKE = 3.0  # times an ordinary norm: longer samples show the direction of an atom; arbitrary
FAR = 8.0  # times the 99.5% quantile: what heavy tails reach once in millions, and few outliers spoil moments by


class Samples(ABC):
    """What the stages ask of samples, wherever these are: parts of them by index, and passes over all.

    Attributes
    ----------
    like : array of shape (0, d)
        Of their dtype and library, and on their device; indices, weights and means are NumPy's.
    rows : int
        How many there are, with those that are left out.
    trimmed : int
        How many are left out, far longer than all others.
    ordered : bool
        Whether the order of rows may mean something, as in time.
    """

    trimmed: int
    ordered: bool

    @property
    @abstractmethod
    def like(self) -> Array:
        """An empty array."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many there are."""

    @property
    @abstractmethod
    def count(self) -> int:
        """Samples that are not left out."""

    @property
    def most(self) -> float:
        """How many rows may be asked for at a time."""
        return math.inf

    @abstractmethod
    def chosen(self, low: float, high: float) -> np.ndarray:
        """Indices of a random part of the rows, those whose hash lies between two fractions."""

    @abstractmethod
    def take(self, rows: np.ndarray) -> Array:
        """Some rows, in memory."""

    @abstractmethod
    def weight(self, rows: np.ndarray) -> np.ndarray:
        """Weights of some rows."""

    @abstractmethod
    def group(self, rows: np.ndarray) -> np.ndarray | None:
        """Codes of the groups that some rows belong to, where that is known."""

    def keys(self, rows: np.ndarray) -> np.ndarray:
        """What the halves of some rows are hashed by."""
        groups = self.group(rows)
        return rows if groups is None else groups

    @abstractmethod
    def covariance(self) -> Covariance:
        """Mean and covariance of all."""

    @abstractmethod
    def fourth_moment(self, frame: Frame) -> FourthMoment:
        """The fourth moment of all."""

    @abstractmethod
    def everything(self, mean: np.ndarray) -> Pass:
        """All rows about a mean, for the refinement."""

    def about(self, count: int) -> np.ndarray:
        """Indices of about so many rows, a random part, or of all."""
        part = min(count, self.most) / max(self.count, 1)
        return self.chosen(0.0, part if part < 1 else 2.0)

    def whitened(self, rows: np.ndarray, frame: Frame, dtype: Any = np.float64) -> Array:
        """Some rows in whitened coordinates, ``(k, r)``."""
        return frame.whiten(self.take(rows), dtype)

    def squared_norms(self, rows: np.ndarray, frame: Frame) -> Array:
        """``||z||^2`` of some rows in whitened coordinates."""
        return squared_norms(self.whitened(rows, frame))

    def part(self, rows: np.ndarray, mean: np.ndarray) -> list[Chunk]:
        """Some rows about a mean, in memory, for the refinement."""
        weights = self.weight(rows)
        return [
            (h, centred(self.take(rows[mine]), mean), from_numpy(weights[mine], self.like))
            for h, mine in places(weights, self.keys(rows), rows_of(self.like, np.float64))
        ]


def check_columns(argument: str, X: Any) -> None:
    """Refuse a path, and a dataframe with columns that hold no numbers, by their names."""
    if isinstance(X, str | os.PathLike):
        raise ValueError(f"{argument} is a path, {X}: read it first, with numpy.load or pandas.read_csv.")
    dtypes = getattr(X, "dtypes", {})
    others = [str(name) for name, dtype in dtypes.items() if getattr(dtype, "kind", "O") not in "biuf"]
    if others:
        listed = ", ".join(others[:8])
        raise ValueError(f"{argument} has columns that hold no numbers: {listed}; leave them out, or encode them.")


@dataclass(frozen=True)
class Held(Samples):
    """Samples in memory, or mapped into it: read in chunks, without copies of the whole.

    Attributes
    ----------
    Y : array of shape (m, d)
    weights : ndarray of shape (m,), optional
        Zero for samples that are left out.
    trimmed : int
    groups : ndarray of shape (m,), optional
        Codes of the groups that they belong to.
    ordered : bool
    """

    Y: Array
    weights: np.ndarray | None = None
    trimmed: int = 0
    groups: np.ndarray | None = None
    ordered: bool = True

    @classmethod
    def trimmed_from(
        cls,
        Y: Array,
        sample_weight: np.ndarray | None,
        groups: np.ndarray | None = None,
        *,
        ordered: bool = True,
        gross: bool = True,
    ) -> Held:
        """Without the samples that alone would decide every moment; weights are 1 in the mean.

        All are kept where ``gross`` ones are no errors.
        """
        weights, trimmed = trim(Y, sample_weight, gross=gross)
        # So that their scale is nowhere seen.
        mean = 1.0 if weights is None else np.mean(weights[weights > 0])
        return cls(Y, None if weights is None else weights / mean, trimmed, groups, ordered)

    @property
    def like(self) -> Array:
        """An empty array of their kind."""
        return self.Y[:0, :]

    @property
    def rows(self) -> int:
        """How many there are."""
        return int(self.Y.shape[0])

    @cached_property
    def count(self) -> int:
        """Samples that are not left out."""
        return self.rows if self.weights is None else int(np.count_nonzero(self.weights))

    def chosen(self, low: float, high: float) -> np.ndarray:
        """Indices of a random part of the rows."""
        mine = in_part(np.arange(self.rows), low, high)
        return np.flatnonzero(mine if self.weights is None else mine & (self.weights > 0))

    def take(self, rows: np.ndarray) -> Array:
        """Some rows, copied."""
        return take_rows(self.Y, rows)

    def weight(self, rows: np.ndarray) -> np.ndarray:
        """Weights of some rows."""
        return np.ones(rows.shape[0]) if self.weights is None else self.weights[rows]

    def group(self, rows: np.ndarray) -> np.ndarray | None:
        """Codes of the groups that some rows belong to."""
        return None if self.groups is None else self.groups[rows]

    def covariance(self) -> Covariance:
        """Mean and covariance of all."""
        return Covariance()._add(self.Y, self.weights, None, self.groups)

    def fourth_moment(self, frame: Frame) -> FourthMoment:
        """The fourth moment of all."""
        return FourthMoment(frame, like=self.like)._add(self.Y, self.weights, None, self.groups)

    @cached_property
    def _places(self) -> list[tuple[int, Array, Array]]:
        """Half, places and weights of the rows of each chunk, where the samples are."""
        every = np.arange(self.rows)
        return [
            (h, from_numpy(mine, self.Y), from_numpy(self.weight(mine), self.Y))
            for h, mine in places(self.weights, self.keys(every), rows_of(self.Y, np.float64))
        ]

    def everything(self, mean: np.ndarray) -> Pass:
        """All rows about a mean, chunk by chunk."""
        xp = array_namespace(self.Y)

        def measure(*wanted: Signals) -> list[Statistics]:
            chunks = ((h, centred(xp.take(self.Y, mine, axis=0), mean), w) for h, mine, w in self._places)
            return statistics(chunks, *wanted)

        return measure


def in_part(index: np.ndarray, low: float, high: float) -> np.ndarray:
    """Whether the hash of each index lies between two fractions: a random part of all rows, however they are cut."""
    place = (row_hash(index) >> np.uint64(11)).astype(np.float64) / 2.0**53
    return (place >= low) & (place < high)


def centred(rows: Array, mean: np.ndarray) -> Array:
    """Rows about a mean, which is subtracted in float64."""
    xp = array_namespace(rows)
    return xp.astype(xp.astype(rows, xp.float64) - from_numpy(mean, rows), rows.dtype)


def looks_gaussian(Z: np.ndarray, w: np.ndarray) -> bool:
    """Whether white samples ``Z (m, q)`` of weights ``w (m,)`` have the fourth moment of a Gaussian, ``E ||z||^4``.

    Mardia's kurtosis: ``q^2 E ||z||^4 / (E ||z||^2)^2 - q (q + 2)`` has a variance of ``8 q (q + 2) / m``.
    """
    q = Z.shape[1]
    squares = squared_norms(Z)
    excess = q**2 * np.average(squares**2, weights=w) / np.average(squares, weights=w) ** 2 - q * (q + 2)
    return bool(abs(excess) <= SIGNIFICANT * np.sqrt(8 * q * (q + 2) * np.sum(w**2)) / np.sum(w))


def _first_and_spread(k: int, count: int) -> np.ndarray:
    """Places of at most ``count`` of ``k`` rows: half of them the first, the others from all over."""
    if k <= count:
        return np.arange(k)
    return np.unique(np.r_[: count // 2, np.linspace(count // 2, k - 1, count - count // 2).astype(np.intp)])


def points_nowhere(rows: np.ndarray) -> bool:
    """Whether rows ``(k, d)`` are alike no more often than random directions: the mean ``cos^4`` of their angles.

    For directions from the sphere it is ``3 / (d (d + 2))``, and pairs of them are uncorrelated; for samples of one
    atom each, out of ``n``, it is ``1 / n`` more.
    """
    rows = rows[_first_and_spread(rows.shape[0], COMPARED)]
    k, d = rows.shape
    rows = rows / np.max(np.abs(rows), axis=1, keepdims=True)  # so that no square overflows
    U = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    for _ in range(TYLER if k >= 2 * d else 0):  # outliers may be larger in some features: Tyler's scatter whitens them
        rows = np.linalg.svd(U, full_matrices=False)[0]
        U = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    quartics = (U @ U.T)[np.triu_indices(k, 1)] ** 4
    mean = 3 / (d * (d + 2))
    variance = 105 / (d * (d + 2) * (d + 4) * (d + 6)) - mean**2
    return bool(np.mean(quartics) - mean <= SIGNIFICANT * math.sqrt(variance / quartics.shape[0]))


@dataclass(frozen=True)
class Plane:
    """A line or plane that long samples come again in.

    Attributes
    ----------
    axes : ndarray of shape (d, 1) or (d, 2)
        Orthonormal.
    sharp : float
        Smallest singular value of the samples that it is taken from, where the norm of ordinary ones is 1: its inverse
        is the error of the axes.
    longest : float
        Samples of it that are longer are none the less errors.
    """

    axes: np.ndarray
    sharp: float
    longest: float = math.inf

    @classmethod
    def of(cls, rows: np.ndarray, rank: int) -> Plane:
        """Through rows ``(k, d)``, in the sense of least squares; a line where they span no plane."""
        _, values, axes = np.linalg.svd(rows, full_matrices=False)
        rank = rank if values.shape[0] >= rank and values[rank - 1] > FAR else 1
        return cls(axes[:rank].T, float(values[rank - 1]))

    def holds(self, rows: np.ndarray, norms: np.ndarray) -> np.ndarray:
        """Whether rows ``(k, d)`` lie in it, but for an ordinary sample and its own error."""
        unit = rows / norms[:, None]  # so that no square overflows
        sines = np.linalg.norm(unit - unit @ self.axes @ self.axes.T, axis=1)
        out: np.ndarray = sines <= BESIDE * (1 / norms + 1 / self.sharp)
        return out


def shared_planes(rows: np.ndarray) -> list[tuple[Plane, np.ndarray]]:
    """Lines and planes that hold more of the long ``rows (k, d)`` than of random directions, and which rows these are.

    Samples of a rare atom lie along a line, those of two that are active together in a plane, but for the other atoms:
    an ordinary sample, of norm 1, and the same again for those that span it.  Of random directions a part
    ``p_s`` lies as close, by their lengths; that ``c`` of them do has a probability of at most ``e^(c - L) (L / c)^c``
    with ``L`` the sum of all ``p_s`` (Chernoff), times as many lines and planes as were tried.
    """
    k, d = rows.shape
    norms = np.linalg.norm(rows, axis=1)
    tried = _first_and_spread(k, TRIED)
    # A copy says nothing again.
    left = np.sort(tried[np.unique(rows[tried], axis=0, return_index=True)[1]]) if k else tried
    found: list[tuple[Plane, np.ndarray]] = []
    while left.shape[0] > 1 and d > 1:
        G = rows[left] @ rows[left].T
        squares = np.diagonal(G)
        spanning = _first_and_spread(left.shape[0], SPANNING)
        firsts = np.minimum(1 << np.arange(2, TRIED.bit_length()), left.shape[0]) - 1  # so many of the longest
        first, second = np.triu_indices(spanning.shape[0], 1)
        i, j = spanning[first], spanning[second]
        # What each row has beside each line, and how small that is by chance.
        across = squares - G[spanning] ** 2 / squares[spanning, None]
        close = np.minimum(1 / squares + 1 / squares[spanning, None], 1.0)
        line = across / squares <= close
        choices = [(spanning[:, None], line, line, betainc((d - 1) / 2, 0.5, close))]
        if d > 2:
            span = squares[i] * squares[j] - G[i, j] ** 2
            # Two rows of one line span no plane, and of shorter ones none that is sharp.
            apart = (span > squares[i] + squares[j]) & (np.minimum(squares[i], squares[j]) > FAR**2)
            i, j, span, first, second = (x[apart] for x in (i, j, span, first, second))
            a, b = G[i], G[j]
            along = a**2 * squares[j, None] - 2 * a * b * G[i, j, None] + b**2 * squares[i, None]
            weakest = span / (squares[i] + squares[j])  # the smaller eigenvalue of their Gram matrix, or half of it
            close = np.minimum(1 / squares + 1 / weakest[:, None], 1.0)
            within = 1 - along / span[:, None] / squares <= close
            # What lies along one of the two says nothing of the plane.
            new = within & ~line[first] & ~line[second]
            choices.append((np.stack((i, j), axis=1), within, new, close ** ((d - 2) / 2)))
        tests = firsts.shape[0] * sum(spanned.shape[0] for spanned, *_ in choices)
        most, mine, rank, spanned_by = 0, None, 0, left[:0]
        for spanned, within, new, chance in choices:
            others = np.ones_like(within)
            np.put_along_axis(others, spanned, False, axis=1)
            c, e = (np.cumsum(x * others, axis=1)[:, firsts] for x in (new, chance))
            more = (c > e) & (e > 0)
            logs = np.where(more, c - e + c * np.log(np.where(more, e / np.maximum(c, 1), 1.0)), 0.0)
            held = np.sum(within | ~others, axis=1) * (np.min(logs, axis=1, initial=0.0) < math.log(CHANCE / tests))
            if held.size and np.max(held) > most:
                most, place, rank = int(np.max(held)), int(np.argmax(held)), spanned.shape[1]
                mine, spanned_by = within[place] | ~others[place], spanned[place]
        if mine is None:
            break
        # The longest decide where it lies: each must lie in what the others share.
        for s in np.union1d(spanned_by, np.flatnonzero(mine)[:FEW]):
            others = mine & (np.arange(left.shape[0]) != s)
            one = left[[s]]
            mine[s] = np.any(others) and bool(Plane.of(rows[left[others]], rank).holds(rows[one], norms[one])[0])
        if not np.any(mine):
            break
        if np.sum(mine) > 1 and np.max(norms[left[mine]]) > FAR:
            plane = Plane.of(rows[left[mine]], rank)
            found.append((plane, plane.holds(rows, norms)))
            mine |= found[-1][1][left]
        left = left[~mine]
    return found


def _ceiling(norms: np.ndarray, m: int) -> float:
    """The norm of a sample whose fourth power is some hundred times that of all others together, rare ones as well.

    From the ``norms`` of some of ``m`` samples, without the longest where these are such samples themselves, each.
    """
    lengths = np.sort(norms)
    with np.errstate(over="ignore"):
        shorter = TRIM * (np.cumsum(lengths**4) * (m / norms.shape[0])) ** 0.25
    one_of_them = np.flatnonzero(lengths[1:] <= shorter[:-1])
    return float(shorter[one_of_them[-1] + 1]) if one_of_them.size else math.inf


@dataclass(frozen=True)
class Limit:
    """The norm from which on a sample alone would decide every moment, and the directions in which it may be longer.

    Norms are about ``centre (d,)`` and in units of ``unit (d,)``: features may come in very different ones.  Longer
    samples up to the ``ceiling`` are none the less kept where they lie in one of the ``planes``, but for ordinary ones,
    of norm ``size``.
    """

    centre: np.ndarray
    unit: np.ndarray
    norm: float
    size: float = 0.0
    planes: tuple[Plane, ...] = ()
    ceiling: float = math.inf

    @classmethod
    def of(cls, some: Array, m: int, *, strict: bool = True) -> Limit:
        """From ``some`` of ``m`` samples that count; ``strict`` refuses magnitudes that would overflow.

        A sample of norm ``TRIM m^(1/4) q``, with ``q`` the 90% quantile of all norms, has a fourth power some hundred
        times as large as those of all others together; several that are ``FAR`` longer than 99.5% of all are as bad.
        But length alone does not tell: rare activity looks the same.  Atoms come again: samples longer than ``FAR q``
        that share a line or plane are kept, unless one alone has such a fourth power beside all others, rare ones as
        well, or few of them an ``ABSURD`` energy; and unless, where 0.5% of all are long, they are ``FAR`` longer than
        a typical one of theirs.  Of the others those that point nowhere in particular are outliers, from ``FAR q`` on
        where they are more than 0.5% of all; such that do not are atoms, too.  Fewer than ``FEW`` are outliers, since
        each comes alone.
        """
        xp = array_namespace(some)
        if some.shape[0] == 0:
            return cls(np.zeros(some.shape[1]), np.ones(some.shape[1]), math.inf)
        centre = median(some, axis=0)
        # Where more than half of the samples are zero, so is the median; the largest of a tenth is not.
        sizes = to_numpy(quantile(xp.abs(some - centre), 0.9))
        size = float(np.max(sizes, initial=0.0))
        low, high = (1e-140, 1e140) if some.dtype == xp.float64 else (1e-17, 1e17)
        if strict and size > 0 and not low < size < high:
            raise ValueError(f"the samples have a magnitude of {size:.0e}: rescale them, or their moments overflow.")
        limit = cls(to_numpy(centre), np.where(sizes > SMALL * size, sizes, size or 1.0), math.inf)
        norms = to_numpy(limit.norms(some))
        most, many = (float(quantile(from_numpy(norms[:, None], some), q)[0]) for q in (0.9, 0.995))
        ordinary = most or many
        if not ordinary > 0:
            return limit
        lowest = min(norm for norm in (TRIM * m**0.25 * most, FAR * many) if norm > 0)
        common = many > FAR * most > 0
        long = np.flatnonzero((norms > ALIKE * ordinary) & (norms < HUGE * ordinary))
        if not common and not np.any(norms[long] > lowest):
            return replace(limit, norm=lowest)
        long = long[np.argsort(-norms[long], kind="stable")]
        if np.sum(norms[long] > FAR * ordinary) >= FEW:  # so many show by themselves whether they are alike
            long = long[norms[long] > FAR * ordinary]
        rows, lengths = limit._scaled(take_rows(some, long)) / ordinary, norms[long] / ordinary
        energy = math.inf if common else ABSURD * float(np.sum((norms[norms <= FAR * ordinary] / ordinary) ** 2))
        far = lengths > (FAR if common else lowest / ordinary)
        alone, planes = far.copy(), []
        for plane, mine in shared_planes(rows):
            alone &= ~mine
            longest = FAR * float(np.median(lengths[mine])) if common else math.inf
            planes += [replace(plane, longest=longest)] if np.sum(lengths[mine] ** 2) <= energy else []
        ceiling = ordinary * _ceiling(norms / ordinary, m)
        limit = replace(limit, norm=lowest, size=ordinary, planes=tuple(planes), ceiling=ceiling)
        if common and np.sum(far) >= FEW:  # sums of several atoms point nowhere, too, but are not most of them
            nowhere = 2 * np.sum(alone) > np.sum(far) and points_nowhere(rows[alone])
            if nowhere:
                return replace(limit, norm=FAR * most)
            # What is ``FAR`` longer still than 99.5% of all, and than a typical long one of its own line, are the few
            # samples of tails without a fourth moment, which would carry all of it.
            return replace(limit, norm=FAR * many)
        if np.sum(alone) < FEW or points_nowhere(rows[alone]) or np.sum(lengths[alone] ** 2) > energy:
            return limit
        return replace(limit, norm=FAR * float(np.max(lengths[alone])) * ordinary)

    def _scaled(self, Y: Array) -> np.ndarray:
        """Some rows about the centre, in units of each feature, in float64 and on the host."""
        return (to_numpy(Y).astype(np.float64) - self.centre) / self.unit

    def norms(self, Y: Array) -> Array:
        """Of the rows of ``Y (m, d)``, in float64."""
        xp = array_namespace(Y)
        centre, unit = (from_numpy(x, Y, Y.dtype) for x in (self.centre, self.unit))
        parts, m, chunk = [], Y.shape[0], rows_of(Y, np.float64)
        with np.errstate(over="ignore"):  # a norm that overflows is infinite, and goes
            for first in range(0, m, chunk):
                rows = (Y[first : min(first + chunk, m), :] - centre) / unit
                parts.append(xp.astype(xp.sqrt(squared_norms(rows)), xp.float64))
        return xp.concat(parts) if parts else xp.astype(Y[:, 0], xp.float64)

    def gross(self, Y: Array) -> np.ndarray:
        """Whether each row of ``Y (m, d)`` is longer and lies in none of the planes."""
        norms = to_numpy(self.norms(Y))
        out: np.ndarray = norms > self.norm
        asked = np.flatnonzero(out & np.isfinite(norms)) if self.planes else np.zeros(0, dtype=np.intp)
        if asked.size:
            rows, norms = self._scaled(take_rows(Y, asked)) / self.size, norms[asked] / self.size
            for plane in self.planes:
                out[asked[plane.holds(rows, norms) & (norms <= min(self.ceiling / self.size, plane.longest))]] = False
        return out

    def trim(self, Y: Array, weights: np.ndarray | None) -> tuple[np.ndarray | None, int]:
        """Weights without the gross samples, and how many these are."""
        gross = self.gross(Y)
        gross = gross if weights is None else gross & (weights > 0)
        if not np.any(gross):
            return weights, 0
        weights = np.ones(Y.shape[0]) if weights is None else np.array(weights, dtype=np.float64)
        weights[gross] = 0.0
        return weights, int(np.sum(gross))


def trim(Y: Array, sample_weight: np.ndarray | None, *, gross: bool = True) -> tuple[np.ndarray | None, int]:
    """Weights without the samples that alone would decide every moment, and how many these are.

    All are kept where ``gross`` ones are no errors; magnitudes that would overflow are refused in any case.
    """
    counted = np.arange(Y.shape[0]) if sample_weight is None else np.flatnonzero(sample_weight > 0)
    some = counted[in_part(counted, 0.0, glance(counted.shape[0]))]
    limit = Limit.of(take_rows(Y, some), counted.shape[0])
    return limit.trim(Y, sample_weight) if gross else (sample_weight, 0)


def glance(m: int) -> float:
    """The part of ``m`` samples that the limit is taken from; all, if they are few."""
    return GLANCE / m if m > 2 * GLANCE else 2.0
