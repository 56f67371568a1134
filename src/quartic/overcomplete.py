"""Dictionaries with more atoms than dimensions: tempered cumulants, subspace power, sparse codes.

The cumulant of whitened samples is ``sum_i kappa_i a_i^(x4)`` for independent coefficients, and its ``n`` eigenvectors
of largest magnitude span the ``a_i a_i'``, also for ``n`` several times the dimension.  Its rank-one elements are found
by subspace power (``algorithms.subspace_power``).  Weights that fall with the norm of a sample make it far less noisy:
not exactly, as for orthonormal atoms, since the norm depends on the signs of the coefficients too, but where few atoms
are active at a time nearly so.  No temperature is best for all data: several are tried, and what any of them certifies
counts, unless a stronger one contradicts it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np

from quartic._arrays import Array, from_numpy, pack_rank_one, packed_dim, to_numpy
from quartic._progress import Stages
from quartic._words import counted as named
from quartic.algorithms.certify import cap_angle, is_certified
from quartic.algorithms.recover import distinct, recover
from quartic.algorithms.select import drops
from quartic.algorithms.sparse_code import Fitted, fit, most_atoms, pursue
from quartic.algorithms.subspace_power import VAIN, climb, derivatives, energies, maxima, normalised
from quartic.algorithms.temper import Tempering, tempering
from quartic.algorithms.truncate import Spectrum, full_spectrum
from quartic.certify.beyond import BIAS, Spans, has_mirrors
from quartic.evidence.parts import Evidence
from quartic.frame import Frame
from quartic.learn.plan import plain_moment
from quartic.moments import FourthMoment
from quartic.propose.span import Certified, Halved, Plain, may_be_gaussian
from quartic.samples import Samples
from quartic.tensors.base import FourTensor
from quartic.tensors.factored import FactoredTensor

SHARES = (0.5, 0.3, 0.75, 0.95, 0.15)  # of the effective sample size that weights leave: the temperatures, in turn
COUNTING = SHARES[:-1]  # those that count atoms: the strongest can make some that are none
FIRST = 32  # times the packed dimension: samples at first; they double until every atom is certified
CHEAP = 2.5e9  # multiplications of a moment that are not worth saving: a twentieth of a second
DROP, TRIALS = 1.2, 3  # least ratio of a proposed cut of a spectrum, and how many of the sharpest are tried
SIGNIFICANT = 4.0  # standard errors, from which on what is left of a cumulant is more than sampling error
JUDGES = 4000  # samples that tell the standard error
JUDGED = 1 << 14  # samples whose kurtosis without weights says whether light tails are due to them, to 0.04
CHECK = 8  # times the samples in which atoms were counted: so many say whether more are left
FULLEST = 0.8  # of the packed dimension: the largest number of atoms that is proposed
FEW = 2  # times the packed dimension: effective samples of a half, below which it certifies nothing
ONE = 0.9  # squared cosine of two estimates of one atom
LIKELY = 0.9  # F, from which on a maximum may be an atom
CLEARER = 2.0  # times the drop of a spectrum after as many eigenvalues as dimensions: then there are more atoms
CODED, CODED_LEAST = 100, 8000  # times n, and at least: samples that refine the dictionary
HELD_OUT = 4  # one in so many of them judges the refinement
COUNT_LIMIT = 1000  # packed dimension up to which more atoms than dimensions are looked for unasked: some seconds
MEASURED = 20_000  # samples whose codes tell variances and tau: a few percent of error
EXACT = 1e-6  # median residual of exactly sparse samples


@dataclass(frozen=True)
class Tempered:
    """A moment under weights ``exp(-beta ||z||^2)``, the spectrum of its cumulant, and a moment without weights."""

    moment: Halved
    spectrum: Spectrum
    beta: float
    samples: int
    plain: Plain | None = None

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
        The same vectors as each half of the samples alone has them; NaN where it can not be told.
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

    def beside(self, m: int) -> tuple[np.ndarray, ...]:
        """All but the first ``m``, which are known: vectors, bounds, and the halves' vectors."""
        return tuple(x[m:] for x in (self.found.atoms, self.found.bounds, *self.halves))

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
        ``n`` unit rows in whitened coordinates with their certificates, 0 where nothing is proven; known ones first.
    halves : list of ndarray
        The same as each half of the samples has them, ``(n, r)`` each; NaN where it can not be told.
    best : Trial
        The temperature that certifies most, or that counts most atoms.
    temperatures : int
        How many were tried.
    settled : bool or None
        Whether nothing but sampling error is seen beyond these atoms; None where their number was given.
    """

    found: Certified
    halves: list[np.ndarray]
    best: Trial
    temperatures: int
    settled: bool | None = None

    @property
    def figures(self) -> tuple[int, float, int, int]:
        """Samples and temperature of the best trial, how many of its atoms are certified, and how many it has."""
        return self.best.given.samples, self.best.given.beta, self.certified, self.found.atoms.shape[0]

    @property
    def reason(self) -> str:
        """Why no more samples were used."""
        n = self.found.atoms.shape[0]
        return f"{self.certified} of {n} atoms are certified, by {named(self.temperatures, 'temperature')}"

    @property
    def rank_reason(self) -> str:
        """Why so many atoms."""
        if self.settled is None:
            return "given"
        n = self.found.atoms.shape[0]
        rest = "no more than sampling error is seen" if self.settled else "something that is no atom is left"
        return f"the search certified {self.certified} of {n}, in spans of as many dimensions, and beyond them {rest}"

    @property
    def certified(self) -> int:
        """How many atoms are."""
        return int(np.sum(is_certified(self.found.bounds)))

    @cached_property
    def has_rival(self) -> bool:
        """Whether fewer axes may explain as much."""
        U = self.found.atoms
        return has_mirrors(U, Spans(self.found.bounds, fitted_weights(self.best.given.moment.cumulant(), U)[1]))

    def if_most(self) -> Overcomplete:
        """Without certificates where fewer than half of the atoms have one.

        They count on atoms in every dimension of the span; beyond tau = 1/3 that of plain moments holds sums of them.
        """
        if 2 * self.certified >= self.found.atoms.shape[0]:
            return self
        return replace(self, found=Certified(self.found.atoms, np.zeros_like(self.found.bounds)))

    def witnessed(self, other: Tempered) -> Overcomplete:
        """Without the certificates that other weights contradict."""
        return replace(self, found=uncontradicted(self.found, other.spectrum.head(self.found.atoms.shape[0])))


def trial_of(
    given: Tempered, k: int, known: np.ndarray, rng: np.random.Generator, starts: np.ndarray, patience: int = VAIN
) -> Trial:
    """Atoms in the span of ``k`` eigenvectors, certified by the two halves; ``starts (m, r)`` may lie near them."""
    m = known.shape[0]
    span = given.spectrum.head(k)
    some = maxima(span, rng, known, starts=normalised(starts.astype(span.like.dtype)), patience=patience)
    order = np.concatenate((np.arange(m), m + np.argsort(-some.values[m:], kind="stable")))[:k]
    U = some.vectors[order].astype(np.float64)
    halves, bounds = [np.full_like(U, np.nan)] * 2, np.zeros(U.shape[0])
    N = packed_dim(given.moment.dim)
    # Fewer samples than dimensions of Sym2 have any span; more rank-one elements than dimensions are no span of atoms,
    # and a span that is everything proves nothing.
    if np.all(given.moment.effective >= FEW * N) and some.vectors.shape[0] <= k < N:
        halves, bounds = split_caps(U, [spectrum.head(k) for spectrum in given.halves])
        bounds = np.where(may_be_gaussian(given.moment, U, plain=given.plain), 0.0, bounds)
    bounds[:m] = 1.0
    return Trial(Certified(U, bounds), halves, k, given)


def proposals(given: Tempered) -> list[int]:
    """Sharp drops of a spectrum after more eigenvalues than dimensions, the sharpest first."""
    magnitude = np.abs(given.spectrum.values)
    ratio = drops(magnitude, int(FULLEST * magnitude.shape[0]), 1e-12 * magnitude[0])[given.moment.dim :]
    sharpest = np.argsort(-ratio, kind="stable")[:TRIALS]
    return [given.moment.dim + 1 + int(k) for k in sharpest if ratio[k] >= DROP]


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
        steepest += np.sqrt(np.finfo(second.dtype).eps)  # what is flat but for rounding is flat
        B = B.astype(np.float64)
        angle = BIAS + cap_angle(1 - F, F, steepest) + np.arccos(np.clip(np.abs(np.sum(B * U, axis=1)), 0.0, 1.0))
        best = np.minimum(best, np.cos(np.minimum(angle, np.pi / 2)) ** 2)
        theirs.append(B * np.where(np.sum(B * U, axis=1) < 0, -1.0, 1.0)[:, None])
    return theirs, best


class Ladder:
    """Moments of the same samples under several weights, each made when it is asked for.

    Parameters
    ----------
    data : Samples
    frame : Frame
    stages : Stages
    shares : tuple of float
        Of the effective sample size that weights leave.
    beta : float, optional
        The one temperature that is wanted instead.
    """

    def __init__(
        self,
        data: Samples,
        frame: Frame,
        stages: Stages,
        shares: tuple[float, ...] = SHARES,
        beta: float | None = None,
    ) -> None:
        self.data, self.frame, self.stages, self.beta = data, frame, stages, beta
        self.shares = shares if beta is None else shares[:1]
        N = packed_dim(frame.dim)
        self.most = min(1.0, data.most / data.count)  # part of the samples that can be looked at
        self.first = min(self.most, max(FIRST * N, CHEAP / N**2) / data.count)  # and to begin with
        self._plain = cache(lambda: plain_moment(Evidence.of(data, frame, most=JUDGED)))
        self._tempers: dict[float, Tempering] = {}
        self._moments: dict[float, FourthMoment] = {}
        self._seen: dict[float, float] = {}
        self._given: dict[float, Tempered] = {}

    def upto(self, part: float) -> Iterator[Tempered]:
        """The moments of a random part of the samples, one weight after the other."""
        return (self.at(share, part) for share in self.shares)

    def at(self, share: float, part: float) -> Tempered:
        """The moment of a part of the samples, or of a larger one that was asked for before."""
        seen = self._seen.get(share, 0.0)
        if part > seen:
            with self.stages("moment"):
                rows = self.data.chosen(seen, part if part < 1 else 2.0)
                squares = self.data.squared_norms(rows, self.frame)
                weights = to_numpy(self.temper(share).weights(squares)) * self.data.weight(rows)
                samples = self.data.take(rows)
                moment = FourthMoment(self.frame, np.float32, samples)
                moment = moment._add(samples, weights, rows, self.data.group(rows)).to_numpy()
                if share in self._moments:
                    moment.merge(self._moments[share])
                spectrum = full_spectrum(moment.cumulant())
            self._seen[share], self._moments[share] = part, moment
            self._given[share] = Tempered(moment, spectrum, self.temper(share).beta, moment.count, self._plain)
        return self._given[share]

    @cached_property
    def _some_squares(self) -> Array:
        """``||z||^2`` of some samples."""
        return self.data.squared_norms(self.data.about(FIRST * packed_dim(self.frame.dim)), self.frame)

    def temper(self, share: float) -> Tempering:
        """The weights."""
        if share not in self._tempers:
            temper = tempering(self._some_squares, share)
            self._tempers[share] = temper if self.beta is None else Tempering(self.beta, temper.least)
        return self._tempers[share]


def looks_overcomplete(ladder: Ladder, rng: np.random.Generator) -> bool:
    """Whether a first look at the spectrum of the cumulant shows more atoms than dimensions.

    Its sharpest drop, from the ``r``-th eigenvalue on, comes after more than ``r`` then.  If the ``r``-th is not much
    less sharp, and the span of the first ``r`` is full of orthogonal atoms, as whitened ones are, there are no more.
    Where there is no sharp drop, more samples and milder weights are looked at: many atoms in few dimensions show late.
    """
    N = packed_dim(ladder.frame.dim)
    if N > COUNT_LIMIT or ladder.data.count < 2 * FEW * N:  # too many to look at, or too few for halves to certify any
        return False
    for share, part in ((ladder.shares[0], ladder.first), (max(ladder.shares), min(ladder.most, CHECK * ladder.first))):
        spectrum = ladder.at(share, part).spectrum
        with ladder.stages("search"):
            seen = _shows_more(spectrum, ladder.frame.dim, rng)
        if seen is not None:
            return seen
    return False


def _shows_more(spectrum: Spectrum, r: int, rng: np.random.Generator) -> bool | None:
    """Whether a spectrum shows more than ``r`` atoms; None where it has no sharp drop."""
    magnitude = np.abs(spectrum.values)
    from_r = drops(magnitude, int(FULLEST * magnitude.shape[0]), 1e-12 * magnitude[0])[r - 1 :]
    if from_r.size < 2:
        return False
    if np.max(from_r) < DROP:
        return None
    if np.argmax(from_r) == 0 or np.max(from_r) > CLEARER * from_r[0]:
        return bool(np.argmax(from_r) > 0)
    span = spectrum.head(r).flattened()
    axes = recover(span, rng)
    return bool(axes.shape[0] < r or np.min(energies(span, axes)) < LIKELY)


def overcomplete_stage(
    ladder: Ladder, n: int | None, known: np.ndarray, rng: np.random.Generator
) -> Overcomplete | None:
    """The spectral stage for more atoms than dimensions; None where ``n`` is not given and no more are certified."""
    last: Overcomplete | None = None
    part = ladder.first
    while True:
        with ladder.stages("search") as progress:
            starts = known[:0] if last is None else last.found.atoms
            if n is not None:
                pool: Overcomplete | None = pooled(ladder.upto(part), n, known, rng, starts, progress=progress)
                done = pool is not None and pool.certified == n
            else:
                pool = counted(ladder, part, known, rng, starts, progress)
                done = pool is not None and pool.settled is True
            if done or part == ladder.most:
                if n is None and pool is not None and not pool.settled:
                    pool = extended(pool, ladder, part, known, rng, progress)
                return pool if pool is None or ladder.beta is None else one_temperature(pool, ladder, part)
        last, part = pool, min(ladder.most, 2 * part)


def one_temperature(pool: Overcomplete, ladder: Ladder, part: float) -> Overcomplete:
    """What one temperature that was asked for proves: what strong weights do not contradict."""
    strong = Ladder(ladder.data, ladder.frame, ladder.stages).at(min(COUNTING), part)
    return pool.witnessed(strong).if_most()


def counted(
    ladder: Ladder,
    part: float,
    known: np.ndarray,
    rng: np.random.Generator,
    starts: np.ndarray,
    progress: Callable[[int], None] | None = None,
) -> Overcomplete | None:
    """As many atoms as dimensions of the largest proposed span that is full of certified ones, more than ``r``.

    Other weights are asked where there is none, or it leaves more than sampling error.
    """
    best, settled = None, False
    strongest: Tempered | None = None
    tried = 0
    for given in ladder.upto(part):
        tried += 1
        strongest = given if strongest is None or given.beta > strongest.beta else strongest
        for k in proposals(given):
            if best is None or k > best.rank:
                # A span that is larger than one full of atoms is most often too large: a glance will show.
                if best is not None and not trial_of(given, k, known, rng, best.found.atoms, patience=1).full:
                    continue
                trial = trial_of(given, k, known, rng, starts if best is None else best.found.atoms)
                best = trial if trial.full else best
            if progress is not None:
                progress(k)
        settled = best is not None and not leaves_more(ladder, min(ladder.most, CHECK * part), best.found.atoms)
        if settled:
            break
    if best is None or strongest is None:
        return None
    pool = Overcomplete(best.found, best.halves, best, tried, settled)
    return pool if best.given.beta >= strongest.beta else pool.witnessed(strongest)


def leaves_more(ladder: Ladder, part: float, U: np.ndarray) -> bool:
    """Whether atoms ``U (n, r)`` leave more of the cumulant than its sampling error.

    What one half of the samples has beyond them is tried on the other: its largest eigenvector ``X``, where a sample
    adds ``w (z' X z)^2``, of which the standard error is known.  Strong weights leave something in any case, since
    atoms that are not orthogonal turn: the mildest are asked.
    """
    mildest = max(ladder.shares)
    given = ladder.at(mildest, part)
    n, count = U.shape[0], given.samples * given.moment.effective / np.sum(given.moment.effective)
    rest = []
    for h, spectrum in enumerate(given.halves):
        span = spectrum.head(n)
        B = climb(span, normalised(U.astype(span.like.dtype))).astype(np.float64)
        T = given.moment.cumulant(h)
        features = pack_rank_one(B)
        rest.append(np.asarray(T.to_packed()) - (features * fitted_weights(T, B)[1]) @ features.T)
    data, frame = ladder.data, ladder.frame
    rows = data.about(JUDGES)
    Z = to_numpy(data.whitened(rows, frame))
    w = ladder.temper(mildest).weights(np.sum(Z * Z, axis=1)) * data.weight(rows)
    features = pack_rank_one(Z)
    for own, other, m in ((rest[0], rest[1], count[1]), (rest[1], rest[0], count[0])):
        values, vectors = np.linalg.eigh(own)
        top = int(np.argmax(np.abs(values)))
        X = vectors[:, top]
        adds = (X @ features) ** 2
        error = np.std(w * (adds - np.average(adds, weights=w))) / np.mean(w) / np.sqrt(m)
        if np.sign(values[top]) * (X @ other @ X) > SIGNIFICANT * error:
            return True
    return False


def fitted_weights(T: FourTensor, U: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``<T, u^(x4)>`` for the rows of ``U (n, r)``, and the weights with which these fit ``T`` best."""
    values = np.diagonal(to_numpy(T.on_squares(from_numpy(U, T.like, T.like.dtype)))).astype(np.float64)
    return values, np.linalg.lstsq((U @ U.T) ** 4, values, rcond=None)[0]


def extended(
    pool: Overcomplete,
    ladder: Ladder,
    part: float,
    known: np.ndarray,
    rng: np.random.Generator,
    progress: Callable[[int], None] | None = None,
) -> Overcomplete:
    """One atom more, as long as what is left is not noise, and all are certified or the last one leaves but noise.

    Two that are nearly parallel blur the drop of the spectrum.
    """
    while not pool.settled:
        n = pool.found.atoms.shape[0] + 1
        more = pooled(ladder.upto(part), n, known, rng, pool.found.atoms, progress=progress)
        settled = not leaves_more(ladder, part, more.found.atoms)
        if more.certified < n - 1 or (more.certified < n and not settled):
            break
        pool = replace(more, settled=settled)
    return pool


def uncontradicted(found: Certified, span: FactoredTensor) -> Certified:
    """Without the certificates that the span of other weights contradicts.

    Where atoms occur together mild weights have maxima at sums of them too; from an atom no weights lead away, unless
    they lead nowhere.
    """
    B = climb(span, normalised(found.atoms.astype(span.like.dtype)))
    F, _, second = derivatives(span, B)
    saddle = np.linalg.eigvalsh(second)[:, -1] > 2 * F  # as there is between two atoms
    moved = np.sum(B * found.atoms, axis=1) ** 2 < ONE
    return Certified(found.atoms, np.where(saddle | (moved & (F > LIKELY)), 0.0, found.bounds))


def pooled(
    tempered: Iterable[Tempered],
    n: int,
    known: np.ndarray,
    rng: np.random.Generator,
    starts: np.ndarray,
    progress: Callable[[int], None] | None = None,
) -> Overcomplete:
    """The known atoms, and those that any temperature certifies, each once; then what is only likely, or a guess.

    What stronger weights, that were tried before, contradict is not certified.
    """
    trials: list[Trial] = []
    m = known.shape[0]
    strongest: Tempered | None = None
    for given in tempered:
        trial = trial_of(given, n, known, rng, starts)
        if strongest is None or given.beta >= strongest.beta:
            strongest = given
        else:
            trial = replace(trial, found=uncontradicted(trial.found, strongest.spectrum.head(n)))
        trials.append(trial)
        starts = trials[-1].found.atoms if starts.shape[0] == 0 else starts
        trials.sort(key=lambda t: -t.certified)
        columns = zip(*(t.beside(m) for t in trials), strict=True)
        atoms, bounds, *halves = (np.concatenate(column) for column in columns)
        # By certificate; those without are in the order of their F.
        place = np.arange(atoms.shape[0])
        score = np.where(is_certified(bounds), bounds, -place)
        rows = distinct(atoms, score - np.min(score, initial=0.0), place >= 0, known, ONE)[: n - m]
        certified = m + int(np.sum(is_certified(bounds[rows])))
        if progress is not None:
            progress(certified)
        if certified == n:
            break
    guess = normalised(rng.standard_normal((n - m - rows.shape[0], known.shape[1])))  # where there are no maxima left
    atoms = np.concatenate((known, atoms[rows], guess))
    halves = [np.concatenate((known, A[rows], np.full_like(guess, np.nan))) for A in halves]
    bounds = np.concatenate((np.ones(m), bounds[rows], np.zeros(guess.shape[0])))
    return Overcomplete(Certified(atoms, bounds), halves, trials[0], len(trials))


def refine_codes(
    data: Samples, frame: Frame, U: np.ndarray, floor: float, progress: Callable[[int], None] | None = None
) -> tuple[Fitted, bool]:
    """The atoms ``U (n, r)`` refined by sparse codes, and whether that is better: judged by samples held out."""
    rows = data.about(max(CODED * U.shape[0], CODED_LEAST))
    Z = to_numpy(data.whitened(rows, frame))
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
