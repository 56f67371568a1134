"""Moments of samples in two passes, as accumulators that add.

    pass 1:  covariance = Covariance().update(batch)...;   frame = covariance.frame()
    pass 2:  moment = FourthMoment(frame).update(batch)...;   moment.cumulant()

Two passes, not one: a raw fourth moment that is whitened afterwards loses the condition number to the fourth power, and
for data far from the origin everything.

Each accumulator keeps *two disjoint halves* of the samples apart, by a hash of the row's index, so that what is found
in one half can be tested on the other however the data were cut, ordered or merged.  Products are taken in the dtype
of the samples (float64 for the covariance, always) and summed in float64.
"""

from __future__ import annotations

import hashlib
import math
import operator
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from quartic._arrays import pack_rank_one, packed_dim
from quartic._files import load_arrays, readable, save_arrays
from quartic.algorithms.temper import effective
from quartic.algorithms.whiten import whiten
from quartic.tensors import FourTensor, PackedTensor, SampleTensor, Sum
from quartic.tensors.combine import Congruence, Pairings
from quartic.tensors.factored import FactoredTensor
from quartic.tensors.samples import rows_in_a_chunk

CHUNK = 4096  # samples that are converted to float64 at a time: 2 MB at d = 64, which a cache holds


def row_hash(index: np.ndarray) -> np.ndarray:
    """64 random-looking bits for each row index (the finaliser of splitmix64): the same however the rows are cut."""
    x = index.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return x ^ (x >> np.uint64(31))


def half_of(hashes: np.ndarray) -> np.ndarray:
    """The half, 0 or 1, of each row: the lowest bit of its hash.  Subsamples go by the highest."""
    return (hashes & np.uint64(1)).astype(np.intp)


