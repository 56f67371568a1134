"""The one place that knows array libraries: namespaces, generators, memory, and Sym2.

Sym2(R^d) is the space of symmetric ``d x d`` matrices, of dimension ``N = d (d + 1) / 2``.  A symmetric
matrix is *packed* as its upper triangle, row by row, with the entries off the diagonal times ``sqrt(2)``:
the packing is an isometry, ``<pack(X), pack(Y)> = <X, Y>_F``, so eigenvectors of a packed operator are
packed eigenvectors of the operator.

Every function here uses the array-API standard only, through the namespace of its input.
"""

from __future__ import annotations

import math
import os
from functools import lru_cache
from typing import Any

import array_api_extra as xpx
import numpy as np
from array_api_compat import array_namespace, device, is_array_api_obj, is_cupy_array, is_torch_array

Array = Any  # an array of any library that follows the array-API standard

__all__ = [
    "Array",
    "array_namespace",
    "available_memory",
    "check_random_state",
    "contiguous",
    "descending",
    "device",
    "floor_of",
    "from_numpy",
    "is_array_api_obj",
    "no_rows",
    "orthonormalise",
    "pack",
    "pack_rank_one",
    "packed_dim",
    "standard_normal",
    "to_numpy",
    "unpack",
    "unpacked_dim",
    "working_dtype",
    "write",
]


LARGE = 1 << 18  # entries of a packed block from which on gathering both factors is two to five times as slow; measured
WELL_CONDITIONED = 1e-3  # ratio of squared lengths above which one round leaves less than 1000 roundings


def packed_dim(d: int) -> int:
    """Dimension ``N`` of Sym2(R^d)."""
    return d * (d + 1) // 2


def unpacked_dim(N: int) -> int:
    """The ``d`` with ``N = d (d + 1) / 2``.

    >>> unpacked_dim(packed_dim(36))
    36
    """
    d = (math.isqrt(8 * N + 1) - 1) // 2
    if packed_dim(d) != N:
        raise ValueError(f"{N} is not d (d + 1) / 2 for any whole number d.")
    return d


