"""Moments of samples in two passes, as accumulators that add.

    pass 1:  covariance = Covariance().update(batch)...;   frame = covariance.frame()
    pass 2:  moment = FourthMoment(frame).update(batch)...;   moment.cumulant()

Two passes, not one: a raw fourth moment that is whitened afterwards loses the condition number to the fourth power, and
for data far from the origin everything.

Each accumulator keeps *two disjoint halves* of the samples apart, by a hash of the row's index, so that what is found
in one half can be tested on the other however the data were cut, ordered or merged.  Products are taken in the dtype
of the samples (float64 for the covariance, always), where the samples are, and summed in float64.  The fourth moment
stays there; what is small, frames and covariances, lies on the host.
"""

from __future__ import annotations

import copy
import hashlib
import math
import operator
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from quartic._arrays import (
    CHUNK,
    Array,
    add_to,
    array_namespace,
    device,
    from_numpy,
    in_own_precision,
    is_array_api_obj,
    moved,
    pack_rank_one,
    packed_dim,
    rows_of,
    take_rows,
    to_numpy,
    typed,
    write,
)
from quartic._files import load_arrays, readable, save_arrays
from quartic.algorithms.temper import effective
from quartic.algorithms.whiten import whiten
from quartic.tensors import FourTensor, PackedTensor, SampleTensor, Sum
from quartic.tensors.combine import Congruence, Pairings
from quartic.tensors.factored import FactoredTensor
from quartic.tensors.samples import rows_in_a_chunk


def row_hash(index: np.ndarray) -> np.ndarray:
    """64 random-looking bits for each row index (the finaliser of splitmix64): the same however the rows are cut."""
    x = index.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return x ^ (x >> np.uint64(31))


def half_of(hashes: np.ndarray) -> np.ndarray:
    """The half, 0 or 1, of each row: the lowest bit of its hash.  Subsamples go by the highest."""
    return (hashes & np.uint64(1)).astype(np.intp)


def halves(batch: Array, w: np.ndarray | None, index: np.ndarray, size: int) -> Iterator[tuple[int, Array, np.ndarray]]:
    """Chunks of ``size`` rows, split in halves: ``(half, rows, weights)``; rows without weight are left out."""
    for half, mine in places(w, index, size):
        yield half, take_rows(batch, mine), np.ones(mine.shape[0]) if w is None else w[mine]


def places(w: np.ndarray | None, index: np.ndarray, size: int) -> Iterator[tuple[int, np.ndarray]]:
    """The same as places in a batch, ``(half, places)``."""
    for first in range(0, index.shape[0], size):
        half = half_of(row_hash(index[first : first + size]))
        for h in (0, 1):
            mine = np.flatnonzero(half == h if w is None else (half == h) & (w[first : first + size] > 0))
            if mine.size:
                yield h, first + mine


