"""The fourth moment of samples, implicit: ``T vec(X) = sum_s w_s (z_s' X z_s) z_s z_s'``.

With packed features (one column ``z (x) z`` a sample) a block of ``k`` matrices costs ``4 m N k`` operations, all in
matrix products, and no array of size ``N^2``: features are formed in chunks and forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from quartic._arrays import (
    MOST_ROWS,
    PART,
    Array,
    array_namespace,
    device,
    free_memory,
    from_numpy,
    on_host,
    pack,
    pack_rank_one,
    packed_dim,
    product,
    rough,
    unpack,
)
from quartic.tensors.base import FourTensor

FEATURE_BYTES = 1 << 25  # of the packed features of a chunk; measured: larger ones fall out of the cache
ROW_BYTES = 1 << 19  # of what is computed of the rows of a block: about what a core's own cache holds
NARROW = 8  # a block of at most d / 8 matrices needs no features: measured, 2 to 4 times faster from d = 32 on
LEAST_ROWS = 64  # in a chunk, for products worth the call; on a device their number is a multiple of it


def rows_in_a_chunk(r: int, like: Array) -> int:
    """Samples whose packed features take :data:`FEATURE_BYTES`, or a part of the memory of a device.

    Parameters
    ----------
    r : int
        Dimension of the samples.
    like : array
        Of the dtype and on the device of the features.
    """
    row = packed_dim(r) * _itemsize(like.dtype)
    if on_host(like):
        return max(LEAST_ROWS, FEATURE_BYTES // row)
    free, least = PART * free_memory(like), 2 * LEAST_ROWS * row  # two chunks are there at a time
    if least > free:
        raise MemoryError(
            f"the packed features of {LEAST_ROWS} samples of dimension {r} need {least / 1e9:.1f} GB, and "
            f"{free / 1e9:.1f} GB of the device can be used for them: use fewer components, or the host."
        )
    return min(int(min(free / least, MOST_ROWS)), MOST_ROWS) * LEAST_ROWS


def _aligned(x: Array) -> Array:
    """``x`` with rows of zeros for its length to be a multiple of 64: others are multiplied three times as slowly."""
    xp = array_namespace(x)
    return xp.concat((x, xp.zeros((-x.shape[0] % LEAST_ROWS, *x.shape[1:]), dtype=x.dtype, device=device(x))))


def _itemsize(dtype: Any) -> int:
    return next(size for name, size in (("bfloat16", 2), ("float32", 4), ("float64", 8)) if name in str(dtype))


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
        weights = xp.ones_like(Z[:, 0]) if weights is None else from_numpy(weights, Z, Z.dtype)
        self.Z, self.weights = (Z, weights) if on_host(Z) else (_aligned(x) for x in (Z, weights))
        self.dim = Z.shape[1]
        self.like = Z
        self._total = float(xp.sum(xp.astype(self.weights, xp.float64)))
        self._kept: list[tuple[Array, Array]] | None = None
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
        if on_host(X) and 0 < X.shape[1] <= self.dim // NARROW:
            return self._apply_narrow(X)
        xp = array_namespace(X)
        Y = xp.zeros_like(X)
        X = rough(X)
        for features, weights in self._chunks(X):
            values = product(xp.matrix_transpose(features), X)  # z' X z
            Y = Y + product(features, rough(values * weights[:, None]))
        return Y / self._total

    def _apply_narrow(self, X: Array) -> Array:
        """Few matrices, by products with the samples themselves: twice the arithmetic, and no features to be formed."""
        xp = array_namespace(X)
        r, k = self.dim, X.shape[1]
        side_by_side = xp.reshape(xp.permute_dims(unpack(X), (1, 0, 2)), (r, k * r))
        Y = xp.zeros((k * r, r), dtype=X.dtype, device=device(X))
        for Z, weights in self._rows(X, k * r):
            images = xp.reshape(Z @ side_by_side, (-1, k, r))  # X_k z
            values = xp.sum(images * Z[:, None, :], axis=2) * weights[:, None]  # z' X_k z
            weighted = xp.reshape(values[:, :, None] * Z[:, None, :], (-1, k * r))
            Y = Y + xp.matrix_transpose(weighted) @ Z
        return pack(xp.reshape(Y, (k, r, r))) / self._total

    def on_squares(self, B: Array) -> Array:
        """``E[s_i^2 s_j^2]`` of the signals ``s = B z``: no features at all."""
        xp = array_namespace(B)
        G = xp.zeros((B.shape[0], B.shape[0]), dtype=B.dtype, device=device(B))
        for Z, weights in self._rows(B, max(B.shape[0], 1)):
            squares = (Z @ xp.matrix_transpose(B)) ** 2
            G = G + xp.matrix_transpose(squares * weights[:, None]) @ squares
        return G / self._total

    def _rows(self, like: Array, width: int) -> Iterator[tuple[Array, Array]]:
        """Samples in the dtype of ``like``, and weights: so many that ``width`` numbers of each are held by a cache."""
        xp = array_namespace(like)
        m = self.Z.shape[0]
        size = max(LEAST_ROWS, ROW_BYTES // (width * _itemsize(like.dtype))) if on_host(like) else max(m, 1)
        for first in range(0, m, size):
            chunk = slice(first, min(first + size, m))
            yield xp.astype(self.Z[chunk, :], like.dtype, copy=False), xp.astype(self.weights[chunk], like.dtype)

    def _chunks(self, like: Array) -> Iterator[tuple[Array, Array]]:
        """Packed features ``(N, rows)`` in the dtype of ``like``, and weights, chunk by chunk.

        Rounded ones are kept for the next sweep, where the device has the memory: forming them takes longer than the
        products.
        """
        if self._kept is not None and self._kept[0][0].dtype == like.dtype:
            yield from self._kept
            return
        m = self.Z.shape[0]
        keep = like.dtype != self.Z.dtype and m * packed_dim(self.dim) * _itemsize(like.dtype) < PART * free_memory(
            like
        )
        kept = []
        size = rows_in_a_chunk(self.dim, like)
        for first in range(0, m, size):
            chunk = slice(first, min(first + size, m))
            part = pack_rank_one(self.Z[chunk, :], like.dtype), self.weights[chunk]
            kept += [part] if keep else []
            yield part
        self._kept = kept if keep else self._kept
