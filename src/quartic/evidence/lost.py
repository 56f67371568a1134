"""What was lost on the way to the file: digits that were rounded, gaps that were filled in, peaks that were cut off.

What is lost of a feature acts as noise of its own on it, of a variance that the file still shows.  In whitened
coordinates this noise has a covariance ``N``, known beforehand: the directions that vary least have most of it.  An
axis ``u`` of which it is more than a tenth proves nothing, and others are turned by what ``N`` has off the diagonal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from scipy.stats import mannwhitneyu

from quartic.frame import Frame
from quartic.halves import row_hash

TENTH = 0.1  # of a signal's variance: more than that lost, and it is not the signal that is seen; by definition
OFTEN = 5  # times as often as the values next to it: a rail, or one value that fills gaps; arbitrary
FEWEST = 8  # values of a feature, and samples at one of them, below which nothing is told; arbitrary
RARELY = 1e-2  # of the samples, or of the draws: a value that is there no more often is no level; arbitrary
WHOLE = 1e-2  # of a step: values that are so near to multiples of it are such; arbitrary
EXACTLY = 1e-6  # standard deviations: a value that is the mean, to rounding
CORE, SPIKES = (0.15, 0.85), 2.0  # quantiles of most samples; times the second largest tail; arbitrary
SAME = 1e-10  # standard deviations: what rounding makes of one value
ENDS, SURELY, MANY = 0.05, 3.0, 100  # of the range: where squashed features have many samples; standard deviations;
# values, fewer of which few sources of two values have; arbitrary
BETWEEN = 0.1  # of the samples in the middle half of the range: fewer of them are a gap between two values; arbitrary


class Loss(Enum):
    """What happened to a feature; the value is what is said of it."""

    ROUNDED = "rounded to few digits"
    FILLED = "filled in where values are missing"
    CLIPPED = "cut off at a limit"
    SQUASHED = "squeezed against both ends of the range"


@dataclass(frozen=True)
class Lost:
    """What features have lost.

    Attributes
    ----------
    kinds : tuple of Loss or None
        The larger loss of each feature.
    shares : ndarray of shape (d,)
        Parts of their variances that are lost.
    G : ndarray of shape (d, r)
        Its standard deviation times the row of the whitener, so that ``N = G' G``.
    gross : int or None
        The one feature with spikes that the others do not show.
    """

    kinds: tuple[Loss | None, ...]
    shares: np.ndarray
    G: np.ndarray
    gross: int | None = None

    @classmethod
    def nothing(cls) -> Lost:
        """Of features that are not known."""
        return cls((), np.zeros(0), np.zeros((0, 0)))

    @classmethod
    def of(cls, Y: np.ndarray, frame: Frame) -> Lost:
        """From some of the rows ``(m, d)``, as they stand in the file."""
        m, d = Y.shape
        if m < FEWEST:
            return cls.nothing()
        if frame.dim == 1:  # a single direction is that of its atom, whatever was lost
            return replace(cls.nothing(), gross=gross_sensor(Y))
        variance = np.var(Y, axis=0)
        silent = at_rest(Y)
        found = [_loss(Y[:, f], float(frame.mean[f]), float(variance[f]), bool(silent[f])) for f in range(d)]
        if squashed(Y):  # no sums of sources: nothing is left of any feature
            found = [(Loss.SQUASHED, float(v)) if v > 0 else (None, 0.0) for v in variance]
        lost = np.array([value for _, value in found])
        shares = lost / np.where(variance > 0, variance, 1.0)
        kinds = tuple(kind for kind, _ in found)
        return cls(kinds, shares, np.sqrt(lost)[:, None] * frame.forward, gross_sensor(Y))

    def seen_in(self, Q: np.ndarray) -> Lost:
        """In the coordinates of orthonormal rows ``Q (k, r)``."""
        return replace(self, G=self.G @ Q.T) if self.kinds else self

    @property
    def everywhere(self) -> float:
        """The part of the variance that is lost in every direction, at least."""
        r = self.G.shape[1]
        return float(np.linalg.eigvalsh(self.G.T @ self.G)[0]) if self.kinds and r else 0.0

    def of_signals(self, U: np.ndarray) -> np.ndarray:
        """The part of the variance of each signal of unit rows ``U (n, r)`` that is lost, ``(n,)``."""
        return np.asarray(np.sum((self.G @ U.T) ** 2, axis=0)) if self.kinds else np.zeros(U.shape[0])

    def tilts(self, U: np.ndarray) -> np.ndarray:
        """Angles ``(n,)`` by which atoms may be off from unit rows ``U (n, r)``.

        Atoms ``B`` in noise of covariance ``N`` have ``B B' = I - N``: beside ``u`` they have at most ``N u``.  Where
        features have few values noise is not independent of signals: then its standard deviation along ``u`` counts.
        """
        if not self.kinds:
            return np.zeros(U.shape[0])
        NU = (U @ self.G.T) @ self.G  # (n, r)
        own = np.sum(NU * U, axis=1)
        beside = np.sqrt(np.maximum(np.sum(NU * NU, axis=1) - own * own, 0.0))
        return np.asarray(np.arctan2(beside, np.maximum(1 - own, 0.0)) + np.arcsin(np.sqrt(np.minimum(own, 1.0))))

    def dither(self, index: np.ndarray) -> np.ndarray | float:
        """What is added to whitened rows at places ``index (m,)``: digits drawn anew for those that were rounded off.

        Samples on a lattice lie along its axes, and in few other directions: small norms would find these sparse.
        """
        rounded = [f for f, kind in enumerate(self.kinds) if kind is Loss.ROUNDED]
        if not rounded:
            return 0.0
        place = row_hash(index)[:, None] + np.array(rounded, dtype=np.uint64)  # the same wherever a row is
        uniform = row_hash(place.ravel()).reshape(place.shape) / 2.0**64 - 0.5
        return np.asarray(math.sqrt(12) * uniform @ self.G[rounded])

    def worst(self, u: np.ndarray) -> int:
        """The feature that most of what a signal ``u (r,)`` has lost comes from."""
        return int(np.argmax((self.G @ u) ** 2))


def _loss(y: np.ndarray, mean: float, variance: float, silent: bool) -> tuple[Loss | None, float]:
    """What a feature ``y (m,)`` has lost, and the variance of it; ``mean`` is that of all rows.

    Where it is ``silent`` often, at one value, that is none which was filled in.
    """
    values, counts = distinct_values(y, SAME * math.sqrt(variance))
    if values.shape[0] < 2:
        return None, 0.0
    step = lattice(values, counts)
    losses = [
        (Loss.ROUNDED, step * step / 12),
        (Loss.FILLED, filled(y, mean, values, counts, silent=silent, among_few=step > 0)),
        (Loss.CLIPPED, cut_off(values, counts, step > 0) + cut_off(-values[::-1], counts[::-1], step > 0)),
    ]
    kind, lost = max(losses, key=lambda loss: loss[1])
    return (kind, min(lost, variance)) if lost > 0 else (None, 0.0)


def distinct_values(y: np.ndarray, apart: float) -> tuple[np.ndarray, np.ndarray]:
    """Values of ``y (m,)`` that are farther apart than rounding makes them, ascending, and how often each is there."""
    y = np.sort(y)
    starts = np.flatnonzero(np.diff(y, prepend=-np.inf) > apart)
    return y[starts], np.diff(np.append(starts, y.shape[0]))


def lattice(values: np.ndarray, counts: np.ndarray) -> float:
    """The step between ascending ``values`` that are all multiples of one; 0 where they are not.

    Where few values hold nearly all samples, those count: of two, and a third that is hardly there, the step is that
    of the two.
    """
    step = float(np.min(np.diff(values)))
    places = (values - values[0]) / step
    if np.max(np.abs(places - np.round(places))) > WHOLE:
        return 0.0
    often, total = counts > RARELY * np.sum(counts), np.sum(counts)
    few = np.sum(often) > 1 and np.sum(counts[often]) > (1 - RARELY) * total
    return float(np.min(np.diff(values[often]))) if few else step


def filled(
    y: np.ndarray, mean: float, values: np.ndarray, counts: np.ndarray, *, silent: bool, among_few: bool
) -> float:
    """Variance that is lost where one value, which is the mean or the median of the others, stands for missing ones.

    A value at which a signal is silent is there as often; but it is not the mean to the last digits, unless all values
    are multiples of one, and where it is the median it comes with those of the others.
    """
    if values.shape[0] < FEWEST:
        return 0.0
    scale = float(np.std(y))
    most, next_to_mean = int(np.argmax(counts)), int(np.argmin(np.abs(values - mean)))
    often = counts[most] >= OFTEN * np.max(np.delete(counts, most))
    lost = 0.0
    for place, is_mean in ((next_to_mean, True), (most, False)):
        others = y[np.abs(y - values[place]) > EXACTLY * scale]
        if counts[place] < FEWEST or others.shape[0] < FEWEST or (silent and place == most):
            continue
        if not often and (among_few or not is_mean):
            continue
        spread = float(np.std(others))
        centres = [mean, float(np.mean(others))]
        if not is_mean:  # of an odd number of others the median is one of them
            centres = [_median(others, spread), _median(np.append(others, values[place]), spread)]
        if min(abs(values[place] - centre) for centre in centres) <= EXACTLY * spread:
            lost = max(lost, int(counts[place]) / y.shape[0] * spread**2)
    return lost


def _median(y: np.ndarray, spread: float) -> float:
    """Of ``y (m,)``, where it is known: infinite where the two in the middle are far from each other."""
    middle = np.sort(y)[[(y.shape[0] - 1) // 2, y.shape[0] // 2]]
    return float(np.mean(middle)) if np.ptp(middle) <= WHOLE * spread else math.inf


def at_rest(Y: np.ndarray) -> np.ndarray:
    """Features ``(d,)`` of ``Y (m, d)`` whose most frequent value comes with those of the others: nothing is active."""
    spread = np.std(Y, axis=0)
    most = np.zeros(Y.shape, dtype=bool)
    for f, y in enumerate(Y.T):
        values, counts = distinct_values(y, SAME * spread[f])
        most[:, f] = np.abs(y - values[np.argmax(counts)]) <= EXACTLY * spread[f]
    all_of_them = np.all(most, axis=1)
    return np.asarray(2 * np.sum(all_of_them) > np.sum(most, axis=0))


def cut_off(values: np.ndarray, counts: np.ndarray, among_few: bool) -> float:
    """Variance that is lost beyond the largest of ascending ``values``, if that is a rail.

    Tails fall off exponentially: what lies beyond is as long as what is inside of it.  Nothing lies below a zero.  Sums
    of sources of few values have many values that come often; where they are multiples of one, ``among_few``, all do.
    """
    inside = counts[-1 - FEWEST : -1] if among_few else np.delete(counts[1:-1], np.argmax(counts[1:-1]))
    rail = int(counts[-1])
    if values[-1] == 0 or inside.shape[0] < FEWEST or rail < FEWEST or rail < OFTEN * np.max(inside):
        return 0.0
    share = rail / int(np.sum(counts))
    as_many = np.searchsorted(np.cumsum(counts[::-1]), 2 * rail)  # from here on there are as many inside as at the rail
    length = (values[-1] - values[max(values.shape[0] - 1 - int(as_many), 0)]) / math.log(2)
    return float(share * 2 * length * length)


def squashed(Y: np.ndarray) -> bool:
    """Whether features ``Y (m, d)`` lie more densely at both ends of their ranges than next to these.

    Tails fall off, and sums of what is bounded do; two or three sources of two values each do not.  What is cut off at
    a limit has the limit often, and is no denser next to it: the limits themselves do not count.
    """
    low, high = np.min(Y, axis=0), np.max(Y, axis=0)
    place = (Y - low) / np.where(high > low, high - low, 1.0)
    excess, variance = [], []
    for side in (place, 1 - place):
        outer = np.sum((side > 0) & (side < ENDS), axis=0)
        inner = np.sum((side >= ENDS) & (side < 3 * ENDS), axis=0)  # twice as wide
        excess.append(outer - inner / 2)
        variance.append(outer + inner / 4)
    # Of each feature the end that is less dense: what is never negative is dense at one of them.
    lesser = np.argmin(excess, axis=0)[None, :]
    total, error = (float(np.sum(np.take_along_axis(np.array(x), lesser, axis=0))) for x in (excess, variance))
    between = float(np.mean((place > 1 / 4) & (place < 3 / 4)))
    return between > BETWEEN and total > SURELY * math.sqrt(error) and min(np.unique(y).shape[0] for y in Y.T) >= MANY


def gross_sensor(Y: np.ndarray) -> int | None:
    """The feature of ``Y (m, d)`` whose spread is far larger than most of its samples say, if it is the only one.

    And if the others are no larger in the rows that make half of its variance: of what is seldom active they are.
    """
    low, high = np.quantile(Y, CORE, axis=0)
    spread, core = np.std(Y, axis=0), high - low
    if Y.shape[1] < 2 or np.any(core == 0):
        return None
    tails = spread / core
    largest, second = np.argsort(-tails)[:2]
    if tails[largest] <= SPIKES * tails[second]:
        return None
    size = ((Y - np.median(Y, axis=0)) / core) ** 2
    others = np.sum(np.delete(size, largest, axis=1), axis=1)
    order = np.argsort(-size[:, largest])
    energy = np.cumsum(size[order, largest])
    far = int(np.searchsorted(energy, energy[-1] / 2)) + 1
    larger = mannwhitneyu(others[order[:far]], others[order[far:]], alternative="greater").pvalue
    return int(largest) if larger > RARELY else None
