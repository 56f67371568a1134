"""JADE: joint diagonalisation of the eigenmatrices of the fourth cumulant, by pyRiemann's Jacobi rotations.

After Cardoso and Souloumiac, *Blind beamforming for non-Gaussian signals* (1993).  The cumulant costs ``m d^4 / 4``
products and an eigendecomposition of size ``d^2 / 2``: sensible up to about d = 64, where it takes most of the time.
"""

import numpy as np

from benchmarks.solvers._whiten import whiten

TAKES = {"samples"}
CHUNK = 4096  # samples whose products are held at once; arbitrary


def solve(Y, n, seed):
    from pyriemann.geometry.ajd import rjd

    from quartic._arrays import pack, pack_rank_one, unpack

    Z, back = whiten(Y, n)
    one = pack(np.eye(n)[None])  # (N, 1)
    # Of white samples: E <z, X z> z z' - <I, X> I - 2 X, packed, on symmetric X.
    Q = -one @ one.T - 2 * np.eye(one.shape[0])
    for start in range(0, Z.shape[0], CHUNK):
        F = pack_rank_one(Z[start : start + CHUNK])  # (N, chunk)
        Q += F @ F.T / Z.shape[0]
    values, vectors = np.linalg.eigh(Q)
    top = np.argsort(-np.abs(values))[:n]
    V, _ = rjd(unpack(vectors[:, top] * values[top]))
    return V.T @ back
