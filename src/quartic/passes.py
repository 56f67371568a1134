"""What a pass computes on one chunk of samples, and how two answers become one.

An answer is a dictionary of arrays: it is made where the chunk is, travels, and can be written to a file.  Merging is
associative up to rounding, so that a pass is a map over chunks and a tree of merges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from quartic._arrays import Array, array_namespace, from_numpy, moved, rows_of, take_rows, to_numpy
from quartic.algorithms.refine import Chunk, ClippedScore, Signals, Statistics, statistics
from quartic.evidence.kept import Kept
from quartic.frame import Frame
from quartic.halves import places
from quartic.moments import Covariance, FourthMoment
from quartic.samples import GLANCE, Limit, centred, in_part

SUSPECT, SUSPECTS = 0.5, 64  # of a chunk's own limit: norms that may be too long; and how many such rows it sends along
SUMS = ("cross", "slope", "weight")  # of the refinement

Answer = dict[str, Any]


@dataclass(frozen=True)
class Piece:
    """A chunk of samples ``(m, d)``, the index of its first row in the data, weights and codes of groups, or None."""

    first: int
    rows: Array
    weights: np.ndarray | None
    groups: np.ndarray | None = None

    @property
    def index(self) -> np.ndarray:
        """Of every row in the whole data."""
        return np.arange(self.first, self.first + self.rows.shape[0])

    @property
    def keys(self) -> np.ndarray:
        """What the halves of its rows are hashed by."""
        return self.index if self.groups is None else self.groups

    @property
    def counted(self) -> np.ndarray:
        """Places of the rows that have a weight."""
        return np.arange(self.rows.shape[0]) if self.weights is None else np.flatnonzero(self.weights > 0)

    def taken(self, mine: np.ndarray) -> Answer:
        """Some rows, with their indices, weights, and groups."""
        weights = np.ones(mine.shape[0]) if self.weights is None else self.weights[mine]
        groups = {} if self.groups is None else {"groups": self.groups[mine]}
        return {"index": self.first + mine, "rows": take_rows(self.rows, mine), "weights": weights, **groups}


Task = Callable[[Piece], Answer]
Merge = Callable[[Answer, Answer], Answer]


def chosen(piece: Piece, low: float, high: float) -> Answer:
    """A random part of the rows that have a weight: those whose hash lies between two fractions."""
    mine = piece.counted
    return piece.taken(mine[in_part(piece.first + mine, low, high)])


def joined(a: Answer, b: Answer) -> Answer:
    """Rows below each other, where those of the second are."""
    return {
        name: array_namespace(x).concat((moved(a[name], x), x))
        if name.endswith("rows")
        else np.concatenate((a[name], x))
        for name, x in b.items()
    }


def added(a: Answer, b: Answer) -> Answer:
    """Sums; of rows that are kept, those that both would keep."""
    total = {name: x + b[name] for name, x in a.items() if not name.startswith("kept_")}
    if "kept_Z" not in a:
        return total
    return {**total, **Kept.restored(a).with_rows(*vars(Kept.restored(b)).values()).arrays}


def covered(piece: Piece, first: int = 0, weights: np.ndarray | None = None) -> Answer:
    """Mean and covariance, with the weights of the piece or others; indices from ``first`` on."""
    weights = piece.weights if weights is None else weights
    return _saved(Covariance()._add(piece.rows, weights, first + piece.first, piece.groups))


def pooled(a: Answer, b: Answer) -> Answer:
    """Mean and covariance of two sets of samples together."""
    return _saved(covariance_of(a).merge(covariance_of(b)))


def _saved(covariance: Covariance) -> Answer:
    return {**covariance._saved(), "rounding": np.asarray(covariance.rounding)}


def covariance_of(answer: Answer) -> Covariance:
    """The accumulator in an answer."""
    out = Covariance()
    out._restore({name: np.array(answer[name]) for name in ("rows", "count", "weight", "squares", *out._SUMS)})
    out.rounding = float(answer["rounding"])
    return out


def surveyed(piece: Piece, m: int, share: float, limit: Limit | None = None) -> Answer:
    """The first pass over ``m`` samples: a covariance, a random part of the rows, and what is far longer than all.

    Which samples are too long is known when all chunks are seen.  Until then a chunk knows of its own only: it sends
    those along that may be, without counting them, and says how long the others are (see :func:`longest`).  When the
    ``limit`` is known, their indices are enough.
    """
    Covariance()._check(piece.rows, piece.weights, None)
    mine = piece.counted
    known = limit is not None
    if limit is None:
        limit = Limit.of(take_rows(piece.rows, mine[:: max(1, mine.shape[0] // GLANCE)]), m, strict=False)
    norms = to_numpy(limit.norms(piece.rows))[mine]
    long = limit.gross(piece.rows)[mine] if known else norms > limit.norm * SUSPECT
    if not known and np.sum(long) > SUSPECTS:
        long[:] = False
    w = piece.weights
    if np.any(long):
        w = np.ones(piece.rows.shape[0]) if w is None else w.copy()
        w[mine[long]] = 0.0
    sent = piece.taken(mine[long][:0] if known else mine[long])
    return {
        **covered(piece, weights=w),
        "counted": np.asarray(mine.shape[0]),
        "gross": piece.first + mine[long] if known else mine[:0],
        "centres": limit.centre[None, :],
        "units": limit.unit[None, :],
        "longest": np.array([np.max(norms[~long], initial=0.0)]),
        **{f"part_{name}": x for name, x in chosen(piece, 0.0, share).items()},
        **{f"long_{name}": x for name, x in sent.items()},
    }


def surveys(a: Answer, b: Answer) -> Answer:
    """Two surveys as one."""
    lists = [name for name in b if name.startswith(("part_", "long_"))] + ["gross", "centres", "units", "longest"]
    return {**pooled(a, b), "counted": a["counted"] + b["counted"], **joined(a, {name: b[name] for name in lists})}


def longest(survey: Answer, limit: Limit) -> float:
    """A bound on the norms of the rows that no chunk took for too long, in the units of ``limit``."""
    moved_by = np.linalg.norm((survey["centres"] - limit.centre) / limit.unit, axis=1)
    return float(np.max(moved_by + np.max(survey["units"] / limit.unit, axis=1) * survey["longest"], initial=0.0))


def fourth(piece: Piece, frame: Frame, dtype: Any = None, first: int = 0) -> Answer:
    """The fourth moment in a frame; indices from ``first`` on."""
    moment = FourthMoment(frame, dtype, like=piece.rows)
    return moment._add(piece.rows, piece.weights, first + piece.first, piece.groups)._saved()


def refined(piece: Piece, mean: np.ndarray, wanted: list[Signals]) -> Answer:
    """The sums of the refinement for each of the ``wanted`` signals of ``rows - mean``, below each other."""
    rows, w = piece.rows, piece.weights

    def chunks() -> Iterator[Chunk]:
        for h, mine in places(w, piece.keys, rows_of(rows, np.float64)):
            v = np.ones(mine.shape[0]) if w is None else w[mine]
            yield h, centred(take_rows(rows, mine), mean), from_numpy(v, rows)

    found = statistics(chunks(), *there(wanted, rows))
    return {name: np.stack([to_numpy(getattr(one, name)) for one in found]) for name in SUMS}


def statistics_of(answer: Answer, like: Array) -> list[Statistics]:
    """The sums of :func:`refined`, where ``like`` is."""
    return [
        Statistics(*(from_numpy(x, like) for x in sums)) for sums in zip(*(answer[name] for name in SUMS), strict=True)
    ]


def there(wanted: Iterable[Signals], like: Array | None = None) -> list[Signals]:
    """Unmixing matrices and scores where ``like`` is, or on the host."""
    move = to_numpy if like is None else partial(from_numpy, like=like)
    return [
        (move(U), ClippedScore(move(score.knots), move(score.coefficients)))
        if isinstance(score, ClippedScore)
        else (move(U), score)
        for U, score in wanted
    ]


def without(weights: np.ndarray | None, m: int, gross: np.ndarray, scale: float) -> np.ndarray | None:
    """Weights of ``m`` rows as they count: divided by ``scale``, and 0 at the places ``gross``; None for all 1."""
    if gross.shape[0] == 0:
        return None if weights is None else weights / scale
    out = np.ones(m) if weights is None else weights / scale
    out[gross] = 0.0
    return out
