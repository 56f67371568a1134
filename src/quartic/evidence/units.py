"""Units: the parts of the samples that are independent of each other, and how it is seen which they are.

Halves of the samples, and standard errors, are worth what the independence of the rows is worth.  Units are rows; or
groups that are named (subjects, sessions, images, trials); or, where neighbours depend on each other, contiguous
stretches, long against the time in which that is over.

Whether it is, is read off sums over stretches of doubling length: of the signals, for walks and slow waves, and of
their magnitudes, for bursts.  Sums over successive stretches of independent rows are uncorrelated at every length;
where they are not, stretches are as long as it takes until they are.  Where that leaves fewer than :data:`STRETCHES`,
as in walks, there are no independent parts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from scipy.stats import norm

from quartic.halves import half_of, row_hash

ROWS = ("auto", "exchangeable")  # whether neighbours depend on each other is tested; order means nothing
STRETCHES = 60  # at least, 30 in a half: from fewer neither their spread nor their independence is known
GROUPS = 10  # at least, of those that are named, 5 in a half: their spread goes by Student's law
MOST = 256  # units: more are joined, which leaves them independent
EDGE = 1 / 8  # of a stretch: left out at its start, where it depends on the one before
RATE = 2e-3  # false alarms: by definition, in one fit of 500 rows that are independent are not taken for such
SURE = 0.05  # a correlation of successive stretches that is no rarer than this, at any length, is none
CLIPPED = 3.0  # standard deviations: far samples must not decide what is correlated; arbitrary


class Kind(Enum):
    """What units are."""

    ROWS = "rows"
    GROUPS = "groups of rows"
    STRETCHES = "stretches of rows"


@dataclass(frozen=True)
class Units:
    """Which rows of the evidence are one unit.

    Attributes
    ----------
    kind : Kind
    of : ndarray of shape (m,)
        The unit of each row; -1 for rows at the edges of stretches, which belong to none.
    half : ndarray of shape (m,)
        The part, 0 or 1, of each row: units are dealt in turn, rows by a hash of their place.
    apart : ndarray of shape (m,)
        Rows that count as independent of each other, wherever single ones are counted.
    count, needed : int
        About how many units are independent, and how many must be.
    length : int
        Rows of the data that a stretch has.
    effect : float
        How many times larger than for independent rows the variance of a mean is.
    found : float
        The correlation of successive rows, or stretches, that was found, in standard errors.
    """

    kind: Kind
    of: np.ndarray
    half: np.ndarray
    apart: np.ndarray
    count: int
    needed: int = 0
    length: int = 1
    effect: float = 1.0
    found: float = 0.0

    @property
    def enough(self) -> bool:
        """Whether there are independent parts at all."""
        return self.count >= self.needed

    @property
    def alone(self) -> bool:
        """Whether each row is one."""
        return self.kind is Kind.ROWS

    def at(self, rows: np.ndarray | slice) -> Units:
        """Of some of the rows."""
        return replace(self, of=self.of[rows], half=self.half[rows], apart=self.apart[rows])

    def __str__(self) -> str:
        if self.kind is Kind.ROWS:
            return "rows"
        if self.kind is Kind.GROUPS:
            return f"{self.count} groups of rows" + ("" if self.enough else f"; {self.needed} are needed")
        if not self.enough:
            few = f"about {self.count}" if self.count < self.needed - 1 else f"fewer than {self.needed}"
            return f"{few} independent stretches of rows; {self.needed} are needed"
        return f"{self.count} stretches of {self.length} rows"


def rows_alone(index: np.ndarray, found: float = 0.0) -> Units:
    """Each row at a place ``index (m,)`` is a unit."""
    return dealt(half_of(row_hash(index)), found)


def dealt(half: np.ndarray, found: float = 0.0) -> Units:
    """Each row is a unit, in the part ``half (m,)``."""
    m = half.shape[0]
    return Units(Kind.ROWS, np.arange(m), half, np.ones(m, dtype=bool), m, found=found)


def named(groups: np.ndarray, Z: np.ndarray, index: np.ndarray) -> Units:
    """Groups ``(m,)`` of whitened rows ``Z (m, r)``; which are in one half does not depend on their names."""
    names, first, code = np.unique(groups, return_index=True, return_inverse=True)
    n = names.shape[0]
    place = np.argsort(np.argsort(row_hash(index[first]), kind="stable"), kind="stable")[code]  # instead of the name
    unit = place * min(n, MOST) // n
    features = _features(Z)
    sums = np.stack([np.bincount(place, column, n) for column in features.T], axis=1)
    effect = _effect(np.sum(sums * sums, axis=0), features)
    apart = row_hash(row_hash(index)) / 2.0**64 <= 1 / effect
    return Units(Kind.GROUPS, unit, unit % 2, apart, n, GROUPS, effect=effect)


def seen(Z: np.ndarray, index: np.ndarray) -> Units:
    """Rows, or stretches of them, by what whitened samples ``Z (m, r)`` at places ``index (m,)`` show.

    Of rows that are some of all, successive ones are those of them: what is between need not be here.
    """
    m = Z.shape[0]
    least = min(STRETCHES, m // 2)  # of fewer than 120 rows it is seen, but no stretches are left
    if least < 2:
        return rows_alone(index)
    order = np.argsort(index, kind="stable")
    features = _features(Z[order])
    k = features.shape[1]
    length, sums, lengths, found, spread = 1, features, [], [], []
    while sums.shape[0] >= least:
        lengths.append(length)
        found.append(_correlation(sums))
        spread.append(np.sum(sums * sums, axis=0))
        length, sums = 2 * length, _in_pairs(sums)
    T = np.array(found)  # (lengths, k)
    worst = float(np.max(T))
    if worst <= norm.isf(RATE / T.size):
        return rows_alone(index, worst)
    effect = _effect(np.max(spread, axis=0), features)
    dependent = np.max(np.abs(T), axis=1) > norm.isf(SURE / k / 2)
    if least < STRETCHES or np.all(dependent[-2:]):  # at the longest alone it is no rarer than chance
        few = min(STRETCHES - 1, max(1, round(EDGE * m / effect)))
        return replace(rows_alone(index, worst), kind=Kind.STRETCHES, count=few, needed=STRETCHES, effect=effect)
    length = lengths[int(np.flatnonzero(dependent[:-1])[-1]) + 1 if np.any(dependent[:-1]) else 0]
    length = min(max(length, m // MOST), m // STRETCHES)
    place = np.empty(m, dtype=np.intp)
    place[order] = np.arange(m)
    unit = np.where(place % length < EDGE * length, -1, place // length)
    apart = place % math.ceil(effect) == 0
    every = round((int(index[order[-1]]) - int(index[order[0]]) + 1) / m)  # rows of the data for one of these
    return Units(Kind.STRETCHES, unit, unit % 2, apart, -(-m // length), STRETCHES, length * every, effect, worst)


def _features(Z: np.ndarray) -> np.ndarray:
    """What means of whitened rows ``Z (m, r)`` are looked at of: the signals, and their magnitudes; centred."""
    features = np.concatenate((np.clip(Z, -CLIPPED, CLIPPED), np.minimum(np.abs(Z), CLIPPED)), axis=1)
    return np.asarray(features - np.mean(features, axis=0))


def _effect(of_sums: np.ndarray, features: np.ndarray) -> float:
    """How many times larger the squares of sums over units are than those of independent rows, at most of features."""
    own = np.maximum(np.sum(features * features, axis=0), np.finfo(np.float64).tiny)
    return float(max(1.0, np.max(of_sums / own)))


def _in_pairs(sums: np.ndarray) -> np.ndarray:
    """Sums of every two rows; of an odd number the last stays alone."""
    out = sums[::2].copy()
    out[: sums.shape[0] // 2] += sums[1::2]
    return out


def _correlation(sums: np.ndarray) -> np.ndarray:
    """Of successive ones, in standard errors, ``(k,)``; few large ones never make many."""
    products = sums[:-1] * sums[1:]
    spread = np.sqrt(np.sum(products * products, axis=0))
    return np.asarray(np.sum(products, axis=0) / np.maximum(spread, np.finfo(np.float64).tiny))
