"""Samples that live in a Dask collection: the passes of samples in memory, each a map over chunks and a tree of merges.

The only file that knows Dask.  It runs on whatever scheduler there is: threads by default, or the workers of the
``distributed.Client`` that the caller has.  What comes back to the caller are sums, and the rows of the subsample that
feeds the spectral stage.  Rows are told apart by their index alone, so that halves and subsamples, and with them the
answer, do not depend on how the data are cut into chunks.
"""

from __future__ import annotations

import copy
import math
import operator
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, wraps
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from quartic import __version__
from quartic._arrays import Array, array_namespace, from_numpy, is_array_api_obj, moved, take_rows, to_numpy
from quartic._checkpoint import EVERY, Checkpoint, digest
from quartic.algorithms.refine import ClippedScore, Pass, Signals, Statistics
from quartic.evidence.groups import codes_of, labels_of, split_off
from quartic.frame import Frame
from quartic.moments import Covariance, FourthMoment
from quartic.passes import (
    Answer,
    Merge,
    Piece,
    Task,
    added,
    chosen,
    covariance_of,
    covered,
    fourth,
    joined,
    longest,
    pooled,
    refined,
    statistics_of,
    surveyed,
    surveys,
    there,
    without,
)
from quartic.samples import Limit, Samples, glance, in_part

SUBSAMPLE, SUBSAMPLE_LEAST = 17, 70_000  # times d^2, and at least: rows that the first pass brings along, and
LEAST, HELD = 3, 1 << 28  # times d^2, if those would take more bytes than this
FINGERPRINT = 16  # chunks by which a checkpoint knows the data
GROUP = 64  # chunks that are summed in a tree of their own, so that rounding does not depend on who computes
AHEAD = 8  # chunks for each thread of a cluster that are begun at once; progress and checkpoints come after these
ERRORS = ("raise", "skip")

Method = Callable[..., Any]
Accumulator = TypeVar("Accumulator", Covariance, FourthMoment)


def is_collection(X: Any) -> bool:
    """Whether ``X`` is a Dask array or dataframe, or a :class:`Collection`."""
    if isinstance(X, Collection):
        return True
    if not hasattr(type(X), "__dask_graph__"):
        return False
    from dask.base import is_dask_collection  # some objects have the method and hold NumPy arrays

    return bool(is_dask_collection(X))


def chunk_by_chunk(columns: str) -> Callable[[Method], Method]:
    """A method from rows to rows that takes Dask collections too: for these it gives a Dask array, computed later.

    ``columns`` names the attribute of the estimator that says how many columns the answer has.
    """

    def decorate(method: Method) -> Method:
        @wraps(method)
        def lazily(model: Any, X: Any) -> Any:
            if not is_collection(X):
                return method(model, X)
            from sklearn.utils._set_output import _get_output_config
            from sklearn.utils.validation import _check_feature_names, check_is_fitted

            check_is_fitted(model)
            if _get_output_config("transform", model)["dense"] != "default":
                raise ValueError("set_output must be left at 'default' for Dask collections: they stay Dask arrays.")
            rows = _array(X.X if isinstance(X, Collection) else X)
            forwards = method.__name__ == "transform"
            expected = model.n_features_in_ if forwards else model.n_components_
            if rows.shape[1] != expected:
                raise ValueError(f"X has {rows.shape[1]} features, but {expected} were expected.")
            if forwards:
                _check_feature_names(model, _header(X), reset=False)
            light = copy.copy(model)
            for name in ("moment_", "feature_names_in_"):  # the names are checked
                light.__dict__.pop(name, None)
            width = getattr(model, columns)
            dtype = rows.dtype if rows.dtype in (np.float32, np.float64) else np.dtype(np.float64)
            task = partial(_on_chunk, method, light, width)
            meta = np.empty((0, width), dtype=dtype)
            return rows.map_blocks(task, chunks=(rows.chunks[0], (width,)), dtype=dtype, meta=meta)

        return lazily

    return decorate


