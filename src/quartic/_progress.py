"""Seconds by stage, and progress to whoever asked for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[str, int], None]


class Stages:
    """Times the stages of a computation, and calls ``callback(stage, done)`` while they run."""

    def __init__(self, callback: Progress | None) -> None:
        self.seconds: dict[str, float] = {}
        self.callback = callback

    @contextmanager
    def __call__(self, stage: str) -> Iterator[Callable[[int], None]]:
        start = time.perf_counter()

        def progress(done: int) -> None:
            if self.callback is not None:
                self.callback(stage, done)

        progress(0)
        yield progress
        self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - start
