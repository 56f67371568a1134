"""The one place that knows array libraries: namespaces, generators, memory, precision, and Sym2.

Sym2(R^d) is the space of symmetric ``d x d`` matrices, of dimension ``N = d (d + 1) / 2``.  A symmetric
matrix is *packed* as its upper triangle, row by row, with the entries off the diagonal times ``sqrt(2)``:
the packing is an isometry, ``<pack(X), pack(Y)> = <X, Y>_F``, so eigenvectors of a packed operator are
packed eigenvectors of the operator.

Everything goes through the namespace of its input.  Where the standard has no word for what is needed, or a library a
much faster one, a small function here knows it: nothing else asks which library an array is of.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, wraps
from importlib.util import find_spec
from typing import Any, TypeVar, cast

import array_api_extra as xpx
import numpy as np
from array_api_compat import (
    array_namespace,
    device,
    is_array_api_obj,
    is_array_api_strict_namespace,
    is_cupy_array,
    is_jax_array,
    is_torch_array,
)

Array = Any  # an array of any library that follows the array-API standard
F = TypeVar("F", bound=Callable[..., Any])

__all__ = [
    "Array",
    "add_to",
    "array_namespace",
    "check_random_state",
    "clip",
    "contiguous",
    "descending",
    "device",
    "floor_of",
    "free_memory",
    "from_numpy",
    "full_precision",
    "gram_of_each",
    "in_own_precision",
    "is_array_api_obj",
    "maximum",
    "median",
    "moved",
    "no_rows",
    "on_host",
    "orthonormalise",
    "pack",
    "pack_rank_one",
    "packed_dim",
    "product",
    "quantile",
    "reduced_precision",
    "rough",
    "rows_of",
    "squared_norms",
    "standard_normal",
    "take_rows",
    "to_numpy",
    "typed",
    "unpack",
    "unpacked_dim",
    "working_dtype",
    "write",
]


LARGE = 1 << 18  # entries of a packed block from which on gathering both factors is two to five times as slow; measured
CHUNK = 4096  # rows that are converted to float64 at a time on the host: 2 MB at d = 64, which a cache holds
MOST_ROWS = 1 << 18  # the same on a device, at most: enough to fill it
PART = 0.25  # of the memory that is free on a device, for one thing
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


_PLACED: dict[tuple[Any, ...], tuple[Array, Array, Array, Array]] = {}


def _triangle_on(d: int, like: Array) -> tuple[Array, Array, Array, Array]:
    """The same for arrays of a library, on a device: moved there once, and not in every step of an iteration."""
    where = like.device.id if is_cupy_array(like) else device(like)  # CuPy's own is not hashable
    key = d, type(like), where, like.dtype
    placed = _PLACED.get(key)
    if placed is None:
        if len(_PLACED) >= 64:
            _PLACED.clear()
        rows, columns, factor, position = _triangle(d)
        rows, columns, position = (from_numpy(x, like) for x in (rows, columns, position.reshape(-1)))
        placed = _PLACED[key] = rows, columns, from_numpy(factor, like, like.dtype), position
    return placed


def pack(X: Array) -> Array:
    """Pack the symmetric parts of matrices ``(k, d, d)`` into a block ``(N, k)``."""
    xp = array_namespace(X)
    k, d, _ = X.shape
    rows, columns, factor, _ = _triangle_on(d, X)
    flat = xp.reshape(X, (k, d * d))
    upper = xp.take(flat, rows * d + columns, axis=1)
    lower = xp.take(flat, columns * d + rows, axis=1)
    return xp.matrix_transpose((upper + lower) * (factor / 2))  # (N, k)


def unpack(Y: Array) -> Array:
    """Inverse of :func:`pack`: a block ``(N, k)`` to symmetric matrices ``(k, d, d)``."""
    xp = array_namespace(Y)
    N, k = Y.shape
    d = unpacked_dim(N)
    _, _, factor, position = _triangle_on(d, Y)
    return xp.reshape(xp.take(xp.matrix_transpose(Y) / factor, position, axis=1), (k, d, d))


def pack_rank_one(B: Array, dtype: Any = None) -> Array:
    """Pack ``b b'`` for each row of ``B (k, d)`` into a block ``(N, k)``, in another ``dtype`` if one is given."""
    xp = array_namespace(B)
    k, d = B.shape
    dtype = dtype or B.dtype
    columns = contiguous(xp.matrix_transpose(B))  # (d, k): rows are gathered, so they should lie together
    if packed_dim(d) * k < LARGE and on_host(B):
        rows, others, factor, _ = _triangle_on(d, B)
        packed = xp.take(columns, rows, axis=0) * xp.take(columns, others, axis=0) * factor[:, None]
        return packed if dtype == B.dtype else xp.astype(packed, dtype)
    doubled = columns * math.sqrt(2.0)
    out = xp.empty((packed_dim(d), k), dtype=dtype, device=device(B))
    if _has_kernel(B):
        from quartic import _kernels

        _kernels.pack_rank_one(columns, doubled, out)
        return out
    # A block that does not fit the cache: d products of a row with all of `columns`, which does.
    columns, doubled = (xp.astype(x, dtype, copy=False) for x in (columns, doubled))
    start = 0
    for i in range(d):  # row i of the upper triangle
        out = _write_product(out, slice(start, start + 1), columns[i : i + 1, :], columns[i : i + 1, :])
        out = _write_product(out, slice(start + 1, start + d - i), doubled[i : i + 1, :], columns[i + 1 :, :])
        start += d - i
    return out


