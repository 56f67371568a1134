"""A dense tensor, packed on Sym2 while it is read in slabs.

Nothing of size ``d^4`` is held: the input is touched one slab ``T[i, i:]`` and its mirror ``T[i:, i]`` at a
time, so a memory-mapped file costs the packed matrix (a quarter of its size) and one slab.
"""

from __future__ import annotations

import math
import mmap

import numpy as np

from quartic._arrays import (
    Array,
    array_namespace,
    available_memory,
    device,
    floor_of,
    is_array_api_obj,
    pack,
    packed_dim,
    unpacked_dim,
    working_dtype,
    write,
)
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
    """

    def __init__(self, matrix: Array, unit: float = 1.0, asymmetry: float = 0.0) -> None:
        self.matrix = matrix
        self.unit = unit
        self.asymmetry = asymmetry
        self.dim = unpacked_dim(matrix.shape[0])
        self.like = matrix

    def apply(self, X: Array) -> Array:
        Y = self.matrix @ X
        return Y if self.unit == 1.0 else Y * self.unit

    def scaled(self, factor: float) -> PackedTensor:
        return PackedTensor(self.matrix, self.unit * factor, self.asymmetry)

    @classmethod
    def from_dense(cls, T: Array) -> PackedTensor:
        """Pack an array ``(d, d, d, d)`` or ``(d*d, d*d)`` of any supported library, or a memory map."""
        T = _check_dense(T)
        xp = array_namespace(T)
        d = T.shape[0]
        N = packed_dim(d)
        dtype = working_dtype(T)
        _check_memory(d, xp.finfo(dtype).bits // 8)

        matrix = xp.empty((N, N), dtype=dtype, device=device(T))
        start, unit, square = 0, 0.0, 0.0
        for i in range(d):
            # Average over 1<->2; `pack` averages over 3<->4.
            upper = xp.astype(T[i, i:, :, :], dtype)  # (d-i, d, d)
            lower = xp.astype(T[i:, i, :, :], dtype)
            unit = _checked_unit(upper, lower, i, unit)
            upper, lower = upper / (unit or 1.0), lower / (unit or 1.0)
            # ||T||_F^2: every entry once, those of the diagonal pair (i, i) from `upper`.
            square += float(xp.sum(upper * upper)) + float(xp.sum(lower[1:, ...] * lower[1:, ...]))
            rows = xp.matrix_transpose(pack((upper + lower) / 2))  # (d-i, N)
            factor = xp.where(xp.arange(d - i, device=device(T)) == 0, 1.0, math.sqrt(2.0))
            matrix = write(matrix, (slice(start, start + d - i), slice(None)), rows * xp.astype(factor, dtype)[:, None])
            start += d - i
            _release_pages(T)
        if unit == 0.0:
            raise ValueError("T is the zero tensor: there is nothing to decompose.")
        if not math.isfinite(square):
            raise ValueError("T holds values of too many orders of magnitude to be worked on in its dtype.")
        matrix = _average_with_transpose(matrix)
        kept = float(xp.sum(xp.linalg.vector_norm(matrix, axis=1) ** 2))
        lost = max(0.0, 1.0 - kept / square)
        # Below a few roundings of the two sums the difference is noise.
        noise = 8 * floor_of(dtype, xp)
        return cls(matrix, unit, math.sqrt(lost) if lost > noise else 0.0)


def as_four_tensor(T: object) -> FourTensor:
    """``T`` itself when it is a tensor form; otherwise the array, packed."""
    return T if isinstance(T, FourTensor) else PackedTensor.from_dense(T)


def _check_dense(T: object) -> Array:
    """The array as ``(d, d, d, d)`` in its own library; errors that say what was found and what to do."""
    if not is_array_api_obj(T):
        T = np.asarray(T)
    if isinstance(T, np.ndarray) and T.dtype.kind not in "biuf":
        remedy = {
            "c": "take its real part, or decompose the real and the imaginary part apart",
            "O": "convert it with numpy.asarray(T, dtype=float)",
        }.get(T.dtype.kind, "pass numbers")
        raise ValueError(f"T must hold real numbers; got dtype {T.dtype}: {remedy}.")
    xp = array_namespace(T)
    if not xp.isdtype(T.dtype, ("bool", "integral", "real floating")):
        raise ValueError(f"T must hold real numbers; got dtype {T.dtype}.")
    if isinstance(T, np.ndarray) and T.dtype not in (np.float32, np.float64) and T.dtype.kind == "f":
        raise ValueError(f"T must be float32 or float64; got {T.dtype}: convert it with T.astype(numpy.float32).")
    shape = tuple(T.shape)
    expected = "expected an array of shape (d, d, d, d), or (d*d, d*d) for its square flattening"
    if len(shape) not in (2, 4):
        raise ValueError(f"T has {len(shape)} modes, shape {shape}; {expected}.")
    if 0 in shape:
        raise ValueError(f"T is empty, shape {shape}; {expected}.")
    if len(set(shape)) != 1:
        raise ValueError(f"T has modes of unequal length, shape {shape}; {expected}.")
    if len(shape) == 2:
        d = math.isqrt(shape[0])
        if d * d != shape[0]:
            raise ValueError(f"T has shape {shape}, and {shape[0]} is not a square d*d; {expected}.")
        T = xp.reshape(T, (d, d, d, d), copy=None)
    return T


def _check_memory(d: int, itemsize: int) -> None:
    """Refuse before anything is allocated what would not fit: the packed matrix and a few blocks beside it."""
    N = packed_dim(d)
    # One slab with its copies (8 d^3), and a Krylov basis of some eight blocks of d vectors (8 d N).
    needed = itemsize * (N * N + 8 * d**3 + 8 * d * N)
    free = available_memory()
    if free is not None and needed > free:
        raise MemoryError(
            f"a tensor of dimension {d} needs {needed / 1e9:.1f} GB packed, and {free / 1e9:.1f} GB are free: "
            "use float32, a machine with more memory, or a tensor form that does not hold T."
        )


def _checked_unit(upper: Array, lower: Array, i: int, unit: float) -> float:
    """The power of two near the first slab that is not zero; an error that says where a value is not finite."""
    xp = array_namespace(upper)
    largest = max(float(xp.max(xp.abs(upper))), float(xp.max(xp.abs(lower))))
    if not math.isfinite(largest):
        for slab, mirrored in ((upper, False), (lower, True)):
            bad = xp.nonzero(xp.reshape(~xp.isfinite(slab), (-1,)))[0]
            if bad.shape[0]:
                j, k, m = np.unravel_index(int(bad[0]), tuple(slab.shape))
                where = (int(j) + i, i, int(k), int(m)) if mirrored else (i, int(j) + i, int(k), int(m))
                raise ValueError(
                    f"T is not finite: T[{', '.join(map(str, where))}] is {float(slab[int(j), int(k), int(m)])}; "
                    "remove or replace such entries."
                )
    return unit or (2.0 ** math.frexp(largest)[1] if largest > 0 else 0.0)


def _average_with_transpose(matrix: Array) -> Array:
    """``(M + M') / 2``, tile by tile, so that no second matrix is held."""
    xp = array_namespace(matrix)
    N = matrix.shape[0]
    for a in range(0, N, TILE):
        for b in range(a, N, TILE):
            rows, columns = slice(a, min(a + TILE, N)), slice(b, min(b + TILE, N))
            mean = (matrix[rows, columns] + xp.matrix_transpose(matrix[columns, rows])) / 2
            matrix = write(matrix, (rows, columns), mean)
            matrix = write(matrix, (columns, rows), xp.matrix_transpose(mean))
    return matrix


def _release_pages(T: Array) -> None:
    """Give the pages of a memory-mapped file back to the system once a slab is read.

    Pages of a mapping count as resident until they are released.  Only shared mappings: in a private
    (copy-on-write) one this would drop the caller's changes.
    """
    base = T
    while isinstance(base, np.ndarray):
        if isinstance(base, np.memmap) and base.mode == "c":
            return
        base = base.base
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)
