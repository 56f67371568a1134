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

from quartic._arrays import Array, array_namespace, descending, standard_normal
from quartic.algorithms.project import SidedTensor, mode_3_ball, mode_4_ball, project
from quartic.tensors.factored import FactoredTensor


def rectangular_projections(T: FactoredTensor) -> SidedTensor:
    """Steps 1 and 2: ``sum_k lam_k U_k (x) (Q U_k P)``.  The ``U_k`` of ``T`` must be orthonormal."""
    projected: SidedTensor = project(T, mode_4_ball, mode_3_ball)
    return projected


def contract(T: FactoredTensor, count: int, rng: np.random.Generator) -> Array:
    """Steps 1 to 3: random contractions ``M_g`` of the projected tensor, ``(count, d, d)``."""
    h = standard_normal(rng, (T.rank, count), T.like)
    return rectangular_projections(T).contract(h)


def candidates(M: Array, most: int) -> Array:
    """Unit vectors ``(m, d)`` that may be components: eigenvectors of ``(M_g + M_g') / 2``, the ``most`` largest.

    Departure 1 from the paper: it takes the top singular vectors only and needs ``n log n`` contractions; all
    eigenvectors of a few contractions do the same work, since post-processing and its acceptance test reject
    those that are not components.
    """
    xp = array_namespace(M)
    # In float64, as every small eigenproblem: in float32 a GPU has another solver, which takes four times as long.
    values, vectors = xp.linalg.eigh(xp.astype((M + xp.matrix_transpose(M)) / 2, xp.float64))
    values, vectors = (xp.astype(x, M.dtype) for x in (values, vectors))
    largest = descending(xp.reshape(xp.abs(values), (-1,)))
    largest = largest[: min(most, largest.shape[0])]
    return xp.take(xp.reshape(xp.matrix_transpose(vectors), (-1, M.shape[2])), largest, axis=0)
