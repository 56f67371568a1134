"""Problem sets: one short file each, with a list ``PROBLEMS``; the folder is the list of sets.

A problem has a name, draws what a solver is given and what is to be found from a seed, and knows a small one of its
kind.  ``needs`` says what a solver must take: ``"dense"``, a dense tensor, or ``"samples"``, and ``"overcomplete"``
besides where there are more components than dimensions.

A set belongs to a suite, what ``python -m benchmarks`` runs and keeps together: the one that its file names as
``SUITE``, or else that of the kind of its problems.
"""

from __future__ import annotations

import importlib
import pkgutil

from benchmarks.problems._dense import DenseProblem, dense
from benchmarks.problems._general import GeneralProblem, general_tensor
from benchmarks.problems._samples import SamplesProblem

__all__ = [
    "SUITES",
    "DenseProblem",
    "GeneralProblem",
    "Problem",
    "SamplesProblem",
    "dense",
    "general_tensor",
    "load",
    "names",
]

SUITES = ("dense", "samples", "overcomplete", "scaling")
Problem = DenseProblem | GeneralProblem | SamplesProblem


def names(suite: str) -> list[str]:
    """Names of the sets of a suite."""
    found = sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))
    return [name for name in found if load(name, suite)]


def load(name: str, suite: str) -> list[Problem]:
    """The problems of one set that belong to a suite."""
    module = importlib.import_module(f"{__name__}.{name}")
    return [p for p in module.PROBLEMS if getattr(module, "SUITE", p.kind) == suite]
