"""Jennrich's algorithm on the raw tensor: one random contraction, all its eigenvectors, no truncation.

The ``rank`` eigenvectors with the largest ``|<T, u^(x4)>|`` are returned.
"""

import numpy as np


def solve(T, rank, seed):
    d = T.shape[0]
    flat = T.reshape(d * d, d * d)
    g = np.random.default_rng(seed).standard_normal(d * d)
    M = (flat @ g).reshape(d, d)
    _, U = np.linalg.eigh(M + M.T)
    squares = np.einsum("ik,jk->ijk", U, U).reshape(d * d, d)
    values = np.abs(np.sum(squares * (flat @ squares), axis=0))  # |<T, u^(x4)>|
    return U.T[np.argsort(-values, kind="stable")[:rank]]
