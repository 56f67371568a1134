"""Algorithm 4.8: from a rough component to one as accurate as the error allows.

    Input: a tensor T, a vector u, an error parameter eps >= ||E||.
    1. a := T (u (x) u).
    2. Reshape a to a d x d matrix A; v_L, v_R := its top singular vectors.
    Output: v in {v_L, v_R} if <T, v^(x4)> >= (1 - 3 eps)^2 - eps.

Lemma 4.9: if ``<u, a_i>^2 >= 0.99`` then ``<v, a_i>^2 >= 1 - 3 eps``.

Here ``T`` is pair-symmetric, so ``A`` is symmetric and ``v_L = v_R``.  Step 1 for a block of vectors is one sweep.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from quartic._arrays import Array, array_namespace, floor_of, pack_rank_one, unpack
from quartic.tensors.base import FourTensor

MIXTURE = 0.5  # score, and F, of an even mixture of two components; a component is near 1
POWER_STEPS = (
    12  # matrix-vector products for a top eigenvector; from u the rest shrinks by (0.01 + eps)/(1 - eps) in each
)


@dataclass(frozen=True)
class Evaluation:
    """What one sweep tells about unit vectors ``B (m, d)``, through matrices ``X`` of norm 1 near the ``b b'``.

    Attributes
    ----------
    packed : array of shape (N, m)
        ``T X``, packed.
    values : array of shape (m,)
        ``<T, b^(x4)>``.
    scores : array of shape (m,)
        ``cos^2 angle(b b', T X)``: 1 if ``X = b b'`` is an eigenvector of ``T``, for any weight.
    lengths : array of shape (m,)
        ``||T X||_F``.
    """

    packed: Array
    values: Array
    scores: Array
    lengths: Array

    def take(self, rows: Array) -> Evaluation:
        """The evaluation of some of the vectors."""
        xp = array_namespace(self.values)
        rest = (xp.take(x, rows) for x in (self.values, self.scores, self.lengths))
        return Evaluation(xp.take(self.packed, rows, axis=1), *rest)

    def join(self, other: Evaluation) -> Evaluation:
        """The evaluation of these vectors and the others."""
        xp = array_namespace(self.values)
        rest = ((self.values, other.values), (self.scores, other.scores), (self.lengths, other.lengths))
        return Evaluation(xp.concat((self.packed, other.packed), axis=1), *(xp.concat(pair) for pair in rest))


def evaluate(T: FourTensor, B: Array) -> Evaluation:
    """Step 1 for every row of ``B (m, d)``, ``X = b b'``: one sweep of ``T``."""
    X = pack_rank_one(B)  # (N, m)
    packed = T.apply(X)
    values, scores, lengths = _compare(X, packed)
    return Evaluation(packed, values, scores, lengths)


def improve(T: FourTensor, B: Array, steps: int = POWER_STEPS) -> tuple[Array, Evaluation]:
    """Algorithm 4.8 without its acceptance test: better vectors, and their evaluation, from one sweep.

    ``T X`` is known for the old ``b b'`` and compared with the new one, which proves as much about it.  Its value is
    ``<T, v^(x4)> = 2 <T X, v v'> - <T X, X> + <T D, D>`` with ``D = v v' - X``.  The last term is left out: it is of
    second order in a small correction, times ``eps``; measured, below 3e-4 ``eps`` up to an error of half the weights.
    """
    old = evaluate(T, B)
    V = top_eigenvectors(unpack(old.packed), B, steps)
    mixed, scores, lengths = _compare(pack_rank_one(V), old.packed)
    return V, Evaluation(old.packed, 2 * mixed - old.values, scores, lengths)


def _compare(X: Array, Y: Array) -> tuple[Array, Array, Array]:
    """``<x, y>``, the squared cosine of their angle, and ``||y||``, for the columns of two blocks; ``||x|| = 1``."""
    xp = array_namespace(X)
    inner, squares = xp.sum(X * Y, axis=0), xp.sum(Y * Y, axis=0)
    return inner, inner**2 / xp.where(squares > 0, squares, xp.ones_like(squares)), xp.sqrt(squares)


def top_eigenvectors(A: Array, B: Array, steps: int = POWER_STEPS) -> Array:
    """Step 2: the top eigenvector of each ``A (m, d, d)``, by power iteration from the rows of ``B (m, d)``.

    Departure 2 from the paper: ``B`` is close already, so a few products replace ``m`` decompositions.
    """
    xp = array_namespace(A)
    for _ in range(steps):
        B = _products(A, B)
        norms = xp.linalg.vector_norm(B, axis=1, keepdims=True)
        B = B / xp.where(norms > 0, norms, xp.ones_like(norms))
    return B


def postprocess(T: FourTensor, B: Array, passes: int = 1, steps: int = POWER_STEPS) -> Array:
    """Algorithm 4.8 without its acceptance test, ``passes`` times: one sweep each."""
    for _ in range(passes):
        B = top_eigenvectors(unpack(T.apply(pack_rank_one(B))), B, steps)
    return B


def accepted(evaluation: Evaluation, eps: float | None) -> Array:
    """The acceptance test, as a mask ``(m,)``; for weights that are not 1, and for an ``eps`` of any size.

    Departure 3 from the paper: its test ``<T, v^(x4)> >= (1 - 3 eps)^2 - eps`` is divided by the weight.  With
    ``e = eps / w``, a component that Lemma 4.9 promises has ``<T, v^(x4)> >= w ((1 - 3 e)^2 - e)`` and, for weights of
    like size, ``||T(vv')|| <= w (1 + e)``; ``e`` is taken from above, as ``eps / (<T, v^(x4)> - eps)``.  The threshold
    means something for small ``e`` only: where it falls below that of an even mixture of two components, or ``eps`` is
    not known, the latter decides, and what is accepted still has to be certified.
    """
    xp = array_namespace(evaluation.scores)
    cosine = xp.sqrt(evaluation.scores)
    enough = xp.full_like(cosine, math.sqrt(MIXTURE))
    if eps is not None:
        rest = evaluation.values - eps
        e = eps / xp.where(rest > 0, rest, xp.ones_like(rest))
        threshold = ((1 - 3 * e) ** 2 - e) / (1 + e)
        enough = xp.where((rest > 0) & (e < 1 / 3) & (threshold > enough), threshold, enough)
    return cosine > enough - 2 * math.sqrt(floor_of(cosine.dtype, xp))  # at eps = 0 the threshold is 1, to rounding


def _products(A: Array, B: Array) -> Array:
    """``A_j b_j`` for ``A (m, d, d)`` and ``B (m, d)``."""
    return (A @ B[:, :, None])[:, :, 0]
