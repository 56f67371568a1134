"""The rows of samples that a diagnosis looks at, and how they look whitened: some thousands, from all over.

One pass over the samples finds values that are not finite and gross rows; what is left is taken in runs of rows that
follow each other, since neighbours tell order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from quartic._arrays import CHUNK, array_namespace, is_array_api_obj, squared_norms, take_rows, to_numpy
from quartic._words import counted
from quartic.algorithms.assume import spaced, uniformity
from quartic.algorithms.together import kurtosis
from quartic.certify import Candidates, Proof, certify
from quartic.evidence.lost import Lost
from quartic.evidence.parts import Evidence
from quartic.frame import Frame
from quartic.moments import Covariance
from quartic.propose.fixed_point import complete
from quartic.propose.span import FEW, Certified
from quartic.propose.untangle import orthogonal_axes, untangle
from quartic.samples import SIGNIFICANT, Limit, glance, in_part

LOOKED, RUN = 1 << 14, 256  # rows that are looked at, and how many of these follow each other
PAIRED = (2048, 8192)  # rows that are compared in pairs; more only where the first say nothing
COPY = 1e-10  # from 1, of the correlation of a feature and its copy: rounding
PLACES = 3  # values that are not finite, whose places are told
FEWEST_ROWS = 2 * FEW  # times the dimension: both halves certify from so many, and the score of structure has no bias


@dataclass(frozen=True)
class Rows:
    """Rows that are looked at, without those that are not finite or gross.

    Attributes
    ----------
    Y : ndarray of shape (k, d)
        In their own order.
    index : ndarray of shape (k,)
        Their places among all rows.
    total, infinite, gross : int
        All rows; those that are not finite; those far longer than all others.
    magnitude : str or None
        What is wrong with the size of the values, where moments would overflow.
    places : tuple of (row, column)
        Of the first values that are not finite.
    glanced : ndarray of shape (q, d) or None
        Some of all finite rows, gross ones among them; ``Y`` where there is none.
    """

    Y: np.ndarray
    index: np.ndarray
    total: int
    infinite: int
    gross: int
    magnitude: str | None = None
    places: tuple[tuple[int, int], ...] = ()
    glanced: np.ndarray | None = None

    @cached_property
    def covariance(self) -> Covariance:
        """Of these rows."""
        return Covariance().update(self.Y)

    @cached_property
    def variance(self) -> np.ndarray:
        """Of each feature, ``(d,)``; exactly zero for one that is constant."""
        return np.where(np.ptp(self.Y, axis=0) > 0, np.diagonal(self.covariance.covariance), 0.0)

    @cached_property
    def counting(self) -> np.ndarray:
        """Features that number the rows, up to their unit."""
        place = self.index - np.mean(self.index)
        spread = np.linalg.norm(place) * np.sqrt(self.variance * self.index.shape[0])
        along = np.abs(place @ (self.Y - np.mean(self.Y, axis=0)))
        few = self.index.shape[0] < 3  # through two rows there is always a line
        return np.flatnonzero((spread > 0) & (along > (1 - COPY) * spread) & (not few))

    @cached_property
    def whole(self) -> Frame:
        """Of every direction that varies."""
        return self.covariance.frame(self.Y.shape[1])


def looked_at(Y: Any) -> Rows:
    """Runs of rows from all over the samples; from a Dask collection, those of a random part."""
    from quartic.distributed import collected, is_collection

    if is_collection(Y):
        data = collected(Y, None).fresh("diagnose")
        index = data.about(LOOKED)
        return Rows(to_numpy(data.take(index)), index, data.rows, 0, data.trimmed)
    Y = Y if is_array_api_obj(Y) else np.asarray(Y)
    xp = array_namespace(Y)
    if Y.ndim != 2 or not xp.isdtype(Y.dtype, ("bool", "integral", "real floating")):
        raise ValueError(f"Y must hold real samples as rows, shape (m, d); got {Y.dtype} of shape {tuple(Y.shape)}.")
    if Y.dtype not in (xp.float32, xp.float64):
        Y = xp.astype(Y, xp.float64)
    m = Y.shape[0]
    starts = range(0, m, CHUNK)
    whole = [to_numpy(xp.all(xp.isfinite(Y[a : min(a + CHUNK, m), :]), axis=1)) for a in starts]
    finite = np.flatnonzero(np.concatenate(whole) if whole else np.zeros(0, dtype=bool))
    bad = np.setdiff1d(np.arange(m), finite, assume_unique=True)
    infinite, places = bad.shape[0], _places(Y, bad[:PLACES])
    some = to_numpy(take_rows(Y, finite[in_part(finite, 0.0, glance(finite.shape[0]))]))
    try:
        limit = Limit.of(some, finite.shape[0])
    except ValueError as error:
        return Rows(some, finite[:0], m, infinite, 0, str(error), places)
    long = [limit.gross(Y[a : min(a + CHUNK, m), :]) for a in starts]
    good = finite[~np.concatenate(long)[finite]] if long else finite
    gross = finite.shape[0] - good.shape[0]
    if good.shape[0] > LOOKED:
        first = np.linspace(0, good.shape[0] - RUN, LOOKED // RUN).astype(np.intp)
        good = good[np.unique(first[:, None] + np.arange(RUN))]
    return Rows(to_numpy(take_rows(Y, good)), good, m, infinite, gross, places=places, glanced=some)


def _places(Y: Any, bad: np.ndarray) -> tuple[tuple[int, int], ...]:
    """Row and column of the first values that are not finite, in some rows of ``Y (m, d)`` that hold such."""
    row, column = np.nonzero(~np.isfinite(to_numpy(take_rows(Y, bad))))
    return tuple(zip(bad[row].tolist(), column.tolist(), strict=True))[:PLACES]


def structure_of(Z: np.ndarray) -> float:
    """How far directions of ``Z (k, r)`` differ, from a first look, or from a longer one where that shows nothing."""
    score = uniformity(spaced(Z, PAIRED[0]))
    return score if score > SIGNIFICANT else uniformity(spaced(Z, PAIRED[1]))


class View:
    """Rows in whitened coordinates ``Z (k, r)``, and as signals ``S (k, r)`` of variance 1, made when asked for."""

    def __init__(self, rows: Rows, rng: np.random.Generator, *, ordered: bool = True) -> None:
        self.rows, self.rng, self.ordered = rows, rng, ordered
        self.whole = rows.whole
        self.frame = rows.covariance.frame()
        self.Z = self.frame.whiten(rows.Y, np.float64)
        self.squares = squared_norms(self.Z)

    @cached_property
    def cloud(self) -> Evidence:
        """In random order, as proposers and proofs want them."""
        lost = Lost.of(np.asarray(self.rows.Y, dtype=np.float64), self.frame)
        m = self.Z.shape[0]
        return Evidence.of_rows(self.Z, self.rows.index, np.ones(m), m, lost=lost, ordered=self.ordered)

    @cached_property
    def axes(self) -> np.ndarray:
        """Of an orthogonal solution, ``(r, r)``."""
        return orthogonal_axes(self.cloud, self.rng)

    @cached_property
    def S(self) -> np.ndarray:
        """Its signals."""
        return self.Z @ self.axes.T

    @cached_property
    def proof(self) -> Proof:
        """What is proven of its axes, and why not more; or of those of local tempering, where that is more."""
        plain = certify(Candidates(self.axes), self.cloud)
        if not np.any(plain.tangled & ~plain.certified):
            return plain
        r = self.frame.dim
        local = untangle(self.cloud, Certified(np.zeros((0, r)), np.zeros(0)), self.rng)
        other = certify(Candidates(complete(local.atoms[:r], r)), self.cloud)
        return other if other.count > plain.count else plain

    @cached_property
    def structure(self) -> float:
        """How far directions differ."""
        return structure_of(self.Z)

    @property
    def few(self) -> str:
        """Why nothing can be said of atoms; empty where it can."""
        enough = self.Z.shape[0] >= FEWEST_ROWS * self.frame.dim
        return "" if enough else f"fewer than {FEWEST_ROWS} samples for each of {counted(self.frame.dim, 'dimension')}"

    @cached_property
    def kurtosis(self) -> np.ndarray:
        """Excess kurtosis of the signals."""
        return kurtosis(self.S, np.ones(self.S.shape[0])) - 3
