r"""Beyond the paper: components that are not orthogonal, also more of them than dimensions.

The span ``L`` that Algorithm 4.1 leaves is that of the ``a_i a_i'``, whatever the ``a_i`` are, as long as those are
linearly independent: up to ``n`` of order ``N``.  Its rank-one elements are the global maxima of

    F(u) = ||Proj_L(uu')||^2 = sum_k (u' U_k u)^2,    ||u|| = 1,

with value 1 (subspace power method; Kileel and Pereira, 2019).  With ``A(u) = sum_k (u' U_k u) U_k``, the gradient is
``4 A(u) u``: the iteration ``u <- A(u) u + s u``, normalised, costs one application of the factored tensor for all
starts together.

=========  ===================================================================================================
step       what is done
=========  ===================================================================================================
climb      the iteration from random starts.  ``F`` grows for ``s >= sqrt(F (1 - F))``, since ``F + s ||u||^4``
           is convex there; but a *negative* ``s`` converges faster: most of the curvature of ``F`` is the same
           in all directions.  So ``s`` is minus a part of the mean curvature, and where ``F`` falls after all, a
           row goes back, half the way to the proven shift.
polish     Newton steps on the sphere: the answer no longer depends on the starts, and the Hessian certifies it.
deflate    the span of the components that are left is the complement of the ``D^(-1) c_i``, for ``c_i = U' a_i
           a_i'`` and ``D = diag(lam)``: with ``D = sum_i w_i c_i c_i'``, these are a dual basis.  So no start is
           lost to a component that is known, and each wave is cheaper than the one before.
confirm    waves in the whole span, and beside all but the weakest: a spurious maximum may stand where a component
           should.  If more are found than dimensions, certificates have to tell which are the components.
=========  ===================================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from quartic._arrays import (
    Array,
    array_namespace,
    descending,
    device,
    floor_of,
    no_rows,
    pack_rank_one,
    standard_normal,
    unpack,
)
from quartic.algorithms.recover import distinct
from quartic.tensors.factored import FactoredTensor

PART = 0.8  # of the mean curvature that the shift takes away; measured: with 1, F falls in up to every fourth step
LARGEST_SHIFT = 0.95  # of F: beyond it the iteration would turn back
CLIMB_STEPS, CLIMBED = 100, 1e-6  # at most; and 1 - cosine of a step after which Newton's takes over
SLOWEST = 1e-5  # of 1 - F: a step that gains less leads nowhere
NEWTON_STEPS, UPHILL_STEPS = 4, 40  # quadratic convergence: from 1e-3 to rounding in three, where F is not flat
LONGEST = 0.3  # radians of a Newton step; more is no step near a maximum
FLAT = 1e-9  # times F, or rounding: the least curvature that a step counts on
STARTS, STARTS_LEAST = 1.0, 16  # times the dimensions that are left, and at least
NEAR_ONE = 0.25  # of the way from 1 down to the mean of F: a maximum above it may be a component
SAME = 0.99  # squared correlation of two candidates that are one: polished ones agree to rounding
VAIN = 3  # waves without a new component, after which there is none; two when there are as many as dimensions
WEAKEST = 0.1  # of the rank: maxima that are not deflated when there are as many as dimensions
MOST = 2  # times the rank: maxima, of which so many can not be components
BLOCK_ENTRIES = 1 << 23  # numbers in the block of all U_k u: 64 MB


@dataclass(frozen=True)
class Maxima:
    """Local maxima of ``F`` on a span.

    Attributes
    ----------
    vectors : array of shape (m, d)
        Unit rows.
    values : array of shape (m,)
        ``F``.
    """

    vectors: Array
    values: Array

    def take(self, rows: Array) -> Maxima:
        """Some of them."""
        xp = array_namespace(self.vectors)
        return Maxima(xp.take(self.vectors, rows, axis=0), xp.take(self.values, rows))

    def join(self, other: Maxima) -> Maxima:
        """These and the others."""
        xp = array_namespace(self.vectors)
        return Maxima(xp.concat((self.vectors, other.vectors), axis=0), xp.concat((self.values, other.values)))


def maxima(
    L: FactoredTensor,
    rng: np.random.Generator,
    known: Array | None = None,
    *,
    starts: Array | None = None,
    patience: int = VAIN,
    callback: Callable[[int], None] | None = None,
) -> Maxima:
    """All vectors whose squares lie in a span, or nearly: maxima of ``F`` far above its mean.

    Parameters
    ----------
    L : FactoredTensor
        Orthonormal ``U_k`` with their eigenvalues as weights.
    rng : numpy.random.Generator
        Draws the starts.
    known : array of shape (m, d), optional
        Components that are known already: they come first in the result, as they are.
    starts : array of shape (m, d), optional
        Vectors near components, such as those of a similar span.
    patience : int
        Waves in vain, after which the search ends; two are enough when there are as many as dimensions.
    callback : callable, optional
        Called with the number found so far, after each wave.
    """
    known = no_rows(L.like, L.dim) if known is None else known
    found = Maxima(known, energies(L, known))
    level = 1 - NEAR_ONE * (1 - mean_energy(L))

    def with_new(B: Array) -> Maxima:
        fresh = polish(L, _unlike(L, B, found.vectors, 2 * level - 1))  # what is far below the level will not reach it
        return found.join(fresh.take(distinct(fresh.vectors, fresh.values, fresh.values > level, found.vectors, SAME)))

    if starts is not None:
        found = with_new(starts)
    vain = 0
    while vain < patience and found.vectors.shape[0] < MOST * L.rank:
        # What is left; in every other wave everything, to confirm that nothing is.  A spurious maximum may stand where
        # a component should: when all dimensions seem to be full, the weakest are not taken for granted.
        work = L if vain % 2 == 1 else deflated(L, _strongest(found, L.rank))
        B = climb(work, normalised(standard_normal(rng, (max(STARTS_LEAST, work.rank), L.dim), L.like)))
        if work is not L:
            B = climb(L, _unlike(work, B, known[:0, :]))
        before, found = found, with_new(B)
        if callback is not None:
            callback(found.vectors.shape[0])
        vain = 0 if found.vectors.shape[0] > before.vectors.shape[0] else vain + 1
        if vain == 2 and found.vectors.shape[0] >= L.rank:
            break
    return found


def _strongest(found: Maxima, rank: int) -> Array:
    """Those with the largest ``F``: all, or nine tenths of the rank."""
    xp = array_namespace(found.vectors)
    count = found.vectors.shape[0]
    kept = descending(found.values)[: count if count < rank else max(rank - math.ceil(WEAKEST * rank), 0)]
    return xp.take(found.vectors, kept, axis=0)


def _unlike(L: FactoredTensor, B: Array, known: Array, least: float = 0.0) -> Array:
    """The rows of ``B (m, d)`` that are unlike each other and the known ones, with ``F`` of at least ``least``."""
    xp = array_namespace(B)
    F = energies(L, B)
    return xp.take(B, distinct(B, F, least <= F, known, SAME), axis=0)


def climb(L: FactoredTensor, B: Array, most: int = CLIMB_STEPS, tolerance: float = CLIMBED) -> Array:
    """Power iteration on ``F`` from each unit row of ``B (m, d)``, until a step is small; ``F`` never falls."""
    xp = array_namespace(B)
    squares = xp.sum(L.matrices @ L.matrices, axis=0)  # sum_k U_k^2
    traces = xp.sum(xp.linalg.diagonal(L.matrices), axis=1)  # (rank,)
    rows, ended = xp.arange(B.shape[0], device=device(B)), []
    best, slope = B, xp.zeros_like(B)
    value, shift = -xp.ones_like(B[:, 0]), xp.zeros_like(B[:, 0])
    for step in range(most):
        c = xp.matrix_transpose(L.U) @ pack_rank_one(B)  # (rank, rows)
        F = xp.sum(c * c, axis=0)
        product = (unpack(L.U @ c) @ B[:, :, None])[:, :, 0]  # A(u) u
        # Mean of 2 sum_k (u' U_k v)^2 + sum_k (u' U_k u)(v' U_k v) over unit v beside u, from traces.
        mean = (2 * xp.sum((B @ squares) * B, axis=1) + traces @ c - 3 * F) / max(L.dim - 1, 1)
        wanted = -xp.minimum(xp.maximum(PART * mean, xp.zeros_like(mean)), LARGEST_SHIFT * F)
        fallen = value > F
        rising = fallen | (F - value > SLOWEST * (1 - F))
        proven = xp.sqrt(xp.maximum(value * (1 - value), xp.zeros_like(value)))
        shift = xp.where(fallen, (shift + proven) / 2, wanted)
        best, slope = xp.where(fallen[:, None], best, B), xp.where(fallen[:, None], slope, product)
        value = xp.where(fallen, value, F)
        B = normalised(slope + shift[:, None] * best)
        moving = (1 - xp.abs(xp.sum(B * best, axis=1)) > tolerance) & rising & (step + 1 < most)
        if rows.shape[0] > 0 and bool(xp.all(moving)):
            continue
        halted, kept = xp.nonzero(~moving)[0], xp.nonzero(moving)[0]
        ended.append((xp.take(rows, halted), xp.take(best, halted, axis=0)))  # a step further, F might be less
        if kept.shape[0] == 0:
            break
        rows, value, shift = (xp.take(x, kept) for x in (rows, value, shift))
        B, best, slope = (xp.take(x, kept, axis=0) for x in (B, best, slope))
    order = xp.argsort(xp.concat([rows for rows, _ in ended]))
    return xp.take(xp.concat([vectors for _, vectors in ended], axis=0), order, axis=0)


def polish(L: FactoredTensor, B: Array) -> Maxima:
    """Newton's method on the sphere from each unit row of ``B (m, d)``; those that converge to a maximum.

    A step after which ``F`` is less is not taken.  What a few plain steps do not settle, at a flat maximum or near a
    saddle, goes on with the absolute values of the curvatures: uphill in every direction, at the price of an
    eigendecomposition a step.
    """
    settled = Maxima(B[:0, :], B[:0, 0])
    for solver, steps in ((_newton, NEWTON_STEPS), (_uphill, UPHILL_STEPS)):
        for _ in range(steps):
            B, values, done = _step(L, B, solver)
            xp = array_namespace(B)
            settled = settled.join(Maxima(B, values).take(xp.nonzero(done)[0]))
            B = xp.take(B, xp.nonzero(~done)[0], axis=0)
            if B.shape[0] == 0:
                return _summits(L, settled)
    return _summits(L, settled)


def _summits(L: FactoredTensor, settled: Maxima) -> Maxima:
    """Without saddles, where ``F`` grows in some direction."""
    xp = array_namespace(settled.vectors)
    F, _, second = derivatives(L, settled.vectors)
    rounding = math.sqrt(floor_of(F.dtype, xp))
    return settled.take(xp.nonzero(xp.linalg.eigvalsh(second)[:, -1] <= (2 + rounding) * F)[0])


def _step(L: FactoredTensor, B: Array, solver: Callable[[Array, Array, Array], Array]) -> tuple[Array, Array, Array]:
    """One step of every row: the new rows, their ``F``, and which have settled."""
    xp = array_namespace(B)
    F, gradient, second = derivatives(L, B)
    step = solver(F, gradient, second)
    step = step - xp.sum(step * B, axis=1, keepdims=True) * B
    length = xp.linalg.vector_norm(step, axis=1)
    longest = LONGEST / xp.maximum(length, xp.full_like(length, LONGEST))
    trial = normalised(B + step * longest[:, None])
    rounding = 8 * floor_of(B.dtype, xp)
    better = energies(L, trial) >= F - rounding
    # Where F would fall, the power iteration with its proven shift: A(u) u = gradient + F u.
    proven = F + xp.sqrt(xp.maximum(F * (1 - F), xp.zeros_like(F)))
    B = xp.where(better[:, None], trial, normalised(gradient + proven[:, None] * B))
    return B, energies(L, B), better & (length < math.sqrt(floor_of(B.dtype, xp)))


def _newton(F: Array, gradient: Array, second: Array) -> Array:
    """The step of Newton's method; a little shorter where ``F`` is flat."""
    xp = array_namespace(gradient)
    eye = xp.eye(second.shape[1], dtype=second.dtype, device=device(second))
    flat = max(FLAT, floor_of(F.dtype, xp))
    return xp.linalg.solve((2 + flat) * F[:, None, None] * eye - second, 2 * gradient[:, :, None])[:, :, 0]


