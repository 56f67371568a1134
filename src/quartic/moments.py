"""Moments of samples in two passes, as accumulators that add.

    pass 1:  covariance = Covariance().update(batch)...;   frame = covariance.frame()
    pass 2:  moment = FourthMoment(frame).update(batch)...;   moment.cumulant()

Two passes, not one: a raw fourth moment that is whitened afterwards loses the condition number to the fourth power, and
for data far from the origin everything.

Each accumulator keeps *two disjoint halves* of the samples apart (``halves.py``), by row or by group.  Products are
taken in the dtype of the samples (float64 for the covariance, always), where the samples are, and summed in float64.
The fourth moment stays there; what is small, frames and covariances, lies on the host.
"""

from __future__ import annotations

import copy
import math
import operator
import os
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
)
from quartic._files import load_arrays, readable, save_arrays
from quartic.algorithms.whiten import whiten
from quartic.evidence.groups import codes_of
from quartic.evidence.kept import Kept
from quartic.frame import Frame
from quartic.halves import halves
from quartic.tensors import FourTensor, PackedTensor, Sum
from quartic.tensors.combine import Pairings
from quartic.tensors.samples import rows_in_a_chunk


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

    def _keys(self, index: np.ndarray, groups: np.ndarray | None) -> np.ndarray:
        """What halves of a batch are hashed by: codes of groups, where there are some, or else indices."""
        if groups is None:
            return index
        if groups.shape != index.shape:
            raise ValueError(f"groups must hold {index.shape[0]} labels, one for each row; got shape {groups.shape}.")
        return groups

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

    def update(self, batch: Any, sample_weight: Any = None, *, index: Any = None, groups: Any = None) -> Covariance:
        """Add samples ``(m, d)``.

        Parameters
        ----------
        batch : array-like of shape (m, d), Dask array or dataframe, or Collection
        sample_weight : array-like of shape (m,), optional
        index : int or array-like of shape (m,), optional
            Index of the first row in the whole data, or of every row; the rows seen so far when not given.
        groups : array-like of shape (m,), optional
            Labels of what rows belong to, such as subjects; those of one group are in one half.

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
            return self.merge(summed(self, batch, sample_weight, index, groups))
        return self._add(batch, sample_weight, index, None if groups is None else codes_of(groups))

    def _add(self, batch: Any, sample_weight: Any, index: Any, groups: np.ndarray | None) -> Covariance:
        """The same with codes for the groups."""
        batch, w = self._check(batch, sample_weight, None if self.mean_ is None else self.mean_.shape[1])
        index = self._index(index, batch.shape[0])
        keys = self._keys(index, groups)
        xp = array_namespace(batch)
        weight, squares = np.zeros(2), np.zeros(2)
        # Sums about a point near the mean: one subtraction a chunk, and no loss for data far from the origin.
        some = batch[: min(CHUNK, batch.shape[0]), :] if w is None else take_rows(batch, np.flatnonzero(w)[:CHUNK])
        some = xp.astype(some, xp.float64)
        near = xp.mean(some, axis=0) if some.shape[0] else xp.sum(some, axis=0)
        totals, scatters = [0 * near] * 2, [0 * near[:, None] * near] * 2
        for h, rows, v in halves(batch, w, keys, rows_of(batch, np.float64)):
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
    Memory: ``2 N^2`` numbers of float64, ``N = r (r + 1) / 2``, and some thousand rows, which certificates are proven
    with; time: ``N^2`` multiplications a sample.

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
        self.kept = Kept.none(r)

    @property
    def like(self) -> Array:
        """An array of the library and on the device of the sums."""
        return self.second

    @in_own_precision
    def update(self, batch: Any, sample_weight: Any = None, *, index: Any = None, groups: Any = None) -> FourthMoment:
        """Add samples.

        Parameters
        ----------
        batch : array-like of shape (m, d), Dask array or dataframe, or Collection
        sample_weight : array-like of shape (m,), optional
        index : int or array-like of shape (m,), optional
            As in :meth:`Covariance.update`.
        groups : array-like of shape (m,), optional
            Labels of what rows belong to, such as subjects: whole numbers or strings, for all samples or for none.
            Halves go by a hash of the label, which is kept with the rows; of a Dask dataframe, also the name of a
            column, which is no feature then.

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
            return self.merge(summed(self, batch, sample_weight, index, groups))
        return self._add(batch, sample_weight, index, None if groups is None else codes_of(groups))

    @in_own_precision
    def _add(self, batch: Any, sample_weight: Any, index: Any, groups: np.ndarray | None) -> FourthMoment:
        """The same with codes for the groups."""
        batch, w = self._check(batch, sample_weight, self.frame.mean.shape[0])
        xp = array_namespace(self.fourth)
        batch = moved(batch, self.fourth)
        work = batch[:0, :] if self.dtype is None else typed(batch[:0, :], self.dtype)
        index = self._index(index, batch.shape[0])
        keys = self._keys(index, groups)
        self._check_groups(groups is not None)
        for h, rows, v in halves(batch, w, keys, 2 * rows_in_a_chunk(self.frame.dim, work)):
            Z = self.frame.whiten(rows, np.float64)
            u = from_numpy(v, Z)
            self.weight[h] += v.sum()
            self.squares[h] += v @ v
            self.first = add_to(self.first, h, u @ Z)
            self.second = add_to(self.second, h, xp.matrix_transpose(Z * u[:, None]) @ Z)
            # (w^(1/4) z)^(x4) = w z^(x4)
            features = pack_rank_one(xp.astype(Z * u[:, None] ** 0.25, work.dtype))  # (N, rows)
            self.fourth = add_to(self.fourth, h, features @ xp.matrix_transpose(features))
        w = np.ones(index.shape[0]) if w is None else w
        counting = np.flatnonzero(w > 0)
        some = counting[Kept.chosen(index[counting])]
        Z = to_numpy(self.frame.whiten(take_rows(batch, some), np.float64))
        self.kept = self.kept.with_rows(Z, index[some], w[some], None if groups is None else groups[some])
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
        if other.weight.sum() > 0:
            self._check_groups(other.kept.groups is not None)
        sums = {name: getattr(self, name) + moved(getattr(other, name), self.fourth) for name in self._SUMS}
        self.rows, self.count = max(self.rows, other.rows), self.count + other.count
        self.weight, self.squares = self.weight + other.weight, self.squares + other.squares
        for name, value in sums.items():
            setattr(self, name, value)
        self.kept = self.kept.with_rows(*vars(other.kept).values())
        return self

    def _check_groups(self, given: bool) -> None:
        """Refuse to add halves that go by groups to halves that go by rows."""
        if self.weight.sum() > 0 and given != (self.kept.groups is not None):
            raise ValueError(
                "groups must be given for all samples or for none: some of these have groups, and others have not."
            )

    def _saved(self) -> dict[str, np.ndarray]:
        return {**super()._saved(), **self.kept.arrays}

    def _restore(self, data: dict[str, np.ndarray]) -> None:
        super()._restore(data)
        if any(name.startswith("kept_") for name in data):  # files of version 0.1 hold no rows
            self.kept = Kept.restored(data)

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
        return cumulant_of(self.moment(half).astype(dtype), self.covariance(half))

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


def cumulant_of(moment: FourTensor, C: np.ndarray) -> FourTensor:
    """A fourth moment without the three pairings of the covariance ``C``."""
    return Sum([(1.0, moment), (-1.0, Pairings(from_numpy(C, moment.like, moment.like.dtype)))])
