"""Solvers: one short file each, with a function ``solve``; the folder is the list of solvers.

``solve(T, rank, seed)`` takes a NumPy array ``T (d, d, d, d)`` and returns the components it found as rows,
``(m, d)``, of any length and sign.  It imports what it needs inside the function, so that a peer that is not
installed is a row that says so.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

import numpy as np

Solver = Callable[[Any, int, int], np.ndarray]


def names() -> list[str]:
    """Names of the solvers, quartic first."""
    found = sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))
    return sorted(found, key=lambda name: name != "quartic")


def load(name: str) -> Solver:
    """The function ``solve`` of one solver."""
    return importlib.import_module(f"{__name__}.{name}").solve
