"""What is found and proven of as many atoms as dimensions: proposers, cheapest first, each before the same proof.

    fixed point -> span, on a growing subsample -> local tempering, where supports are tangled -> plain moments, windows

A proposer that leaves nothing unproven is the last.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from quartic._arrays import (
    array_namespace,
    free_memory,
    from_numpy,
    pack_rank_one,
    packed_dim,
    to_numpy,
)
from quartic._progress import Stages
from quartic._words import counted as named
from quartic.algorithms.temper import Tempering, tempering
from quartic.certify import Candidates, Proof, certify
from quartic.evidence.parts import ROWS, Evidence
from quartic.frame import Frame
from quartic.halves import half_of, row_hash
from quartic.local import tangled, untangle
from quartic.moments import FourthMoment
from quartic.propose.fixed_point import complete, fixed_point, same_axes
from quartic.samples import Samples
from quartic.search import Certified, Halved, Search, kurtosis_along, search, search_window
from quartic.views import ImplicitMoment

SUBSAMPLE = 2  # times r^2: samples that feed the spectral stage at first; measured, mostly enough for tau <= 1/4
LARGEST, LARGEST_LEAST = 16, 1 << 16  # times r^2, and at least: where the subsample stops to double
SPARSE_ROWS, SPARSE_LEAST = 50, 2000  # times n, and at least: samples of the sparse stage, far more than determine it
UNMOVED = 0.99  # squared cosine of axes that were proven before: 6 degrees, which are added
GAUSSIAN = 2.0  # times its sampling error: a cumulant that is no larger is none
WINDOW = 8  # times r^2: effective samples from which on windows are tried; with few, one of many looks good by chance


@dataclass(frozen=True)
class Spectral:
    """Axes, what is proven of them, and from what.

    Attributes
    ----------
    axes : ndarray of shape (n, r)
        Orthonormal rows in whitened coordinates, known ones first.
    halves : tuple of ndarray of shape (r, r)
        What each half of the samples gives alone, from a start of its own; empty where it was not asked.
    proof : Proof
        Of these axes.
    moment : Halved
    spectrum : ndarray
        Leading eigenvalues of its cumulant; where no span was taken, the kurtoses of the axes, which they are for
        independent sources.  The largest magnitude first.
    rows : ndarray
        Of the data: the samples that the refinement starts with.
    reason, rank_reason : str
        Why so many samples, and so many atoms.
    form : str
    window : tuple of int
    sweeps : int
    temperature : float
    """

    axes: np.ndarray
    halves: tuple[np.ndarray, ...]
    proof: Proof
    moment: Halved
    spectrum: np.ndarray
    rows: np.ndarray
    samples: int
    reason: str
    form: str
    rank_reason: str = "given"
    window: tuple[int, int] = (0, 0)
    sweeps: int = 0
    temperature: float = 0.0

    @property
    def rank(self) -> int:
        """How many axes."""
        return int(self.axes.shape[0])

    @property
    def settled(self) -> bool:
        """Whether every axis is certified."""
        return self.proof.count == self.rank

    def better(self, other: Spectral) -> Spectral:
        """The one that proves more.

        Of two that prove the same the first; but where it shows atoms that occur together, which a local method can not
        be trusted with, the other.
        """
        mine, theirs = self.proof.count, other.proof.count
        return other if theirs > mine or (theirs == mine and np.any(self.proof.tangled)) else self


def first_look(
    data: Samples, frame: Frame, known: np.ndarray, evidence: Evidence, rng: np.random.Generator, stages: Stages
) -> Spectral:
    """What a fixed point on the samples finds, and what is proven of it; axes next to the known ones first."""
    with stages("search") as progress:
        axes, halves = fixed_point(evidence, rng) if evidence.enough else (np.eye(frame.dim), ())
        _, first = linear_sum_assignment((known @ axes.T) ** 2, maximize=True)
        axes = axes[np.concatenate((first, np.setdiff1d(np.arange(frame.dim), first)))]
        progress(1)
    with stages("certify"):
        proof = certify(Candidates(axes, halves), evidence)
    with stages("certify"):
        moment = plain_moment(evidence)
        values = kurtosis_along(moment, axes)
    rows = data.about(ROWS)  # those of the evidence: where that is all there are, their order does not matter
    spectrum = values[np.argsort(-np.abs(values), kind="stable")]
    count = evidence.Z.shape[0]
    reason = f"a fixed point, {proof.count} of {named(frame.dim, 'atom')} certified"
    return Spectral(axes, halves, proof, moment, spectrum, rows, count, reason, "implicit")


def spectral_stage(
    data: Samples,
    frame: Frame,
    known: np.ndarray,
    form: str,
    evidence: Evidence,
    first: Spectral,
    rng: np.random.Generator,
    stages: Stages,
    beta: float | None = None,
) -> Spectral:
    """The spectral stage on a subsample that doubles until every atom is certified, or it is large enough.

    What the ``first`` look proved is not proven again.  ``beta`` sets the weights ``exp(-beta ||z||^2)``; when it is 0,
    atoms come from plain moments alone.
    """
    m, r = data.count, frame.dim
    size = min(m, max(SUBSAMPLE * r**2, SPARSE_ROWS * r, SPARSE_LEAST))
    share, rows, squares = 0.0, np.zeros(0, dtype=np.intp), None
    temper: Tempering | None = None
    moment: Halved | None = None
    best: Spectral | None = None
    proofs = [first.proof]

    def tried(found: Search, atoms: np.ndarray, temperature: float) -> Spectral:
        """Candidates before the proof; those that were there before need no other one."""
        axes = complete(atoms[:r], r)
        with stages("certify"):
            seen = next((proof for proof in proofs if same_axes(axes, proof.axes, UNMOVED)), None)
            proof = certify(Candidates(axes, first.halves), evidence) if seen is None else seen.about(axes)
            proofs.append(proof)
        return Spectral(
            axes, first.halves, proof, found.moment, found.spectrum, rows, rows.shape[0], "", chosen,
            window=found.window, sweeps=found.sweeps, temperature=temperature,
        )  # fmt: skip

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
            chosen = choose_form(form, rows.shape[0], r, r, free_memory(data.like))
            if isinstance(moment, FourthMoment) and chosen == "accumulated":
                moment._add(data.take(fresh), weights[rows.shape[0] - fresh.shape[0] :], fresh, data.group(fresh))
            else:
                moment = moment_of(data, frame, rows, weights, chosen)
            progress(rows.shape[0])
        last = share == 1 or size >= max(LARGEST * r**2, LARGEST_LEAST)
        with stages("search") as progress:
            found = search(moment, r, known, rng, progress)
        now = tried(found, found.atoms, temper.beta)
        best = now if best is None else now.better(best)
        if not best.settled and beta != 0 and tangled(evidence.seen_in(now.axes)):
            with stages("untangle") as progress:
                sure = now.proof.certified & (np.arange(r) >= known.shape[0])
                given = Certified(known, np.ones(known.shape[0])).and_also(
                    Certified(now.axes, now.proof.bounds).only(sure)
                )
                result = untangle(evidence, given, rng, progress, thorough=last)
            best = best.better(tried(found, result.atoms, temper.beta))
        if last or best.settled:
            break
        size *= 2
    if not best.settled and temper.beta > 0:
        # Weights assume that signs are independent; where they are not, as with skewed sources, plain moments may do.
        with stages("moment"):
            unweighted = moment_of(data, frame, rows, data.weight(rows), chosen)
        with stages("search") as progress:
            others = list(top_and_window(unweighted, r, known, rng, progress))
        for other in others:
            best = best.better(tried(other, other.atoms, 0.0))
    certified = f"{best.proof.count} of {r} atoms are certified"
    reason = f"{certified}, more samples are left to the refinement" if share < 1 else f"all there are, {certified}"
    return replace(best, rows=max(rows, first.rows, key=len), samples=rows.shape[0], reason=reason)


def plain_moment(evidence: Evidence) -> ImplicitMoment:
    """The fourth moment of the evidence as it is."""
    return ImplicitMoment(evidence.Z.astype(np.float32), evidence.half, evidence.weights)


def moment_of(data: Samples, frame: Frame, rows: np.ndarray, weights: np.ndarray, form: str) -> Halved:
    """The fourth moment of some rows, in one of its two forms."""
    if form == "accumulated":
        return FourthMoment(frame, np.float32, data.like)._add(data.take(rows), weights, rows, data.group(rows))
    return ImplicitMoment(data.whitened(rows, frame, np.float32), half_of(row_hash(data.keys(rows))), weights)


def top_and_window(
    moment: Halved,
    n: int,
    known: np.ndarray,
    rng: np.random.Generator,
    progress: Any,
    *,
    halves: bool = False,
    tight: bool = False,
) -> Iterator[Search]:
    """The top of the spectrum, and a window of it where there are samples for one."""
    yield search(moment, n, known, rng, progress, halves=halves, tight=tight)
    if moment.effective.sum() >= WINDOW * moment.dim**2:
        other = search_window(moment, n, known, rng, progress)
        if other is not None:
            yield other


def choose_form(form: str, m: int, r: int, n: int, free: float) -> str:
    """``accumulated`` or ``implicit``, by operations and the bytes that are ``free``."""
    if form != "auto":
        return form
    N, k, sweeps = packed_dim(r), n + 8, 5  # sweeps, as measured
    accumulated = m * N * N + 2 * sweeps * N * N * k  # the moment is symmetric: half of 2 m N^2
    implicit = 4 * sweeps * m * N * k
    return "accumulated" if free > 4 * 8 * N * N and accumulated <= implicit else "implicit"


def counted(spectral: Spectral, known: np.ndarray) -> Spectral:
    """The number of atoms, when it is not given: as many as are certified, if all beside them may be Gaussian."""
    r, proof = spectral.rank, spectral.proof
    n = proof.count
    if n == r:
        return replace(spectral, rank_reason=f"as many as dimensions, {r}, and all are certified")
    keep = proof.certified
    keep[: known.shape[0]] = True
    rows = np.flatnonzero(keep)
    if proof.rest_is_gaussian:
        reason = f"{named(n, 'certified atom')} in {r} directions, the others look Gaussian"
        return replace(spectral, axes=spectral.axes[rows], proof=proof.at(rows), rank_reason=reason)
    return replace(spectral, rank_reason=f"as many as dimensions, {r}; certified: {n}")


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