def _has_kernel(x: Array) -> bool:
    """Whether ``_kernels`` knows this kind of array: of PyTorch, on a CUDA device, with Triton."""
    return is_torch_array(x) and bool(x.is_cuda) and _has_triton()


@lru_cache
def _has_triton() -> bool:
    return find_spec("triton") is not None


def _write_product(out: Array, rows: slice, a: Array, b: Array) -> Array:
    """``out`` with ``a * b`` in some of its rows: without a copy in between, where the library can."""
    xp = array_namespace(out)
    if isinstance(out, np.ndarray) or is_torch_array(out) or is_cupy_array(out):
        xp.multiply(a, b, out=out[rows, :])
        return out
    return write(out, (rows, slice(None)), a * b)


def contiguous(x: Array) -> Array:
    """``x`` laid out row by row; the standard has no word for it, and other libraries need none."""
    if isinstance(x, np.ndarray):
        return np.ascontiguousarray(x)
    return x.contiguous() if is_torch_array(x) else x


def from_numpy(x: np.ndarray, like: Array, dtype: Any = None) -> Array:
    """``x`` in the library and on the device of ``like``."""
    return array_namespace(like).asarray(x, dtype=dtype, device=device(like))


def moved(x: Array, like: Array) -> Array:
    """``x`` in the library and on the device of ``like``, moved through the host if it is elsewhere."""
    here = array_namespace(x) is array_namespace(like) and device(x) == device(like)
    return x if here else from_numpy(to_numpy(x), like)


def on_host(x: Array) -> bool:
    """Whether ``x`` lies in the memory of the host, where NumPy's speed is the best there is."""
    if isinstance(x, np.ndarray):
        return True
    if is_torch_array(x):
        return bool(x.device.type == "cpu")
    return not (is_cupy_array(x) or (is_jax_array(x) and x.device.platform != "cpu"))


def typed(x: Array, dtype: Any) -> Array:
    """``x`` in a dtype that is named as NumPy names it; ``x`` itself where it has it."""
    xp = array_namespace(x)
    return xp.astype(x, getattr(xp, np.dtype(dtype).name), copy=False)


def take_rows(x: Array, index: np.ndarray) -> Array:
    """The rows of ``x`` at some places."""
    return array_namespace(x).take(x, from_numpy(index, x), axis=0)


def rows_of(batch: Array, dtype: Any) -> int:
    """How many rows ``(m, d)`` are converted to another dtype at a time: what a cache holds, or a part of a device."""
    if on_host(batch):
        return CHUNK
    width = max(int(batch.shape[1]), 1) * np.dtype(dtype).itemsize
    return max(CHUNK, int(min(MOST_ROWS, PART * free_memory(batch) / (8 * width))))


def no_rows(like: Array, d: int) -> Array:
    """An empty set of vectors, ``(0, d)``."""
    return array_namespace(like).zeros((0, d), dtype=like.dtype, device=device(like))


