"""The plan: ways to find as many atoms as dimensions, cheapest first, each before the same proof.

    fixed point -> span, on a growing subsample -> local tempering, where supports are tangled -> plain moments, windows

A way that leaves nothing unproven is the last.  What was tried, what it proved and what it cost is a value
(:class:`quartic.learn.attempts.Attempt`), and the report prints it.
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
from quartic.learn.attempts import Plan, Proposer
from quartic.moments import FourthMoment
from quartic.propose.fixed_point import complete, fixed_point, same_axes
from quartic.propose.span import TOP, Certified, Halved, Search, kurtosis_along, search, search_window
from quartic.propose.untangle import untangle
from quartic.samples import Samples
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
        """The one that certifies more; of two that certify as many, that with more axes of one reading."""

        def proven(proof: Proof) -> tuple[int, int]:
            return proof.count, int(np.sum(proof.one_reading))

        return other if proven(other.proof) > proven(self.proof) else self


def first_look(
    data: Samples,
    frame: Frame,
    known: np.ndarray,
    evidence: Evidence,
    rng: np.random.Generator,
    stages: Stages,
    plan: Plan,
) -> Spectral:
    """What a fixed point on the samples finds, and what is proven of it; axes next to the known ones first."""
    plan.starts()
    with stages("search") as progress:
        axes, halves = fixed_point(evidence, rng) if evidence.enough else (np.eye(frame.dim), ())
        _, first = linear_sum_assignment((known @ axes.T) ** 2, maximize=True)
        axes = axes[np.concatenate((first, np.setdiff1d(np.arange(frame.dim), first)))]
        progress(1)
    with stages("certify"):
        proof = certify(Candidates(axes, halves), evidence)
        moment = plain_moment(evidence)
        values = kurtosis_along(moment, axes)
    rows = data.about(ROWS)  # those of the evidence: where that is all there are, their order does not matter
    spectrum = values[np.argsort(-np.abs(values), kind="stable")]
    count = evidence.Z.shape[0]
    plan.made(Proposer.FIXED_POINT, count, 0.0, proof.count, frame.dim)
    reason = f"a fixed point, {proof.count} of {named(frame.dim, 'atom')} certified"
    return Spectral(axes, halves, proof, moment, spectrum, rows, count, reason, "implicit")


class _Growing:
    """A subsample that grows, its moment under one temperature, and what is proven of the candidates it gives."""

    def __init__(
        self,
        data: Samples,
        frame: Frame,
        form: str,
        evidence: Evidence,
        first: Spectral,
        stages: Stages,
        plan: Plan,
        beta: float | None,
    ) -> None:
        self.data, self.frame, self.form, self.evidence, self.stages = data, frame, form, evidence, stages
        self.first, self.plan, self.beta = first, plan, beta
        self.proofs = [first.proof]
        self.share, self.rows = 0.0, np.zeros(0, dtype=np.intp)
        self.squares: Any = None
        self.temper: Tempering | None = None
        self.moment: Halved | None = None
        self.chosen = form

    def grow(self, size: int) -> Halved:
        """The moment of so many samples; those that it holds already are not read again."""
        data, r = self.data, self.frame.dim
        with self.stages("moment") as progress:
            part = min(1.0, size / data.count)
            fresh = data.chosen(self.share, part if part < 1 else 2.0)
            self.share, self.rows = part, np.concatenate((self.rows, fresh))
            more = data.squared_norms(fresh, self.frame)
            self.squares = more if self.squares is None else array_namespace(more).concat((self.squares, more))
            # One temperature for all rounds, so that their moments add.
            if self.temper is None:
                usual = tempering(self.squares)
                self.temper = usual if self.beta is None else Tempering(self.beta, usual.least)
            weights = to_numpy(self.temper.weights(self.squares)) * data.weight(self.rows)
            self.chosen = choose_form(self.form, self.rows.shape[0], r, r, free_memory(data.like))
            if isinstance(self.moment, FourthMoment) and self.chosen == "accumulated":
                new = weights[self.rows.shape[0] - fresh.shape[0] :]
                self.moment._add(data.take(fresh), new, fresh, data.group(fresh))
            else:
                self.moment = moment_of(data, self.frame, self.rows, weights, self.chosen)
            progress(self.rows.shape[0])
        return self.moment

    def plain(self) -> Halved:
        """The moment of the same samples without weights."""
        with self.stages("moment"):
            return moment_of(self.data, self.frame, self.rows, self.data.weight(self.rows), self.chosen)

    def tried(self, found: Search, atoms: np.ndarray, proposer: Proposer, *, plain: bool = False) -> Spectral:
        """Candidates before the proof; those that were there before need no other one."""
        r = self.frame.dim
        axes = complete(atoms[:r], r)
        with self.stages("certify"):
            seen = next((proof for proof in self.proofs if same_axes(axes, proof.axes, UNMOVED)), None)
            proof = certify(Candidates(axes, self.first.halves), self.evidence) if seen is None else seen.about(axes)
            self.proofs.append(proof)
        beta = 0.0 if plain or self.temper is None else self.temper.beta
        count = self.rows.shape[0]
        self.plan.made(proposer, count, beta, proof.count, r)
        return Spectral(
            axes, self.first.halves, proof, found.moment, found.spectrum, self.rows, count, "", self.chosen,
            window=found.window, sweeps=found.sweeps, temperature=beta,
        )  # fmt: skip


def spectral_stage(
    data: Samples,
    frame: Frame,
    known: np.ndarray,
    form: str,
    evidence: Evidence,
    first: Spectral,
    rng: np.random.Generator,
    stages: Stages,
    plan: Plan,
    beta: float | None = None,
    *,
    glance: bool = False,
) -> Spectral:
    """The spectral stage on a subsample that doubles until every atom is certified, or it is large enough.

    What the ``first`` look proved is not proven again.  ``beta`` sets the weights ``exp(-beta ||z||^2)``; when it is 0,
    atoms come from plain moments alone.  A ``glance`` is one look at the largest subsample, for closed groups.
    """
    plan.starts()
    m, r = data.count, frame.dim
    largest = max(LARGEST * r**2, LARGEST_LEAST)
    size = min(m, largest if glance else max(SUBSAMPLE * r**2, SPARSE_ROWS * r, SPARSE_LEAST))
    size = m if 2 * size > m else size  # or it would be taken twice
    growing = _Growing(data, frame, form, evidence, first, stages, plan, beta)
    best: Spectral | None = None
    while True:
        moment = growing.grow(size)
        last = growing.share == 1 or size >= largest
        with stages("search") as progress:
            found = search(moment, r, known, rng, progress)
        now = growing.tried(found, found.atoms, Proposer.SPAN)
        best = now if best is None else best.better(now)
        if not best.settled and beta != 0 and np.any(first.proof.tangled | now.proof.tangled):
            with stages("untangle") as progress:
                sure = now.proof.certified & (np.arange(r) >= known.shape[0])
                given = Certified(known, np.ones(known.shape[0])).and_also(
                    Certified(now.axes, now.proof.bounds).only(sure)
                )
                result = untangle(evidence, given, rng, progress, thorough=last and not glance)
            best = best.better(growing.tried(found, result.atoms, Proposer.UNTANGLE))
        if last or best.settled:
            break
        size *= 2
    if not best.settled and not glance and growing.temper is not None and growing.temper.beta > 0:
        # Weights assume that signs are independent; where they are not, as with skewed sources, plain moments may do.
        with stages("search") as progress:
            for other in top_and_window(growing.plain(), r, known, rng, progress):
                best = best.better(growing.tried(other, other.atoms, proposer_of(other), plain=True))
                if best.settled:
                    break
    certified = f"{best.proof.count} of {r} atoms are certified"
    more = f"{certified}, more samples are left to the refinement"
    reason = more if growing.share < 1 else f"all there are, {certified}"
    rows = growing.rows
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


def proposer_of(found: Search) -> Proposer:
    """What found it in a spectrum: its top, or a window of it."""
    return Proposer.SPAN if found.window == TOP else Proposer.WINDOW


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
