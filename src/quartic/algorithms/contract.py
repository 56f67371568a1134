"""Algorithm 4.3: two rectangular projections, then random contractions.

    Input: a tensor T.
    1. Project T to the tensors whose reshaping {123}{4} has spectral norm at most 1.
    2. Project the result to the tensors whose reshaping {124}{3} has spectral norm at most 1.
    3. Sample g ~ N(0, Id) and compute the flattening M_g = sum_j g_j T_j.
    Output: the top left and right singular vectors of M_g.

On a factored tensor ``sum_k lam_k U_k (x) U_k`` with orthonormal ``U_k`` none of this needs an array of size
``d^4``.  The Gram matrix of the reshaping {123}{4} is ``sum_k lam_k^2 U_k^2``, so step 1 multiplies mode 4 by
``P = V diag(min(1, 1/s)) V'``; the Gram matrix of mode 3 is then ``sum_k lam_k^2 U_k P^2 U_k``, which gives ``Q``
of step 2.  The numbers ``<g, U_k>`` are independent standard Gaussians ``h_k``, so

    M_g = Q (sum_k lam_k h_k U_k) P,

``n d^2`` operations each, and a batch of contractions is one matrix product.
"""

from __future__ import annotations

import numpy as np

from quartic._arrays import Array, array_namespace, standard_normal, unpack
from quartic.tensors.factored import FactoredTensor


def rectangular_projections(T: FactoredTensor) -> tuple[Array, Array]:
    """Steps 1 and 2: the matrices ``P`` (mode 4) and ``Q`` (mode 3), each ``(d, d)``.

    The ``U_k`` of ``T`` must be orthonormal.  The projected tensor is ``sum_k lam_k U_k (x) (Q U_k P)``.
    """
    xp = array_namespace(T.like)
    k, d = T.rank, T.dim
    weighted = T.matrices * T.lam[:, None, None]  # lam_k U_k, symmetric
    P = _clip(xp.reshape(weighted, (k * d, d)))  # rows (k, 3), columns 4
    Q = _clip(xp.reshape(xp.matrix_transpose(weighted @ P), (k * d, d)))  # rows (k, 4), columns 3
    return P, Q


def _clip(flattening: Array) -> Array:
    """The matrix that clips the singular values of a tall flattening ``(m, d)`` at 1, applied from the right."""
    xp = array_namespace(flattening)
    gram = xp.astype(xp.matrix_transpose(flattening) @ flattening, xp.float64)
    squares, V = xp.linalg.eigh(gram)
    factors = 1 / xp.sqrt(xp.where(squares > 1, squares, xp.ones_like(squares)))
    return xp.astype((V * factors) @ xp.matrix_transpose(V), flattening.dtype)


def contract(T: FactoredTensor, count: int, rng: np.random.Generator) -> Array:
    """Steps 1 to 3: random contractions ``M_g`` of the projected tensor, ``(count, d, d)``."""
    P, Q = rectangular_projections(T)
    h = standard_normal(rng, (T.rank, count), T.like)
    return Q @ unpack(T.U @ (T.lam[:, None] * h)) @ P


def candidates(M: Array) -> Array:
    """Unit vectors ``(count * d, d)`` that may be components: every eigenvector of ``(M_g + M_g') / 2``.

    Departure 1 from the paper: it takes the top singular vectors only and needs ``n log n`` contractions; all
    eigenvectors of a few contractions do the same work, since post-processing and its acceptance test reject
    those that are not components.
    """
    xp = array_namespace(M)
    _, vectors = xp.linalg.eigh((M + xp.matrix_transpose(M)) / 2)
    return xp.reshape(xp.matrix_transpose(vectors), (-1, M.shape[2]))
