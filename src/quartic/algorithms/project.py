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

from quartic._arrays import Array, array_namespace, device, unpack
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
    Q, P : array of shape (d, d)
        Products of clipping matrices, for modes 3 and 4.
    """

    base: FactoredTensor
    Q: Array
    P: Array

    @classmethod
    def of(cls, T: FactoredTensor | SidedTensor) -> SidedTensor:
        """``T`` itself, or a factored tensor with nothing multiplied yet."""
        if isinstance(T, SidedTensor):
            return T
        xp = array_namespace(T.like)
        one = xp.eye(T.dim, dtype=T.like.dtype, device=device(T.like))
        return cls(T, one, one)

    @property
    def matrices(self) -> Array:
        """``lam_k Q U_k P``, ``(k, d, d)``: rows are mode 3, columns mode 4."""
        return self.Q @ (self.base.matrices * self.base.lam[:, None, None]) @ self.P

    def contract(self, h: Array) -> Array:
        """``sum_k h_k lam_k Q U_k P`` for each column of ``h (k, count)``, as ``(count, d, d)``."""
        return self.Q @ unpack(self.base.U @ (self.base.lam[:, None] * h)) @ self.P


def mode_4_ball(T: FactoredTensor | SidedTensor) -> SidedTensor:
    """Clip the singular values of {123}{4}: mode 4 is multiplied by ``V diag(min(1, 1/s)) V'``."""
    T = SidedTensor.of(T)
    return SidedTensor(T.base, T.Q, T.P @ _clipper(T.matrices))


def mode_3_ball(T: FactoredTensor | SidedTensor) -> SidedTensor:
    """Clip the singular values of {124}{3}: mode 3 is multiplied likewise."""
    T = SidedTensor.of(T)
    xp = array_namespace(T.P)
    return SidedTensor(T.base, _clipper(xp.matrix_transpose(T.matrices)) @ T.Q, T.P)


def _clipper(W: Array) -> Array:
    """The matrix that, applied to the last mode of ``W (k, d, d)``, clips the singular values of ``(kd, d)`` at 1.

    The ``U_k`` of modes 1 and 2 are orthonormal, so the Gram matrix of the reshaping is ``sum_k W_k' W_k``.
    """
    xp = array_namespace(W)
    flat = xp.reshape(W, (-1, W.shape[2]))
    squares, V = xp.linalg.eigh(xp.astype(xp.matrix_transpose(flat) @ flat, xp.float64))
    factors = 1 / xp.sqrt(xp.where(squares > 1, squares, xp.ones_like(squares)))
    return xp.astype((V * factors) @ xp.matrix_transpose(V), W.dtype)