def _uphill(F: Array, gradient: Array, second: Array) -> Array:
    """The same with the absolute values of the curvatures."""
    xp = array_namespace(gradient)
    values, Q = xp.linalg.eigh(second)
    curvature = 2 * F[:, None] - values
    along = (xp.matrix_transpose(Q) @ (2 * gradient[:, :, None]))[:, :, 0]
    flat = max(FLAT, floor_of(F.dtype, xp))
    return (Q @ (along / xp.maximum(xp.abs(curvature), flat * F[:, None]))[:, :, None])[:, :, 0]


def derivatives(L: FactoredTensor, B: Array) -> tuple[Array, Array, Array]:
    """``F``, ``A(u) u - F u`` and ``4 sum_k (U_k u)(U_k u)' + 2 A(u)`` beside ``u``, for each unit row of ``B (m, d)``.

    The second is a quarter of the gradient of ``F`` on the sphere.  Along ``u cos t + v sin t`` the term of second
    order is the third between ``v`` and ``v``, less ``2 F``.
    """
    xp = array_namespace(B)
    rank, d = L.rank, L.dim
    tall = xp.reshape(L.matrices, (rank * d, d))
    size = max(1, BLOCK_ENTRIES // max(rank * d, 1))
    parts = []
    for first in range(0, max(B.shape[0], 1), size):
        rows = B[first : min(first + size, B.shape[0]), :]
        V = xp.permute_dims(xp.reshape(tall @ xp.matrix_transpose(rows), (rank, d, rows.shape[0])), (2, 0, 1))  # U_k u
        c = (V @ rows[:, :, None])[:, :, 0]  # (rows, rank): u' U_k u
        A = unpack(L.U @ xp.matrix_transpose(c))
        H = 4 * (xp.matrix_transpose(V) @ V) + 2 * A
        gradient = (A @ rows[:, :, None])[:, :, 0]
        F = xp.sum(gradient * rows, axis=1)
        # Both sides without u: H - (Hu) u' - u (Hu)' + (u'Hu) uu'.
        Hu = (H @ rows[:, :, None])[:, :, 0]
        inner = xp.sum(Hu * rows, axis=1)
        half = (Hu - inner[:, None] * rows / 2)[:, :, None] * rows[:, None, :]
        parts.append((F, gradient - F[:, None] * rows, H - half - xp.matrix_transpose(half)))
    F, gradient, second = (xp.concat(part, axis=0) for part in zip(*parts, strict=True))
    return F, gradient, second


def deflated(L: FactoredTensor, B: Array) -> FactoredTensor:
    """The span of the other components: the part of ``L`` at a right angle to the dual vectors of the rows ``B``."""
    if B.shape[0] == 0:
        return L
    xp = array_namespace(L.like)
    c = xp.matrix_transpose(L.U) @ pack_rank_one(B)  # (rank, m)
    lam = xp.where(L.lam == 0, xp.ones_like(L.lam), L.lam)  # of a span that is larger than the tensor
    dual = xp.astype(c / lam[:, None], xp.float64)
    length = xp.linalg.vector_norm(dual, axis=0)
    basis, _ = xp.linalg.qr(dual / xp.where(length > 0, length, xp.ones_like(length)), mode="complete")
    complement = xp.astype(basis[:, min(B.shape[0], L.rank) :], L.like.dtype)
    return FactoredTensor(xp.ones_like(complement[0, :]), L.U @ complement)


def mean_energy(L: FactoredTensor) -> float:
    """The mean of ``F`` over the sphere: ``E[uu' (x) uu']`` is ``(2 Id + id id') / (d (d + 2))`` on Sym2."""
    xp = array_namespace(L.like)
    traces = xp.sum(xp.linalg.diagonal(L.matrices), axis=1)
    return (2 * L.rank + float(xp.sum(traces * traces))) / (L.dim * (L.dim + 2))


def energies(L: FactoredTensor, B: Array) -> Array:
    """``F`` of the unit rows of ``B (m, d)``."""
    xp = array_namespace(B)
    c = xp.matrix_transpose(L.U) @ pack_rank_one(B)
    return xp.sum(c * c, axis=0)


def normalised(B: Array) -> Array:
    """Rows of norm 1; zero rows stay."""
    xp = array_namespace(B)
    norms = xp.linalg.vector_norm(B, axis=1, keepdims=True)
    return B / xp.where(norms > 0, norms, xp.ones_like(norms))
