"""Maximising the l4 norm over rotations: matching, stretching, projection (MSP).

After Zhai, Yang, Liao, Wright and Ma, *Complete dictionary learning via l4-norm maximization over the orthogonal group*
(2020), Algorithm 2: whiten, then ``A <- polar((A Z)^3 Z')`` from a random rotation.
"""

import warnings

import numpy as np

from benchmarks.solvers._whiten import whiten

TAKES = {"samples"}
STEPS = 500  # at most, as for FastICA
TOLERANCE = 1e-6  # of 1 - |<a, a_next>|, the largest over the rows; FastICA's rule, tighter


def solve(Y, n, seed):
    from quartic.datasets import random_orthonormal

    Z, back = whiten(Y, n)
    A = random_orthonormal(n, n, np.random.default_rng(seed))
    for _ in range(STEPS):
        U, _, Vt = np.linalg.svd(((Z @ A.T) ** 3).T @ Z)
        before, A = A, U @ Vt
        if np.max(1 - np.abs(np.sum(before * A, axis=1))) < TOLERANCE:
            break
    else:
        warnings.warn(f"no convergence in {STEPS} steps", stacklevel=2)
    return A @ back
