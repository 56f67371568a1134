"""Seconds by stage."""

from __future__ import annotations

import pytest

from quartic import _progress
from quartic._progress import Stages


def test_a_stage_inside_of_another_counts_for_itself_alone(monkeypatch):
    clock = iter([0.0, 1.0, 4.0, 5.0, 5.5, 10.0])
    monkeypatch.setattr(_progress.time, "perf_counter", lambda: next(clock))
    stages = Stages(None)
    with stages("outer"):  # from 0 to 10
        with stages("inner"):  # from 1 to 4
            pass
        with stages("inner"):  # from 5 to 5.5
            pass
    assert stages.seconds == pytest.approx({"outer": 6.5, "inner": 3.5})


def test_who_asked_is_told():
    told = []
    with Stages(lambda stage, done: told.append((stage, done)))("search") as progress:
        progress(3)
    assert told == [("search", 0), ("search", 3)]
