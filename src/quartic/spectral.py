"""The spectral stage on a subsample that grows until its two halves certify every atom."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from quartic._arrays import (
    Array,
    array_namespace,
    free_memory,
    from_numpy,
    pack_rank_one,
    packed_dim,
    to_numpy,
)
from quartic._progress import Stages
from quartic._words import counted as named
from quartic.algorithms.certify import CERTIFIED
from quartic.algorithms.recover import polar
from quartic.algorithms.refine import Chunk, iterated, orthogonal, statistics
from quartic.algorithms.temper import Tempering, tempering
from quartic.algorithms.truncate import spectral_norm
from quartic.frame import Frame
from quartic.halves import half_of, row_hash
from quartic.local import Cloud, convincing, doubtful, tangled, untangle
from quartic.moments import FourthMoment
from quartic.samples import Samples
from quartic.search import Certified, Halved, Search, search, search_window
from quartic.tensors.combine import Congruence, Sum
from quartic.views import ImplicitMoment

SUBSAMPLE = 2  # times r^2: samples that feed the spectral stage at first; measured, mostly enough for tau <= 1/4
LARGEST, LARGEST_LEAST = 16, 1 << 16  # times r^2, and at least: where the subsample stops to double
SPARSE_ROWS, SPARSE_LEAST = 50, 2000  # times n, and at least: samples of the sparse stage, far more than determine it
GAUSSIAN = 2.0  # times its sampling error: a cumulant that is no larger is none
WINDOW = 8  # times r^2: effective samples from which on windows are tried; with few, one of many looks good by chance
AMPLE = 0.6  # certificates by local tempering that end the growth of the subsample
GLANCE = 4096  # samples that show whether pairs of atoms are turned, where nothing else speaks for it
POLISH_STEPS = 10  # of the fixed point on a half of the samples


@dataclass(frozen=True)
class Spectral:
    """What the spectral stage found, and from what."""

    found: Search
    moment: Halved
    rows: np.ndarray
    rank: int
    rank_reason: str
    samples: int
    reason: str
    form: str
    temperature: float = 0.0


def spectral_stage(
    data: Samples,
    frame: Frame,
    n: int,
    known: np.ndarray,
    form: str,
    rng: np.random.Generator,
    stages: Stages,
    beta: float | None = None,
) -> Spectral:
    """The spectral stage on a subsample that doubles until every atom is certified, or it is large enough.

    ``beta`` sets the weights ``exp(-beta ||z||^2)``; when it is 0, atoms come from plain moments alone.
    """
    m = data.count
    size = min(m, max(SUBSAMPLE * frame.dim**2, SPARSE_ROWS * n, SPARSE_LEAST))
    share, rows, squares = 0.0, np.zeros(0, dtype=np.intp), None
    temper: Tempering | None = None
    moment: Halved | None = None
    while True:
        with stages("moment") as progress:
            part = min(1.0, size / m)
            fresh = data.chosen(share, part if part < 1 else 2.0)
            share, rows = part, np.concatenate((rows, fresh))
            more = data.squared_norms(fresh, frame)
            squares = more if squares is None else array_namespace(more).concat((squares, more))
            # One temperature for all rounds, so that their moments add.
            if temper is None:
                temper = tempering(squares) if beta is None else Tempering(beta, tempering(squares).least)
            weights = to_numpy(temper.weights(squares)) * data.weight(rows)
            chosen = choose_form(form, rows.shape[0], frame.dim, n, free_memory(data.like))
            if isinstance(moment, FourthMoment) and chosen == "accumulated":
                moment.update(data.take(fresh), weights[rows.shape[0] - fresh.shape[0] :], index=fresh)
            else:
                moment = moment_of(data, frame, rows, weights, chosen)
            progress(rows.shape[0])
        with stages("search") as progress:
            polish = Polish(data.part(rows, frame.mean), frame, n, rng)
            last = share == 1 or size >= max(LARGEST * frame.dim**2, LARGEST_LEAST)
            lenient = partial(doubtful, cloud_of(data, frame, rows, GLANCE), symmetry=False)
            plain = cache(partial(plain_moment, data, frame, rows))
            found = replace(search(moment, n, known, rng, progress, polish), doubt=lenient, plain=plain)
        lost = found.certified < n and n == frame.dim
        cloud = cloud_of(data, frame, rows).on_host() if lost else None
        if cloud is not None and tangled(cloud.seen_in(complete(found.atoms, n, n, rng))):
            sceptic = partial(doubtful, cloud, sceptical=True)
            if beta == 0:
                found = replace(found, doubt=sceptic)
            else:
                with stages("untangle") as progress:
                    others = slice(known.shape[0], None)
                    sure = convincing(found.atoms[others], found.certificates[others])
                    given = Certified(known, np.ones(known.shape[0])).and_also(sure)
                    result = untangle(cloud, given, rng, progress, thorough=last)
                found = replace(
                    found, atoms=result.atoms, local=result.certified, tangled=result.tangled, doubt=sceptic
                )
        # Where local tempering was needed the refinement may move atoms by their error, so that it must be small.
        if last or np.sum(found.certificates > (CERTIFIED if found.local is None else AMPLE)) == n:
            break
        size *= 2
    if found.certified < n and temper.beta > 0:
        # Weights assume that signs are independent; where they are not, as with skewed sources, plain moments may do.
        with stages("moment"):
            unweighted = moment_of(data, frame, rows, data.weight(rows), chosen)
        with stages("search") as progress:
            other = replace(top_or_window(unweighted, n, known, rng, progress, polish), doubt=found.doubt)
        if other.certified > found.certified:
            found, moment, temper = other, unweighted, Tempering(0.0, 0.0)
    certified = f"{found.certified} of {n} atoms are certified"
    reason = f"{certified}, more samples are left to the refinement" if share < 1 else f"all there are, {certified}"
    return Spectral(found, moment, rows, n, "given", rows.shape[0], reason, chosen, temper.beta)


def cloud_of(data: Samples, frame: Frame, rows: np.ndarray, most: int | None = None) -> Cloud:
    """Some rows in whitened coordinates, in random order; the first ``most`` of them."""
    place = row_hash(rows)
    order = np.argsort(place, kind="stable")[:most]
    Z = data.whitened(rows[order], frame, np.float32)
    return Cloud(Z, half_of(place[order]), data.weight(rows[order]))


def plain_moment(data: Samples, frame: Frame, rows: np.ndarray) -> Halved:
    """The fourth moment of some rows as they are, without weights that depend on them."""
    cloud = cloud_of(data, frame, rows, 4 * GLANCE)
    return ImplicitMoment(cloud.Z, cloud.half, cloud.weights)


def moment_of(data: Samples, frame: Frame, rows: np.ndarray, weights: np.ndarray, form: str) -> Halved:
    """The fourth moment of some rows, in one of its two forms."""
    if form == "accumulated":
        return FourthMoment(frame, np.float32, data.like).update(data.take(rows), weights, index=rows)
    return ImplicitMoment(data.whitened(rows, frame, np.float32), half_of(row_hash(rows)), weights)


@dataclass(frozen=True)
class Polish:
    """The orthogonal stage of the refinement, on one half of the samples alone: its best guess at the atoms."""

    chunks: list[Chunk]
    frame: Frame
    n: int
    rng: np.random.Generator

    def __call__(self, half: int, B: np.ndarray) -> np.ndarray:
        """Unit rows from the rows of ``B``, which the span of that half gave."""
        mine = [chunk for chunk in self.chunks if chunk[0] == half]
        start = complete(B, self.n, self.frame.dim, self.rng, mine[0][1])
        forward, W = (from_numpy(x, mine[0][1]) for x in (self.frame.narrowed(start.T).forward, np.eye(self.n)))
        (W,), _, _ = iterated(partial(statistics, mine), forward, POLISH_STEPS, orthogonal(W))
        return to_numpy(W) @ start


def top_or_window(
    moment: Halved,
    n: int,
    known: np.ndarray,
    rng: np.random.Generator,
    progress: Any,
    polish: Polish | None = None,
    *,
    tight: bool = False,
) -> Search:
    """The top of the spectrum, or a window of it where that certifies more."""
    found = search(moment, n, known, rng, progress, polish, tight=tight)
    if 2 * found.certified < n and moment.effective.sum() >= WINDOW * moment.dim**2:
        other = search_window(moment, n, known, rng, progress, polish)
        if other is not None and 2 * other.certified >= n:
            return other
    return found


def choose_form(form: str, m: int, r: int, n: int, free: float) -> str:
    """``accumulated`` or ``implicit``, by operations and the bytes that are ``free``."""
    if form != "auto":
        return form
    N, k, sweeps = packed_dim(r), n + 8, 5  # sweeps of each of three tensors, as measured
    accumulated = m * N * N + 2 * 3 * sweeps * N * N * k  # the moment is symmetric: half of 2 m N^2
    implicit = 2 * 4 * sweeps * m * N * k  # all samples once for the whole, once for the halves
    return "accumulated" if free > 4 * 8 * N * N and accumulated <= implicit else "implicit"


def counted(spectral: Spectral, known: np.ndarray, rng: np.random.Generator) -> Spectral:
    """The number of atoms, when it is not given: as many as are certified, if their own span certifies them again."""
    found, r = spectral.found, spectral.rank
    n = found.certified
    if n == r:
        return replace(spectral, rank_reason=f"as many as dimensions, {r}, and all are certified")
    # As many as are certified; or as the spectrum has before its sharpest drop, for noise in the span hides atoms.
    sizes = np.abs(found.spectrum[:r])
    rounding = 1e-12 * np.max(sizes, initial=1.0)
    sharpest = int(np.argmax(sizes[:-1] / np.maximum(sizes[1:], rounding))) + 1 if sizes.shape[0] > 1 else 1
    for k in sorted({n, sharpest}, reverse=True):
        if not max(1, known.shape[0]) <= k < r:
            continue
        again = replace(search(spectral.moment, k, known, rng), plain=found.plain)
        # Weights hide what few long samples make: the others have to look Gaussian without them as well.
        if (
            again.certified == k
            and rest_is_gaussian(spectral.moment, again.atoms, rng)
            and (found.plain is None or rest_is_gaussian(found.plain(), again.atoms, rng))
        ):
            reason = f"{named(k, 'certified atom')} in {r} directions, the others look Gaussian"
            return replace(spectral, found=again, rank=k, rank_reason=reason)
    return replace(spectral, rank_reason=f"as many as dimensions, {r}; certified: {n}")


def rest_is_gaussian(moment: Halved, atoms: np.ndarray, rng: np.random.Generator) -> bool:
    """Whether the cumulant orthogonal to the atoms ``(n, r)`` is no larger than its sampling error, from two halves."""
    if not np.all(moment.effective > 0):
        return False
    beside = np.linalg.qr(atoms.T, mode="complete")[0][:, atoms.shape[0] :].T  # (r - n, r)
    cumulants = (moment.cumulant(h) for h in (None, 0, 1))
    whole, *halves = (Congruence(T, from_numpy(beside, T.like, T.like.dtype)) for T in cumulants)
    # In few directions one difference may be small by chance; the kurtosis of m Gaussians errs by sqrt(24 / m).
    error = spectral_norm(Sum([(0.5, halves[0]), (-0.5, halves[1])]), rng)
    return spectral_norm(whole, rng) <= GAUSSIAN * max(error, np.sqrt(24 / moment.effective.sum()))


def is_noise(moment: Halved, axes: np.ndarray) -> bool:
    """Whether the cumulant ``T`` shows no signal along unit rows ``axes (k, r)``: ``T(vv')`` is its sampling error.

    Independent sources give ``T(vv') = sum_i kappa_i <v, a_i>^2 a_i a_i'``, which does not vanish where ``<T, v^(x4)>``
    does, as it may for sources of either sign.
    """
    if not np.all(moment.effective > 0):
        return False
    whole, first, second = (moment.cumulant(h) for h in (None, 0, 1))
    X = pack_rank_one(from_numpy(axes, whole.like, whole.like.dtype))
    norm = array_namespace(X).linalg.matrix_norm
    error = float(norm(first.apply(X) - second.apply(X))) / 2
    return float(norm(whole.apply(X))) <= GAUSSIAN * error


def complete(B: np.ndarray, n: int, r: int, rng: np.random.Generator, like: Array = None) -> np.ndarray:
    """``n`` orthonormal rows ``(n, r)``: those closest to ``B (m, r)``, and random ones for what is missing.

    Computed where ``like`` lies, if it is given.
    """
    B = B[:n]
    if B.shape[0] < n:
        noise = rng.standard_normal((n - B.shape[0], r))
        basis = np.linalg.qr(np.concatenate((B, noise)).T)[0].T
        B = np.concatenate((B, basis[B.shape[0] :]))
    return polar(B) if like is None else to_numpy(polar(from_numpy(B, like)))
