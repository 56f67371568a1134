"""Algorithm 5.4: cleaning the fourth moment of a dictionary model.

    Input: T = E[(Ax)^(x4)] + E, a truncation parameter eps.
    1. T^{>eps} := (T_{12,34} - eps Id)_+.
    2. T~ := (sigma(T^{>eps})_{13,24} - eps Id)_+.

The pair terms ``E[x_i^2 x_j^2]`` enter the moment three times.  As ``(a_i (x) a_i)(a_j (x) a_j)'`` they may have a
large norm, and survive step 1; ``sigma`` turns them into ``a_i a_i' (x) a_j a_j'``, of norm at most ``alpha`` (Claim
5.6), and step 2 removes them.  Theorem 5.5: with ``||E|| <= alpha`` and ``eps = 3 alpha`` the result errs by
``O(alpha sqrt(n))`` in Frobenius norm.

``sigma`` of ``sum_k lam_k U_k (x) U_k`` acts as ``X -> sum_k lam_k U_k X U_k``: ``n d^3`` operations a matrix, and
nothing of size ``d^4``.  It keeps symmetric matrices symmetric, so it is restricted to Sym2 like everything else
(antisymmetric ones hold no ``a_i (x) a_i``).
"""

from __future__ import annotations

import numpy as np

from quartic._arrays import Array, array_namespace, pack, unpack
from quartic.algorithms.truncate import OVERSAMPLING, leading_spectrum, truncate
from quartic.tensors.base import FourTensor
from quartic.tensors.factored import FactoredTensor


class Reshaped(FourTensor):
    """``sigma(T)_{13,24}`` of a factored tensor, on Sym2: ``X -> sum_k lam_k U_k X U_k``."""

    def __init__(self, T: FactoredTensor) -> None:
        self.T = T
        self.dim = T.dim
        self.like = T.like

    def apply(self, X: Array) -> Array:
        """``k`` congruences for each column, as two products of matrices of size ``k d x d``."""
        xp = array_namespace(X)
        U, lam = self.T.matrices, self.T.lam  # (k, d, d)
        d = self.dim
        blocks = []
        matrices = unpack(X)
        for j in range(matrices.shape[0]):  # each needs k d^2 numbers between the two products: one at a time
            x = matrices[j, ...]
            right = xp.reshape(xp.reshape(U, (-1, d)) @ x, (-1, d, d)) * lam[:, None, None]  # lam_k U_k x
            right = xp.reshape(xp.permute_dims(right, (1, 0, 2)), (d, -1))  # (d, k d)
            blocks.append(right @ xp.reshape(U, (-1, d)))  # sum_k (lam_k U_k x) U_k, as U_k is symmetric
        return pack(xp.stack(blocks)) if blocks else X


def clean(T: FourTensor, eps: float, rng: np.random.Generator, most: int | None = None) -> FactoredTensor:
    """Algorithm 5.4: an approximation of ``sum_i E[x_i^4] a_i^(x4)``, factored.

    Parameters
    ----------
    T : FourTensor
        Fourth moment in coordinates in which the atoms are orthonormal.
    eps : float
        Truncation parameter, three times the largest pair moment (and the error's norm) in Theorem 5.5.
    rng : numpy.random.Generator
    most : int, optional
        Eigenpairs that each step may keep; all that exceed ``eps`` when not given.
    """
    first = _positive_part(T, eps, rng, most)
    return _positive_part(Reshaped(first), eps, rng, most) if first.rank else first


def _positive_part(T: FourTensor, eps: float, rng: np.random.Generator, most: int | None) -> FactoredTensor:
    """``(T - eps Id)_+``: leading eigenpairs until one falls below ``eps``."""
    width = min(T.dim if most is None else most, T.pair_dim)
    while True:
        spectrum = leading_spectrum(
            T,
            width + OVERSAMPLING,
            rng=rng,
            wanted=lambda values: max(1, int(np.count_nonzero(values > eps))),
            tolerance=1e-6,
        )
        above = int(np.count_nonzero(spectrum.values > eps))
        if most is not None or above <= width or width >= T.pair_dim:
            kept = truncate(spectrum, eps)
            n = kept.rank if most is None else min(kept.rank, most)
            return FactoredTensor(kept.lam[:n], kept.U[:, :n])
        width = min(2 * width, T.pair_dim)
