"""Samples as the stages read them: in chunks, in halves, and without those that would outweigh all others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from quartic.algorithms.refine import Source
from quartic.moments import CHUNK, Frame, halves, row_hash

TRIM = 4.0  # times m^(1/4) and the 90% quantile: such a norm outweighs all other fourth moments 250 times
SIGNIFICANT = 5.0  # standard errors of the kurtosis of Gaussian samples
SMALL = 1e-8  # of the largest feature: smaller ones are rounding
FAR = 8.0  # times the 99.5% quantile: what heavy tails reach once in millions, and few outliers spoil moments by


@dataclass(frozen=True)
class Samples:
    """Samples as the stages read them: in chunks, without copies of the whole.

    Attributes
    ----------
    Y : ndarray of shape (m, d)
    weights : ndarray of shape (m,) or None
        Zero for samples that are left out.
    mean : ndarray of shape (d,)
    """

    Y: np.ndarray
    weights: np.ndarray | None
    mean: np.ndarray

    @property
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

    def squared_norms(self, rows: np.ndarray, frame: Frame) -> np.ndarray:
        """``||z||^2`` of some rows in whitened coordinates."""
        Z = frame.whiten(self.Y[rows], np.float64)
        return np.einsum("ij,ij->i", Z, Z)

    def everything(self) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """All rows, centred, chunk by chunk and half by half: a ``Source`` of the refinement."""
        for h, rows, w in halves(self.Y, self.weights, np.arange(self.Y.shape[0]), CHUNK):
            yield h, (rows.astype(np.float64) - self.mean).astype(self.Y.dtype), w

    def part(self, rows: np.ndarray) -> Source:
        """Some rows, held in memory: a ``Source`` as well."""
        chunks = [
            (h, (Y.astype(np.float64) - self.mean).astype(self.Y.dtype), w)
            for h, Y, w in halves(self.Y[rows], self.weight(rows), rows, CHUNK)
        ]
        return lambda: chunks


def looks_gaussian(Z: np.ndarray, w: np.ndarray) -> bool:
    """Whether white samples ``Z (m, q)`` of weights ``w (m,)`` have the fourth moment of a Gaussian, ``E ||z||^4``.

    Mardia's kurtosis: ``q^2 E ||z||^4 / (E ||z||^2)^2 - q (q + 2)`` has a variance of ``8 q (q + 2) / m``.
    """
    q = Z.shape[1]
    squares = np.einsum("ij,ij->i", Z, Z)
    excess = q**2 * np.average(squares**2, weights=w) / np.average(squares, weights=w) ** 2 - q * (q + 2)
    return bool(abs(excess) <= SIGNIFICANT * np.sqrt(8 * q * (q + 2) * np.sum(w**2)) / np.sum(w))


def trim(Y: np.ndarray, sample_weight: np.ndarray | None) -> tuple[np.ndarray | None, int]:
    """Weights without the samples that alone would decide every moment, and how many these are.

    A sample of norm ``TRIM m^(1/4) q``, with ``q`` the 90% quantile of all norms, has a fourth power some hundred
    times as large as those of all others together; several that are ``FAR`` longer than 99.5% of all are as bad.
    """
    m = Y.shape[0]
    some = Y[:: max(1, m // 4096)]
    centre = np.median(some, axis=0)
    # Where more than half of the samples are zero, so is the median; the largest of a tenth is not.
    sizes = np.quantile(np.abs(some - centre), 0.9, axis=0)
    size = float(np.max(sizes, initial=0.0))
    low, high = (1e-140, 1e140) if Y.dtype == np.float64 else (1e-17, 1e17)
    if size > 0 and not low < size < high:
        raise ValueError(f"the samples have a magnitude of {size:.0e}: rescale them, or their moments overflow.")
    norms = np.empty(m)
    # Features may come in very different units.
    unit = np.where(sizes > SMALL * size, sizes, size or 1.0).astype(Y.dtype)
    with np.errstate(over="ignore"):  # a norm that overflows is infinite, and goes
        for first in range(0, m, CHUNK):
            rows = (Y[first : first + CHUNK] - centre) / unit
            norms[first : first + CHUNK] = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    counted = norms if sample_weight is None else norms[sample_weight > 0]
    most, many = np.quantile(counted, (0.9, 0.995)) if counted.size else (0.0, 0.0)
    limits = (TRIM * counted.shape[0] ** 0.25 * most, FAR * many)
    gross = norms > min((limit for limit in limits if limit > 0), default=np.inf)
    if sample_weight is not None:
        gross &= sample_weight > 0
    if not np.any(gross):
        return sample_weight, 0
    weights = np.ones(m) if sample_weight is None else np.array(sample_weight, dtype=np.float64)
    weights[gross] = 0.0
    return weights, int(np.sum(gross))
