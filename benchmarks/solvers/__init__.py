"""Solvers: one short file each, with a function ``solve``; the folder is the list of solvers.

``solve(X, n, seed)`` takes a NumPy array ``X`` and returns the ``n`` components it found as rows, ``(n, d)``, of any
length and sign.  ``TAKES`` says what ``X`` is: ``{"dense"}``, a tensor ``(d, d, d, d)``, unless it says otherwise, or
``{"samples"}``, samples as rows ``(m, d)``, whose components are the atoms, in the space of the data; with
``"overcomplete"`` besides, ``n`` may exceed ``d``.  ``LARGEST``, where there is one, is the largest ``d`` that it is
asked for.  A solver imports what it needs inside the function, so that a peer that is not installed is a row that says
so.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

Solver = Callable[[Any, int, int], np.ndarray]


def names(*needs: str, d: int = 0) -> list[str]:
    """Names of the solvers that take what a problem of dimension ``d`` needs, quartic first."""
    every = sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))
    found = [name for name in every if set(needs) <= getattr(_module(name), "TAKES", {"dense"})]
    fitting = [name for name in found if d <= getattr(_module(name), "LARGEST", d)]
    return sorted(fitting, key=lambda name: name != "quartic")


def load(name: str) -> Solver:
    """The function ``solve`` of one solver."""
    return _module(name).solve


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"{__name__}.{name}")
