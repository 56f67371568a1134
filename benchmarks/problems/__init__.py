"""Problem sets: one short file each, with a list ``PROBLEMS``; the folder is the list of sets.

A problem is of one of two kinds: a ``DenseProblem`` gives a solver a dense tensor, a ``SamplesProblem`` samples.  Both
have a name, draw what is given and what is to be found from a seed, and know a small one of their kind.
"""

from __future__ import annotations

import importlib
import pkgutil

from benchmarks.problems._dense import DenseProblem, dense
from benchmarks.problems._general import general_tensor
from benchmarks.problems._samples import SamplesProblem

__all__ = ["KINDS", "DenseProblem", "Problem", "SamplesProblem", "dense", "general_tensor", "load", "names"]

KINDS = ("dense", "samples")
Problem = DenseProblem | SamplesProblem


def names(kind: str) -> list[str]:
    """Names of the sets with problems of one kind."""
    found = sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))
    return [name for name in found if load(name, kind)]


def load(name: str, kind: str) -> list[Problem]:
    """The problems of one kind in one set."""
    return [p for p in importlib.import_module(f"{__name__}.{name}").PROBLEMS if p.kind == kind]
