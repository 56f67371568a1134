"""The peers of ``benchmarks/solvers``, as experiments use them: one that is not installed gives nothing."""

from __future__ import annotations

import warnings

import numpy as np

from benchmarks import solvers


def atoms(name: str, Y: np.ndarray, n: int, seed: int) -> np.ndarray | None:
    """The ``n`` atoms ``(n, d)`` that a peer finds in samples ``Y (m, d)``; None where it is not installed.

    Peers stop by their own rule or after their most steps, and warn then: what they have is taken.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return solvers.load(name)(Y, n, seed)
        except ImportError:
            return None
