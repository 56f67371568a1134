"""Picard-O (python-picard) with its defaults: extended, tanh, 500 steps of L-BFGS, gradient below 1e-7.

After Ablin, Cardoso and Gramfort, *Faster ICA under orthogonal constraint* (2018): the solutions of FastICA.
"""

import numpy as np

TAKES = {"samples"}


def solve(Y, n, seed):
    from picard import picard

    K, W, _ = picard(Y.T, n_components=n, random_state=seed)
    return np.linalg.pinv(W @ K).T
