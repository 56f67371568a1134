"""The cheapest proposer: a fixed point on the samples, and on each half of them alone, from starts of their own.

The orthogonal iteration of the refinement (``algorithms.refine``, ``psi = tanh``), on samples that are whitened by
themselves: a half has a covariance of its own, and an iteration that takes it for the identity ends anywhere.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from quartic.algorithms.recover import polar
from quartic.algorithms.refine import contrast, iterated, orthogonal, statistics
from quartic.evidence.parts import Evidence
from quartic.frame import inverse_root

STEPS = 200  # at most; where there is an optimum it is reached in ten to fifty
STARTS = 4  # at most, where they disagree; the best counts
SAME = 0.9  # squared cosine of two optima's axes that are the same
GLANCE, GLANCE_LEAST = (
    4,
    4096,
)  # times r^2, and at least: samples that show where an optimum is, before all make it exact


def fixed_point(evidence: Evidence, rng: np.random.Generator) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """Axes ``(r, r)`` of all samples, and of each half alone.

    Of all samples the best of several optima, as many as it takes until two agree: a bad one looks like dependence.
    """
    r = evidence.dim
    found = [approximate(evidence, rotation(r, rng))]
    while len(found) < STARTS and not any(same_axes(found[-1], earlier) for earlier in found[:-1]):
        found.append(approximate(evidence, rotation(r, rng)))
    best = max(found, key=lambda U: contrast(evidence.Z @ U.T))
    parts = [evidence.part(h) for h in (0, 1)]
    halves = (optimum(part, approximate(part, rotation(r, rng))) for part in parts)
    return optimum(evidence, best), tuple(halves)


def approximate(evidence: Evidence, start: np.ndarray) -> np.ndarray:
    """The optimum of some of the samples, in single precision: where that of all of them is started from."""
    return optimum(evidence.first(max(GLANCE * evidence.dim**2, GLANCE_LEAST)).in_single_precision(), start)


def optimum(evidence: Evidence, start: np.ndarray) -> np.ndarray:
    """Where the iteration leads from orthonormal rows ``start (r, r)``: orthonormal rows, nearest to its atoms."""
    r = start.shape[0]
    w = evidence.weights / np.sum(evidence.weights)
    root = inverse_root((evidence.Z * w[:, None]).T @ evidence.Z)
    (W,), _, _ = iterated(partial(statistics, evidence.chunks()), root, STEPS, orthogonal(start))
    return polar(np.linalg.solve(root, W.T).T) if r else start


def rotation(r: int, rng: np.random.Generator) -> np.ndarray:
    """A random one, ``(r, r)``."""
    return polar(rng.standard_normal((r, r)))


def complete(atoms: np.ndarray, r: int) -> np.ndarray:
    """Orthonormal rows ``(r, r)``: next to the atoms ``(n, r)`` first, and then beside them."""
    n = atoms.shape[0]
    beside = np.linalg.qr(atoms.T, mode="complete")[0][:, n:].T if n < r else np.zeros((0, r))
    return polar(np.concatenate((atoms, beside)))


def same_axes(A: np.ndarray, B: np.ndarray, least: float = SAME) -> bool:
    """Whether two frames are one, up to order and sign."""
    return bool(np.all(np.max((A @ B.T) ** 2, axis=1) > least))
