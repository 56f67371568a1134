"""The refinement, from spectral axes: local on the subsample, then exact, or on all samples and guarded by a test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from quartic._arrays import Array, array_namespace, from_numpy, to_numpy
from quartic.algorithms.recover import polar
from quartic.algorithms.refine import (
    Chunk,
    ClippedScore,
    Iteration,
    Statistics,
    atoms_of,
    contrast,
    free,
    free_direction,
    half_atoms,
    iterated,
    orthogonal,
    orthogonal_direction,
    sines,
    sparse,
    statistics,
)
from quartic.frame import Frame
from quartic.learn.plan import SPARSE_LEAST, SPARSE_ROWS, Spectral
from quartic.moments import Covariance
from quartic.samples import Samples

NEAR = 0.85  # squared cosine, of 22.5 degrees: an atom that moves farther may have gone over to another
ROTATIONS = 4  # random starts where the spectral one is not certified; arbitrary
POLISH_STEPS = 10  # of the fixed point from axes that are certified
LOCAL_STEPS = 100  # of the fixed point from a random start
PASSES = 3  # over all samples, at most, for both estimates at once; from those of a subsample two are mostly enough
FITTED = 4096  # rows, and less than twice that, for a score: its errors are of second order in those of the estimate
FREE_STEPS = 12  # on the subsample; more only polish its sampling error
HAUSMAN = 4.0  # squared distance of the free estimate from the orthogonal one, over the variance of the latter
ROUNDING = 8.0  # times the rounding of the samples: residual of data that are exactly sparse
CODE_FLOOR = 16.0  # times the residual of inactive codes: what lies below is set to zero


@dataclass(frozen=True)
class Refined:
    """What the refinement reached, in the ``n`` coordinates of the start.

    Attributes
    ----------
    W : ndarray of shape (n, n)
        Unmixing matrix, rows of norm 1.
    halves : list of ndarray of shape (n, n)
        The atoms that each half of the samples would give; empty when it can not be told.
    story : str
        What was done.
    passes : int
        Over all samples.
    offset, thresholds : ndarray of shape (n,) or None
        Of exactly sparse data.
    residual : ndarray of shape (n,) or None
        Of exactly sparse data: what is left of inactive codes.
    """

    W: np.ndarray
    halves: list[np.ndarray]
    story: str
    passes: int
    offset: np.ndarray | None = None
    thresholds: np.ndarray | None = None
    residual: np.ndarray | None = None

    @property
    def atoms(self) -> np.ndarray:
        """Unit rows ``(n, n)``."""
        return atoms_of(self.W)

    def ordered(self, order: np.ndarray) -> Refined:
        """The atoms in another order."""
        offset, thresholds, residual = (
            None if x is None else x[order] for x in (self.offset, self.thresholds, self.residual)
        )
        halves = [A[order] for A in self.halves]
        return Refined(self.W[order], halves, self.story, self.passes, offset, thresholds, residual)


def refined_from(
    data: Samples,
    covariance: Covariance,
    frame: Frame,
    spectral: Spectral,
    start: np.ndarray,
    rng: np.random.Generator,
    progress: Any,
    *,
    rounded: bool = False,
) -> Refined:
    """Refinement from the axes of ``frame``, which the spectral stage found: local, then exact or on all samples.

    ``start (n, r)`` are these axes in the coordinates of the search.  Where atoms occur together no later stage may
    lose one that the proof leaves one reading for: with strongly correlated supports other axes can look better to a
    local method.  Samples that are ``rounded`` to few digits are exactly sparse only where each atom is inactive in
    most of them: the points of a lattice lie in many planes.
    """
    n = frame.dim
    proof = spectral.proof
    kept = proof.axes[proof.tangled & proof.one_reading]

    def loses(W: np.ndarray, axes: np.ndarray = kept) -> bool:
        """Whether one of these axes is left."""
        return bool(np.any(np.max((axes @ (atoms_of(W) @ start).T) ** 2, axis=1) < NEAR))

    part = data.part(spectral.rows, frame.mean)
    # All samples, if that is more.
    everything = partial(statistics, part) if spectral.rows.shape[0] == data.count else data.everything(frame.mean)
    # Where axes of atoms that occur together are found, no local method can be trusted to find better ones.
    sure = proof.certified | bool(kept.shape[0])
    W = best_start(part, frame, sure, rng)
    W = np.eye(n) if kept.shape[0] and loses(W, proof.axes[proof.tangled]) else W
    progress(1)

    floor = max(ROUNDING * rounding_floor(data, frame), 1e-12)
    some = spectral.rows[: max(SPARSE_ROWS * n, SPARSE_LEAST)]
    last = sparse(data.whitened(some, frame), W, floor)
    progress(2)
    if last.exact(floor, some.shape[0] / 2 if rounded else 0):
        story = f"the data are exactly sparse: dictionary exact to {np.max(last.residual):.0e} in {last.rounds} rounds"
        thresholds = np.maximum(CODE_FLOOR * last.residual, floor)
        return Refined(last.W, [], story, 0, last.offset, thresholds, last.residual)

    forward = from_numpy(frame.forward, data.like)
    spent = 0
    if kept.shape[0]:
        # Tangled: the likelihood keeps right axes, which tanh may leave; neither finds them.
        (V,), (means,), spent = iterated(everything, forward, PASSES, likely(part, forward, np.eye(n)))
        best = unconstrained(V, means, spent)
        if not loses(best.W):
            progress(4)
            return best
    starts = orthogonal(from_numpy(W, data.like)), likely(part, forward, W)
    progress(3)
    (U, V), (first, second), passes = iterated(everything, forward, PASSES, *starts)
    passes += spent
    plain, best = constrained(U, first, covariance, frame, passes), unconstrained(V, second, passes)
    progress(4)
    if loses(plain.W):
        story = "none: local methods leave axes of atoms that occur together"
        return Refined(np.eye(n), half_estimates(spectral.halves, start), story, passes)
    # A specification test (Hausman): both estimates are consistent where the model holds, and one is efficient.
    moved = sines(best.atoms, plain.atoms) ** 2
    allowed = HAUSMAN * (sines(*plain.halves) / 2) ** 2 if plain.halves else np.zeros(n)
    typical = np.median(allowed)
    if np.median(moved) <= typical and np.all(moved <= HAUSMAN * np.maximum(allowed, typical)) and not loses(best.W):
        return best
    return replace(plain, story=plain.story + "; the likelihood disagrees with it, as it does when noise is not white")


def constrained(V: Array, means: Statistics, covariance: Covariance, frame: Frame, passes: int) -> Refined:
    """The orthogonal estimate ``V (n, n)``, and what the last statistics say of it."""
    W = to_numpy(V)
    # It inherits the error of the covariance, half by half: W C W' = Id is its constraint.
    shapes = [W @ frame.forward.T @ covariance.half(h) @ frame.forward @ W.T - np.eye(frame.dim) for h in (0, 1)]
    both = means.both
    directions = [to_numpy(orthogonal_direction(*means.of(h))) + shape / 2 for h, shape in enumerate(shapes) if both]
    return Refined(W, half_atoms(W, directions), f"orthogonal fixed point, passes: {passes}", passes)


def unconstrained(V: Array, means: Statistics, passes: int) -> Refined:
    """The most likely estimate ``V (n, n)``, and what the last statistics say of it."""
    W = to_numpy(V)
    directions = [to_numpy(free_direction(*means.of(h))) for h in (0, 1) if means.both]
    return Refined(W, half_atoms(W, directions), f"maximum likelihood, passes: {passes}", passes)


def likely(part: list[Chunk], forward: Array, W: np.ndarray) -> Iteration:
    """The most likely estimate as it begins, from ``W (n, n)``: it and its score are those of a part of the samples."""
    xp = array_namespace(forward)
    V = from_numpy(W, forward)
    some = seen(part, forward)
    some = some[:: max(1, some.shape[0] // FITTED), ...]
    for _ in range(FREE_STEPS):
        score = ClippedScore.fit(some @ xp.astype(xp.matrix_transpose(V), some.dtype))
        before = V
        (V,), _, _ = iterated(partial(statistics, part), forward, 1, free(V, score))
        if float(xp.max(xp.abs(V - before))) < 1e-3:
            break
    return free(V, score)


def best_start(part: list[Chunk], frame: Frame, sure: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The local optimum from the axes of ``frame``; or the best of several, where not all of them are ``sure (n,)``.

    The others start from a random rotation of the axes that are not; the best is the one farthest from Gaussian.
    """
    n = frame.dim
    if np.all(sure):
        forward, W = there(part, frame.forward, np.eye(n))
        (W,), _, _ = iterated(partial(statistics, part), forward, POLISH_STEPS, orthogonal(W))
        return to_numpy(W)
    free_axes = np.flatnonzero(~sure)
    rotations = [np.eye(n) for _ in range(1 + ROTATIONS)]
    for rotation in rotations[1:]:
        rotation[np.ix_(free_axes, free_axes)] = polar(rng.standard_normal((free_axes.size, free_axes.size)))
    forward, *starts = there(part, frame.forward, *rotations)
    # One by one: what has settled needs no more passes.
    optima = [iterated(partial(statistics, part), forward, LOCAL_STEPS, orthogonal(W))[0][0] for W in starts]
    Z = seen(part, forward)
    xp = array_namespace(Z)
    return to_numpy(max(optima, key=lambda W: contrast(Z @ xp.astype(xp.matrix_transpose(W), Z.dtype))))


