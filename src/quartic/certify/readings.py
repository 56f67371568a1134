r"""Which axes are meant in a plane: independent sources, or signs that are independent given the magnitudes.

A law may have two readings.  The sum and the difference of two exchangeable sources have independent signs as well,
whenever the two have; so have those of two independent sources of one symmetric law.  Fourth moments can not tell:
turned by 45 degrees a pair with cross cumulant ``c`` and kurtoses ``k`` has ``c' = (k - c)/2`` and ``k' = (k + 3c)/2``.
The order of what is assumed decides, plane by plane:

1. *Independent sources*: every cross term is **shown** to lie within a tenth of the kurtoses, under one score and
   weight, and nothing shows the contrary: no other score or weight has one beyond a tenth, and the two are not active
   together more often than by chance, unless that is shown to be a correlation below a tenth.
2. Cross terms that **may** be so small, and no second reading: the two have different kurtoses and are shown to be far
   from a plane that is the same in all directions but for lengths (the coupling is less than half of the kurtosis, or
   one kurtosis is positive and the other negative, which no such plane has); or
   they are skewed and mixed third moments are shown to be small (signs of a skewed pair are independent in no axes).
3. *Few active atoms in samples of small norm*: for signals of positive kurtosis, the axes in which those samples are
   significantly sparser, for dependent signals not less so than samples of all norms (sums of what hardly ever occurs
   alone are), and in which no similar magnitudes have mostly one sign, as those of an atom that is not among the axes
   have.  Samples of all norms may say so where cross terms may be small, and the two neither exclude each other nor
   are active together: so do the sum and the difference of two that hardly ever occur alone.

Where the smallest norms speak for the other reading, nothing of this helps heavy-tailed symmetric signals.  A pair that
passes none of it has a rival, and is not certified.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import pdtrc
from scipy.stats import norm

from quartic._arrays import pack_rank_one, unpack
from quartic.certify.contrast import Contrast
from quartic.evidence.units import Units

RATE = 2e-3  # false alarms of a kind in a fit: by definition, one fit in 500
INTERVAL, DOUBT = 0.05, 0.01  # fits in which any interval is false; share of false ones among doubts; by definition
TENTH = 0.1  # of the kurtoses: cross terms of signals that count as independent; by definition, also of their marks
HALF = 0.5  # of the kurtosis: a coupling that leaves axes to a plane; all of it leaves none
THIRD = 1 / 3  # of the larger skewness: mixed third moments of axes that are right; turned by 45 degrees they are equal
SILENT = 0.125  # of the 99% quantile of a square: below it both are silent; arbitrary, half of a signal turned by 45
NEARLY = 1.25  # times a squared norm: nearly the same, for variances of rare signals err by a tenth; arbitrary
FEWEST = 128  # loud samples of a plane: of two atoms that are together 19 times in 20 a dozen are of one alone
TURNED = 0.25  # variance of cos 4 phi where that tenth is turned by 45 degrees: other axes of such a pair show no less
PLAINLY = 0.25  # a p-value: what is above is no hint of the contrary; arbitrary
COMMON = 2.0  # standard deviations of a count: more comes one time in fifty, which no test takes for rare
TINY = float(np.finfo(np.float32).tiny)  # a square that is none
MOSTLY = 0.5  # of the samples: an excess of one sign; by definition, three of four
STEPS, LEAST = 10, -1.5  # half octaves of magnitudes, and log2 of the first, in spreads: below it is silence
NEAR = math.pi / 8  # an axis that a half has farther away may be another one: half of the way to the 45 degrees
ROWS = 8192  # samples that norms are looked at in, and magnitudes at least
MARKS, BLOCK, CACHE = 1 << 24, 1 << 19, 1 << 17  # numbers that magnitudes are marked by; at a time, of these and norms


@dataclass(frozen=True)
class Limits:
    """Standard errors that count, from one rate of false alarms, divided among all that could give one.

    Attributes
    ----------
    axis, plane : float
        A figure of an axis, and of a plane, under any of the scores and weights.
    norms, rare : float
        One of a plane that there is one of, and a p-value that counts as one.
    interval, any_interval, suspect : float
        Of intervals that hold for all planes together, 19 times in 20; under all scores and weights, too; and in any
        plane as often as a false alarm.
    """

    axis: float
    plane: float
    norms: float
    rare: float
    interval: float
    any_interval: float
    suspect: float

    @classmethod
    def of(cls, r: int, trials: int) -> Limits:
        """For ``r`` axes, and so many scores and weights."""
        planes = max(1, r * (r - 1) // 2)
        all_hold = INTERVAL / planes
        rates = (
            RATE / r / trials,
            RATE / planes / trials,
            RATE / planes,
            all_hold,
            all_hold / trials / 2,
            min(RATE, all_hold),
        )
        axis, plane, norms, interval, any_interval, suspect = (float(norm.isf(rate / 2)) for rate in rates)
        return cls(axis, plane, norms, RATE / planes, interval, any_interval, suspect)


@dataclass(frozen=True)
class Planes:
    """What is known of every plane of two axes; masks of shape (r, r), symmetric.

    Attributes
    ----------
    dependent : ndarray
        Cross terms are shown to be larger than a tenth of the kurtoses.
    settled : ndarray
        Whether one reading is left, and it is this one.
    by_signs : ndarray
        Whether it is left by where samples are sparse, and not by independence.
    alike : ndarray
        Shown to be nearly the same in all directions: the coupling is more than half of the kurtosis, and what depends
        on the direction less than half, under one score and weight, and not there under any.
    ratio : ndarray of shape (r, r)
        The largest cross term over the kurtosis.
    """

    dependent: np.ndarray
    settled: np.ndarray
    by_signs: np.ndarray
    alike: np.ndarray
    ratio: np.ndarray


def read(
    contrasts: Sequence[Contrast],
    weighted: Sequence[bool],
    heavy: np.ndarray,
    light: np.ndarray,
    shares: np.ndarray,
    S: np.ndarray,
    units: Units,
    limits: Limits,
) -> Planes:
    """Every plane of two axes.

    Parameters
    ----------
    contrasts : sequence of Contrast
        Under several weights and scores, of all evidence.
    weighted : sequence of bool
        Which of them are under weights.
    heavy, light : ndarray of shape (r,)
        Signals of positive kurtosis, and of negative.
    shares : ndarray of shape (2, r, r)
        Squared cosines of the axes of each half of the samples, as rows, with the axes.
    S : ndarray of shape (m, r)
        Signals, of which norms are looked at.
    units : Units
        The half of each sample, and which of them are independent.
    limits : Limits
    """
    errors = limits.plane
    apart = units.apart  # where single samples are counted
    r = heavy.shape[0]
    other = ~np.eye(r, dtype=bool)
    independent, dependent, contrary, exclusive, different = (np.zeros((r, r), dtype=bool) for _ in range(5))
    lopsided, skewed, mixed, alike, stiff = (np.zeros((r, r), dtype=bool) for _ in range(5))
    ratio = np.zeros((r, r))
    # Small norms are those of few active atoms, where signals are heavy-tailed; light-tailed ones are active always.
    calm = (light & ~heavy)[:, None] & light & ~heavy
    for contrast, under_weights in zip(contrasts, weighted, strict=True):
        k, c, g, shape = contrast.kurtosis, contrast.dependence, contrast.skewness, contrast.shape
        size = np.abs(k.value)[:, None]
        sharp = contrast.sharp(limits.axis)
        within = c.surely_within(TENTH * size, limits.interval) & sharp[:, None]
        independent |= within & within.T
        # Of the largest that the kurtosis may be: where that nearly vanishes, any cross term exceeds a tenth by chance.
        most = size + limits.interval * k.error[:, None]
        beyond, larger = (c.surely_beyond(TENTH * most, sure) for sure in (errors, limits.any_interval))
        asked = other if not under_weights else other & ~calm
        dependent |= (beyond | beyond.T) & asked
        larger &= sharp[:, None]
        contrary |= (larger | larger.T) & asked
        less = c.surely_beyond(0.0, limits.suspect) & (c.value * k.value[:, None] < 0)
        exclusive |= (less | less.T) & other
        ratio = np.maximum(ratio, np.abs(c.value) / np.where(size > 0, size, np.inf))
        distance = np.abs(shape.value[:, None] - shape.value)
        loose = contrast.coupling.surely_within(HALF * size, limits.interval) | ~sharp[:, None]
        far = loose & loose.T & (sharp[:, None] | sharp)
        different |= far & (distance > errors * np.hypot(shape.error[:, None], shape.error))
        surely = np.where(k.surely_beyond(0.0, errors), np.sign(k.value), 0.0)
        different |= surely[:, None] * surely < 0
        close = sharp[:, None] & contrast.coupling.surely_beyond(HALF * size, limits.interval)
        for harmonic in contrast.harmonics:
            close = close & close.T & harmonic.surely_within(HALF * (size + size.T), limits.interval)
            stiff |= harmonic.surely_beyond(0.0, errors)
        alike |= close & other
        skew = np.diagonal(g.value)
        own = np.abs(skew) > errors * np.diagonal(g.error)
        small = g.surely_within(THIRD * np.maximum(np.abs(skew)[:, None], np.abs(skew)), errors)
        lopsided |= own[:, None] | own
        skewed |= (own[:, None] | own) & small & small.T
        cross = g.surely_beyond(0.0, errors) & other
        mixed |= cross | cross.T
    often, ever, crooked = np.ones((r, r)), np.ones((r, r)), np.zeros((r, r), dtype=bool)
    if np.any(other & ~calm):
        often, ever, crooked = together(S[apart], limits.interval)
    dependent |= discovered(often, other & ~calm)
    # Light-tailed signals are active all the time.  Noise that is not white is larger where an atom is active.
    shared = discovered(ever, (heavy[:, None] | heavy) & other & ~crooked)
    contrary |= shared
    both = heavy[:, None] & heavy & other
    norms = small_norms(S, dependent, None if units.alone else units.of, both)
    seen = ~both | (norms.count >= FEWEST)
    against = discovered(norms.against, both)
    # Where small norms are all that speaks for a reading, less against it will do.
    entangled = both & dependent
    contradicted = discovered(norms.against, both, INTERVAL) | discovered(
        norms.denser, both & (dependent | ~seen), INTERVAL
    )
    sparser = discovered(norms.sparse, entangled) & discovered(norms.weaker, entangled, INTERVAL)
    # Of two that are together 19 times in 20 a few alone decide, and turned these lie on neither axis.
    sparser &= ~shared | (norms.denser > PLAINLY)
    # Two that exclude each other, and yet have similar magnitudes together, may be sums: what is alone is turned there.
    sparser = (sparser | both & ~dependent & ~(exclusive & shared) & (norms.sparse < limits.rare)) & ~contradicted
    mildly = both & (norms.all > limits.norms) & seen & ~against & ~exclusive
    told = (independent | different) & seen & (lopsided | ~against) | skewed & ~mixed
    alike &= ~stiff
    # Axes that both halves have; of those in a plane without axes, the plane.
    stable = np.all(np.sum(shares * (alike | ~other), axis=2) >= math.cos(NEAR) ** 2, axis=0)
    known = stable[:, None] & stable
    sparser &= known | seen  # few samples settle nothing with an axis that is another one in each half
    undisputed = (known | ~both) & ~dependent & ~contrary
    sparse = mildly & undisputed | sparser & ~lopsided & (~crooked | independent & ~contrary)
    told = told & undisputed | ~other
    loose = heavy & ~stable
    smeared = np.diag(beside_all(S[apart], units.half[apart], loose))
    for reading, rate in ((told, DOUBT), (sparse, INTERVAL)):
        doubted = np.diagonal(discovered(smeared, np.diag(heavy), rate))[:, None] & loose & other
        reading &= ~(doubted | doubted.T)
    return Planes(dependent, told | sparse, sparse & ~told, alike, ratio)


def discovered(p: np.ndarray, asked: np.ndarray, rate: float = DOUBT) -> np.ndarray:
    """Planes in which something is found, by p-values ``(r, r)`` of those that are ``asked``; symmetric.

    A share ``rate`` of those that are found is by chance (Benjamini and Hochberg 1995), however many planes there are:
    where all groups of a law have two readings each shows a little of it.
    """
    some = np.sort(p[np.triu(asked)])
    few = np.flatnonzero(some <= rate * np.arange(1, some.size + 1) / max(some.size, 1))
    return asked & (p <= some[few[-1]]) if few.size else np.zeros_like(asked)


def together(S: np.ndarray, errors: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """P-values ``(r, r)`` of pairs of signals ``S (m, r)``: active together far more often than by chance, and more.

    Fourth cumulants of dependent signals may cancel: two that are active at the same times, in the axes of their sum
    and difference, have none where ``c = k``.  But they are silent at the same times there, and what is active alone
    has two equal magnitudes.  So samples are counted by the magnitudes of both, in bands (:func:`in_bands`), and the
    count is compared with that of signals whose marks have a correlation of :data:`TENTH`, by the tail of Poisson's
    law.  An axis that is a little off shares the activity of another, with one sign: samples with equal and with
    opposite signs are counted apart, and both must be too many.

    And pairs that have similar magnitudes together with mostly one sign, ``(r, r)``: an atom that is not among the axes
    has, and noise that is not white, but not signals whose signs are independent given the magnitudes.
    """
    r = S.shape[1]
    S = S[: max(ROWS, MARKS // (r * STEPS))]
    m = S.shape[0]
    spread = np.sqrt(np.mean(S * S, axis=0))
    with np.errstate(divide="ignore"):
        octave = 2 * (np.log2(np.abs(S) / np.where(spread > 0, spread, 1.0)) - LEAST)
    place = np.clip(np.floor(octave), -1, STEPS - 1).astype(np.int8)  # (m, r)
    marks = (place[:, :, None] == np.arange(STEPS)).astype(np.float32)
    signed = marks * np.sign(S, dtype=np.float32)[:, :, None]
    similar = similar_bands()
    share, sign = (in_bands(np.asarray(np.mean(X, axis=0, dtype=np.float64)), 1) for X in (marks, signed))  # (r, bands)
    width = np.sqrt(share * (1 - share))
    marks, signed = (X.reshape(m, -1) for X in (marks, signed))
    sure = norm.isf(RATE / max(1, r * (r - 1) // 2) / similar.size / 2)
    often, ever, crooked = np.ones((r, r)), np.ones((r, r)), np.zeros((r, r), dtype=bool)
    size = max(1, BLOCK // (r * similar.size))
    for first in range(0, r, size):
        block = slice(first, first + size), slice(first, None)  # the other half is the same
        rows, columns = (slice(part.start * STEPS, part.stop and part.stop * STEPS) for part in block)
        # Counts below 2^24 are exact in float32.
        counts = (X[:, rows].T @ X[:, columns] for X in (marks, signed))
        shaped = (X.reshape(-1, STEPS, r - first, STEPS).astype(np.float64) for X in counts)
        seen, excess = (in_bands(in_bands(X, 3), 1) for X in shaped)
        chance, lean, allowed = (m * x[block[0], :, None, None] * x[block[1]] for x in (share, sign, width))
        for p, correlation in ((often, TENTH), (ever, 0.0)):
            few = np.zeros(seen.shape, dtype=bool)
            if correlation == 0:  # one that is shown to be below a tenth is none
                few = seen - chance <= (TENTH - errors / np.sqrt(m)) * allowed
            both = [((seen + way * excess) / 2, (chance + way * lean + correlation * allowed) / 2) for way in (1, -1)]
            for count, expected in both:
                few |= count - expected <= COMMON * np.sqrt(expected)
            tail = np.ones(seen.shape)
            tail[~few] = np.max([pdtrc(count[~few] - 1.0, expected[~few]) for count, expected in both], axis=0)
            p[block] = np.minimum(np.min(tail, axis=(1, 3)) ** 2 * similar.size, 1.0)  # the two are independent
        one_sign = (np.abs(excess) > MOSTLY * seen) & (np.abs(excess) > sure * np.sqrt(seen))
        crooked[block] = np.any(one_sign & similar[:, None, :], axis=(1, 3))
    return np.minimum(often, often.T), np.minimum(ever, ever.T), (crooked | crooked.T) & ~np.eye(r, dtype=bool)


def in_bands(X: np.ndarray, axis: int) -> np.ndarray:
    """Sums over bands of magnitudes, from sums over half octaves along one axis.

    Bands are octaves that advance by half of one, and then all that is above the start of each of them.
    """
    X = np.moveaxis(X, axis, 0)
    above = np.cumsum(X[::-1], axis=0)[::-1]
    return np.moveaxis(np.concatenate((X[:-1] + X[1:], above[:-1])), 0, axis)


def similar_bands() -> np.ndarray:
    """Which two bands are similar, ``(b, b)``: octaves at most one apart.

    Samples in them are far from both axes, for what is a little off an axis has a small magnitude, of one sign,
    whenever it is large.
    """
    first = np.tile(np.arange(STEPS - 1), 2)
    is_octave = np.arange(2 * (STEPS - 1)) < STEPS - 1
    return (np.abs(np.subtract.outer(first, first)) <= 2) & is_octave[:, None] & is_octave


@dataclass(frozen=True)
class Norms:
    """How far samples lie along the axes of a plane, ``(r, r)`` each.

    The sum of ``cos 4 phi``, in standard errors of the uniform law.  Turned by 45 degrees it has the opposite sign, and
    it is bounded: no sample counts for more than one.  Samples in which both signals are silent are left out.

    Attributes
    ----------
    all : ndarray
        Over all samples.
    sparse : ndarray
        P-value of the largest over any number of samples of smallest norm, up to a quarter, times half octaves of that
        number.
    against : ndarray
        P-value of the smallest over any number of them; without what one diagonal alone takes of it, as noise that is
        not white: ``E exp(4i phi) = (E exp(2i phi))^2`` for the angle of any Gaussian.
    denser : ndarray
        P-value of the correlation with the rank of the norm: in the right axes samples of larger norm are no sparser,
        for more atoms are active in them.
    count : ndarray
        Samples that are not silent.
    weaker : ndarray
        P-value of the largest over samples next to one axis, the mean over the planes that it has in its group, and
        the weaker of the two axes: noise that is not white lies along one.
    """

    all: np.ndarray
    sparse: np.ndarray
    against: np.ndarray
    denser: np.ndarray
    count: np.ndarray
    weaker: np.ndarray


def small_norms(
    S: np.ndarray, dependent: np.ndarray, unit: np.ndarray | None = None, asked: np.ndarray | None = None
) -> Norms:
    """Of every plane of two signals of ``S (m, r)``, or of those that are ``asked (r, r)``.

    Of ``dependent (r, r)`` ones, which nothing but norms can settle, all samples are looked at, and the norm is that of
    the whole neighbourhood: of three that occur together, a sample that is small in one plane may be large.  Where rows
    are no units of their own, ``unit (m,)``, samples of a plane count as many fold less as sums of ``cos 4 phi`` over
    units vary more than those of independent rows.
    """
    r, S = S.shape[1], S.astype(np.float32)
    figures, alone = np.zeros((6, r, r)), np.zeros((r, r))
    apart = ~dependent if asked is None else ~dependent & asked
    for some, rows in ((dependent, S), (apart, S[:ROWS])):
        first, second = np.nonzero(np.triu(some, 1))
        if not first.size:
            continue
        if unit is not None:  # units one after the other
            order = np.argsort(unit[: rows.shape[0]], kind="stable")
            rows, starts = rows[order], np.flatnonzero(np.diff(unit[order], prepend=-1))
        columns = np.ascontiguousarray(rows.T)  # (r, m)
        squares = columns * columns
        loud = SILENT * np.quantile(squares, 0.99, axis=1)
        around = dependent.astype(np.float32) @ squares + squares if some is dependent else None
        size = max(1, CACHE // columns.shape[1])
        for start in range(0, first.size, size):
            i, j = first[start : start + size], second[start : start + size]
            length = squares[i] + squares[j]  # (pairs, m)
            silent = length <= ((loud[i] + loud[j]) / 2)[:, None]
            safe = np.maximum(length, TINY)
            sine, cosine = 2 * columns[i] * columns[j] / safe, (squares[i] - squares[j]) / safe
            whole = np.maximum(length if around is None else around[i] + around[j], TINY)
            with np.errstate(divide="ignore"):
                whole /= ~silent  # infinite where both are silent
            alike = np.ones(i.shape[0]) if unit is None else _inflation(1 - 2 * sine * sine, ~silent, starts)
            *some_figures, alone[i, j], alone[j, i], numbers = _along_axes(
                sine, cosine, whole, alike, few=some is apart
            )
            figures[:, i, j] = figures[:, j, i] = (*some_figures, numbers)
    everywhere, sparse, against, denser, count, numbers = figures
    planes = np.maximum(np.sum(dependent, axis=1), 1)
    tail = norm.sf(np.sum(np.where(dependent, alone, 0.0), axis=1) / planes)
    weaker = np.minimum(np.maximum(tail[:, None], tail) * numbers, 1.0)
    return Norms(everywhere, sparse, against, denser, count, weaker)


def beside_all(S: np.ndarray, half: np.ndarray, loose: np.ndarray) -> np.ndarray:
    """P-values ``(r,)`` of the smallest norms speaking against an axis in the plane with a mixture of ``loose`` axes.

    The other half of a sum may lie across several axes that are not determined, and then its plane is none of two axes.
    It is the direction among these in which most happens while the sum is active: that of one half of the samples is
    asked on the other half.
    """
    r, places = S.shape[1], np.flatnonzero(loose)
    if places.size < 2:
        return np.ones(r)
    S, half = S[:ROWS], half[:ROWS]
    squares, at = S * S, np.arange(places.size)
    limit = SILENT * np.quantile(squares, 0.99, axis=0)
    whole = squares + np.sum(squares[:, places], axis=1, keepdims=True) - np.where(loose, squares, 0.0)
    whole = np.where(squares > limit, whole, np.inf)
    directions = []
    for h in (0, 1):
        mine = half == h
        quarter = np.sort(whole[mine], axis=0)
        few = np.sum(np.isfinite(quarter), axis=0) // 4
        chosen = whole[mine] <= quarter[few, np.arange(r)]
        scatter = unpack(pack_rank_one(S[mine][:, places]) @ chosen)  # (r, q, q)
        scatter[places, at, :], scatter[places, :, at] = 0.0, 0.0
        directions.append(np.linalg.eigh(scatter)[1][:, :, -1])
    directions[1] *= np.where(np.sum(directions[0] * directions[1], axis=1) < 0, -1.0, 1.0)[:, None]
    beside = np.where(half[:, None] == 1, *(S[:, places] @ V.T for V in directions))  # (m, r)
    length = squares + beside * beside
    silent = length <= (limit + SILENT * np.quantile(beside * beside, 0.99, axis=0)) / 2
    safe = np.where(length > 0, length, 1.0)
    sine, cosine = 2 * S * beside / safe, (squares - beside * beside) / safe
    return np.asarray(_along_axes(sine.T, cosine.T, np.where(silent, np.inf, length).T)[2])


def _inflation(fourth: np.ndarray, loud: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """How many times more sums over units vary than those of independent rows, at least 1, ``(pairs,)``.

    Of what is ``loud (pairs, m)``; units begin at ``starts``.
    """
    count = np.maximum(np.sum(loud, axis=1), 1)
    x = np.where(loud, fourth - (np.sum(np.where(loud, fourth, 0.0), axis=1) / count)[:, None], 0.0)
    of_units = np.sum(np.add.reduceat(x, starts, axis=1) ** 2, axis=1)
    own = np.sum(x * x, axis=1)
    return np.asarray(np.maximum(of_units / np.where(own > 0, own, 1.0), 1.0))


def _along_axes(
    sine: np.ndarray,
    cosine: np.ndarray,
    whole: np.ndarray,
    alike: np.ndarray | float = 1.0,
    *,
    few: bool = False,
) -> np.ndarray:
    """Figures ``(8, pairs)`` from twice the angles, ``(pairs, m)``, and norms, infinite for what is silent.

    Those of :class:`Norms`, with ``weaker`` as standard errors next to each of the two axes, and the numbers of samples
    that are looked at, half octaves of them.  Of ``alike (pairs,)`` samples each tells as much as one that is
    independent.  With ``few`` no more than the smallest quarter is sorted, where there are enough of them: ``denser``
    is 1 there, and ``weaker`` knows of no other samples.
    """
    loud = np.isfinite(whole)
    count = np.sum(loud, axis=1)
    alike = np.broadcast_to(np.asarray(alike), count.shape)
    total = count - 2 * np.einsum("ij,ij->i", sine * loud, sine)
    sorted_ones = np.where(few & (count >= FEWEST * alike), count // 4, count)
    k = max(1, int(np.max(sorted_ones)))
    order = np.argpartition(whole, k - 1, axis=1)[:, :k] if k < whole.shape[1] else np.arange(k)[None, :]
    smallest = np.take_along_axis(whole, order, axis=1)
    order = np.take_along_axis(np.broadcast_to(order, smallest.shape), np.argsort(smallest, axis=1), axis=1)
    sine, cosine, whole = (np.take_along_axis(x, order, axis=1) for x in (sine, cosine, whole))
    n = np.arange(1, k + 1)
    fourth = 1 - 2 * sine * sine  # cos 4 phi
    weight = 1 / np.sqrt(alike)
    scale = np.sqrt(2 / n) * weight[:, None]
    z = np.cumsum(fourth, axis=1) * scale
    # What one diagonal takes of the sum: E (sum x)^2 / n = n (E x)^2 + E x^2.
    oblique = (np.cumsum(sine, axis=1) ** 2 - np.cumsum(sine * sine, axis=1)) / n * scale
    quarter = count // 4
    here, numbers = n <= quarter[:, None], 2 * np.log2(np.maximum(count / alike / 2, 2.0))
    edge = np.take_along_axis(whole, np.maximum(quarter, 1)[:, None] - 1, axis=1)
    nearly = whole <= NEARLY * edge  # or one axis may have all of the smallest

    def next_to_one(side: np.ndarray) -> np.ndarray:
        mine = np.cumsum(np.where(side, fourth, 0.0), axis=1) * np.sqrt(2 / np.maximum(np.cumsum(side, axis=1), 1))
        return np.asarray(np.max(np.where(nearly, mine, 0.0), axis=1)) * weight

    def tail(x: np.ndarray) -> np.ndarray:
        return np.minimum(norm.sf(np.max(np.where(here, x, 0.0), axis=1)) * numbers, 1.0)

    everyone = np.maximum(count, 1)
    inside = np.isfinite(whole)
    deviation = np.where(inside, fourth - (total / everyone)[:, None], 0.0)
    rank = np.where(inside, n - (count[:, None] + 1) / 2, 0.0)
    variance = np.maximum(np.sum(deviation**2, axis=1) / everyone, TURNED)
    spread = np.sqrt(np.maximum(np.sum(rank**2, axis=1), 1.0) * variance)
    denser = norm.sf(np.sum(rank * deviation, axis=1) / spread * weight)
    denser = np.where(count > sorted_ones, 1.0, denser)
    sides = (np.zeros(count.shape),) * 2 if few else (next_to_one(cosine > 0), next_to_one(cosine < 0))
    everywhere = total * np.sqrt(2 / everyone) * weight
    return np.stack((everywhere, tail(z), tail(-z - oblique), denser, count / alike, *sides, numbers))