def _on_chunk(method: Method, model: Any, width: int, rows: Array) -> Array:
    """A method of an estimator on the rows of one chunk, in a thread or process that has no settings of the caller."""
    from sklearn import config_context

    if rows.shape[0] == 0:
        return array_namespace(rows).zeros((0, width), dtype=rows.dtype)
    with config_context(array_api_dispatch=not isinstance(rows, np.ndarray)):
        return method(model, rows)


def summed(like: Accumulator, X: Any, sample_weight: Any, index: Any, groups: Any = None) -> Accumulator:
    """An accumulator of the same kind with the samples of a Dask collection, from ``index`` on."""
    data = collected(X, sample_weight, groups)
    try:
        first = like.rows if index is None else operator.index(index)
    except TypeError:
        raise ValueError("index must be that of the first row, a whole number, for a Dask collection.") from None
    if isinstance(like, FourthMoment):
        moment = FourthMoment(like.frame, like.dtype, like.like)
        data = data.fresh("fourth", like.frame.key, str(like.dtype), first)
        answer = data.total_of(partial(fourth, frame=like.frame, dtype=like.dtype, first=first), added, "fourth")
        return _restored(moment, answer, first + data.total, data.rows)
    data = data.fresh("covariance", first)
    covariance = covariance_of(data.total_of(partial(covered, first=first), pooled, "covariance"))
    covariance.rows, covariance.count = first + data.total, data.rows
    return covariance


def collected(X: Any, sample_weight: Any, groups: Any = None) -> Collection:
    """A Dask collection, or a :class:`Collection`, which has its own weights and groups."""
    if not isinstance(X, Collection):
        return Collection(X, sample_weight, groups=groups)
    for name, given in (("sample_weight", sample_weight), ("groups", groups)):
        if given is not None:
            raise ValueError(f"{name} must be given to the Collection that holds the samples.")
    return X


def _restored(moment: FourthMoment, answer: Answer, rows: int, count: int) -> FourthMoment:
    """A fourth moment with the sums of an answer, where it keeps its own."""
    moment._restore({**answer, **{name: from_numpy(answer[name], moment.like) for name in moment._SUMS}})
    moment.rows, moment.count = rows, count
    return moment


@dataclass(frozen=True)
class Survey:
    """What the first pass found: mean and covariance, which rows are left out, how many are not, their mean weight."""

    covariance: Covariance
    gross: np.ndarray
    count: int
    scale: float