@lru_cache(maxsize=16)
def _triangle(d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Row and column of each packed entry, its factor, and the packed position of each entry of the matrix."""
    i, j = np.triu_indices(d)
    factor = np.where(i == j, 1.0, math.sqrt(2.0))
    position = np.empty((d, d), dtype=np.int64)
    position[i, j] = position[j, i] = np.arange(i.shape[0])
    return i, j, factor, position


@lru_cache(maxsize=64)
def _triangle_on(d: int, xp: Any, where: Any, dtype: Any) -> tuple[Array, Array, Array, Array]:
    """The same for arrays of a library, on a device: moved there once, and not in every step of an iteration."""
    rows, columns, factor, position = _triangle(d)
    rows, columns, position = (xp.asarray(x, device=where) for x in (rows, columns, position.reshape(-1)))
    return rows, columns, xp.asarray(factor, dtype=dtype, device=where), position


def pack(X: Array) -> Array:
    """Pack the symmetric parts of matrices ``(k, d, d)`` into a block ``(N, k)``."""
    xp = array_namespace(X)
    k, d, _ = X.shape
    i, j, factor, _ = _triangle(d)
    flat = xp.reshape(X, (k, d * d))
    upper = xp.take(flat, from_numpy(i * d + j, X), axis=1)
    lower = xp.take(flat, from_numpy(j * d + i, X), axis=1)
    return xp.matrix_transpose((upper + lower) * from_numpy(factor / 2, X, X.dtype))  # (N, k)


def unpack(Y: Array) -> Array:
    """Inverse of :func:`pack`: a block ``(N, k)`` to symmetric matrices ``(k, d, d)``."""
    xp = array_namespace(Y)
    N, k = Y.shape
    d = unpacked_dim(N)
    _, _, factor, position = _triangle_on(d, xp, device(Y), Y.dtype)
    return xp.reshape(xp.take(xp.matrix_transpose(Y) / factor, position, axis=1), (k, d, d))


def pack_rank_one(B: Array) -> Array:
    """Pack ``b b'`` for each row of ``B (k, d)`` into a block ``(N, k)``."""
    xp = array_namespace(B)
    k, d = B.shape
    columns = contiguous(xp.matrix_transpose(B))  # (d, k): rows are gathered, so they should lie together
    if packed_dim(d) * k < LARGE:
        rows, others, factor, _ = _triangle_on(d, xp, device(B), B.dtype)
        return xp.take(columns, rows, axis=0) * xp.take(columns, others, axis=0) * factor[:, None]
    # A block that does not fit the cache: d products of a row with all of `columns`, which does.
    doubled = columns * math.sqrt(2.0)
    out = xp.empty((packed_dim(d), k), dtype=B.dtype, device=device(B))
    start = 0
    for i in range(d):  # row i of the upper triangle
        out = write(out, (slice(start, start + 1), slice(None)), columns[i : i + 1, :] ** 2)
        out = write(out, (slice(start + 1, start + d - i), slice(None)), doubled[i : i + 1, :] * columns[i + 1 :, :])
        start += d - i
    return out


def contiguous(x: Array) -> Array:
    """``x`` laid out row by row; the standard has no word for it, and other libraries need none."""
    if isinstance(x, np.ndarray):
        return np.ascontiguousarray(x)
    return x.contiguous() if is_torch_array(x) else x


def from_numpy(x: np.ndarray, like: Array, dtype: Any = None) -> Array:
    """``x`` in the library and on the device of ``like``."""
    return array_namespace(like).asarray(x, dtype=dtype, device=device(like))


def no_rows(like: Array, d: int) -> Array:
    """An empty set of vectors, ``(0, d)``."""
    return array_namespace(like).zeros((0, d), dtype=like.dtype, device=device(like))


def to_numpy(x: Array) -> np.ndarray:
    """A NumPy array with the values of ``x``, moved to the host if need be."""
    if is_torch_array(x):
        x = x.detach().cpu()
    elif is_cupy_array(x):
        x = x.get()
    return np.asarray(x) if hasattr(x, "__array__") or not hasattr(x, "__dlpack__") else np.from_dlpack(x)


def working_dtype(T: Array) -> Any:
    """The floating dtype in which an array is worked on: its own, or float64 for integers and bool."""
    xp = array_namespace(T)
    dtype = T.dtype.newbyteorder("=") if isinstance(T, np.ndarray) else T.dtype  # files may have the other byte order
    return xp.float64 if xp.isdtype(dtype, ("bool", "integral")) else dtype


def floor_of(dtype: Any, xp: Any) -> float:
    """Machine precision of ``dtype``: what lies below it, relative to the largest value, is rounding."""
    return float(xp.finfo(dtype).eps)


def check_random_state(random_state: Any) -> np.random.Generator:
    """A generator from None, a whole number, a Generator, or scikit-learn's RandomState."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "random_state must be None, a whole number of at least 0, or a NumPy random generator; "
            f"got {random_state!r}."
        ) from error


def standard_normal(rng: np.random.Generator, shape: tuple[int, ...], like: Array) -> Array:
    """Gaussians drawn in NumPy, then cast and moved: the same numbers for every library, dtype and device.

    Drawn in float32, twice as fast: directions are random to any precision.
    """
    return from_numpy(rng.standard_normal(shape, dtype=np.float32), like, like.dtype)


def descending(values: Array) -> Array:
    """Indices that sort ``values`` from the largest to the smallest."""
    return array_namespace(values).argsort(values, descending=True, stable=True)


def orthonormalise(X: Array, floor: float = 0.0) -> Array:
    """An orthonormal basis ``(N, r)`` of the columns of ``X (N, k)``; directions shorter than ``floor`` are dropped.

    Through the eigendecomposition of the float64 Gram matrix: two matrix products, on a tall block several times
    faster than Householder QR.  The error grows with the condition number squared, so an ill-conditioned block goes
    through a second time: it is well-conditioned by then, and only rounding is left.
    """
    xp = array_namespace(X)
    for _ in range(2):
        values, vectors = xp.linalg.eigh(xp.astype(xp.matrix_transpose(X) @ X, xp.float64))
        longest = max(float(values[-1]), 0.0) if values.shape[0] else 0.0
        # Below the root of the precision, relative to the longest, a direction is rounding and not span.
        least = max(floor**2, values.shape[0] * floor_of(X.dtype, xp) * longest)
        r = int(xp.count_nonzero(values > least))  # eigenvalues ascend: the last r are kept
        values, vectors = values[values.shape[0] - r :], vectors[:, vectors.shape[1] - r :]
        X = X @ xp.astype(vectors / xp.sqrt(values), X.dtype)
        if r == 0 or float(values[0]) > WELL_CONDITIONED * longest:
            break
        floor = 0.0
    return X


def write(out: Array, index: tuple[slice, ...], block: Array) -> Array:
    """``out`` with ``block`` written at ``index``: in place where the library allows it."""
    return xpx.at(out)[index].set(block)


def available_memory() -> int | None:
    """Bytes of host memory that can still be taken, or None where the system does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
