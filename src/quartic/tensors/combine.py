"""Sums of tensor forms: deflation ``T - sum_i w_i b_i^(x4)``, residuals, multiples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from quartic._arrays import Array, from_numpy
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


def deflate(T: FourTensor, weights: np.ndarray, B: Array) -> FourTensor:
    """``T - sum_i w_i b_i^(x4)``: step 3(e) of Algorithm 4.11, or the residual of a decomposition."""
    if B.shape[0] == 0:
        return T
    return Sum([(1.0, T), (-1.0, FactoredTensor.from_components(from_numpy(weights, B, B.dtype), B))])