def to_numpy(x: Array) -> np.ndarray:
    """A NumPy array with the values of ``x``, moved to the host if need be."""
    if is_torch_array(x):
        x = x.detach().cpu()
    elif is_cupy_array(x):
        x = x.get()
    elif is_array_api_obj(x) and is_array_api_strict_namespace(array_namespace(x)):
        x = x.to_device(array_namespace(x).Device("CPU_DEVICE"))  # its others, for tests, do not speak to NumPy
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
    """Gaussians drawn in NumPy, then cast: the same numbers for every library and dtype.

    Drawn in float32, twice as fast: directions are random to any precision.  A device that is not the host draws its
    own, from a seed of ``rng``: drawing and moving them would take longer than all that is done with them.
    """
    if not on_host(like):
        return _drawn_on_device(int(rng.integers(2**31)), shape, like)
    return from_numpy(rng.standard_normal(shape, dtype=np.float32), like, like.dtype)


def squared_norms(x: Array) -> Array:
    """``||x_i||^2`` of each row, in the dtype of ``x``."""
    return np.einsum("ij,ij->i", x, x) if isinstance(x, np.ndarray) else array_namespace(x).sum(x * x, axis=1)


def gram_of_each(G: Array) -> Array:
    """``sum_m G_kmi G_lmi`` for each ``i``, from ``G (k, m, n)``: ``(n, k, k)``."""
    if isinstance(G, np.ndarray):
        return np.einsum("kmi,lmi->ikl", G, G)
    xp = array_namespace(G)
    return xp.permute_dims(G, (2, 0, 1)) @ xp.permute_dims(G, (2, 1, 0))


def clip(x: Array, low: Array, high: Array) -> Array:
    """``x`` between two bounds that are arrays: one pass in NumPy."""
    if isinstance(x, np.ndarray):
        return np.clip(x, low, high)
    xp = array_namespace(x)
    return xp.minimum(xp.maximum(x, low), high)


def maximum(x: Array, least: float) -> Array:
    """``x``, or a number where it is smaller: one pass in NumPy."""
    return np.maximum(x, least) if isinstance(x, np.ndarray) else array_namespace(x).clip(x, min=least)


def quantile(x: Array, q: float) -> Array:
    """The quantile of each column of ``x (m, n)``, between neighbours in proportion: the standard has sorting only."""
    if isinstance(x, np.ndarray):
        return np.quantile(x, q, axis=0)
    xp = array_namespace(x)
    place = q * (x.shape[0] - 1)
    low = int(place)
    order = xp.sort(x, axis=0)
    return order[low, :] + (place - low) * (order[min(low + 1, x.shape[0] - 1), :] - order[low, :])


def median(x: Array, axis: int | None = None) -> Array:
    """The median of all entries of ``x``, or of each column for ``axis = 0``."""
    if isinstance(x, np.ndarray):
        return np.median(x, axis=axis)
    return quantile(x, 0.5) if axis == 0 else quantile(array_namespace(x).reshape(x, (-1, 1)), 0.5)[0]


def _drawn_on_device(seed: int, shape: tuple[int, ...], like: Array) -> Array:
    """Standard Gaussians in the dtype and on the device of ``like``."""
    if is_torch_array(like):
        import torch

        generator = torch.Generator(device=like.device).manual_seed(seed)
        return torch.randn(shape, generator=generator, dtype=like.dtype, device=like.device)
    if is_cupy_array(like):
        import cupy

        with like.device:
            return cupy.random.default_rng(seed).standard_normal(shape, dtype=like.dtype)
    import jax

    return jax.device_put(jax.random.normal(jax.random.key(seed), shape, dtype=like.dtype), like.device)


def descending(values: Array) -> Array:
    """Indices that sort ``values`` from the largest to the smallest."""
    return array_namespace(values).argsort(values, descending=True, stable=True)


def orthonormalise(X: Array, floor: float = 0.0, shape: tuple[Array, Array] | None = None) -> Array:
    """An orthonormal basis ``(N, r)`` of the columns of ``X (N, k)``; directions shorter than ``floor`` are dropped.

    ``shape`` holds the eigenvalues and eigenvectors of ``X' X`` in float64, where they are known.

    Through the eigendecomposition of the float64 Gram matrix: two matrix products, on a tall block several times
    faster than Householder QR.  The error grows with the condition number squared, so an ill-conditioned block goes
    through a second time: it is well-conditioned by then, and only rounding is left.
    """
    xp = array_namespace(X)
    for _ in range(2):
        values, vectors = shape or xp.linalg.eigh(xp.astype(xp.matrix_transpose(X) @ X, xp.float64))
        shape = None
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


