"""Samples as the stages read them: in chunks, in halves, and without those that would outweigh all others."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

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
GLANCE = 4096  # rows, at least, that tell how long samples are
SMALL = 1e-8  # of the largest feature: smaller ones are rounding
TYLER = 10  # steps, each of which halves what is not yet white, or better
FEW = 16  # long samples that tell whether they are outliers; arbitrary
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


def points_nowhere(rows: np.ndarray) -> bool:
    """Whether rows ``(k, d)`` are alike no more often than random directions: the mean ``cos^4`` of their angles.

    For directions from the sphere it is ``3 / (d (d + 2))``, and pairs of them are uncorrelated; for samples of one
    atom each, out of ``n``, it is ``1 / n`` more.
    """
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
class Limit:
    """The norm from which on a sample alone would decide every moment.

    Norms are about ``centre (d,)`` and in units of ``unit (d,)``: features may come in very different ones.
    """

    centre: np.ndarray
    unit: np.ndarray
    norm: float

    @classmethod
    def of(cls, some: Array, m: int, *, strict: bool = True) -> Limit:
        """From ``some`` of ``m`` samples that count; ``strict`` refuses magnitudes that would overflow.

        A sample of norm ``TRIM m^(1/4) q``, with ``q`` the 90% quantile of all norms, has a fourth power some hundred
        times as large as those of all others together; several that are ``FAR`` longer than 99.5% of all are as bad.
        Where more than that share is ``FAR`` longer than ``q``, length alone does not tell: rare activity looks the
        same.  But atoms come again; long samples that point nowhere in particular are outliers, from ``FAR q`` on.
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
        norms = limit.norms(some)
        most, many = (float(quantile(norms[:, None], q)[0]) for q in (0.9, 0.995))
        limits = [TRIM * m**0.25 * most, FAR * many]
        if many > FAR * most > 0:
            long = to_numpy(take_rows(some, np.flatnonzero(to_numpy(norms) > FAR * most)[:GLANCE]))
            if long.shape[0] >= FEW:
                nowhere = points_nowhere((long.astype(np.float64) - limit.centre) / limit.unit)
                limits = [FAR * (most if nowhere else many)]
        return replace(limit, norm=min((norm for norm in limits if norm > 0), default=math.inf))

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

    def trim(self, Y: Array, weights: np.ndarray | None) -> tuple[np.ndarray | None, int]:
        """Weights without the samples that are longer, and how many these are."""
        gross = to_numpy(self.norms(Y) > self.norm)
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
