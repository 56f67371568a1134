"""Rows that an accumulator keeps: those of smallest hash, the same however the data were cut, ordered or merged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quartic.halves import row_hash

MOST = 1 << 13  # rows; arbitrary: some megabytes, and enough to certify up to some dozens of atoms


@dataclass(frozen=True)
class Kept:
    """Some rows of a stream.

    Attributes
    ----------
    Z : ndarray of shape (k, r)
        Rows in the coordinates of the accumulator, in float64.
    index : ndarray of shape (k,)
        Their places in the data.
    weights : ndarray of shape (k,)
    """

    Z: np.ndarray
    index: np.ndarray
    weights: np.ndarray

    @classmethod
    def none(cls, r: int) -> Kept:
        """Of ``r`` dimensions."""
        return cls(np.zeros((0, r)), np.zeros(0, dtype=np.int64), np.zeros(0))

    @staticmethod
    def chosen(index: np.ndarray) -> np.ndarray:
        """Places of the rows of smallest hash among those with these indices, ascending by index."""
        if index.shape[0] <= MOST:
            return np.argsort(index, kind="stable")
        some = np.argpartition(row_hash(index), MOST)[:MOST]
        return some[np.argsort(index[some], kind="stable")]

    def with_rows(self, Z: np.ndarray, index: np.ndarray, weights: np.ndarray) -> Kept:
        """With more rows, as many as are kept."""
        Z, index, weights = (
            np.concatenate(pair) for pair in ((self.Z, Z), (self.index, index), (self.weights, weights))
        )
        some = self.chosen(index)
        return Kept(Z[some], index[some], weights[some])