def there(part: list[Chunk], *arrays: np.ndarray) -> list[Array]:
    """Arrays in the library, and on the device, of some samples."""
    return [from_numpy(x, part[0][1]) for x in arrays]


def seen(part: list[Chunk], forward: Array) -> Array:
    """Samples in whitened coordinates."""
    xp = array_namespace(forward)
    return xp.concat([rows @ xp.astype(forward, rows.dtype) for _, rows, _ in part])


def rounding_floor(data: Samples, frame: Frame) -> float:
    """What the rounding of the samples leaves in whitened coordinates."""
    size = np.sqrt(np.sum(frame.backward**2, axis=0) + frame.mean**2)  # root mean square of each feature
    eps = float(array_namespace(data.like).finfo(data.like.dtype).eps)
    return float(eps * np.linalg.norm(frame.forward * size[:, None], 2))


def half_estimates(halves: Sequence[np.ndarray], start: np.ndarray) -> list[np.ndarray]:
    """For each atom of ``start (n, r)`` the nearest one of each half, in its coordinates."""
    out = []
    for B in halves:
        if B.shape[0] == 0:
            return []
        cosine = start @ B.T
        nearest = np.argmax(np.abs(cosine), axis=1)
        out.append(B[nearest] @ start.T)
    return out


def pinned(refined: Refined, known: np.ndarray) -> Refined:
    """The known atoms put first, as they were given, in place of those closest to them."""
    _, mine = linear_sum_assignment((known @ refined.atoms.T) ** 2, maximize=True)
    refined = refined.ordered(np.concatenate((mine, np.setdiff1d(np.arange(refined.W.shape[0]), mine))))
    A = refined.atoms
    A[: known.shape[0]] = known
    W = np.linalg.inv(A).T
    return replace(refined, W=W / np.linalg.norm(W, axis=1, keepdims=True))