def add_to(out: Array, half: int, block: Array) -> Array:
    """``out`` with ``block`` added to ``out[half]``: in place where the library allows it, in the dtype of ``out``."""
    if isinstance(out, np.ndarray):
        out[half] += block  # no copy of what may be large
        return out
    return xpx.at(out)[half, ...].add(array_namespace(out).astype(block, out.dtype, copy=False))


_PRECISION: ContextVar[str] = ContextVar("quartic_precision", default="stage")


@contextmanager
def full_precision() -> Iterator[None]:
    """Inside, quartic rounds no product: what a library does by its own settings is left to them.

    Otherwise float32 arrays on a CUDA device are multiplied in TF32 or bfloat16, with sums in float32, where only a
    span is looked for: its error is far larger, and what is found in it is measured and polished in full precision.

    Examples
    --------
    >>> import quartic
    >>> with quartic.full_precision():
    ...     result = quartic.decompose(quartic.datasets.planted_tensor(5, 3, 0.1, random_state=0).tensor)
    """
    token = _PRECISION.set("full")
    try:
        yield
    finally:
        _PRECISION.reset(token)


def in_own_precision(function: F) -> F:
    """A function whose products are taken in the precision of its arguments, arrays or what has one as ``like``.

    JAX multiplies float32 arrays in TF32 on a GPU unless it is told otherwise.
    """

    @wraps(function)
    def told(*args: Any, **kwargs: Any) -> Any:
        if not any(is_jax_array(getattr(x, "like", x)) for x in (*args, *kwargs.values())):
            return function(*args, **kwargs)
        import jax

        with jax.default_matmul_precision("highest"):
            return function(*args, **kwargs)

    return cast(F, told)


@contextmanager
def reduced_precision(allowed: bool) -> Iterator[None]:
    """Inside, :func:`product` and :func:`rough` may round float32 arrays on a device that gains by it."""
    token = _PRECISION.set("reduced") if allowed and _PRECISION.get() != "full" else None
    try:
        yield
    finally:
        if token is not None:
            _PRECISION.reset(token)


def _may_round(x: Array) -> bool:
    """Whether reduced precision is allowed, and there are tensor cores that take it: from Ampere and PyTorch 2.9 on."""
    if not (_PRECISION.get() == "reduced" and is_torch_array(x) and x.is_cuda and "float32" in str(x.dtype)):
        return False
    import torch

    new = hasattr(torch.backends.cuda.matmul, "fp32_precision")
    return new and bool(torch.cuda.get_device_capability(x.device) >= (8, 0))


def rough(x: Array) -> Array:
    """``x`` in bfloat16, where reduced precision is allowed and a product of such arrays is faster; or ``x`` itself."""
    if not _may_round(x):
        return x
    import torch

    return x.to(torch.bfloat16)


def product(a: Array, b: Array) -> Array:
    """``a @ b``; with float32 sums for arrays from :func:`rough`, and in TF32 where reduced precision is allowed."""
    if is_torch_array(a) and "bfloat16" in str(a.dtype):
        import torch

        return torch.mm(a, b, out_dtype=torch.float32) if a.is_cuda else a.float() @ b.float()
    if not _may_round(a):
        return a @ b
    import torch

    settings = torch.backends.cuda.matmul
    before = settings.fp32_precision
    settings.fp32_precision = "tf32"
    try:
        return a @ b
    finally:
        settings.fp32_precision = before


def free_memory(like: Array) -> float:
    """Bytes that can still be taken where ``like`` lies; infinite where nobody says."""
    if is_torch_array(like) and like.is_cuda:
        import torch

        # What the library holds and does not use is free too.
        held = torch.cuda.memory_reserved(like.device) - torch.cuda.memory_allocated(like.device)
        return float(torch.cuda.mem_get_info(like.device)[0] + held)
    if is_cupy_array(like):
        import cupy

        with like.device:
            return float(cupy.cuda.runtime.memGetInfo()[0] + cupy.get_default_memory_pool().free_bytes())
    if is_jax_array(like) and not on_host(like):
        stats = like.device.memory_stats() or {}
        return float(stats.get("bytes_limit", math.inf)) - float(stats.get("bytes_in_use", 0))
    free = available_memory()
    return math.inf if free is None else float(free)


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