class _Accumulator:
    """Sums over samples, kept in two halves; what covariance and fourth moment have in common."""

    _SUMS: tuple[str, ...]

    def __init__(self) -> None:
        self.rows = 0  # index of the next row
        self.count = 0  # rows seen so far
        self.weight = np.zeros(2)  # of each half: the sum of its weights,
        self.squares = np.zeros(2)  # and of their squares

    def _check(self, batch: Any, sample_weight: Any, width: int | None) -> tuple[Array, np.ndarray | None]:
        batch = batch if is_array_api_obj(batch) else np.asarray(batch)
        if isinstance(batch, np.ndarray) and batch.dtype.kind not in "biuf":
            raise ValueError(f"batch must hold real numbers; got dtype {batch.dtype}.")
        xp = array_namespace(batch)
        if not xp.isdtype(batch.dtype, ("bool", "integral", "real floating")):
            raise ValueError(f"batch must hold real numbers; got dtype {batch.dtype}.")
        if batch.dtype not in (xp.float32, xp.float64):
            batch = xp.astype(batch, xp.float64)
        if batch.ndim != 2 or (width is not None and batch.shape[1] != width):
            expected = "(m, d)" if width is None else f"(m, {width})"
            raise ValueError(f"batch must have samples as rows, shape {expected}; got shape {tuple(batch.shape)}.")
        with np.errstate(over="ignore", invalid="ignore"):  # a sum is finite if all terms are, and cheaper to look at
            finite = math.isfinite(float(xp.sum(batch, dtype=xp.float64))) or bool(xp.all(xp.isfinite(batch)))
        if not finite:
            raise ValueError("batch holds NaN or infinite values: remove or replace those samples.")
        if sample_weight is None:
            return batch, None
        w = np.asarray(to_numpy(sample_weight), dtype=np.float64)
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
            **{name: to_numpy(getattr(self, name)) for name in self._SUMS},
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
    >>> import numpy as np, quartic
    >>> Y = np.random.default_rng(0).standard_normal((1000, 3))
    >>> covariance = quartic.Covariance().update(Y[:400]).update(Y[400:])
    >>> bool(np.allclose(covariance.covariance, np.cov(Y.T, bias=True)))
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
        batch : array-like of shape (m, d), Dask array or dataframe, or Collection
        sample_weight : array-like of shape (m,), optional
        index : int or array-like of shape (m,), optional
            Index of the first row in the whole data, or of every row; the rows seen so far when not given.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np, quartic
        >>> Y = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 11.0]])
        >>> quartic.Covariance().update(Y[:2]).update(Y[2:], sample_weight=[2.0]).mean.tolist()  # the last counts twice
        [2.5, 6.5]
        """
        from quartic.distributed import is_collection, summed  # which is made of these accumulators

        if is_collection(batch):
            return self.merge(summed(self, batch, sample_weight, index))
        batch, w = self._check(batch, sample_weight, None if self.mean_ is None else self.mean_.shape[1])
        index = self._index(index, batch.shape[0])
        xp = array_namespace(batch)
        weight, squares = np.zeros(2), np.zeros(2)
        # Sums about a point near the mean: one subtraction a chunk, and no loss for data far from the origin.
        some = batch[: min(CHUNK, batch.shape[0]), :] if w is None else take_rows(batch, np.flatnonzero(w)[:CHUNK])
        some = xp.astype(some, xp.float64)
        near = xp.mean(some, axis=0) if some.shape[0] else xp.sum(some, axis=0)
        totals, scatters = [0 * near] * 2, [0 * near[:, None] * near] * 2
        for h, rows, v in halves(batch, w, index, rows_of(batch, np.float64)):
            rows = xp.astype(rows, xp.float64)
            rows -= near
            u = from_numpy(v, rows)
            weighted = rows if w is None else rows * u[:, None]
            weight[h] += v.sum()
            squares[h] += v @ v
            totals[h] = totals[h] + u @ rows
            scatters[h] = scatters[h] + xp.matrix_transpose(weighted) @ rows
        near, total, scatter = (to_numpy(x) for x in (near, xp.stack(totals), xp.stack(scatters)))
        shift = total / np.where(weight > 0, weight, 1.0)[:, None]
        scatter = scatter - weight[:, None, None] * shift[:, :, None] * shift[:, None, :]
        fresh = Covariance()
        fresh.weight, fresh.squares, fresh.mean_, fresh.scatter = weight, squares, near + shift, scatter
        fresh.rounding = float(xp.finfo(batch.dtype).eps)
        self.merge(fresh)
        self._seen(index)
        return self

    def merge(self, other: Covariance) -> Covariance:
        """Add what another accumulator has seen.

        Parameters
        ----------
        other : Covariance
            Of other rows; it is not changed.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np, quartic
        >>> Y = np.random.default_rng(0).standard_normal((1000, 3))
        >>> here, there = quartic.Covariance().update(Y[:400]), quartic.Covariance().update(Y[400:], index=400)
        >>> both = here.merge(there)
        >>> both.count, bool(np.allclose(both.covariance, np.cov(Y.T, bias=True)))
        (1000, True)
        """
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
        """Covariance ``(d, d)`` of one half of the samples; of all, where it has none.

        Parameters
        ----------
        h : {0, 1}

        Examples
        --------
        >>> import numpy as np, quartic
        >>> covariance = quartic.Covariance().update(np.random.default_rng(0).standard_normal((1000, 3)))
        >>> apart = covariance.half(0) - covariance.half(1)  # how far chance alone takes two samples of 500
        >>> bool(0 < abs(apart).max() < 0.3)
        True
        """
        if self.scatter is None or not self.weight[h] > 0:
            return self.covariance
        return self.scatter[h] / self.weight[h]

    def frame(self, dim: int | None = None) -> Frame:
        """Centre and whitener of the samples.

        Parameters
        ----------
        dim : int, optional
            Directions to keep; as many as the covariance shows when not given (see ``algorithms.whiten``).

        Returns
        -------
        Frame

        Examples
        --------
        >>> import numpy as np, quartic
        >>> Y = np.random.default_rng(0).standard_normal((1000, 3)) @ np.ones((3, 4))  # all in one direction
        >>> covariance = quartic.Covariance().update(Y)
        >>> covariance.frame().dim
        1
        """
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
        """Write a ``.npz`` file, all at once or not at all.

        Parameters
        ----------
        path : str or path

        Examples
        --------
        >>> import os, tempfile, numpy as np, quartic
        >>> covariance = quartic.Covariance().update(np.eye(3))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     covariance.save(os.path.join(folder, "covariance.npz"))
        ...     os.listdir(folder)
        ['covariance.npz']
        """
        if self.mean_ is None:
            raise ValueError("no samples have been seen: there is nothing to save.")
        save_arrays(path, "Covariance", {**self._saved(), "rounding": np.asarray(self.rounding)})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Covariance:
        """Read what :meth:`save` wrote; nothing in the file is executed.

        Parameters
        ----------
        path : str or path

        Returns
        -------
        Covariance

        Examples
        --------
        >>> import os, tempfile, numpy as np, quartic
        >>> covariance = quartic.Covariance().update(np.eye(3))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     covariance.save(os.path.join(folder, "covariance.npz"))
        ...     again = quartic.Covariance.load(os.path.join(folder, "covariance.npz"))
        >>> again.update(np.eye(3)).count  # it goes on where it stopped
        6
        """
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

    Examples
    --------
    >>> import numpy as np, quartic
    >>> Y = 5 + np.random.default_rng(0).standard_normal((1000, 3)) * [1.0, 10.0, 100.0]
    >>> frame = quartic.Covariance().update(Y).frame()
    >>> frame.dim, bool(np.allclose(np.cov(frame.whiten(Y).T, bias=True), np.eye(3)))
    (3, True)
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

    def whiten(self, Y: Array, dtype: Any = None) -> Array:
        """Samples in these coordinates, ``(m, r)``, computed in float64.

        Parameters
        ----------
        Y : array of shape (m, d)
        dtype : dtype, optional
            Of the answer; that of the samples when not given.

        Examples
        --------
        >>> import numpy as np, quartic
        >>> Y = np.random.default_rng(0).uniform(size=(1000, 3)).astype(np.float32)
        >>> Z = quartic.Covariance().update(Y).frame().whiten(Y)
        >>> Z.shape, str(Z.dtype), bool(abs(Z.mean(axis=0)).max() < 1e-5)
        ((1000, 3), 'float32', True)
        """
        xp = array_namespace(Y)
        mean, forward = from_numpy(self.mean, Y), from_numpy(self.forward, Y)
        empty = Y[:0, : self.dim] if dtype is None else typed(Y[:0, : self.dim], dtype)
        out = xp.empty((Y.shape[0], self.dim), dtype=empty.dtype, device=device(Y))
        size = rows_of(Y, np.float64)
        for first in range(0, Y.shape[0], size):
            chunk = slice(first, min(first + size, Y.shape[0]))
            white = (xp.astype(Y[chunk, :], xp.float64) - mean) @ forward
            out = write(out, (chunk, slice(None)), xp.astype(white, empty.dtype))
        return out

    def completed(self, mean: np.ndarray, root: np.ndarray) -> Frame:
        """The frame of other samples in the same span.

        Parameters
        ----------
        mean : ndarray of shape (d,)
            Of those samples.
        root : ndarray of shape (r, r)
            ``C^(-1/2)``, with ``C`` their covariance in these coordinates.

        Returns
        -------
        Frame

        Examples
        --------
        >>> import numpy as np, quartic
        >>> Y = np.random.default_rng(0).standard_normal((1000, 3))
        >>> frame = quartic.Covariance().update(Y).frame()
        >>> wider = frame.completed(frame.mean, np.eye(3) / 2)  # for 2 Y, where C is 4 Id
        >>> bool(np.allclose(wider.whiten(Y), frame.whiten(Y) / 2))
        True
        """
        backward = np.linalg.solve(root, self.backward)
        return Frame(mean, self.forward @ root, backward, self.spectrum, self.reason)

    def narrowed(self, Q: np.ndarray) -> Frame:
        """The part of these coordinates in a subspace.

        Parameters
        ----------
        Q : ndarray of shape (r, n)
            Orthonormal columns that span it.

        Returns
        -------
        Frame

        Examples
        --------
        >>> import numpy as np, quartic
        >>> Y = np.random.default_rng(0).standard_normal((1000, 3))
        >>> frame = quartic.Covariance().update(Y).frame()
        >>> part = frame.narrowed(np.eye(3)[:, :2])
        >>> part.dim, bool(np.allclose(part.whiten(Y), frame.whiten(Y)[:, :2]))
        (2, True)
        """
        return Frame(self.mean, self.forward @ Q, Q.T @ self.backward, self.spectrum, self.reason)

    def arrays(self) -> dict[str, np.ndarray]:
        """What a file needs to hold, for :meth:`from_arrays` to make the frame again.

        Examples
        --------
        >>> import numpy as np, quartic
        >>> frame = quartic.Covariance().update(np.random.default_rng(0).standard_normal((1000, 3))).frame()
        >>> list(frame.arrays())
        ['frame_mean', 'frame_forward', 'frame_backward', 'frame_spectrum', 'frame_reason']
        """
        arrays = ("mean", "forward", "backward", "spectrum", "reason")
        return {f"frame_{name}": np.asarray(getattr(self, name)) for name in arrays}

    @classmethod
    def from_arrays(cls, data: dict[str, np.ndarray]) -> Frame:
        """A frame from what :meth:`arrays` gave.

        Parameters
        ----------
        data : mapping of str to ndarray
            Other names may be in it.

        Returns
        -------
        Frame

        Examples
        --------
        >>> import numpy as np, quartic
        >>> frame = quartic.Covariance().update(np.random.default_rng(0).standard_normal((1000, 3))).frame()
        >>> quartic.Frame.from_arrays({**frame.arrays(), "sensor": np.asarray("left")}) == frame
        True
        """
        mean, forward, backward, spectrum = (
            data[f"frame_{name}"] for name in ("mean", "forward", "backward", "spectrum")
        )
        return cls(mean, forward, backward, spectrum, str(data["frame_reason"]))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a ``.npz`` file, all at once or not at all.

        Parameters
        ----------
        path : str or path

        Examples
        --------
        >>> import os, tempfile, numpy as np, quartic
        >>> frame = quartic.Covariance().update(np.random.default_rng(0).standard_normal((1000, 3))).frame()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     frame.save(os.path.join(folder, "frame.npz"))
        ...     os.listdir(folder)
        ['frame.npz']
        """
        save_arrays(path, "Frame", self.arrays())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Frame:
        """Read what :meth:`save` wrote; nothing in the file is executed.

        Parameters
        ----------
        path : str or path

        Returns
        -------
        Frame

        Examples
        --------
        >>> import os, tempfile, numpy as np, quartic
        >>> frame = quartic.Covariance().update(np.random.default_rng(0).standard_normal((1000, 3))).frame()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     frame.save(os.path.join(folder, "frame.npz"))
        ...     quartic.Frame.load(os.path.join(folder, "frame.npz")) == frame
        True
        """
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
    like : array, optional
        Sums are kept in its library and on its device, and so should the samples be; NumPy when not given.

    Notes
    -----
    Memory: ``2 N^2`` numbers of float64, ``N = r (r + 1) / 2``; time: ``N^2`` multiplications a sample.

    Examples
    --------
    >>> import quartic
    >>> data = quartic.datasets.nice_samples(2000, 4, random_state=0)
    >>> frame = quartic.Covariance().update(data.samples).frame()
    >>> moment = quartic.FourthMoment(frame).update(data.samples)
    >>> model = quartic.SpectralDictionaryLearning().fit_moment(moment)
    >>> quartic.metrics.match(data.components, model.components_).found()
    4
    """

    _SUMS = ("first", "second", "fourth")

    def __init__(self, frame: Frame, dtype: Any = None, like: Array = None) -> None:
        super().__init__()
        self.frame = frame
        self.dim = frame.dim
        self.dtype = None if dtype is None else np.dtype(dtype)
        if self.dtype not in (None, np.float32, np.float64):
            raise ValueError(f"dtype must be float32, float64 or None; got {self.dtype}.")
        r, N = frame.dim, packed_dim(frame.dim)
        xp = np if like is None else array_namespace(like)
        where = {} if like is None else {"device": device(like)}
        shapes = (2, r), (2, r, r), (2, N, N)
        # Sums of w z, of w zz', and of w (z (x) z)(z (x) z)', packed.
        self.first, self.second, self.fourth = (xp.zeros(shape, dtype=xp.float64, **where) for shape in shapes)

    @property
    def like(self) -> Array:
        """An array of the library and on the device of the sums."""
        return self.second

    @in_own_precision
    def update(self, batch: Any, sample_weight: Any = None, *, index: Any = None) -> FourthMoment:
        """Add samples.

        Parameters
        ----------
        batch : array-like of shape (m, d), Dask array or dataframe, or Collection
        sample_weight : array-like of shape (m,), optional
        index : int or array-like of shape (m,), optional
            As in :meth:`Covariance.update`.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np, quartic
        >>> Y = np.random.default_rng(0).laplace(size=(1000, 3))
        >>> frame = quartic.Covariance().update(Y).frame()
        >>> once, in_parts = quartic.FourthMoment(frame).update(Y), quartic.FourthMoment(frame)
        >>> for batch in np.array_split(Y, 4):
        ...     in_parts = in_parts.update(batch)
        >>> bool(np.allclose(once.moment().to_packed(), in_parts.moment().to_packed()))
        True
        """
        from quartic.distributed import is_collection, summed  # which is made of these accumulators

        if is_collection(batch):
            return self.merge(summed(self, batch, sample_weight, index))
        batch, w = self._check(batch, sample_weight, self.frame.mean.shape[0])
        xp = array_namespace(self.fourth)
        batch = moved(batch, self.fourth)
        work = batch[:0, :] if self.dtype is None else typed(batch[:0, :], self.dtype)
        index = self._index(index, batch.shape[0])
        for h, rows, v in halves(batch, w, index, 2 * rows_in_a_chunk(self.frame.dim, work)):
            Z = self.frame.whiten(rows, np.float64)
            u = from_numpy(v, Z)
            self.weight[h] += v.sum()
            self.squares[h] += v @ v
            self.first = add_to(self.first, h, u @ Z)
            self.second = add_to(self.second, h, xp.matrix_transpose(Z * u[:, None]) @ Z)
            # (w^(1/4) z)^(x4) = w z^(x4)
            features = pack_rank_one(xp.astype(Z * u[:, None] ** 0.25, work.dtype))  # (N, rows)
            self.fourth = add_to(self.fourth, h, features @ xp.matrix_transpose(features))
        self._seen(index)
        return self

    def merge(self, other: FourthMoment) -> FourthMoment:
        """Add what another accumulator has seen in the same frame.

        Parameters
        ----------
        other : FourthMoment
            Of other rows; it is not changed.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np, quartic
        >>> Y = np.random.default_rng(0).laplace(size=(1000, 3))
        >>> frame = quartic.Covariance().update(Y[:200]).frame()  # some of the data will do for the coordinates
        >>> here = quartic.FourthMoment(frame).update(Y[:400])
        >>> here.merge(quartic.FourthMoment(frame).update(Y[400:], index=400)).count
        1000
        """
        if not isinstance(other, FourthMoment):
            raise TypeError(f"a FourthMoment is merged with another one; got {type(other).__name__}.")
        if self.frame != other.frame:
            raise ValueError(
                "moments can be merged only if they were taken in the same frame: compute one frame from all of the "
                "data (or a part of it), and use it everywhere."
            )
        sums = {name: getattr(self, name) + moved(getattr(other, name), self.fourth) for name in self._SUMS}
        self.rows, self.count = max(self.rows, other.rows), self.count + other.count
        self.weight, self.squares = self.weight + other.weight, self.squares + other.squares
        for name, value in sums.items():
            setattr(self, name, value)
        return self

    def covariance(self, half: int | None = None) -> np.ndarray:
        """Second moment ``(r, r)`` in the frame.

        Parameters
        ----------
        half : {0, 1}, optional
            Of one half of the samples; of all when not given.

        Examples
        --------
        >>> import numpy as np, quartic
        >>> Y = np.random.default_rng(0).laplace(size=(1000, 3))
        >>> moment = quartic.FourthMoment(quartic.Covariance().update(Y).frame()).update(Y)
        >>> bool(np.allclose(moment.covariance(), np.eye(3))), bool(np.allclose(moment.covariance(0), np.eye(3)))
        (True, False)
        """
        return to_numpy(self._mean(self.second, half))

    def moment(self, half: int | None = None) -> PackedTensor:
        """``E[z^(x4)]`` of whitened samples ``z``, in float64.

        Parameters
        ----------
        half : {0, 1}, optional
            Of one half of the samples; of all when not given.

        Returns
        -------
        PackedTensor

        Examples
        --------
        >>> import numpy as np, quartic
        >>> Y = np.random.default_rng(0).laplace(size=(1000, 3))
        >>> frame = quartic.Covariance().update(Y).frame()
        >>> T = quartic.FourthMoment(frame).update(Y).moment().to_dense()
        >>> bool(np.isclose(T[0, 0, 0, 0], np.mean(frame.whiten(Y)[:, 0] ** 4)))
        True
        """
        return PackedTensor(self._mean(self.fourth, half))

    def cumulant(self, half: int | None = None) -> FourTensor:
        """The fourth cumulant: the moment without the three pairings of the covariance.

        Parameters
        ----------
        half : {0, 1}, optional
            Of one half of the samples; of all when not given.

        Returns
        -------
        FourTensor

        Examples
        --------
        >>> import numpy as np, quartic
        >>> Y = np.random.default_rng(0).laplace(size=(1000, 3))
        >>> frame = quartic.Covariance().update(Y).frame()
        >>> T = quartic.FourthMoment(frame).update(Y).cumulant().to_dense()
        >>> bool(np.isclose(T[0, 0, 0, 0], np.mean(frame.whiten(Y)[:, 0] ** 4) - 3))
        True
        """
        xp = array_namespace(self.fourth)
        dtype = xp.float64 if self.dtype is None else getattr(xp, self.dtype.name)
        return _cumulant(self.moment(half).astype(dtype), self.covariance(half))

    def to_numpy(self) -> FourthMoment:
        """The same with its sums on the host, as NumPy arrays of its own.

        Examples
        --------
        >>> import numpy as np, quartic
        >>> Y = np.random.default_rng(0).laplace(size=(1000, 3))
        >>> moment = quartic.FourthMoment(quartic.Covariance().update(Y).frame(), like=Y).update(Y)
        >>> copy = moment.to_numpy()
        >>> moment.update(Y).count, copy.count
        (2000, 1000)
        """
        out = copy.copy(self)
        out._restore({name: np.array(value) for name, value in self._saved().items()})
        return out

    def _mean(self, sums: Array, half: int | None) -> Array:
        weight = float(self.weight.sum() if half is None else self.weight[half])
        if not weight > 0:
            raise ValueError("no samples have been seen: call update first.")
        return (sums[0, ...] + sums[1, ...] if half is None else sums[half, ...]) / weight

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a ``.npz`` file, all at once or not at all.

        Parameters
        ----------
        path : str or path

        Examples
        --------
        >>> import os, tempfile, numpy as np, quartic
        >>> Y = np.random.default_rng(0).laplace(size=(1000, 3))
        >>> moment = quartic.FourthMoment(quartic.Covariance().update(Y).frame()).update(Y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     moment.save(os.path.join(folder, "moment.npz"))
        ...     os.listdir(folder)
        ['moment.npz']
        """
        dtype = np.asarray("" if self.dtype is None else self.dtype.name)
        save_arrays(path, "FourthMoment", {**self._saved(), **self.frame.arrays(), "dtype": dtype})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> FourthMoment:
        """Read what :meth:`save` wrote; nothing in the file is executed.

        Parameters
        ----------
        path : str or path

        Returns
        -------
        FourthMoment

        Examples
        --------
        >>> import os, tempfile, numpy as np, quartic
        >>> Y = np.random.default_rng(0).laplace(size=(1000, 3))
        >>> moment = quartic.FourthMoment(quartic.Covariance().update(Y).frame()).update(Y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     moment.save(os.path.join(folder, "moment.npz"))
        ...     again = quartic.FourthMoment.load(os.path.join(folder, "moment.npz"))
        >>> again.frame == moment.frame, bool(np.all(again.fourth == moment.fourth))
        (True, True)
        """
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

    def __init__(self, Z: Array, half: np.ndarray, weights: np.ndarray) -> None:
        self.dim = int(Z.shape[1])
        mine = [np.flatnonzero(half == h) for h in (0, 1)]
        self.weight = np.array([weights[rows].sum() for rows in mine])
        self.effective = np.array([effective(weights[rows]) for rows in mine])
        self.parts = {
            h: SampleTensor(take_rows(Z, rows), weights[rows]) for h, rows in enumerate(mine) if self.weight[h] > 0
        }
        self._covariances = {h: to_numpy(part.covariance) for h, part in self.parts.items()}

    def covariance(self, half: int | None = None) -> np.ndarray:
        """Second moment ``(r, r)``, of one half or of all."""
        if half is not None:
            return self._covariances[half]
        total = self.weight.sum()
        return np.asarray(sum(float(self.weight[h] / total) * C for h, C in self._covariances.items()))

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
        self.shift = to_numpy(moment._mean(moment.first, None))  # (r,)
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
        delta, one, root = (from_numpy(x, T.like, T.like.dtype) for x in (self.shift[None, :], np.ones(1), self.root))
        return Congruence(Sum([(1.0, T), (2.0, FactoredTensor.from_components(one, delta))]), root)


def _cumulant(moment: FourTensor, C: np.ndarray) -> FourTensor:
    return Sum([(1.0, moment), (-1.0, Pairings(from_numpy(C, moment.like, moment.like.dtype)))])


def inverse_root(C: np.ndarray) -> np.ndarray:
    """``C^(-1/2)``, symmetric."""
    values, V = np.linalg.eigh(C)
    return (V / np.sqrt(np.maximum(values, np.finfo(np.float64).eps * values[-1]))) @ V.T
