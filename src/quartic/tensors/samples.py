"""The fourth moment of samples, implicit: ``T vec(X) = sum_s w_s (z_s' X z_s) z_s z_s'``.

With packed features (one column ``z (x) z`` a sample) a block of ``k`` matrices costs ``4 m N k`` operations, all in
matrix products, and no array of size ``N^2``: features are formed in chunks and forgotten.
"""

from __future__ import annotations

from typing import Any

from quartic._arrays import Array, array_namespace, from_numpy, pack_rank_one, packed_dim
from quartic.tensors.base import FourTensor

FEATURE_BYTES = 1 << 25  # of the packed features of a chunk; measured: larger ones fall out of the cache


def rows_in_a_chunk(r: int, dtype: Any) -> int:
    """Samples whose packed features take :data:`FEATURE_BYTES`; at least 64, for products worth the call."""
    return max(64, FEATURE_BYTES // (packed_dim(r) * (4 if "float32" in str(dtype) else 8)))


class SampleTensor(FourTensor):
    """``sum_s w_s z_s^(x4) / sum_s w_s``.

    Parameters
    ----------
    Z : array of shape (m, r)
        Samples as rows.
    weights : array of shape (m,), optional
        At least 0; ones when not given.
    """

    def __init__(self, Z: Array, weights: Array | None = None) -> None:
        xp = array_namespace(Z)
        self.Z = Z
        self.weights = xp.ones_like(Z[:, 0]) if weights is None else from_numpy(weights, Z, Z.dtype)
        self.dim = Z.shape[1]
        self.like = Z
        self._total = float(xp.sum(xp.astype(self.weights, xp.float64)))
        if not self._total > 0:
            raise ValueError("the samples have no weight: there is nothing to take moments of.")

    @property
    def covariance(self) -> Array:
        """Second moment ``(r, r)``, in float64."""
        xp = array_namespace(self.Z)
        Z, w = xp.astype(self.Z, xp.float64), xp.astype(self.weights, xp.float64)
        return xp.matrix_transpose(Z * w[:, None]) @ Z / self._total

    def apply(self, X: Array) -> Array:
        """Two products with the packed features of each chunk: one sweep."""
        xp = array_namespace(X)
        size = rows_in_a_chunk(self.dim, X.dtype)
        Y = xp.zeros_like(X)
        for first in range(0, self.Z.shape[0], size):
            chunk = slice(first, min(first + size, self.Z.shape[0]))
            features = pack_rank_one(self.Z[chunk, :])  # (N, rows)
            values = xp.matrix_transpose(features) @ X  # z' X z
            Y = Y + features @ (values * self.weights[chunk][:, None])
        return Y / self._total
