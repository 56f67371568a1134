"""The one kernel of our own: packed features on a CUDA device, written in one pass over its memory.

Made of the operations of an array library they take a launch for each row of a triangle, or gathers of what is five
times as large as the result.  Needs Triton, which comes with PyTorch for CUDA; ``_arrays.pack_rank_one`` does without.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

ROWS, SAMPLES = 16, 512  # of the triangle, and of the block, that a program writes; measured, on one H200


@triton.jit
def _pack_rank_one(columns, doubled, out, d, m, ROWS: tl.constexpr, SAMPLES: tl.constexpr):  # type: ignore[no-untyped-def]
    """Entries ``(i, j)``, ``j`` in a block of rows, of ``b b'`` for a block of vectors ``b``."""
    i, first = tl.program_id(1), tl.program_id(2) * ROWS
    if first + ROWS > i:  # the upper triangle
        j = first + tl.arange(0, ROWS)
        s = tl.program_id(0) * SAMPLES + tl.arange(0, SAMPLES)
        row = i.to(tl.int64) * m + s
        left = tl.load(columns + row, mask=s < m)
        twice = tl.load(doubled + row, mask=s < m)
        inside = (j < d)[:, None] & (s < m)[None, :]
        right = tl.load(columns + j.to(tl.int64)[:, None] * m + s[None, :], mask=inside)
        product = tl.where((j == i)[:, None], left[None, :], twice[None, :]) * right
        place = (i * d - i * (i - 1) // 2 + j - i).to(tl.int64)  # row i begins behind the longer ones before it
        there = out + place[:, None] * m + s[None, :]
        tl.store(there, product.to(out.dtype.element_ty), mask=inside & (j >= i)[:, None])


def pack_rank_one(columns: Any, doubled: Any, out: Any) -> None:
    """Write the packed ``b b'`` of the columns ``b`` of ``columns (d, m)`` to ``out (N, m)``, in its dtype.

    ``doubled`` is ``columns`` times ``sqrt(2)``; all are contiguous CUDA tensors.
    """
    d, m = columns.shape
    grid = (triton.cdiv(m, SAMPLES), d, triton.cdiv(d, ROWS))
    with torch.cuda.device(columns.device):  # Triton launches on the current one
        _pack_rank_one[grid](columns, doubled, out, d, m, ROWS=ROWS, SAMPLES=SAMPLES)
