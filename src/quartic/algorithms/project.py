"""The general scheme of section 1: project to convex sets, one after the other, then contract.

    Given T, compute iterative projections T^(1), ..., T^(r) to the convex sets X_1, ..., X_r, and apply Jennrich's
    algorithm to T^(r).

Each set here contains the signal ``sum_i a_i^(x4)``, so by Lemma A.2 no projection moves a tensor away from it.  A
projection is a function from a tensor to a tensor; :func:`project` composes them.  All of them work on the factored
form, with orthonormal ``U_k``, where a projection onto a spectral set touches ``d x d`` matrices only.

===================  ==================================================================
function             projects to the tensors ...
===================  ==================================================================
``psd_cone``         whose square reshaping {12}{34} is positive semidefinite (Fact A.4)
``spectral_ball``    whose square reshaping {12}{34} has spectral norm at most 1
``mode_4_ball``      whose reshaping {123}{4} has spectral norm at most 1
``mode_3_ball``      whose reshaping {124}{3} has spectral norm at most 1
===================  ==================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from quartic._arrays import Array, array_namespace, unpack
from quartic.tensors.factored import FactoredTensor


def project(T: Any, *projections: Callable[[Any], Any]) -> Any:
    """Apply projections from left to right: ``project(T, f, g)`` is ``g(f(T))``."""
    for projection in projections:
        T = projection(T)
    return T


def psd_cone(T: FactoredTensor) -> FactoredTensor:
    """Drop the negative weights."""
    xp = array_namespace(T.lam)
    return FactoredTensor(xp.where(T.lam > 0, T.lam, xp.zeros_like(T.lam)), T.U)


def spectral_ball(T: FactoredTensor) -> FactoredTensor:
    """Clip the weights to [-1, 1]."""
    xp = array_namespace(T.lam)
    return FactoredTensor(xp.clip(T.lam, min=-1.0, max=1.0), T.U)


@dataclass(frozen=True)
class SidedTensor:
    """``sum_k lam_k U_k (x) (Q U_k P)``: a factored tensor with modes 3 and 4 multiplied by matrices.

    The multiplied modes are no longer symmetric, so this is not a form on Sym2; it is what contractions are taken of.

    Attributes
    ----------
    base : FactoredTensor
        Orthonormal ``U_k`` with their weights.
    Q, P : array of shape (d, d), or None
        Products of clipping matrices, for modes 3 and 4; None where nothing was clipped yet.
    """

    base: FactoredTensor
    Q: Array | None = None
    P: Array | None = None

    @property
    def matrices(self) -> Array:
        """``lam_k Q U_k P``, ``(k, d, d)``: rows are mode 3, columns mode 4."""
        return self._sided(self.base.matrices * self.base.lam[:, None, None])

    @property
    def exchanged(self) -> SidedTensor:
        """Modes 3 and 4 exchanged: ``(Q U_k P)' = P' U_k Q'``."""
        Q, P = (None if X is None else array_namespace(X).matrix_transpose(X) for X in (self.P, self.Q))
        return SidedTensor(self.base, Q, P)

    def contract(self, h: Array) -> Array:
        """``sum_k h_k lam_k Q U_k P`` for each column of ``h (k, count)``, as ``(count, d, d)``."""
        return self._sided(unpack(self.base.U @ (self.base.lam[:, None] * h)))

    def _sided(self, M: Array) -> Array:
        M = M if self.Q is None else self.Q @ M
        return M if self.P is None else M @ self.P


def mode_4_ball(T: FactoredTensor | SidedTensor) -> SidedTensor:
    """Clip the singular values of {123}{4}: mode 4 is multiplied by ``V diag(min(1, 1/s)) V'``."""
    T = T if isinstance(T, SidedTensor) else SidedTensor(T)
    clip = _clipper(T.matrices)
    return SidedTensor(T.base, T.Q, clip if T.P is None else T.P @ clip)


def mode_3_ball(T: FactoredTensor | SidedTensor) -> SidedTensor:
    """Clip the singular values of {124}{3}: mode 4 of the tensor with modes 3 and 4 exchanged."""
    T = T if isinstance(T, SidedTensor) else SidedTensor(T)
    return mode_4_ball(T.exchanged).exchanged


def _clipper(W: Array) -> Array:
    """The matrix that, applied to the last mode of ``W (k, d, d)``, clips the singular values of ``(kd, d)`` at 1.

    The ``U_k`` of modes 1 and 2 are orthonormal, so the Gram matrix of the reshaping is ``sum_k W_k' W_k``.
    """
    xp = array_namespace(W)
    flat = xp.reshape(W, (-1, W.shape[2]))
    squares, V = xp.linalg.eigh(xp.astype(xp.matrix_transpose(flat) @ flat, xp.float64))
    factors = 1 / xp.sqrt(xp.where(squares > 1, squares, xp.ones_like(squares)))
    return xp.astype((V * factors) @ xp.matrix_transpose(V), W.dtype)
