"""A dense tensor, packed on Sym2 while it is read in slabs.

Nothing of size ``d^4`` is held: the input is touched one slab ``T[i, i:]`` and its mirror ``T[i:, i]`` at a
time, so a memory-mapped file costs the packed matrix (a quarter of its size) and one slab.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Callable
from typing import Any

import numpy as np

from quartic._arrays import (
    Array,
    array_namespace,
    device,
    floor_of,
    free_memory,
    from_numpy,
    is_array_api_obj,
    pack,
    packed_dim,
    product,
    unpacked_dim,
    working_dtype,
    write,
)
from quartic._words import counted
from quartic.tensors.base import FourTensor

TILE = 1024  # rows of the tiles that are averaged with their mirror; arbitrary, 8 MB in float64


class PackedTensor(FourTensor):
    """The packed ``N x N`` matrix of a pair-symmetric tensor.

    Parameters
    ----------
    matrix : array of shape (N, N)
        Symmetric.
    unit : float, default=1.0
        The tensor is ``unit * matrix``.  A power of two, kept apart so that tensors of any magnitude are
        worked on near 1, where squares neither overflow nor underflow.
    asymmetry : float, default=0.0
        ``||T - proj(T)||_F / ||T||_F`` of the array that was packed: the part that is not pair-symmetric.
        Seen down to about 1e-8 in float64, since it is the difference of two squared norms.

    Examples
    --------
    >>> import quartic
    >>> planted = quartic.datasets.planted_tensor(6, 4, 0.1, random_state=0)
    >>> T = quartic.PackedTensor(planted.packed)
    >>> T, len(quartic.decompose(T, random_state=0).components)
    (PackedTensor(dim=6, dtype=float64), 4)
    """

    def __init__(self, matrix: Array, unit: float = 1.0, asymmetry: float = 0.0) -> None:
        if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"matrix must be square, (N, N); got shape {tuple(matrix.shape)}.")
        self.matrix = matrix
        self.unit = unit
        self.asymmetry = asymmetry
        self.dim = unpacked_dim(matrix.shape[0])
        self.like = matrix

    def apply(self, X: Array) -> Array:
        """``unit * matrix @ X``: one sweep.

        Parameters
        ----------
        X : array of shape (N, k), dtype of the matrix
            Packed symmetric matrices, one per column.

        Returns
        -------
        array of shape (N, k)

        Examples
        --------
        >>> import numpy as np, quartic
        >>> T = quartic.PackedTensor(np.diag([1.0, 2.0, 3.0]))
        >>> T.apply(np.ones((3, 1))).ravel().tolist()
        [1.0, 2.0, 3.0]
        """
        # As (X' M)', since M is symmetric: with few rows on the left, BLAS reads M once, 1.3 to 1.5 times as fast.
        xp = array_namespace(X)
        Y = xp.matrix_transpose(product(xp.matrix_transpose(X), self.matrix))
        return Y if self.unit == 1.0 else Y * self.unit

    def scaled(self, factor: float) -> PackedTensor:
        """The tensor times a number: another unit for the same matrix.

        Parameters
        ----------
        factor : float

        Returns
        -------
        PackedTensor

        Examples
        --------
        >>> import numpy as np, quartic
        >>> T = quartic.PackedTensor(np.eye(6))
        >>> twice = T.scaled(2.0)
        >>> twice.unit, twice.matrix is T.matrix
        (2.0, True)
        """
        return PackedTensor(self.matrix, self.unit * factor, self.asymmetry)

    def astype(self, dtype: Any) -> PackedTensor:
        """The tensor in another floating dtype; without a copy of the matrix when it has it already.

        Parameters
        ----------
        dtype : dtype
            Of the library of the matrix.

        Returns
        -------
        PackedTensor

        Examples
        --------
        >>> import numpy as np, quartic
        >>> quartic.PackedTensor(np.eye(6)).astype(np.float32)
        PackedTensor(dim=3, dtype=float32)
        """
        xp = array_namespace(self.matrix)
        return PackedTensor(xp.astype(self.matrix, dtype, copy=False), self.unit, self.asymmetry)

    def to_packed(self) -> Array:
        """The packed matrix ``(N, N)``: ``unit * matrix``.

        Examples
        --------
        >>> import numpy as np, quartic
        >>> quartic.PackedTensor(np.eye(3), unit=4.0).to_packed().tolist()
        [[4.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 4.0]]
        """
        return self.matrix * self.unit

    @classmethod
    def from_dense(cls, T: Array, callback: Callable[[int], None] | None = None) -> PackedTensor:
        """Pack a dense tensor: its pair-symmetric part, which is all that the method sees.

        Parameters
        ----------
        T : array of shape (d, d, d, d) or (d*d, d*d)
            Of any supported library, or a memory map.
        callback : callable, optional
            Called with the number of slabs packed so far, out of ``d``.

        Returns
        -------
        PackedTensor

        Examples
        --------
        >>> import numpy as np, quartic
        >>> planted = quartic.datasets.planted_tensor(4, 2, 0.1, random_state=0)
        >>> T = quartic.PackedTensor.from_dense(planted.tensor)
        >>> T.asymmetry, bool(np.allclose(T.to_packed(), planted.packed))
        (0.0, True)
        >>> noise = np.random.default_rng(0).standard_normal((4, 4, 4, 4))
        >>> round(quartic.PackedTensor.from_dense(noise).asymmetry, 1)
        0.9
        """
        T, d = check_dense(T)
        xp = array_namespace(T)
        N = packed_dim(d)
        dtype = working_dtype(T)
        _check_memory(d, xp.finfo(dtype).bits // 8, T)
        unit = _scan(T, d)

        matrix = xp.empty((N, N), dtype=dtype, device=device(T))
        start, square = 0, 0.0
        for i in range(d):
            upper = _slab(T, d, slice(i * d + i, (i + 1) * d, 1), dtype) / unit  # T[i, i:], (d-i, d, d)
            lower = _slab(T, d, slice(i * d + i, d * d, d), dtype) / unit  # T[i:, i]
            # ||T||_F^2: every entry once, those of the pair (i, i) from `upper`.
            square += float(xp.sum(upper * upper)) + float(xp.sum(lower[1:, ...] * lower[1:, ...]))
            rows = xp.matrix_transpose(
                pack((upper + lower) / 2)
            )  # (d-i, N): averaged over 1<->2, and by `pack` over 3<->4
            factor = np.where(np.arange(d - i) == 0, 1.0, math.sqrt(2.0))[:, None]
            matrix = write(matrix, (slice(start, start + d - i), slice(None)), rows * from_numpy(factor, T, dtype))
            start += d - i
            _release_pages(T)
            if callback is not None:
                callback(i + 1)
        matrix, kept = _average_with_transpose(matrix)
        if kept == 0:
            raise ValueError("the pair-symmetric part of T is zero: there is nothing to decompose.")
        lost = max(0.0, 1.0 - kept / square)
        # Below a few roundings of the two sums the difference is noise.
        return cls(matrix, unit, math.sqrt(lost) if lost > 8 * floor_of(dtype, xp) else 0.0)


def as_four_tensor(T: Any, callback: Callable[[int], None] | None = None) -> FourTensor:
    """``T`` itself when it is a tensor form; otherwise the array, packed."""
    return T if isinstance(T, FourTensor) else PackedTensor.from_dense(T, callback)


def check_dense(T: Any) -> tuple[Array, int]:
    """The array in its own library, and ``d``; errors that say what was found and what to do."""
    if not is_array_api_obj(T):
        try:
            T = np.asarray(T)
        except ValueError as error:
            raise ValueError(f"T is not an array: {error}") from error
    if isinstance(T, np.ma.MaskedArray):
        raise ValueError("T is masked, and masked entries have no value: fill them first, with T.filled(...).")
    if isinstance(T, np.ndarray) and T.dtype.kind not in "biuf":
        remedy = {
            "c": "take its real part, if the imaginary one is zero; complex components are out of scope",
            "O": "convert it with numpy.asarray(T, dtype=float)",
            "U": "pass numbers; a file is read with numpy.load first",
        }.get(T.dtype.kind, "pass numbers")
        raise ValueError(f"T must hold real numbers; got dtype {T.dtype}: {remedy}.")
    xp = array_namespace(T)
    if not isinstance(T, np.ndarray) and not xp.isdtype(T.dtype, ("bool", "integral", "real floating")):
        raise ValueError(f"T must hold real numbers; got dtype {T.dtype}.")
    if isinstance(T, np.ndarray) and T.dtype.kind == "f" and T.dtype.itemsize not in (4, 8):
        raise ValueError(f"T must be float32 or float64; got {T.dtype}: convert it with T.astype(numpy.float64).")
    shape = tuple(T.shape)
    expected = "expected an array of shape (d, d, d, d), or (d*d, d*d) for its square flattening"
    if len(shape) not in (2, 4):
        hint = "" if len(shape) != 3 else "; tensors of order 3 are out of scope: TensorLy decomposes them"
        raise ValueError(f"T has {counted(len(shape), 'mode')}, shape {shape}; {expected}{hint}.")
    if 0 in shape:
        raise ValueError(f"T is empty, shape {shape}; {expected}.")
    if len(set(shape)) != 1:
        raise ValueError(f"T has modes of unequal length, shape {shape}; {expected}.")
    if len(shape) == 2:
        d = math.isqrt(shape[0])
        if d * d != shape[0]:
            raise ValueError(f"T has shape {shape}, and {shape[0]} is not a square d*d; {expected}.")
        return T, d
    return T, shape[0]


def _slab(T: Array, d: int, pairs: slice, dtype: Any) -> Array:
    """``T_{12,34}`` for some pairs (1, 2), as ``(m, d, d)``; only those are read, whatever the layout of ``T``."""
    xp = array_namespace(T)
    if len(T.shape) == 2:
        return xp.reshape(xp.astype(T[pairs, :], dtype, copy=False), (-1, d, d))
    i, j = divmod(pairs.start, d)
    if pairs.step == 1:
        return xp.astype(T[i, j : j + pairs.stop - pairs.start, :, :], dtype, copy=False)
    return xp.astype(T[i:, j, :, :], dtype, copy=False)


def _check_memory(d: int, itemsize: int, like: Array) -> None:
    """Refuse before anything is allocated what would not fit: the packed matrix and a few blocks beside it."""
    N = packed_dim(d)
    # One slab with its copies (8 d^3), and a Krylov basis of some eight blocks of d vectors (8 d N).
    needed = itemsize * (N * N + 8 * d**3 + 8 * d * N)
    free = free_memory(like)
    if needed > free:
        raise MemoryError(
            f"a tensor of dimension {d} needs {needed / 1e9:.1f} GB packed, and {free / 1e9:.1f} GB are free: "
            "use float32, a machine with more memory, or a tensor form that does not hold T."
        )


def _scan(T: Array, d: int) -> float:
    """Read ``T`` once: a power of two near its largest magnitude, or an error that says where it is not finite."""
    xp = array_namespace(T)
    largest = 0.0
    for i in range(d):
        slab = _slab(T, d, slice(i * d, (i + 1) * d, 1), working_dtype(T))
        peak = max(float(xp.max(slab)), -float(xp.min(slab)))
        if not math.isfinite(peak):
            flat = int(xp.nonzero(xp.reshape(~xp.isfinite(slab), (-1,)))[0][0])
            j, k, m = (int(x) for x in np.unravel_index(flat, tuple(slab.shape)))
            raise ValueError(
                f"T is not finite: T[{i}, {j}, {k}, {m}] is {float(slab[j, k, m])}; remove or replace such entries."
            )
        largest = max(largest, peak)
        _release_pages(T)
    if largest == 0:
        raise ValueError("T is the zero tensor: there is nothing to decompose.")
    # Within 2^+-1000 the inverse is a number too, also for subnormal tensors.
    return 2.0 ** min(max(math.frexp(largest)[1], -1000), 1000)


def _average_with_transpose(matrix: Array) -> tuple[Array, float]:
    """``(M + M') / 2`` and its squared Frobenius norm, tile by tile, so that no second matrix is held."""
    xp = array_namespace(matrix)
    N = matrix.shape[0]
    square = 0.0
    for a in range(0, N, TILE):
        for b in range(a, N, TILE):
            rows, columns = slice(a, min(a + TILE, N)), slice(b, min(b + TILE, N))
            mean = (matrix[rows, columns] + xp.matrix_transpose(matrix[columns, rows])) / 2
            matrix = write(matrix, (rows, columns), mean)
            matrix = write(matrix, (columns, rows), xp.matrix_transpose(mean))
            square += (1 if a == b else 2) * float(xp.sum(mean * mean))
    return matrix, square


def _release_pages(T: Array) -> None:
    """Give the pages of a memory-mapped file back to the system once a slab is read.

    Pages of a mapping count as resident until they are released.  Only mappings known to be shared: in a private
    one (copy-on-write, anonymous) this would drop the caller's data.
    """
    base, shared = T, False
    while isinstance(base, np.ndarray):
        shared = shared or (isinstance(base, np.memmap) and base.mode != "c")
        base = base.base
    if shared and isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)
