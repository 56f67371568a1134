"""Passes over data that are written down as they go on, so that a run that was stopped goes on where it was.

A computation on samples is a sequence of passes, and everything between two of them is a function of their results.
So a second run with the same data and settings makes the same passes in the same order: those that are finished are
read from the file, and the one that was stopped goes on after the chunks it had summed.
"""

from __future__ import annotations

import hashlib
import os
import time
import warnings
from typing import Any

import numpy as np

from quartic._arrays import to_numpy
from quartic._files import load_arrays, save_arrays

EVERY = 30.0  # seconds between two writes, at least; what is lost when a run is killed

Arrays = dict[str, np.ndarray]


def digest(*parts: Any) -> str:
    """A short name for arrays, numbers and strings, the same in every run."""
    out = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            out.update(f"{part.dtype.str}{part.shape}".encode())
            out.update(np.ascontiguousarray(part).tobytes())
        else:
            out.update(repr(part).encode())
        out.update(b"\0")
    return out.hexdigest()


class Checkpoint:
    """What the passes of one computation have summed so far, in memory and in a file.

    Parameters
    ----------
    path : str or path
    key : str
        Digest of the settings: a file of others is refused.
    marks : dict
        Digests of some chunks by their numbers: a file in which one of them is another is refused, too.
    every : float
        Seconds between two writes, at least; the end of a pass is always written.
    """

    def __init__(self, path: str | os.PathLike[str], key: str, marks: dict[int, str], every: float = EVERY) -> None:
        self.path, self.every = path, every
        self.passes = 0
        self._arrays: Arrays = {}
        self._written = time.monotonic()
        if os.path.exists(path):
            try:
                held = load_arrays(path, "Checkpoint")
            except ValueError as error:
                raise ValueError(
                    f"checkpoint can not be read: {error} Give another file, or remove this one to start anew."
                ) from error
            theirs = dict(zip(held["chunks"].tolist(), held["marks"].tolist(), strict=True))
            if str(held["key"]) != key or any(theirs[k] != marks[k] for k in theirs.keys() & marks.keys()):
                raise ValueError(
                    f"checkpoint {os.fspath(path)} belongs to other data, chunks or settings: give another file, or "
                    "remove it to start anew."
                )
            self._arrays = {name: x for name, x in held.items() if "/" in name}
            marks = theirs | marks
        numbers = sorted(marks)
        self._head = {
            "key": np.asarray(key),
            "chunks": np.array(numbers, dtype=np.int64),
            "marks": np.array([marks[k] for k in numbers], dtype=str),
        }

    def begin(self, *what: Any) -> Pass:
        """The next pass, ``what`` being all that it depends on: as far as it is known."""
        number, key = self.passes, digest(*what)
        self.passes += 1
        if str(self._arrays.get(f"{number}/key", "")) != key:
            # Never made, or from other numbers: then nothing that follows is the same either.
            self._arrays = {name: x for name, x in self._arrays.items() if int(name.split("/")[0]) < number}
        return Pass(self, number, key)

    def _put(self, number: int, arrays: Arrays, force: bool) -> None:
        prefix = f"{number}/"
        kept = {name: x for name, x in self._arrays.items() if not name.startswith(prefix)}
        self._arrays = kept | {prefix + name: x for name, x in arrays.items()}
        if force or time.monotonic() - self._written >= self.every:
            try:
                save_arrays(self.path, "Checkpoint", {**self._head, **self._arrays})
            except OSError as error:
                # The last one that was written is still there; the work is worth more than its copy.
                warnings.warn(
                    f"the checkpoint {os.fspath(self.path)} could not be written ({error.strerror or error}): the "
                    "computation goes on without it.",
                    RuntimeWarning,
                    stacklevel=2,
                )
            self._written = time.monotonic()


class Pass:
    """One pass: how many chunks are done, and what they sum to."""

    def __init__(self, checkpoint: Checkpoint, number: int, key: str) -> None:
        self._checkpoint, self._number, self._key = checkpoint, number, key
        prefix = f"{number}/"
        held = {name[len(prefix) :]: x for name, x in checkpoint._arrays.items() if name.startswith(prefix)}
        held.pop("key", None)
        self.done = int(held.pop("done", np.asarray(0)))
        self.skipped: list[int] = held.pop("skipped", np.zeros(0, dtype=np.int64)).tolist()
        self.sums: Arrays | None = {name[4:]: x for name, x in held.items()} or None

    def put(self, done: int, sums: dict[str, Any], skipped: list[int], final: bool) -> None:
        """So many chunks are done, this is their sum, and these of them were left out."""
        arrays = {f"sum_{name}": to_numpy(x) for name, x in sums.items()}
        arrays |= {"key": np.asarray(self._key), "done": np.asarray(done), "skipped": np.array(skipped, dtype=np.int64)}
        self._checkpoint._put(self._number, arrays, force=final)
