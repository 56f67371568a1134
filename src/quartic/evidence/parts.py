"""Evidence: rows of the samples in whitened coordinates, in two independent parts.

All that the proof of an atom rests on is in this one value, whatever found the atom: what is found in one part is
tested on the other.  It holds some ten thousand rows, on the host: enough for what a certificate has to tell, and few
enough to be kept by an accumulator (``FourthMoment``), so that a stream is judged as samples in memory are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import lambertw
from scipy.stats import norm

from quartic._arrays import Array, to_numpy
from quartic.evidence.lost import Lost
from quartic.evidence.units import RATE, Kind, Units, named, rows_alone, seen
from quartic.frame import Frame
from quartic.halves import row_hash

if TYPE_CHECKING:
    from quartic.samples import Samples

ALIKE = 1e-9  # standard deviations: what rounding makes of the same row, whitened in two places
FEW = 4  # times r: samples of a part, below which it says nothing; arbitrary
ROWS = 1 << 15  # at most; measured (benchmarks/must_show/correlated): blocks of 10 at Pr 0.8 and 10 dB need 30,000


@dataclass(frozen=True)
class Evidence:
    """Whitened samples in random order.

    Attributes
    ----------
    Z : ndarray of shape (m, r)
        On the host, in float64.
    units : Units
        Which of them are independent of each other, and the part, 0 or 1, of each.
    weights : ndarray of shape (m,)
        What each counts.
    total : int
        Effective number of samples that the coordinates were whitened by: these, and others that are not here.
    copies : float
        How often each of them was there.
    lost : Lost
        What is known to be lost of the features.
    index : ndarray of shape (m,)
        Their places in the data; empty where these mean nothing.
    """

    Z: np.ndarray
    units: Units
    weights: np.ndarray
    total: int
    copies: float = 1.0
    lost: Lost = field(default_factory=Lost.nothing)
    index: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.intp))

    @classmethod
    def of_rows(
        cls,
        Z: Array,
        index: np.ndarray,
        weights: np.ndarray,
        total: int,
        groups: np.ndarray | None = None,
        lost: Lost | None = None,
        *,
        ordered: bool = True,
    ) -> Evidence:
        """From whitened rows ``Z (m, r)`` and their places in the data, in an order that depends on these alone.

        Of weighted rows some are left out, the more likely the less they count, so that the others count alike: the
        proof goes by how many samples are where, and one that hardly counts must not speak as loud as others.  Rows
        are units unless ``groups (m,)`` are given; or their order means something, and neighbours depend on each other.
        """
        Z = np.asarray(to_numpy(Z), dtype=np.float64)
        once = distinct(Z, index)
        copies = index.shape[0] / once.shape[0] if once.size else 1.0
        Z, index, weights = Z[once], index[once], weights[once]
        lost = Lost.nothing() if lost is None else lost
        Z = Z + lost.dither(index)
        if groups is not None:
            units = named(groups[once], Z, index)
        else:
            units = seen(Z, index) if ordered else rows_alone(index)
        place = row_hash(index)
        order = np.argsort(place, kind="stable")
        chance = row_hash(place[order]) / 2.0**64  # bits of their own
        order = order[(chance * np.max(weights, initial=0.0) < weights[order]) & (units.of[order] >= 0)]
        effective = math.ceil(total / copies / units.effect)
        places = index[order] if ordered and groups is None else index[:0]
        return cls(Z[order], units.at(order), np.ones(order.shape[0]), effective, copies, lost, places)

    @classmethod
    def of(cls, data: Samples, frame: Frame, rows: np.ndarray | None = None, most: int = ROWS) -> Evidence:
        """From some rows of samples, or from a random part of all."""
        rows = data.about(most) if rows is None else rows
        w = data.weight(rows)
        share = np.sum(w) ** 2 / max(np.sum(w * w) * w.shape[0], np.finfo(np.float64).tiny)
        total = math.ceil(share * data.count)
        lost = Lost.of(np.asarray(to_numpy(data.take(rows)), dtype=np.float64), frame)
        return cls.of_rows(data.whitened(rows, frame), rows, w, total, data.group(rows), lost, ordered=data.ordered)

    @property
    def half(self) -> np.ndarray:
        """The part, 0 or 1, of each row."""
        return self.units.half

    @property
    def unit(self) -> np.ndarray | None:
        """The unit of each row, where not each row is one."""
        return None if self.units.alone else self.units.of

    @property
    def halves_by_hash(self) -> bool:
        """Whether halves by a hash of the row, or of the group that it is named to belong to, are independent.

        Moments have such halves.
        """
        return self.units.kind is not Kind.STRETCHES and self.copies == 1.0

    @property
    def dim(self) -> int:
        """``r``."""
        return int(self.Z.shape[1])

    @property
    def squares(self) -> np.ndarray:
        """``||z||^2``, in float64."""
        return np.einsum("ij,ij->i", self.Z, self.Z, dtype=np.float64)

    @property
    def enough(self) -> bool:
        """Whether both parts have enough samples to say anything: as many as dimensions are white in any axes."""
        counts = np.bincount(self.half[self.weights > 0], minlength=2)
        return bool(np.min(counts) >= FEW * self.dim)

    def seen_in(self, Q: np.ndarray) -> Evidence:
        """In the coordinates of orthonormal rows ``Q (k, r)``."""
        return replace(self, Z=self.Z @ Q.T, lost=self.lost.seen_in(Q))

    def at(self, rows: np.ndarray | slice) -> Evidence:
        """Some of them, by their places or a mask."""
        places = self.index[rows] if self.index.size else self.index
        return replace(self, Z=self.Z[rows], units=self.units.at(rows), weights=self.weights[rows], index=places)

    def first(self, m: int) -> Evidence:
        """Some of them: rows are in random order."""
        return self.at(slice(m))

    def in_single_precision(self) -> Evidence:
        """With rows in float32, which are passed over in half the time."""
        return replace(self, Z=self.Z.astype(np.float32))

    def part(self, half: int) -> Evidence:
        """One of the two parts."""
        return self.at(self.half == half)

    @property
    def in_order(self) -> np.ndarray:
        """Rows ``(m, r)`` as they come in the data; none where their order means nothing."""
        return self.Z[np.argsort(self.index, kind="stable")] if self.index.size else self.Z[:0]

    def chunks(self) -> list[tuple[int, np.ndarray, np.ndarray]]:
        """As the refinement reads samples."""
        return [(h, self.Z[self.half == h], self.weights[self.half == h]) for h in (0, 1)]


def distinct(Z: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Places of the first of rows ``Z (m, r)`` that are there several times, if they are copies; of all, if by chance.

    Samples of discrete sources are alike by chance: each value comes as often as Poisson's law of some mean has it.  So
    if ``f_c`` rows are there ``c`` times, ``c! f_c`` are moments of a measure, and by the inequality of Cauchy and
    Schwarz ``f_(c-1) f_(c+1) >= c / (c + 1) f_c^2``.  Copies are there just so many times, and not once more or less.
    And counts of ``n`` rows are all multiples of ``g`` with a chance of ``g^-n``.  Of a part of the rows
    copies are there as often as a binomial law has it, which varies less than any mixture of Poisson's.
    """
    every = np.arange(Z.shape[0])
    line = Z @ np.cos(np.arange(Z.shape[1]) + 1.0)  # any direction: rows that are alike are neighbours along it
    order = np.lexsort((index, line))
    same = np.all(np.abs(np.diff(Z[order], axis=0)) <= ALIKE, axis=1)
    new = np.append(True, ~same)[: every.size]
    starts = np.flatnonzero(new)
    order = order[np.lexsort((index[order], np.cumsum(new)))]  # the first of each before its copies
    times = np.diff(np.append(starts, every.size))
    f = np.bincount(times, minlength=3).astype(np.float64)
    c = 1 + np.flatnonzero(f[2:]) + 1
    less, here, more = f[c - 1], f[c], np.append(f, 0.0)[c + 1]
    # 2 sqrt(c / (c + 1)) f_c <= t f_(c-1) + f_(c+1) / t for any t: that of the smallest right-hand side.
    share, t = 2 * np.sqrt(c / (c + 1)), np.sqrt((more + 1) / (less + 1))
    too_many = share * here - t * less - more / t
    error = np.sqrt(share**2 * here + t * t * less + more / (t * t))
    copies = np.any(too_many > norm.isf(RATE / 3 / max(c.size, 1)) * error)
    copies |= float(np.gcd.reduce(times)) ** -times.shape[0] < RATE / 3
    if times.size and not copies and np.mean(times) > 1:
        # Poisson's law without zero: mean = x / (1 - exp(-x)), variance = mean (1 + x - mean).
        mean = float(np.mean(times))
        x = mean + float(lambertw(-mean * math.exp(-mean)).real)
        copies = np.var(times) < mean * (1 + x - mean) * (1 - norm.isf(RATE / 3) * math.sqrt(2 / times.size))
    return np.sort(order[starts]) if copies else every
