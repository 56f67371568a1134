"""Evidence: rows of the samples in whitened coordinates, in two independent parts.

All that the proof of an atom rests on is in this one value, whatever found the atom: what is found in one part is
tested on the other.  It holds some ten thousand rows, on the host: enough for what a certificate has to tell, and few
enough to be kept by an accumulator (``FourthMoment``), so that a stream is judged as samples in memory are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from quartic._arrays import Array, to_numpy
from quartic.frame import Frame
from quartic.halves import half_of, row_hash

if TYPE_CHECKING:
    from quartic.samples import Samples

FEW = 4  # times r: samples of a part, below which it says nothing; arbitrary
ROWS = 1 << 15  # at most; measured (benchmarks/must_show/correlated): blocks of 10 at Pr 0.8 and 10 dB need 30,000


@dataclass(frozen=True)
class Evidence:
    """Whitened samples in random order.

    Attributes
    ----------
    Z : ndarray of shape (m, r)
        On the host, in float64.
    half : ndarray of shape (m,)
        The part, 0 or 1, of each.
    weights : ndarray of shape (m,)
        What each counts.
    total : int
        Effective number of samples that the coordinates were whitened by: these, and others that are not here.
    """

    Z: np.ndarray
    half: np.ndarray
    weights: np.ndarray
    total: int

    @classmethod
    def of_rows(cls, Z: Array, index: np.ndarray, weights: np.ndarray, total: int) -> Evidence:
        """From whitened rows ``Z (m, r)`` and their places in the data, in an order that depends on these alone.

        Of weighted rows some are left out, the more likely the less they count, so that the others count alike: the
        proof goes by how many samples are where, and one that hardly counts must not speak as loud as others.
        """
        place = row_hash(index)
        order = np.argsort(place, kind="stable")
        chance = row_hash(place[order]) / 2.0**64  # bits of their own
        order = order[chance * np.max(weights, initial=0.0) < weights[order]]
        Z = np.asarray(to_numpy(Z), dtype=np.float64)[order]
        return cls(Z, half_of(place[order]), np.ones(order.shape[0]), total)

    @classmethod
    def of(cls, data: Samples, frame: Frame, rows: np.ndarray | None = None, most: int = ROWS) -> Evidence:
        """From some rows of samples, or from a random part of all."""
        rows = data.about(most) if rows is None else rows
        w = data.weight(rows)
        share = np.sum(w) ** 2 / max(np.sum(w * w) * w.shape[0], np.finfo(np.float64).tiny)
        return cls.of_rows(data.whitened(rows, frame), rows, w, math.ceil(share * data.count))

    @property
    def dim(self) -> int:
        """``r``."""
        return int(self.Z.shape[1])

    @property
    def squares(self) -> np.ndarray:
        """``||z||^2``, in float64."""
        return np.einsum("ij,ij->i", self.Z, self.Z, dtype=np.float64)

    @property
    def enough(self) -> bool:
        """Whether both parts have enough samples to say anything: as many as dimensions are white in any axes."""
        counts = np.bincount(self.half[self.weights > 0], minlength=2)
        return bool(np.min(counts) >= FEW * self.dim)

    def seen_in(self, Q: np.ndarray) -> Evidence:
        """In the coordinates of orthonormal rows ``Q (k, r)``."""
        return Evidence(self.Z @ Q.T, self.half, self.weights, self.total)

    def first(self, m: int) -> Evidence:
        """Some of them: rows are in random order."""
        return Evidence(self.Z[: min(m, self.Z.shape[0]), :], self.half[:m], self.weights[:m], self.total)

    def in_single_precision(self) -> Evidence:
        """With rows in float32, which are passed over in half the time."""
        return replace(self, Z=self.Z.astype(np.float32))

    def part(self, half: int) -> Evidence:
        """One of the two parts."""
        mine = self.half == half
        return Evidence(self.Z[mine], self.half[mine], self.weights[mine], self.total)

    def chunks(self) -> list[tuple[int, np.ndarray, np.ndarray]]:
        """As the refinement reads samples."""
        return [(h, self.Z[self.half == h], self.weights[self.half == h]) for h in (0, 1)]
