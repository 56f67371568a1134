"""Forms made of forms: deflation ``T - sum_i w_i b_i^(x4)``, cumulants, a change of coordinates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from quartic._arrays import Array, array_namespace, from_numpy, pack, unpack
from quartic.tensors.base import FourTensor
from quartic.tensors.factored import FactoredTensor


class Sum(FourTensor):
    """``sum_j c_j T_j`` for forms of the same dimension; nothing is formed, each term is applied.

    Parameters
    ----------
    terms : sequence of (float, FourTensor)
    """

    def __init__(self, terms: Sequence[tuple[float, FourTensor]]) -> None:
        dims = {T.dim for _, T in terms}
        if len(dims) != 1:
            raise ValueError(f"the terms of a sum must have one dimension; got {sorted(dims)}.")
        self.terms = tuple(terms)
        self.dim = dims.pop()
        self.like = terms[0][1].like

    def apply(self, X: Array) -> Array:
        """Each term applied, and summed."""
        (c, T), *rest = self.terms
        Y = T.apply(X) * c
        for c, T in rest:
            Y = Y + T.apply(X) * c
        return Y

    def on_squares(self, B: Array) -> Array:
        """Those of each term, summed."""
        return sum((T.on_squares(B) * c for c, T in self.terms), start=0.0)


def deflate(T: FourTensor, weights: np.ndarray, B: Array) -> FourTensor:
    """``T - sum_i w_i b_i^(x4)``: step 3(e) of Algorithm 4.11, or the residual of a decomposition."""
    if B.shape[0] == 0:
        return T
    return Sum([(1.0, T), (-1.0, FactoredTensor.from_components(from_numpy(weights, B, B.dtype), B))])


class Pairings(FourTensor):
    """``X -> <C, X> C + 2 C X C``: the fourth moment of a Gaussian vector with covariance ``C (d, d)``.

    What is left of a fourth moment without it is the fourth *cumulant*, ``sum_i kappa_i a_i^(x4)`` for independent
    coefficients, and blind to additive Gaussian noise.
    """

    def __init__(self, C: Array) -> None:
        self.C = C
        self.dim = C.shape[0]
        self.like = C

    def apply(self, X: Array) -> Array:
        """One pairing is an outer product, the other two are congruences."""
        xp = array_namespace(X)
        c = pack(self.C[None, :, :])  # (N, 1)
        return c @ (xp.matrix_transpose(c) @ X) + 2 * pack(self.C @ unpack(X) @ self.C)

    def on_squares(self, B: Array) -> Array:
        """Products of covariances of the signals."""
        xp = array_namespace(B)
        of_signals = B @ self.C @ xp.matrix_transpose(B)
        own = xp.linalg.diagonal(of_signals)
        return own[:, None] * own + 2 * of_signals**2


class Congruence(FourTensor):
    """``T`` in other coordinates, ``z = R y``: each mode is multiplied by ``R (r, d)``.

    Parameters
    ----------
    T : FourTensor
        Of dimension ``d``.
    R : array of shape (r, d)
    """

    def __init__(self, T: FourTensor, R: Array) -> None:
        self.T = T
        self.R = R
        self.dim = R.shape[0]
        self.like = T.like

    def apply(self, X: Array) -> Array:
        """``R T(R' X R) R'``."""
        xp = array_namespace(X)
        transposed = xp.matrix_transpose(self.R)
        inner = self.T.apply(pack(transposed @ unpack(X) @ self.R))
        return pack(self.R @ unpack(inner) @ transposed)

    def on_squares(self, B: Array) -> Array:
        """Those of ``T`` on the rows of ``B R``."""
        return self.T.on_squares(B @ self.R)
