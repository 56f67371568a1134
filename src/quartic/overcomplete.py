"""Dictionaries with more atoms than dimensions: tempered cumulants, subspace power, sparse codes.

The cumulant of whitened samples is ``sum_i kappa_i a_i^(x4)`` for independent coefficients, and its ``n`` eigenvectors
of largest magnitude span the ``a_i a_i'``, also for ``n`` several times the dimension.  Its rank-one elements are found
by subspace power (``algorithms.subspace_power``).  Weights that fall with the norm of a sample make it far less noisy:
not exactly, as for orthonormal atoms, since the norm depends on the signs of the coefficients too, but where few atoms
are active at a time nearly so.  No temperature is best for all data: several are tried, and what any of them certifies
counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from quartic._arrays import packed_dim
from quartic._progress import Stages
from quartic.algorithms.certify import cap_angle, is_certified
from quartic.algorithms.recover import distinct
from quartic.algorithms.select import drops
from quartic.algorithms.sparse_code import Fitted, fit, most_atoms, pursue
from quartic.algorithms.subspace_power import VAIN, climb, derivatives, maxima, normalised
from quartic.algorithms.temper import Tempering, tempering
from quartic.algorithms.truncate import Spectrum, full_spectrum
from quartic.moments import FourthMoment, Frame
from quartic.samples import Samples
from quartic.search import Certified, Halved, search
from quartic.tensors.factored import FactoredTensor

SHARES = (0.5, 0.3, 0.75, 0.15)  # of the effective sample size that weights leave: the temperatures, in turn
MILD = 0.25  # share from which on weights count atoms
FIRST = 32  # times the packed dimension: samples at first; they double until every atom is certified
GLANCE = 4000  # samples of a first look, at least
DROP, TRIALS = 1.2, 4  # least ratio of a proposed cut of a spectrum, and how many of the sharpest are tried
FULLEST = 0.8  # of the packed dimension: the largest number of atoms that is proposed
ONE = 0.9  # squared cosine of two estimates of one atom
CODED, CODED_LEAST = 100, 8000  # times n, and at least: samples that refine the dictionary
HELD_OUT = 4  # one in so many of them judges the refinement
BIAS = 0.15  # radians by which weights may turn an atom; measured, up to 0.07 at the strongest, twice that is taken
MOST_ROWS = 20_000  # samples whose codes tell variances and tau; arbitrary, a percent of error
COUNT_LIMIT = 1000  # packed dimension up to which more atoms than dimensions are looked for unasked: some seconds
EXACT = 1e-6  # median residual of exactly sparse samples


@dataclass(frozen=True)
class Tempered:
    """A moment under weights ``exp(-beta ||z||^2)``, and the spectrum of its cumulant."""

    moment: Halved
    spectrum: Spectrum
    beta: float

    @cached_property
    def halves(self) -> list[Spectrum]:
        """The spectra of the two halves of the samples."""
        return [full_spectrum(self.moment.cumulant(h)) for h in (0, 1)]


@dataclass(frozen=True)
class Trial:
    """What one temperature gives.

    Attributes
    ----------
    found : Certified
        Vectors and their certificates, ``rank`` at most, known ones first.
    halves : list of ndarray
        The same vectors as each half of the samples alone has them.
    rank : int
        Dimensions of the span.
    given : Tempered
    """

    found: Certified
    halves: list[np.ndarray]
    rank: int
    given: Tempered

    @property
    def certified(self) -> int:
        """How many are."""
        return int(np.sum(is_certified(self.found.bounds)))

    @property
    def full(self) -> bool:
        """Whether every dimension of the span holds a certified atom."""
        return self.certified == self.rank


@dataclass(frozen=True)
class Overcomplete:
    """What the spectral stage found.

    Attributes
    ----------
    found : Certified
        ``n`` unit rows in whitened coordinates with their certificates, 0 where nothing is proven.
    halves : list of ndarray
        The same as each half of the samples has them, ``(n, r)`` each.
    best : Trial
        The temperature that certifies most.
    samples : int
    reason, rank_reason : str
    """

    found: Certified
    halves: list[np.ndarray]
    best: Trial
    samples: int
    reason: str
    rank_reason: str

    @property
    def certified(self) -> int:
        """How many atoms are."""
        return int(np.sum(is_certified(self.found.bounds)))


def trial_of(
    given: Tempered, k: int, known: np.ndarray, rng: np.random.Generator, starts: np.ndarray, patience: int = VAIN
) -> Trial:
    """Atoms in the span of ``k`` eigenvectors, certified by the two halves; ``starts (m, r)`` may lie near them."""
    m = known.shape[0]
    span = given.spectrum.head(k)
    some = maxima(span, rng, known, starts=normalised(starts.astype(span.like.dtype)), patience=patience)
    order = np.concatenate((np.arange(m), m + np.argsort(-some.values[m:], kind="stable")))[:k]
    U = some.vectors[order].astype(np.float64)
    halves, bounds = split_caps(U, [spectrum.head(k) for spectrum in given.halves])
    if some.vectors.shape[0] > k:
        bounds[:] = 0.0  # more rank-one elements than dimensions: not the span of atoms
    bounds[:m] = 1.0
    return Trial(Certified(U, bounds), halves, k, given)


def proposals(tempered: list[Tempered], least: int) -> list[tuple[Tempered, int]]:
    """Sharp drops of the spectra after at least ``least`` eigenvalues, the sharpest of all first."""
    out = []
    for given in tempered:
        magnitude = np.abs(given.spectrum.values)
        ratio = drops(magnitude, int(FULLEST * magnitude.shape[0]), 1e-12 * magnitude[0])
        out += [(float(ratio[k - 1]), given, k) for k in range(least, ratio.shape[0] + 1) if ratio[k - 1] >= DROP]
    return [(given, k) for _, given, k in sorted(out, key=lambda item: -item[0])[:TRIALS]]


def split_caps(U: np.ndarray, spans: list[FactoredTensor]) -> tuple[list[np.ndarray], np.ndarray]:
    """What each half of the samples makes of unit rows ``U (m, r)``, and certificates by the other half.

    ``u`` moves to the maximum of ``F`` on the span of one half.  On the span of the other, where errors are
    independent, ``1 - F`` is made of the errors of both; if the atom is at an angle of ``t``, at least ``(2 F - second)
    t^2`` of it (see ``certify.cap_certificates``; half of that is counted on).  The angle back to ``u`` is added, and
    one for what both halves have in common: weights on the samples turn atoms that are not orthogonal a little.  The
    smaller of the two bounds counts.
    """
    theirs = []
    best = np.ones(U.shape[0])
    for own, other in (spans, spans[::-1]):
        B = climb(own, normalised(U.astype(own.like.dtype)))
        F, _, second = derivatives(other, B)
        F, steepest = (np.asarray(x, dtype=np.float64) for x in (F, np.linalg.eigvalsh(second)[:, -1]))
        B = B.astype(np.float64)
        angle = BIAS + cap_angle(1 - F, F, steepest) + np.arccos(np.clip(np.abs(np.sum(B * U, axis=1)), 0.0, 1.0))
        best = np.minimum(best, np.cos(np.minimum(angle, np.pi / 2)) ** 2)
        theirs.append(B * np.where(np.sum(B * U, axis=1) < 0, -1.0, 1.0)[:, None])
    return theirs, best


def looks_overcomplete(data: Samples, frame: Frame, rng: np.random.Generator, stages: Stages) -> bool:
    """Whether a first look at the spectrum of the cumulant shows more atoms than dimensions.

    Its sharpest drop, from the ``r``-th eigenvalue on, comes after more than ``r`` then; and the span of the first
    ``r`` is not full of orthogonal atoms, as whitened ones are where there are no more.
    """
    N = packed_dim(frame.dim)
    if N > COUNT_LIMIT:
        return False
    with stages("moment"):
        rows = data.chosen(0.0, max(FIRST * N, GLANCE) / data.count)
        squares = data.squared_norms(rows, frame)
        weights = tempering(squares, SHARES[0]).weights(squares) * data.weight(rows)
        if not np.sum(weights) > 0:
            return False
        moment = FourthMoment(frame, np.float32).update(data.Y[rows], weights, index=rows)
        magnitude = np.abs(full_spectrum(moment.cumulant()).values)
    ratio = drops(magnitude, int(FULLEST * N), 1e-12 * magnitude[0])
    from_r = ratio[frame.dim - 1 :]
    if from_r.size < 2 or np.argmax(from_r) == 0 or np.max(from_r) < DROP:
        return False
    with stages("search") as progress:
        orthogonal = search(moment, frame.dim, np.zeros((0, frame.dim)), rng, progress)
    return orthogonal.certified < frame.dim


def overcomplete_stage(
    data: Samples,
    frame: Frame,
    n: int | None,
    known: np.ndarray,
    rng: np.random.Generator,
    stages: Stages,
    beta: float | None = None,
) -> Overcomplete | None:
    """The spectral stage for more than ``frame.dim`` atoms; None where ``n`` is not given and no more are certified."""
    m = data.count
    size = min(m, FIRST * packed_dim(frame.dim))
    share, total = 0.0, 0
    moments: list[tuple[Tempering, FourthMoment]] = []
    last: Overcomplete | None = None
    while True:
        part = min(1.0, size / m)
        with stages("moment"):
            fresh = data.chosen(share, part if part < 1 else 2.0)
            share, total = part, total + fresh.shape[0]
            squares = data.squared_norms(fresh, frame)
            if not moments:
                # One set of temperatures for all rounds, so that their moments add.
                moments = [
                    (temper, FourthMoment(frame, np.float32)) for temper in _temperatures(squares, beta, n is None)
                ]
            for temper, moment in moments:
                moment.update(data.Y[fresh], temper.weights(squares) * data.weight(fresh), index=fresh)
        with stages("search") as progress:
            tempered = [Tempered(moment, full_spectrum(moment.cumulant()), temper.beta) for temper, moment in moments]
            starts = known[:0] if last is None else last.found.atoms
            if n is not None:
                pool: Overcomplete | None = pooled(tempered, n, known, rng, starts, progress=progress)
            else:
                pool = counted(tempered, known, rng, starts, progress)
        pool = None if pool is None else replace(pool, samples=total)
        expected = n if n is not None else None if last is None else last.certified
        if part == 1 or (pool is not None and pool.certified == expected):
            if pool is None or n is not None:
                return pool
            with stages("search") as progress:
                return extended(pool, tempered, known, rng, progress)
        last = pool
        size *= 2


def _temperatures(squares: np.ndarray, beta: float | None, count: bool) -> list[Tempering]:
    """The weights that are tried; the strongest can make atoms that are none, and do not count atoms."""
    if beta is not None:
        return [Tempering(beta, tempering(squares).least)]
    return [tempering(squares, share) for share in SHARES if not count or share >= MILD]


def counted(
    tempered: list[Tempered],
    known: np.ndarray,
    rng: np.random.Generator,
    starts: np.ndarray,
    progress: Callable[[int], None] | None = None,
) -> Overcomplete | None:
    """As many atoms as dimensions of the largest proposed span that is full of certified ones, more than ``r``."""
    best: Trial | None = None
    for given, k in proposals(tempered, max(given.moment.dim for given in tempered) + 1):
        if best is None or k > best.rank:
            # A span that is larger than one full of atoms is most often too large: a glance will show.
            if best is not None and not trial_of(given, k, known, rng, best.found.atoms, patience=1).full:
                continue
            trial = trial_of(given, k, known, rng, starts if best is None else best.found.atoms)
            best = trial if trial.full else best
        if progress is not None:
            progress(k)
    if best is None:
        return None
    why = f"{best.rank} atoms are certified, in a span of as many dimensions"
    return Overcomplete(best.found, best.halves, best, 0, why, why)


def extended(
    pool: Overcomplete,
    tempered: list[Tempered],
    known: np.ndarray,
    rng: np.random.Generator,
    progress: Callable[[int], None] | None = None,
) -> Overcomplete:
    """One atom more, as long as all are certified: two that are nearly parallel blur the drop of the spectrum."""
    while True:
        for patience in (1, VAIN):  # a glance first
            more = pooled(tempered, pool.certified + 1, known, rng, pool.found.atoms, patience, progress)
            if more.certified <= pool.certified:
                return pool
        why = f"{more.certified} atoms are certified, in spans of as many dimensions"
        pool = replace(more, samples=pool.samples, reason=why, rank_reason=why)


def pooled(
    tempered: Iterable[Tempered],
    n: int,
    known: np.ndarray,
    rng: np.random.Generator,
    starts: np.ndarray,
    patience: int = VAIN,
    progress: Callable[[int], None] | None = None,
) -> Overcomplete:
    """The atoms that any temperature certifies, each once; filled up to ``n`` with what is only likely, or a guess."""
    trials: list[Trial] = []
    m = known.shape[0]
    for given in tempered:
        trials.append(trial_of(given, n, known, rng, starts, patience))
        starts = trials[-1].found.atoms if starts.shape[0] == 0 else starts
        trials.sort(key=lambda t: -t.certified)
        skip = [m if i else 0 for i in range(len(trials))]  # known atoms come from the first
        atoms = np.concatenate([t.found.atoms[k:] for k, t in zip(skip, trials, strict=True)])
        bounds = np.concatenate([t.found.bounds[k:] for k, t in zip(skip, trials, strict=True)])
        # Known ones first, then by certificate; those without are in the order of their F.
        place = np.arange(atoms.shape[0])
        score = np.where(is_certified(bounds), bounds, -place) + 2.0 * (place < m)
        rows = distinct(atoms, score - np.min(score, initial=0.0), place >= 0, atoms[:0], ONE)[:n]
        certified = int(np.sum(is_certified(bounds[rows])))
        if progress is not None:
            progress(certified)
        if certified == n:
            break
    halves = [np.concatenate([t.halves[h][k:] for k, t in zip(skip, trials, strict=True)])[rows] for h in (0, 1)]
    atoms, bounds = atoms[rows], bounds[rows]
    guess = normalised(rng.standard_normal((n - atoms.shape[0], atoms.shape[1])))  # where there are no maxima left
    atoms, halves = np.concatenate((atoms, guess)), [np.concatenate((half, guess)) for half in halves]
    bounds = np.concatenate((bounds, np.zeros(guess.shape[0])))
    reason = f"{certified} of {n} atoms are certified, by {len(trials)} temperatures"
    return Overcomplete(Certified(atoms, bounds), halves, trials[0], 0, reason, "given")


def refine_codes(
    data: Samples, frame: Frame, U: np.ndarray, floor: float, progress: Callable[[int], None] | None = None
) -> tuple[Fitted, bool]:
    """The atoms ``U (n, r)`` refined by sparse codes, and whether that is better: judged by samples held out."""
    n = U.shape[0]
    rows = data.chosen(0.0, 2.0)
    rows = rows[: max(CODED * n, CODED_LEAST)]
    Z = frame.whiten(data.Y[rows], np.float64)
    judges = np.arange(rows.shape[0]) % HELD_OUT == 0
    fitted = fit(Z[~judges], U, floor)
    if progress is not None:
        progress(fitted.rounds)
    if fitted.rounds == 0:
        return fitted, False
    most = most_atoms(U.shape[1])

    def explained(atoms: np.ndarray, offset: np.ndarray) -> float:
        return float(np.mean(pursue(Z[judges] - offset, atoms, most, fitted.tolerance)[1] <= fitted.tolerance))

    return fitted, explained(fitted.atoms, fitted.offset) >= explained(U, np.zeros(U.shape[1]))


def code_moments(Z: np.ndarray, atoms: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """Standard deviations of the sparse codes, and their ``E s_i^2 s_j^2 / (E s_i^2 E s_j^2)``."""
    codes, _ = pursue(Z, atoms, most_atoms(atoms.shape[1]), tolerance)
    squares = codes**2
    second = np.mean(squares, axis=0)
    safe = np.where(second > 0, second, 1.0)
    pairs = squares.T @ squares / squares.shape[0] / (safe[:, None] * safe)
    return np.sqrt(second), np.where(np.eye(atoms.shape[0]) > 0, np.maximum(pairs, 1.0), pairs)