class Collection(Samples):
    """Samples in a Dask array or dataframe, and how to read them; estimators take it in place of an array.

    Parameters
    ----------
    X : dask array of shape (m, d), or dask dataframe
        Chunks of rows, of any size; row counts that are not known are counted in a pass of their own.
    sample_weight : dask array or array-like of shape (m,), optional
        A weight of 2 counts a sample twice, a weight of 0 leaves it out.
    groups : dask array or array-like of shape (m,), or str, optional
        Labels of what rows belong to, such as subjects (see ``docs/samples.md``); of a dataframe, also the name of a
        column, which is no feature then.
    checkpoint : str or path, optional
        File that passes are written to as they go on.  A run with the same data, chunks, settings and version goes on
        from it; a file of others is refused.
    errors : {"raise", "skip"}
        What to do about chunks that can not be read: name the first, or leave them out and say so.  A chunk that was
        read in the first pass and can not be read later is always an error.
    every : float
        Seconds between two writes of the checkpoint, at least.
    callback : callable, optional
        Called with the number of the pass, the rows that it has seen, and all that it will see.

    Attributes
    ----------
    skipped : dict
        Numbers of the chunks that were left out, and why.
    passes : int
        Over the data so far.

    Examples
    --------
    >>> import dask.array as da, quartic
    >>> data = quartic.datasets.nice_samples(5000, 6, random_state=0)
    >>> X = da.from_array(data.samples, chunks=(700, 6))
    >>> model = quartic.SpectralDictionaryLearning().fit(X)  # or: fit(quartic.Collection(X, checkpoint="run.npz"))
    >>> quartic.metrics.match(data.components, model.components_).found(1 - 1e-12)
    6
    """

    ordered = True
    _gross = True  # samples are left out

    def __init__(
        self,
        X: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        errors: str = "raise",
        every: float = EVERY,
        callback: Callable[[int, int, int], None] | None = None,
    ) -> None:
        if errors not in ERRORS:
            raise ValueError(f"errors must be one of {', '.join(ERRORS)}; got {errors!r}.")
        named, (X, groups) = isinstance(groups, str), split_off(X, groups)
        self.X, self.header = X, _header(X)
        self.path, self.errors, self.every, self.callback = checkpoint, errors, every, callback
        rows = _array(X)
        self.features = int(rows.shape[1])
        self.dtype = np.dtype(np.float32 if rows.dtype == np.float32 else np.float64)  # that they are read as
        self._row_bytes = self.features * self.dtype.itemsize
        self._blocks = list(rows.to_delayed().ravel())
        self._lost: dict[int, str] = {}  # could not even be counted
        self._client, self._weights, self._groups = _client(), None, None
        self._start()
        sizes = rows.chunks[0]
        if any(math.isnan(size) for size in sizes):
            self.starts = np.full(len(sizes) + 1, -1)
            (found,) = self._sums([range(len(sizes))], _counted, joined, expected=False)
            found = found or {"of": (), "sizes": ()}
            sizes = np.zeros(len(sizes), dtype=np.int64)
            sizes[list(found["of"])] = found["sizes"]
        self.starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        self._lost = dict(self.skipped)  # could not even be counted
        if sample_weight is not None:
            self._weights = _aligned("sample_weight", sample_weight, self.starts)
        if groups is not None:
            self._groups = list(groups.to_delayed()) if named else _aligned("groups", groups, self.starts)

    def _start(self) -> None:
        """Nothing read yet."""
        self.passes = 0
        self.skipped = dict(self._lost)
        self._checkpoint: Checkpoint | None = None
        self._share = 0.0  # rows whose hash lies below are held
        self._held: Answer = {}
        self._meta: Array = np.empty((0, self.features), dtype=self.dtype)
        self.__dict__.pop("_survey", None)

    def fresh(self, *settings: Any, ordered: bool = True, gross: bool = True) -> Collection:
        """The same collection, to be read from the start, or from its checkpoint.

        Parameters
        ----------
        *settings : object
            What the work depends on, besides the data: a checkpoint of other settings is refused.
        ordered : bool
            Whether the order of rows may mean something, as in time.
        gross : bool
            Whether samples that are far longer than all others are left out.

        Returns
        -------
        Collection

        Examples
        --------
        >>> import dask.array as da, quartic
        >>> X = da.from_array(quartic.datasets.nice_samples(1000, 4, random_state=0).samples, chunks=(300, 4))
        >>> data = quartic.Collection(X)
        >>> covariance = data.covariance()  # one pass
        >>> data.passes, data.fresh().passes
        (1, 0)
        """
        out = copy.copy(self)
        out._start()
        out._client, out.ordered, out._gross = _client(), ordered, gross
        if self.path is not None:
            numbers = np.unique(np.linspace(0, len(self._blocks) - 1, FINGERPRINT).astype(int)).tolist()
            marks = {}
            for k in numbers:  # one by one: some may be lost, and what is left must still be known again
                (found,) = out._sums([[k]], _fingerprint, joined)
                if found is not None:
                    marks[k] = str(found["digest"][0])
                    out._meta = found["rows"]
            out.skipped = dict(self._lost)  # the first pass says which are lost
            given = [x is None for x in (self._weights, self._groups)]
            key = digest(__version__, self.errors, self.starts, given, gross, *settings)
            out._checkpoint = Checkpoint(self.path, key, marks, self.every)
        return out

    @property
    def total(self) -> int:
        """How many there are."""
        return int(self.starts[-1])

    @property
    def rows(self) -> int:
        """How many there are, without those of chunks that can not be read."""
        return int(self.total - sum(self.starts[k + 1] - self.starts[k] for k in self.skipped))

    @property
    def most(self) -> float:
        """How many rows the caller may ask for."""
        return max(SUBSAMPLE * self.features**2, HELD / self._row_bytes)

    @property
    def like(self) -> Array:
        """An empty array of their kind."""
        return self._meta

    @property
    def trimmed(self) -> int:  # type: ignore[override]
        """How many are left out, far longer than all others."""
        return int(self._survey.gross.shape[0])

    @property
    def count(self) -> int:
        """Samples that are not left out."""
        return self._survey.count

    @cached_property
    def _survey(self) -> Survey:
        """The first pass: covariance, what is left out, and a subsample."""
        m, d = self.total, self.features
        wanted = min(max(SUBSAMPLE * d * d, SUBSAMPLE_LEAST), HELD // self._row_bytes)
        share = min(2.0, max(wanted, LEAST * d * d) / max(m, 1))
        none = None if self._gross else Limit(np.zeros(d), np.ones(d), math.inf)
        found = self.total_of(partial(surveyed, m=m, share=share, limit=none), surveys, "survey", share)
        counted = int(found["counted"])
        some = np.flatnonzero(in_part(found["part_index"], 0.0, glance(counted)))
        limit = Limit.of(take_rows(found["part_rows"], some), counted)
        limit = limit if none is None else replace(limit, norm=math.inf)
        if not longest(found, limit) <= limit.norm:
            # Some chunk has longer samples than it could tell by itself: once more, now that the limit is known.
            kept = [x for plane in limit.planes for x in (plane.axes, plane.sharp)]
            what = ("survey", share, limit.centre, limit.unit, limit.norm, limit.ceiling, *kept)
            found = self.total_of(partial(surveyed, m=m, share=share, limit=limit), surveys, *what)
        long = limit.gross(found["long_rows"])
        gross = np.sort(np.concatenate((found["gross"], found["long_index"][long])))
        covariance = covariance_of(found)
        if not np.all(long):  # they are not, after all
            mine = np.flatnonzero(~long)
            index, weights = (found[f"long_{name}"][mine] for name in ("index", "weights"))
            groups = found["long_groups"][mine] if "long_groups" in found else None
            covariance._add(take_rows(found["long_rows"], mine), weights, index, groups)
        count = counted - gross.shape[0]
        if not count:
            raise ValueError("sample_weight must be positive for some samples: there is nothing to learn from.")
        scale = float(np.sum(covariance.weight) / count)
        covariance.weight, covariance.scatter = covariance.weight / scale, covariance.scatter / scale
        covariance.squares = covariance.squares / scale**2
        covariance.rows, covariance.count = m, self.rows
        mine = np.flatnonzero(~np.isin(found["part_index"], gross))
        rows = take_rows(found["part_rows"], mine)
        self._meta = rows[:0, :] if self._checkpoint is None else self._meta  # which was seen before
        held = {"index": found["part_index"][mine], "rows": rows, "weights": found["part_weights"][mine] / scale}
        self._hold(held | ({"groups": found["part_groups"][mine]} if "part_groups" in found else {}))
        self._share = share
        return Survey(covariance, gross, count, scale)

    def covariance(self) -> Covariance:
        """Mean and covariance of all."""
        return self._survey.covariance

    def fourth_moment(self, frame: Frame) -> FourthMoment:
        """The fourth moment of all."""
        answer = self.total_of(partial(fourth, frame=frame), added, "fourth", frame.key)
        return _restored(FourthMoment(frame, like=self.like), answer, self.total, self.rows)

    def everything(self, mean: np.ndarray) -> Pass:
        """All rows about a mean."""

        def measure(*wanted: Signals) -> list[Statistics]:
            plain = there(wanted)
            known = [
                [U, *vars(score).values()] if isinstance(score, ClippedScore) else [U, "tanh"] for U, score in plain
            ]
            task = partial(refined, mean=mean, wanted=plain)
            return statistics_of(self.total_of(task, added, "refined", mean, *chain(*known)), self.like)

        return measure

    # Rows that are held

    def chosen(self, low: float, high: float) -> np.ndarray:
        """Indices of a random part of the rows; they are fetched if they are not held."""
        _ = self._survey
        if self._share < min(high, 1.0):
            share = 2.0 if high >= 1 else 1.5 * high
            self._hold(self.total_of(partial(chosen, low=self._share, high=share), joined, "part", self._share, share))
            self._share = share
        index = self._held["index"]
        return index[in_part(index, low, high)]

    def _hold(self, found: Answer) -> None:
        """Keep rows, in the order of their index."""
        found = {**found, "rows": moved(found["rows"], self.like)}
        both = joined(self._held, found) if self._held else found
        order = np.argsort(both["index"], kind="stable")
        self._held = {name: take_rows(x, order) if name == "rows" else x[order] for name, x in both.items()}

    def take(self, rows: np.ndarray) -> Array:
        """Some of the rows that were chosen."""
        return take_rows(self._held["rows"], np.searchsorted(self._held["index"], rows))

    def weight(self, rows: np.ndarray) -> np.ndarray:
        """Weights of some rows that were chosen."""
        return self._held["weights"][np.searchsorted(self._held["index"], rows)]

    def group(self, rows: np.ndarray) -> np.ndarray | None:
        """Codes of the groups of some rows that were chosen."""
        groups = self._held.get("groups")
        return None if groups is None else groups[np.searchsorted(self._held["index"], rows)]

    # Passes

    def total_of(self, task: Task, merge: Merge, *what: Any) -> Answer:
        """One pass: what a task gives for each chunk, merged in a tree.

        Parameters
        ----------
        task : callable
            From a :class:`quartic.passes.Piece` (``first`` row, ``rows``, ``weights``, ``groups``) to arrays by name.
        merge : callable
            From two answers to one.
        *what : object
            All that the task depends on: by it a checkpoint knows the pass.

        Returns
        -------
        dict of str to array

        Examples
        --------
        >>> import dask.array as da, numpy as np, quartic
        >>> data = quartic.Collection(da.from_array(np.arange(12.0).reshape(6, 2), chunks=(4, 2)))
        >>> def largest(piece):
        ...     return {"largest": piece.rows.max(axis=0)}
        >>> data.total_of(largest, lambda a, b: {"largest": np.maximum(a["largest"], b["largest"])})["largest"].tolist()
        [10.0, 11.0]
        """
        stage = None if self._checkpoint is None else self._checkpoint.begin(*what)
        done, sums = (0, None) if stage is None else (stage.done, stage.sums)
        for k in [] if stage is None else stage.skipped:
            if k not in self.skipped:
                self.skipped[k] = f"{self._name(k)} was left out before the run was stopped."
                warnings.warn(self.skipped[k], RuntimeWarning, stacklevel=2)
        number, last = self.passes, len(self._blocks)
        self.passes += 1
        wave = GROUP * math.ceil(max(1, AHEAD * _threads(self._client)) / GROUP)
        while done < last:
            stop = min(done + wave, last)
            groups = [range(first, min(first + GROUP, stop)) for first in range(done, stop, GROUP)]
            for found in self._sums(groups, task, merge):
                if found is not None:
                    sums = found if sums is None else merge(sums, found)
            done = stop
            if stage is not None:
                stage.put(done, sums or {}, sorted(self.skipped), final=done == last)
            if self.callback is not None:
                self.callback(number, int(self.starts[done]), self.total)
        if sums is None:
            raise ValueError("no chunk of the samples could be read: there is nothing to learn from.")
        return sums

    def _sums(
        self, groups: Sequence[Sequence[int]], task: Task, merge: Merge, *, expected: bool = True
    ) -> list[Answer | None]:
        """The same for groups of chunks; None where none could be read.  ``expected``: whether lengths are known."""
        import dask

        later = dask.delayed(_merged, pure=False)
        leaf = partial(self._delayed, task=task, expected=expected)
        try:
            answers = self._computed(*(_tree(group, leaf, partial(later, merge)) for group in groups))
        except Exception as error:
            if self._client is not _client():
                raise RuntimeError(
                    "the Dask client was closed while samples were read: start again, from the checkpoint if there is "
                    "one."
                ) from error
            # A worker that was lost is not to blame, Dask has tried again by now: is it a chunk?
            leaf = partial(self._alone, task=task, expected=expected)
            answers = [_tree(group, leaf, partial(_merged, merge)) for group in groups]
        for answer in answers:
            if isinstance(answer, Refused):
                raise ValueError(answer.reason)
        return list(answers)

    def _computed(self, *work: Any) -> Sequence[Any]:
        """What was to be computed later, now."""
        import dask

        if self._client is not None:
            return dask.compute(*work)
        # A thread a chunk: products with threads of their own would wait for each other, many times as long.
        with threadpool_limits(limits=1, user_api="blas"):
            return dask.compute(*work)

    def _delayed(self, k: int, task: Task, expected: bool) -> Any:
        """What a task gives for one chunk, later; None for one that is left out."""
        import dask

        if k in self.skipped:
            return None
        first, last = (int(self.starts[k]), int(self.starts[k + 1])) if expected else (k, -1)
        survey = self.__dict__.get("_survey")
        gross, scale = np.zeros(0, dtype=np.int64), 1.0
        if survey is not None:
            low, high = np.searchsorted(survey.gross, (first, last))
            gross, scale = survey.gross[low:high] - first, survey.scale
        weights, groups = (None if x is None or not expected else x[k] for x in (self._weights, self._groups))
        shape = (last - first, self.features) if expected else (-1, self.features)
        return dask.delayed(_run, pure=False)(task, first, shape, self._blocks[k], weights, groups, gross, scale)

    def _alone(self, k: int, task: Task, expected: bool) -> Answer | Refused | None:
        """The same at once, and by itself: if the chunk can not be read it is named."""
        import dask

        try:
            return self._computed(self._delayed(k, task, expected))[0]
        except Exception as error:
            if _is_lost(error):
                raise
            try:
                self._computed(dask.delayed(_read, pure=False)(self._blocks[k]))
            except Exception as reason:
                if _is_lost(reason):
                    raise
                self._leave_out(k, reason)
                return None
            raise  # it can be read: something else is wrong

    def _leave_out(self, k: int, error: Exception) -> None:
        """A chunk that can not be read."""
        reason = f"{type(error).__name__}: {str(error).rstrip('.') or 'no reason given'}"
        story = f"{self._name(k)} could not be read ({reason})."
        if type(error).__name__ == "KilledWorker":
            raise RuntimeError(
                f"{self._name(k)} has lost every worker that tried it: it may need more memory than one has, cut it "
                "smaller."
            ) from error
        if self.errors == "raise":
            raise RuntimeError(f"{story} With errors='skip' such chunks are left out.") from error
        if "_survey" in self.__dict__:
            raise RuntimeError(f"{story} It was read before, and is counted: start again.") from error
        self.skipped[k] = story
        warnings.warn(f"{story} It is left out.", RuntimeWarning, stacklevel=2)

    def _name(self, k: int) -> str:
        where = "" if self.starts[k + 1] < 0 else f", rows {self.starts[k]} to {self.starts[k + 1] - 1},"
        return f"chunk {k} of the samples{where}"


def _is_lost(error: Exception) -> bool:
    """Whether it is the cluster that failed, and not a chunk."""
    if isinstance(error, MemoryError):
        return True
    kind = type(error)
    return kind.__name__ != "KilledWorker" and (
        kind.__module__.startswith("distributed") or kind.__name__ in ("CancelledError", "FutureCancelledError")
    )


def _client() -> Any:
    """The client of a cluster that work goes to, or None."""
    if "distributed" not in sys.modules:
        return None
    from distributed import default_client

    try:
        return default_client()
    except ValueError:
        return None


def _threads(client: Any) -> int:
    """How many chunks are worked on at a time."""
    return (os.cpu_count() or 1) if client is None else sum(client.nthreads().values())


def _header(X: Any) -> Any:
    """What has the names of the columns, where there are any."""
    X = X.X if isinstance(X, Collection) else X
    return X._meta if hasattr(X, "columns") else None


def _array(X: Any) -> Any:
    """A Dask array of numbers with its columns in one chunk."""
    import dask.array as da

    X = X.to_dask_array() if hasattr(X, "to_dask_array") else X
    if not isinstance(X, da.Array) or X.ndim != 2:
        shape = getattr(X, "shape", None)
        raise ValueError(f"samples must be a Dask array with samples as rows, shape (m, d); got shape {shape}.")
    if X.dtype.kind not in "biuf":
        raise ValueError(f"samples must hold real numbers; got dtype {X.dtype}.")
    return X.rechunk({1: -1})


def _aligned(name: str, given: Any, starts: np.ndarray) -> list[Any]:
    """Weights, or labels of groups, cut as the samples are."""
    import dask.array as da

    x = given
    if hasattr(given, "to_dask_array"):
        # Of labels as objects: Dask has no arrays of text.
        column = given.astype(object) if name == "groups" else given
        x = column.to_dask_array(lengths=True)
    elif not isinstance(given, da.Array):
        x = da.from_array(labels_of(given) if name == "groups" else np.asarray(given, dtype=np.float64))
    if x.shape != (starts[-1],):
        what = "labels" if name == "groups" else "weights"
        raise ValueError(f"{name} must hold {starts[-1]} {what}; got shape {x.shape}.")
    return list(x.rechunk((tuple(np.diff(starts).tolist()),)).to_delayed().ravel())


# What runs where the chunks are


@dataclass(frozen=True)
class Refused:
    """What is wrong with the samples of a chunk, in words."""

    reason: str


def _run(
    task: Task,
    first: int,
    shape: tuple[int, int],
    rows: Any,
    weights: Any,
    labels: Any,
    gross: np.ndarray,
    scale: float,
) -> Answer | Refused:
    """A task on a chunk; what is wrong with its samples is an answer, since a failure to read it is not."""
    if not is_array_api_obj(rows):
        rows = np.asarray(rows)
    if isinstance(rows, np.ndarray):
        dtype = rows.dtype if rows.dtype in (np.float32, np.float64) else np.float64
        rows = np.require(rows, dtype, "A")  # chunks that came over the network need not be aligned, which is slow
    if tuple(rows.shape) != (shape[0] if shape[0] >= 0 else rows.shape[0], shape[1]):
        return Refused(
            f"samples from row {first} on: the chunk has shape {tuple(rows.shape)}, and should have {shape}."
        )
    w = None if weights is None else np.asarray(to_numpy(weights), dtype=np.float64)
    try:
        groups = None if labels is None else codes_of(labels, rows.shape[0], first)
        return task(Piece(first, rows, without(w, rows.shape[0], gross, scale), groups))
    except ValueError as error:
        return Refused(f"samples in rows {first} to {first + rows.shape[0] - 1}: {error}")


def _read(rows: Any) -> int:
    """Nothing but reading."""
    return int(rows.shape[0])


def _counted(piece: Piece) -> Answer:
    """The length of a chunk whose number stands for its first row."""
    return {"of": np.array([piece.first]), "sizes": np.array([piece.rows.shape[0]])}


def _fingerprint(piece: Piece) -> Answer:
    """What a chunk is known by, and an empty array of its kind."""
    known = digest(to_numpy(piece.rows), *(x for x in (piece.weights, piece.groups) if x is not None))
    return {"digest": np.array([known]), "rows": piece.rows[:0, :]}


def _tree(group: Sequence[int], leaf: Callable[[int], Any], join: Callable[[Any, Any], Any]) -> Any:
    """The leaves of a group, joined by twos: in the same order, whoever computes and whichever of them are left out."""
    if len(group) == 1:
        return leaf(group[0])
    half = 1 << ((len(group) - 1).bit_length() - 1)
    return join(_tree(group[:half], leaf, join), _tree(group[half:], leaf, join))


def _merged(merge: Merge, a: Answer | Refused | None, b: Answer | Refused | None) -> Answer | Refused | None:
    """Two answers as one; a refusal wins, and what was left out counts for nothing."""
    if b is None or isinstance(a, Refused):
        return a
    return b if a is None or isinstance(b, Refused) else merge(a, b)
