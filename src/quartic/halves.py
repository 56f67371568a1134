"""Two disjoint halves of the samples, told apart by a hash of their *keys*: the row's index, or its group's code.

What is found in one half can then be tested on the other, however the data were cut, ordered or merged.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from quartic._arrays import Array, take_rows


def row_hash(keys: np.ndarray) -> np.ndarray:
    """64 random-looking bits for each key (the finaliser of splitmix64): the same however the rows are cut."""
    x = keys.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return x ^ (x >> np.uint64(31))


def half_of(hashes: np.ndarray) -> np.ndarray:
    """The half, 0 or 1, of each row: the lowest bit of its hash.  Subsamples go by the highest."""
    return (hashes & np.uint64(1)).astype(np.intp)


def halves(batch: Array, w: np.ndarray | None, keys: np.ndarray, size: int) -> Iterator[tuple[int, Array, np.ndarray]]:
    """Chunks of ``size`` rows, split in halves: ``(half, rows, weights)``; rows without weight are left out."""
    for half, mine in places(w, keys, size):
        yield half, take_rows(batch, mine), np.ones(mine.shape[0]) if w is None else w[mine]


def places(w: np.ndarray | None, keys: np.ndarray, size: int) -> Iterator[tuple[int, np.ndarray]]:
    """The same as places in a batch, ``(half, places)``."""
    for first in range(0, keys.shape[0], size):
        half = half_of(row_hash(keys[first : first + size]))
        for h in (0, 1):
            mine = np.flatnonzero(half == h if w is None else (half == h) & (w[first : first + size] > 0))
            if mine.size:
                yield h, first + mine
