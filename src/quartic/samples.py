"""Samples as the stages read them: in chunks, in halves, and without those that would outweigh all others."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from quartic._arrays import (
    Array,
    array_namespace,
    from_numpy,
    median,
    quantile,
    rows_of,
    squared_norms,
    take_rows,
    to_numpy,
)
from quartic.algorithms.refine import Source
from quartic.moments import Frame, places, row_hash

TRIM = 4.0  # times m^(1/4) and the 90% quantile: such a norm outweighs all other fourth moments 250 times
SIGNIFICANT = 5.0  # standard errors of the kurtosis of Gaussian samples
SMALL = 1e-8  # of the largest feature: smaller ones are rounding
FAR = 8.0  # times the 99.5% quantile: what heavy tails reach once in millions, and few outliers spoil moments by


@dataclass(frozen=True)
class Samples:
    """Samples as the stages read them: in chunks, without copies of the whole.

    Attributes
    ----------
    Y : array of shape (m, d)
        Of any library, on any device; indices, weights and the mean are NumPy's.
    weights : ndarray of shape (m,) or None
        Zero for samples that are left out.
    mean : ndarray of shape (d,)
    """

    Y: Array
    weights: np.ndarray | None
    mean: np.ndarray

    @cached_property
    def count(self) -> int:
        """Samples that are not left out."""
        return self.Y.shape[0] if self.weights is None else int(np.count_nonzero(self.weights))

    def chosen(self, low: float, high: float) -> np.ndarray:
        """Indices of a random part of the rows, those whose hash lies between two fractions."""
        place = (row_hash(np.arange(self.Y.shape[0])) >> np.uint64(11)).astype(np.float64) / 2.0**53
        mine = (place >= low) & (place < high)
        return np.flatnonzero(mine if self.weights is None else mine & (self.weights > 0))

    def about(self, count: int) -> np.ndarray:
        """Indices of about so many rows, a random part, or of all."""
        part = count / max(self.count, 1)
        return self.chosen(0.0, part if part < 1 else 2.0)

    def weight(self, rows: np.ndarray) -> np.ndarray:
        """Weights of some rows."""
        return np.ones(rows.shape[0]) if self.weights is None else self.weights[rows]

    def whitened(self, rows: np.ndarray, frame: Frame, dtype: Any = np.float64) -> Array:
        """Some rows in whitened coordinates, ``(k, r)``."""
        return frame.whiten(take_rows(self.Y, rows), dtype)

    def squared_norms(self, rows: np.ndarray, frame: Frame) -> Array:
        """``||z||^2`` of some rows in whitened coordinates."""
        return squared_norms(self.whitened(rows, frame))

    @cached_property
    def _places(self) -> list[tuple[int, Array, Array]]:
        """Half, places and weights of the rows of each chunk, where the samples are."""
        every = np.arange(self.Y.shape[0])
        return [
            (h, from_numpy(mine, self.Y), from_numpy(self.weight(mine), self.Y))
            for h, mine in places(self.weights, every, rows_of(self.Y, np.float64))
        ]

    def everything(self) -> Iterator[tuple[int, Array, Array]]:
        """All rows, centred, chunk by chunk and half by half: a ``Source`` of the refinement."""
        xp = array_namespace(self.Y)
        for h, mine, w in self._places:
            yield h, self._centred(xp.take(self.Y, mine, axis=0)), w

    def part(self, rows: np.ndarray) -> Source:
        """Some rows, held in memory: a ``Source`` as well."""
        weights = self.weight(rows)
        chunks = [
            (h, self._centred(take_rows(self.Y, rows[mine])), from_numpy(weights[mine], self.Y))
            for h, mine in places(weights, rows, rows_of(self.Y, np.float64))
        ]
        return lambda: chunks

    def _centred(self, rows: Array) -> Array:
        """Rows about the mean, which is subtracted in float64."""
        xp = array_namespace(rows)
        return xp.astype(xp.astype(rows, xp.float64) - from_numpy(self.mean, rows), rows.dtype)


def looks_gaussian(Z: np.ndarray, w: np.ndarray) -> bool:
    """Whether white samples ``Z (m, q)`` of weights ``w (m,)`` have the fourth moment of a Gaussian, ``E ||z||^4``.

    Mardia's kurtosis: ``q^2 E ||z||^4 / (E ||z||^2)^2 - q (q + 2)`` has a variance of ``8 q (q + 2) / m``.
    """
    q = Z.shape[1]
    squares = squared_norms(Z)
    excess = q**2 * np.average(squares**2, weights=w) / np.average(squares, weights=w) ** 2 - q * (q + 2)
    return bool(abs(excess) <= SIGNIFICANT * np.sqrt(8 * q * (q + 2) * np.sum(w**2)) / np.sum(w))


def trim(Y: Array, sample_weight: np.ndarray | None) -> tuple[np.ndarray | None, int]:
    """Weights without the samples that alone would decide every moment, and how many these are.

    A sample of norm ``TRIM m^(1/4) q``, with ``q`` the 90% quantile of all norms, has a fourth power some hundred
    times as large as those of all others together; several that are ``FAR`` longer than 99.5% of all are as bad.
    """
    xp = array_namespace(Y)
    m = Y.shape[0]
    some = Y[:: max(1, m // 4096), :]
    centre = median(some, axis=0)
    # Where more than half of the samples are zero, so is the median; the largest of a tenth is not.
    sizes = to_numpy(quantile(xp.abs(some - centre), 0.9))
    size = float(np.max(sizes, initial=0.0))
    low, high = (1e-140, 1e140) if Y.dtype == xp.float64 else (1e-17, 1e17)
    if size > 0 and not low < size < high:
        raise ValueError(f"the samples have a magnitude of {size:.0e}: rescale them, or their moments overflow.")
    # Features may come in very different units.
    unit = from_numpy(np.where(sizes > SMALL * size, sizes, size or 1.0), Y, Y.dtype)
    parts, chunk = [], rows_of(Y, np.float64)
    with np.errstate(over="ignore"):  # a norm that overflows is infinite, and goes
        for first in range(0, m, chunk):
            rows = (Y[first : min(first + chunk, m), :] - centre) / unit
            parts.append(xp.astype(xp.sqrt(squared_norms(rows)), xp.float64))
    norms = xp.concat(parts)[:, None]
    counted = norms if sample_weight is None else take_rows(norms, np.flatnonzero(sample_weight > 0))
    most, many = (float(quantile(counted, q)[0]) if counted.shape[0] else 0.0 for q in (0.9, 0.995))
    limits = (TRIM * counted.shape[0] ** 0.25 * most, FAR * many)
    gross = to_numpy(norms[:, 0] > min((limit for limit in limits if limit > 0), default=math.inf))
    if sample_weight is not None:
        gross = gross & (sample_weight > 0)
    if not np.any(gross):
        return sample_weight, 0
    weights = np.ones(m) if sample_weight is None else np.array(sample_weight, dtype=np.float64)
    weights[gross] = 0.0
    return weights, int(np.sum(gross))