def halves(
    batch: np.ndarray, w: np.ndarray | None, index: np.ndarray, size: int
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Chunks of ``size`` rows, split in halves: ``(half, rows, weights)``; rows without weight are left out."""
    for first in range(0, batch.shape[0], size):
        chunk = slice(first, first + size)
        rows, half = batch[chunk], half_of(row_hash(index[chunk]))
        weights = np.ones(rows.shape[0]) if w is None else w[chunk]
        for h in (0, 1):
            mine = np.flatnonzero((half == h) & (weights > 0))
            if mine.size:
                yield h, rows[mine], weights[mine]


class _Accumulator:
    """Sums over samples, kept in two halves; what covariance and fourth moment have in common."""

    _SUMS: tuple[str, ...]

    def __init__(self) -> None:
        self.rows = 0  # index of the next row
        self.count = 0  # rows seen so far
        self.weight = np.zeros(2)  # of each half: the sum of its weights,
        self.squares = np.zeros(2)  # and of their squares

    def _check(self, batch: Any, sample_weight: Any, width: int | None) -> tuple[np.ndarray, np.ndarray | None]:
        batch = np.asarray(batch)
        if batch.dtype.kind not in "biuf":
            raise ValueError(f"batch must hold real numbers; got dtype {batch.dtype}.")
        if batch.dtype not in (np.float32, np.float64):
            batch = batch.astype(np.float64)
        if batch.ndim != 2 or (width is not None and batch.shape[1] != width):
            expected = "(m, d)" if width is None else f"(m, {width})"
            raise ValueError(f"batch must have samples as rows, shape {expected}; got shape {batch.shape}.")
        with np.errstate(over="ignore", invalid="ignore"):  # a sum is finite if all terms are, and cheaper to look at
            finite = np.isfinite(np.sum(batch, dtype=np.float64)) or np.all(np.isfinite(batch))
        if not finite:
            raise ValueError("batch holds NaN or infinite values: remove or replace those samples.")
        if sample_weight is None:
            return batch, None
        w = np.asarray(sample_weight, dtype=np.float64)
        if w.shape != batch.shape[:1] or not np.all(np.isfinite(w)) or np.any(w < 0):
            raise ValueError(f"sample_weight must hold {batch.shape[0]} finite weights of at least 0.")
        return batch, w

    @property
    def effective(self) -> np.ndarray:
        """Effective sample size of each half, ``(sum w)^2 / sum w^2``."""
        return self.weight**2 / np.where(self.squares > 0, self.squares, 1.0)

    def _index(self, index: Any, count: int) -> np.ndarray:
        """The index of each row of a batch; they go on from the rows seen so far when not given."""
        index = np.asarray(self.rows if index is None else index)
        if index.ndim == 0 and index.dtype.kind in "iu":
            index = np.arange(index, index + count)
        if index.shape != (count,) or index.dtype.kind not in "iu" or np.any(index < 0):
            raise ValueError(f"index must be the index of the first row, or a whole number for each of {count} rows.")
        return index

    def _seen(self, index: np.ndarray) -> None:
        self.rows = max(self.rows, int(np.max(index, initial=-1)) + 1)
        self.count += index.shape[0]

    def _saved(self) -> dict[str, np.ndarray]:
        return {
            "rows": np.asarray(self.rows),
            "count": np.asarray(self.count),
            "weight": self.weight,
            "squares": self.squares,
            **{name: getattr(self, name) for name in self._SUMS},
        }

    def _restore(self, data: dict[str, np.ndarray]) -> None:
        self.rows, self.count = int(data["rows"]), int(data["count"])
        self.weight, self.squares = data["weight"], data["squares"]
        for name in self._SUMS:
            setattr(self, name, data[name])


class Covariance(_Accumulator):
    """First pass: mean and covariance, in float64.

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.random.default_rng(0).standard_normal((1000, 3))
    >>> parts = [Covariance().update(Y[:400]), Covariance().update(Y[400:], index=400)]
    >>> bool(np.allclose(parts[0].merge(parts[1]).covariance, np.cov(Y.T, bias=True)))
    True
    """

    _SUMS = ("mean_", "scatter")

    def __init__(self) -> None:
        super().__init__()
        self.mean_: Any = None  # (2, d)
        self.scatter: Any = None  # (2, d, d): sum of w (y - mean)(y - mean)', about the half's own mean
        self.rounding = float(np.finfo(np.float64).eps)  # of the coarsest dtype seen

    def update(self, batch: Any, sample_weight: Any = None, *, index: Any = None) -> Covariance:
        """Add samples ``(m, d)``.

        Parameters
        ----------
        batch : array-like of shape (m, d)
        sample_weight : array-like of shape (m,), optional
        index : int or array-like of shape (m,), optional
            Index of the first row in the whole data, or of every row; the rows seen so far when not given.
        """
        batch, w = self._check(batch, sample_weight, None if self.mean_ is None else self.mean_.shape[1])
        d = batch.shape[1]
        index = self._index(index, batch.shape[0])
        weight, squares, total, scatter = np.zeros(2), np.zeros(2), np.zeros((2, d)), np.zeros((2, d, d))
        # Sums about a point near the mean: one subtraction a chunk, and no loss for data far from the origin.
        some = batch[:CHUNK] if w is None else batch[np.flatnonzero(w)[:CHUNK]]
        near = np.mean(some, axis=0, dtype=np.float64) if some.shape[0] else np.zeros(d)
        for h, rows, v in halves(batch, w, index, CHUNK):
            rows = rows.astype(np.float64)
            rows -= near
            weighted = rows if w is None else rows * v[:, None]
            weight[h] += v.sum()
            squares[h] += v @ v
            total[h] += v @ rows
            scatter[h] += weighted.T @ rows
        shift = total / np.where(weight > 0, weight, 1.0)[:, None]
        scatter -= weight[:, None, None] * shift[:, :, None] * shift[:, None, :]
        fresh = Covariance()
        fresh.weight, fresh.squares, fresh.mean_, fresh.scatter = weight, squares, near + shift, scatter
        fresh.rounding = float(np.finfo(batch.dtype).eps)
        self.merge(fresh)
        self._seen(index)
        return self

    def merge(self, other: Covariance) -> Covariance:
        """Add what another accumulator has seen."""
        if not isinstance(other, Covariance):
            raise TypeError(f"a Covariance is merged with another one; got {type(other).__name__}.")
        if other.mean_ is None:
            return self
        if self.mean_ is None:
            self.mean_, self.scatter = np.zeros_like(other.mean_), np.zeros_like(other.scatter)
        if self.mean_.shape != other.mean_.shape:
            raise ValueError(
                f"both accumulators must have the same features; got {self.mean_.shape[1]} and {other.mean_.shape[1]}."
            )
        pooled = [
            _pooled(
                (self.weight[h], self.mean_[h], self.scatter[h]), (other.weight[h], other.mean_[h], other.scatter[h])
            )
            for h in (0, 1)
        ]
        self.weight, self.mean_, self.scatter = (np.stack(part) for part in zip(*pooled, strict=True))
        self.squares = self.squares + other.squares
        self.rows, self.count = max(self.rows, other.rows), self.count + other.count
        self.rounding = max(self.rounding, other.rounding)
        return self

    @property
    def total(self) -> tuple[float, np.ndarray, np.ndarray]:
        """Weight, mean and scatter of both halves."""
        if self.mean_ is None or not self.weight.sum() > 0:
            raise ValueError("no samples have been seen: call update first.")
        both = [(self.weight[h], self.mean_[h], self.scatter[h]) for h in (0, 1)]
        return _pooled(*both)

    @property
    def mean(self) -> np.ndarray:
        """Mean of the samples, ``(d,)``."""
        return self.total[1]

    @property
    def covariance(self) -> np.ndarray:
        """Covariance of the samples, ``(d, d)``, divided by their weight."""
        weight, _, scatter = self.total
        return scatter / weight

    def half(self, h: int) -> np.ndarray:
        """Covariance ``(d, d)`` of one half of the samples; of all, where it has none."""
        if self.scatter is None or not self.weight[h] > 0:
            return self.covariance
        return self.scatter[h] / self.weight[h]

    def frame(self, dim: int | None = None) -> Frame:
        """Centre and whitener; ``dim`` directions, or as many as the covariance shows (see ``algorithms.whiten``)."""
        if dim is not None and operator.index(dim) < 1:
            raise ValueError(f"dim must be at least 1, or None; got {dim}.")
        weight, mean, scatter = self.total
        covariance = scatter / weight
        variance = np.diagonal(covariance)
        varies = variance > 0
        # Samples are rounded relative to their values, far from the origin as well; see that in units of their spread.
        far = np.max(mean[varies] ** 2 / variance[varies], initial=0.0)
        white = whiten(covariance, weight, dim, self.rounding * math.sqrt(1 + far))
        if white.forward.shape[1] == 0:
            raise ValueError("the samples do not vary: there is nothing to learn from them.")
        return Frame(mean, white.forward, white.backward, white.spectrum, white.reason)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a ``.npz`` file, all at once or not at all."""
        if self.mean_ is None:
            raise ValueError("no samples have been seen: there is nothing to save.")
        save_arrays(path, "Covariance", {**self._saved(), "rounding": np.asarray(self.rounding)})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Covariance:
        """Read what :meth:`save` wrote; nothing in the file is executed."""
        data = load_arrays(path, "Covariance")
        out = cls()
        with readable(path):
            out._restore(data)
            out.rounding = float(data["rounding"])
        return out


def _pooled(a: tuple[Any, Any, Any], b: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
    """Weight, mean and scatter of two sets of samples together (Chan, Golub and LeVeque)."""
    total = a[0] + b[0]
    if total == 0:
        return a
    shift = b[1] - a[1]
    return total, a[1] + shift * (b[0] / total), a[2] + b[2] + np.outer(shift, shift) * (a[0] * b[0] / total)


@dataclass(frozen=True, eq=False)
class Frame:
    """The coordinates of the second pass: ``z = (y - mean) @ forward``.

    Attributes
    ----------
    mean : ndarray of shape (d,)
    forward : ndarray of shape (d, r)
    backward : ndarray of shape (r, d)
        ``backward @ forward = Id``.
    spectrum : ndarray of shape (d,)
        Eigenvalues of the covariance, descending.
    reason : str
        How the dimension ``r`` was chosen.
    """

    mean: np.ndarray
    forward: np.ndarray
    backward: np.ndarray
    spectrum: np.ndarray
    reason: str

    @property
    def dim(self) -> int:
        """``r``, the dimension of the whitened samples."""
        return int(self.forward.shape[1])

    @property
    def key(self) -> str:
        """A digest of the coordinates: moments can be merged if it is the same."""
        parts = (self.mean, self.forward, self.backward)
        return hashlib.sha256(b"".join(np.ascontiguousarray(x).tobytes() for x in parts)).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Frame) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def whiten(self, Y: np.ndarray, dtype: Any = None) -> np.ndarray:
        """Samples ``(m, d)`` in these coordinates, ``(m, r)``: computed in float64, in ``dtype`` or their own."""
        out = np.empty((Y.shape[0], self.dim), dtype=dtype or Y.dtype)
        for first in range(0, Y.shape[0], CHUNK):
            out[first : first + CHUNK] = (Y[first : first + CHUNK].astype(np.float64) - self.mean) @ self.forward
        return out

    def completed(self, mean: np.ndarray, root: np.ndarray) -> Frame:
        """The frame of other samples in the same span: their mean, and ``root = C^(-1/2)`` of their covariance here."""
        backward = np.linalg.solve(root, self.backward)
        return Frame(mean, self.forward @ root, backward, self.spectrum, self.reason)

    def narrowed(self, Q: np.ndarray) -> Frame:
        """The part of these coordinates in the span of the orthonormal columns ``Q (r, n)``."""
        return Frame(self.mean, self.forward @ Q, Q.T @ self.backward, self.spectrum, self.reason)

    def arrays(self) -> dict[str, np.ndarray]:
        """What a file needs to hold."""
        arrays = ("mean", "forward", "backward", "spectrum", "reason")
        return {f"frame_{name}": np.asarray(getattr(self, name)) for name in arrays}

    @classmethod
    def from_arrays(cls, data: dict[str, np.ndarray]) -> Frame:
        """From what :meth:`arrays` gave."""
        mean, forward, backward, spectrum = (
            data[f"frame_{name}"] for name in ("mean", "forward", "backward", "spectrum")
        )
        return cls(mean, forward, backward, spectrum, str(data["frame_reason"]))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a ``.npz`` file, all at once or not at all."""
        save_arrays(path, "Frame", self.arrays())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Frame:
        """Read what :meth:`save` wrote; nothing in the file is executed."""
        data = load_arrays(path, "Frame")
        with readable(path):
            return cls.from_arrays(data)


class FourthMoment(_Accumulator):
    """Second pass: the fourth moment of whitened samples, packed on Sym2.

    Parameters
    ----------
    frame : Frame
        Coordinates, from the first pass.
    dtype : numpy dtype, optional
        In which products are taken, float32 or float64; that of the samples when not given.

    Notes
    -----
    Memory: ``2 N^2`` numbers of float64, ``N = r (r + 1) / 2``; time: ``N^2`` multiplications a sample.
    """

    _SUMS = ("first", "second", "fourth")

    def __init__(self, frame: Frame, dtype: Any = None) -> None:
        super().__init__()
        self.frame = frame
        self.dim = frame.dim
        self.dtype = None if dtype is None else np.dtype(dtype)
        if self.dtype not in (None, np.float32, np.float64):
            raise ValueError(f"dtype must be float32, float64 or None; got {self.dtype}.")
        r, N = frame.dim, packed_dim(frame.dim)
        self.first = np.zeros((2, r))  # sum of w z
        self.second = np.zeros((2, r, r))  # sum of w zz'
        self.fourth = np.zeros((2, N, N))  # sum of w (z (x) z)(z (x) z)', packed

    def update(self, batch: Any, sample_weight: Any = None, *, index: Any = None) -> FourthMoment:
        """Add samples ``(m, d)``; the parameters of :meth:`Covariance.update`."""
        batch, w = self._check(batch, sample_weight, self.frame.mean.shape[0])
        dtype = self.dtype or batch.dtype
        index = self._index(index, batch.shape[0])
        for h, rows, v in halves(batch, w, index, 2 * rows_in_a_chunk(self.frame.dim, dtype)):
            Z = self.frame.whiten(rows, np.float64)
            self.weight[h] += v.sum()
            self.squares[h] += v @ v
            self.first[h] += v @ Z
            self.second[h] += (Z * v[:, None]).T @ Z
            # (w^(1/4) z)^(x4) = w z^(x4)
            features = pack_rank_one((Z * v[:, None] ** 0.25).astype(dtype))  # (N, rows)
            self.fourth[h] += features @ features.T
        self._seen(index)
        return self

    def merge(self, other: FourthMoment) -> FourthMoment:
        """Add what another accumulator has seen in the same frame."""
        if not isinstance(other, FourthMoment):
            raise TypeError(f"a FourthMoment is merged with another one; got {type(other).__name__}.")
        if self.frame != other.frame:
            raise ValueError(
                "moments can be merged only if they were taken in the same frame: compute one frame from all of the "
                "data (or a part of it), and use it everywhere."
            )
        self.rows, self.count = max(self.rows, other.rows), self.count + other.count
        self.weight, self.squares = self.weight + other.weight, self.squares + other.squares
        for name in self._SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self

    def covariance(self, half: int | None = None) -> np.ndarray:
        """Second moment ``(r, r)`` in the frame, of one half or of all."""
        return self._mean(self.second, half)

    def moment(self, half: int | None = None) -> PackedTensor:
        """``E[z^(x4)]`` over one half or all of the samples, in float64."""
        return PackedTensor(self._mean(self.fourth, half))

    def cumulant(self, half: int | None = None) -> FourTensor:
        """The fourth cumulant: the moment without the three pairings of the covariance."""
        return _cumulant(self.moment(half).astype(self.dtype or np.float64), self.covariance(half))

    def _mean(self, sums: np.ndarray, half: int | None) -> np.ndarray:
        weight = self.weight.sum() if half is None else self.weight[half]
        if not weight > 0:
            raise ValueError("no samples have been seen: call update first.")
        return (sums[0] + sums[1] if half is None else sums[half]) / weight

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a ``.npz`` file, all at once or not at all."""
        dtype = np.asarray("" if self.dtype is None else self.dtype.name)
        save_arrays(path, "FourthMoment", {**self._saved(), **self.frame.arrays(), "dtype": dtype})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> FourthMoment:
        """Read what :meth:`save` wrote; nothing in the file is executed."""
        data = load_arrays(path, "FourthMoment")
        with readable(path):
            out = cls(Frame.from_arrays(data), str(data["dtype"]) or None)
            out._restore(data)
        return out


class ImplicitMoment:
    """The fourth moment of samples that are kept, multiplied without being formed.

    Parameters
    ----------
    Z : ndarray of shape (m, r)
        Whitened samples.
    half : ndarray of shape (m,)
        The half, 0 or 1, of each.
    weights : ndarray of shape (m,)
    """

    def __init__(self, Z: np.ndarray, half: np.ndarray, weights: np.ndarray) -> None:
        self.dim = int(Z.shape[1])
        self.weight = np.array([weights[half == h].sum() for h in (0, 1)])
        self.effective = np.array([effective(weights[half == h]) for h in (0, 1)])
        self.parts = {h: SampleTensor(Z[half == h], weights[half == h]) for h in (0, 1) if self.weight[h] > 0}

    def covariance(self, half: int | None = None) -> np.ndarray:
        """Second moment ``(r, r)``, of one half or of all."""
        if half is not None:
            return self.parts[half].covariance
        return sum(share * part.covariance for share, part in self._shares)

    def moment(self, half: int | None = None) -> FourTensor:
        """``E[z^(x4)]`` over one half or all of the samples."""
        if half is not None:
            return self.parts[half]
        return Sum(self._shares)

    def cumulant(self, half: int | None = None) -> FourTensor:
        """The fourth cumulant; see :meth:`FourthMoment.cumulant`."""
        return _cumulant(self.moment(half), self.covariance(half))

    @property
    def _shares(self) -> list[tuple[float, SampleTensor]]:
        total = self.weight.sum()
        return [(float(self.weight[h] / total), part) for h, part in self.parts.items()]


class Rewhitened:
    """A fourth moment in coordinates in which its own samples are white.

    Samples that were not in the first pass have a covariance ``C`` in the frame that differs from the identity; the
    whitener is completed by ``root = C^(-1/2)``, from all samples, for both halves alike.  Their mean may differ from
    that of the frame by ``delta``: a cumulant about the wrong point lacks ``2 delta^4``, which is added, and errs by
    ``4 delta`` times the third cumulant, which vanishes for symmetric coefficients.
    """

    def __init__(self, moment: FourthMoment) -> None:
        self.moment = moment
        self.dim, self.effective = moment.dim, moment.effective
        self.shift = moment._mean(moment.first, None)  # (r,)
        self.root = inverse_root(moment.covariance() - np.outer(self.shift, self.shift))

    @property
    def frame(self) -> Frame:
        """The coordinates, and the mean of all samples."""
        old = self.moment.frame
        return old.completed(old.mean + self.shift @ old.backward, self.root)

    def covariance(self, half: int | None = None) -> np.ndarray:
        """Covariance ``(r, r)`` of one half, or of all samples: the identity, for all."""
        return self.root @ (self.moment.covariance(half) - np.outer(self.shift, self.shift)) @ self.root

    def cumulant(self, half: int | None = None) -> FourTensor:
        """The fourth cumulant of one half, or of all samples."""
        T = self.moment.cumulant(half)
        delta = self.shift.astype(T.like.dtype)
        centred = Sum([(1.0, T), (2.0, FactoredTensor.from_components(np.ones(1, delta.dtype), delta[None, :]))])
        return Congruence(centred, self.root.astype(T.like.dtype))


def _cumulant(moment: FourTensor, C: np.ndarray) -> FourTensor:
    return Sum([(1.0, moment), (-1.0, Pairings(C.astype(moment.like.dtype)))])


def inverse_root(C: np.ndarray) -> np.ndarray:
    """``C^(-1/2)``, symmetric."""
    values, V = np.linalg.eigh(C)
    return (V / np.sqrt(np.maximum(values, np.finfo(np.float64).eps * values[-1]))) @ V.T
