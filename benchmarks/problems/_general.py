"""Tensors with components in general position: not orthogonal, and more of them than dimensions if need be."""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import eigsh

from quartic import PackedTensor
from quartic._arrays import pack_rank_one
from quartic.datasets import ERRORS


def general_tensor(d: int, n: int, share: float, seed: int) -> tuple[PackedTensor, np.ndarray]:
    """A tensor with random unit components of weight 1 and a Gaussian error, packed, and its components ``(n, d)``.

    The spectral norm of the error is ``share`` of the smallest eigenvalue of the span of the components, which is that
    of the Gram matrix ``<a_i, a_j>^2``.
    """
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d))
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    B = pack_rank_one(A)
    T = B @ B.T
    if share:
        E = ERRORS["gaussian"](A, rng)
        start = rng.standard_normal(E.shape[0])  # eigsh would draw it from global state
        norm = abs(float(eigsh(E, k=1, which="LM", tol=1e-6, v0=start, return_eigenvectors=False)[0]))
        T += E * (share * float(np.linalg.eigvalsh((A @ A.T) ** 2)[0]) / norm)
    return PackedTensor(T), A
