r"""Which axes are meant in a plane: independent sources, or signs that are independent given the magnitudes.

A law may have two readings.  The sum and the difference of two exchangeable sources have independent signs as well,
whenever the two have; so have those of two independent sources of one symmetric law.  Fourth moments can not tell:
turned by 45 degrees a pair with cross cumulant ``c`` and kurtoses ``k`` has ``c' = (k - c)/2`` and ``k' = (k + 3c)/2``.
The order of what is assumed decides, plane by plane:

1. *Independent sources*: every cross term is **shown** to lie within a tenth of the kurtoses, under one score and
   weight, and under no other, nor for a bounded function, to lie beyond it.
2. Cross terms that **may** be zero, and no second reading: the two have different kurtoses and are shown to be far from
   a plane that is the same in all directions but for lengths (the coupling is less than half of the kurtosis); or they
   are skewed and the mixed third moments are shown to be small (signs of a skewed pair are independent in no axes).
3. *Few active atoms in samples of small norm*: for signals of positive kurtosis, the axes in which those samples are
   significantly sparser.  Where cross terms are not zero nothing else counts, and the smallest norms must say so
   themselves, for larger ones may say the opposite.

Where the smallest norms speak for the other reading, neither 1 nor 2 helps heavy-tailed symmetric signals.  A pair that
passes none of this has a rival, and is not certified.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from quartic.certify.contrast import Contrast

RATE = 2e-3  # false alarms of a kind in a fit: by definition, one fit in 500
TENTH = 0.1  # of the kurtoses: cross terms of signals that count as independent; by definition
HALF = 0.5  # of the kurtosis: a coupling that leaves axes to a plane; all of it leaves none
THIRD = 1 / 3  # of the larger skewness: mixed third moments of axes that are right; turned by 45 degrees they are equal
SILENT = 0.125  # of the 99% quantile of a square: below it both are silent; arbitrary, half of a signal turned by 45
FAINT = 0.02  # the same, where nothing but what speaks against a reading is looked for; noise speaks for none
LEVELS = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1.0)  # of the samples that are not silent, by their norm; arbitrary
OPPOSITE, UNLIKELY = -3.0, 4.0  # standard errors at a level that speak for the other reading, or against chance
THEMSELVES = 3.0  # standard errors that the next two levels must have where cross terms are not zero
RARE = 0.2  # share of the samples in a plane that are not silent, below which signals count as mostly silent; arbitrary
FEWEST = 64  # samples in a plane that are not silent, below which norms say nothing; arbitrary
FEW = 4  # samples of a level, below which it says nothing: fewer are hardly three standard errors
ROWS = 8192  # samples that norms are looked at in
BLOCK = 1 << 21  # numbers at a time


@dataclass(frozen=True)
class Limits:
    """Standard errors that count, from one rate of false alarms, divided among all that could give one.

    Attributes
    ----------
    axis, plane : float
        A figure of an axis, and of a plane, under any of the scores and weights.
    norms : float
        One of a plane that there is one of.
    interval : float
        Of intervals that hold for all planes together, 19 times in 20.
    """

    axis: float
    plane: float
    norms: float
    interval: float

    @classmethod
    def of(cls, r: int, trials: int) -> Limits:
        """For ``r`` axes, and so many scores and weights."""
        planes = max(1, r * (r - 1) // 2)
        rates = (RATE / r / trials, RATE / planes / trials, RATE / planes, 0.05 / planes)
        return cls(*(float(norm.isf(rate / 2)) for rate in rates))


@dataclass(frozen=True)
class Planes:
    """What is known of every plane of two axes; masks of shape (r, r), symmetric.

    Attributes
    ----------
    independent : ndarray
        Cross terms are shown to be within a tenth of the kurtoses.
    dependent : ndarray
        Cross terms are shown to be larger.
    different, skewed, sparser : ndarray
        What excludes a second reading.
    settled : ndarray
        Whether one reading is left, and it is this one.
    ratio : ndarray of shape (r, r)
        The largest cross term over the kurtosis.
    """

    independent: np.ndarray
    dependent: np.ndarray
    different: np.ndarray
    skewed: np.ndarray
    sparser: np.ndarray
    settled: np.ndarray
    ratio: np.ndarray


def read(contrasts: Sequence[Contrast], heavy: np.ndarray, S: np.ndarray, limits: Limits) -> Planes:
    """Every plane of two axes.

    Parameters
    ----------
    contrasts : sequence of Contrast
        Under several weights and scores, of all evidence.
    heavy : ndarray of shape (r,)
        Signals of positive kurtosis.
    S : ndarray of shape (m, r)
        Signals, of which norms are looked at.
    limits : Limits
    """
    errors = limits.plane
    r = heavy.shape[0]
    other = ~np.eye(r, dtype=bool)
    independent, dependent, different, skewed, mixed = (np.zeros((r, r), dtype=bool) for _ in range(5))
    lopsided, ratio = np.zeros((r, r), dtype=bool), np.zeros((r, r))
    for contrast in contrasts:
        k, c, g, shape = contrast.kurtosis, contrast.dependence, contrast.skewness, contrast.shape
        size = np.abs(k.value)[:, None]
        within = c.surely_within(TENTH * size, limits.interval) & contrast.sharp(limits.axis)[:, None]
        independent |= within & within.T
        beyond = c.surely_beyond(TENTH * size, errors)
        dependent |= (beyond | beyond.T) & other
        ratio = np.maximum(ratio, np.abs(c.value) / np.where(size > 0, size, np.inf))
        apart = np.abs(shape.value[:, None] - shape.value)
        sharp = contrast.sharp(limits.axis)
        loose = contrast.coupling.surely_within(HALF * size, limits.interval) | ~sharp[:, None]
        far = loose & loose.T & (sharp[:, None] | sharp)
        different |= far & (apart > errors * np.hypot(shape.error[:, None], shape.error))
        skew = np.diagonal(g.value)
        own = np.abs(skew) > errors * np.diagonal(g.error)
        small = g.surely_within(THIRD * np.maximum(np.abs(skew)[:, None], np.abs(skew)), errors)
        lopsided |= own[:, None] | own
        skewed |= (own[:, None] | own) & small & small.T
        cross = g.surely_beyond(0.0, errors) & other
        mixed |= cross | cross.T
    both = heavy[:, None] & heavy
    activity = np.where(both, bounded_correlations(S), 0.0)
    dependent |= other & (np.abs(activity) - errors / np.sqrt(S.shape[0]) > TENTH)
    ratio = np.maximum(ratio, np.abs(activity))
    z, count = small_norms(S)
    may_be = ~dependent
    # Small norms that speak for the other reading; or, where both are mostly silent, do not speak for this one though
    # all norms together say they would.
    rare = count < RARE * min(S.shape[0], ROWS)
    faint, _ = small_norms(S, FAINT)
    silence = z[-1] * np.sqrt(LEVELS)[:, None, None] - UNLIKELY
    against = both & np.any((z[:4] < OPPOSITE) | (rare & (z[:4] < np.minimum(silence[:4], 0.0))), axis=0)
    against |= both & np.any(faint[:4] < -limits.norms, axis=0)
    mildly = both & (z[-1] > limits.norms) & (count >= FEWEST) & ~against
    clearly = both & np.all(z[2:4] > THEMSELVES, axis=0) & (z[4] > limits.norms) & ~against
    clearly &= np.all(faint[:4] > OPPOSITE, axis=0)
    settled = (independent | different) & may_be & (lopsided | ~against)
    settled |= skewed & may_be & ~mixed
    settled |= np.where(dependent, clearly & ~lopsided, mildly)
    return Planes(independent, dependent, different, skewed, mildly | clearly, settled | ~other, ratio)


def bounded_correlations(S: np.ndarray) -> np.ndarray:
    """Correlations of ``tanh^2`` of signals ``S (m, r)``, ``(r, r)`` with a zero diagonal; they err by ``m^(-1/2)``.

    Fourth cumulants of dependent signals may cancel: two that are active at the same times, in the axes of their sum
    and difference, have none where ``c = k``.  That they are active at the same times shows in any axes.
    """
    spread = np.sqrt(np.mean(S * S, axis=0))
    out = np.corrcoef(np.tanh(S / np.where(spread > 0, spread, 1.0)) ** 2, rowvar=False).reshape(S.shape[1], -1)
    out = np.nan_to_num(out)  # of a signal that is constant in magnitude
    np.fill_diagonal(out, 0.0)
    return out


def small_norms(S: np.ndarray, silent: float = SILENT) -> tuple[np.ndarray, np.ndarray]:
    """How far samples of small norm lie along the axes, for every plane of two signals of ``S (m, r)``.

    The mean of ``cos 4 phi`` over the samples below each of :data:`LEVELS`, in standard errors of the uniform law,
    ``(levels, r, r)``; and the samples in each plane that are not ``silent``, ``(r, r)``.  Turned by 45 degrees it has
    the opposite sign, and it is bounded: no sample counts for more than one.  Without what an oblique ellipse takes of
    it, as the small norms of noise that is not white: ``E exp(4i phi) = (E exp(2i phi))^2`` for any Gaussian's angle.
    """
    columns = np.ascontiguousarray(S[:ROWS].T)  # (r, m)
    squares = columns * columns
    r, m = columns.shape
    loud = silent * np.quantile(squares, 0.99, axis=1)
    z, count = np.zeros((len(LEVELS), r, r)), np.zeros((r, r))
    first, second = np.triu_indices(r, 1)
    size = max(1, BLOCK // m)
    for start in range(0, first.shape[0], size):
        i, j = first[start : start + size], second[start : start + size]
        length = squares[i] + squares[j]  # (pairs, m)
        mute = length <= ((loud[i] + loud[j]) / 2)[:, None]
        order = np.argsort(np.where(mute, np.inf, length), axis=1)
        safe = np.where(mute, np.inf, length)
        cosine, sine = (squares[i] - squares[j]) / safe, 2 * columns[i] * columns[j] / safe  # of 2 phi
        quartic = np.where(mute, 0.0, cosine * cosine - sine * sine)
        sums = [np.cumsum(np.take_along_axis(x, order, axis=1), axis=1) for x in (quartic, sine, sine * sine)]
        counts = np.sum(~mute, axis=1)
        count[i, j] = count[j, i] = counts
        for level, share in enumerate(LEVELS):
            some = np.maximum(np.ceil(share * counts).astype(np.intp), 1)
            mean, sine_mean, sine_square = (np.take_along_axis(x, some[:, None] - 1, axis=1)[:, 0] / some for x in sums)
            oblique = sine_mean**2 - sine_square / some  # E (mean x)^2 = (E x)^2 + var(x) / n
            value = (mean + oblique) * np.sqrt(2 * some)
            z[level, i, j] = z[level, j, i] = np.where(some >= FEW, value, 0.0)
    return z, count
