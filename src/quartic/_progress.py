"""Seconds by stage, and progress to whoever asked for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[str, int], None]


class Stages:
    """Times the stages of a computation, and calls ``callback(stage, done)`` while they run.

    A stage inside of another counts for itself alone.
    """

    def __init__(self, callback: Progress | None) -> None:
        self.seconds: dict[str, float] = {}
        self.callback = callback
        self._inside = 0.0  # seconds of the stages inside of the one that runs

    @contextmanager
    def __call__(self, stage: str) -> Iterator[Callable[[int], None]]:
        start, before, self._inside = time.perf_counter(), self._inside, 0.0

        def progress(done: int) -> None:
            if self.callback is not None:
                self.callback(stage, done)

        progress(0)
        try:
            yield progress
        finally:
            took = time.perf_counter() - start
            self.seconds[stage] = self.seconds.get(stage, 0.0) + took - self._inside
            self._inside = before + took
