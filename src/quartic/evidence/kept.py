"""Rows that an accumulator keeps: those of smallest hash, the same however the data were cut, ordered or merged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
    groups : ndarray of shape (k,), optional
        Codes of the groups that they belong to, where these are known.
    """

    Z: np.ndarray
    index: np.ndarray
    weights: np.ndarray
    groups: np.ndarray | None = None

    @classmethod
    def none(cls, r: int) -> Kept:
        """Of ``r`` dimensions."""
        return cls(np.zeros((0, r)), np.zeros(0, dtype=np.int64), np.zeros(0))

    @classmethod
    def restored(cls, data: Mapping[str, Any]) -> Kept:
        """From :attr:`arrays`, among others."""
        found = {name: np.asarray(data[f"kept_{name}"]) for name in ("Z", "index", "weights")}
        return cls(**found, groups=data.get("kept_groups"))

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All of it, by names of its own."""
        return {f"kept_{name}": value for name, value in vars(self).items() if value is not None}

    @staticmethod
    def chosen(index: np.ndarray) -> np.ndarray:
        """Places of the rows of smallest hash among those with these indices, ascending by index."""
        if index.shape[0] <= MOST:
            return np.argsort(index, kind="stable")
        some = np.argpartition(row_hash(index), MOST)[:MOST]
        return some[np.argsort(index[some], kind="stable")]

    def with_rows(
        self, Z: np.ndarray, index: np.ndarray, weights: np.ndarray, groups: np.ndarray | None = None
    ) -> Kept:
        """With more rows, as many as are kept; they have groups if these have, where there are some."""
        if self.index.size and index.size:
            groups = None if self.groups is None or groups is None else np.append(self.groups, groups)
        elif self.index.size:
            groups = self.groups
        Z, index, weights = (
            np.concatenate(pair) for pair in ((self.Z, Z), (self.index, index), (self.weights, weights))
        )
        some = self.chosen(index)
        return Kept(Z[some], index[some], weights[some], None if groups is None else groups[some])
