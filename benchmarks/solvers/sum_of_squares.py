"""Sum of squares: the semidefinite program of the paper's section 3, and its rounding; for ``d`` up to 8.

Maximise ``<T, X>`` over ``X`` that are symmetric in all four modes, with ``0 <= X <= 1`` as a matrix on Sym2 and of
trace ``n``, which takes the place of ``||X||_F^2 = n``: that is not convex, and both hold for ``sum_i a_i^(x4)``.  Then
Jennrich's algorithm on ``X``, as the paper says: all eigenvectors of random contractions, post-processed with ``T``
(Algorithm 4.8), and the best that differ.  ``X`` has ``C(d + 3, 4)`` free entries, 330 at ``d = 8``.
"""

import math

import numpy as np

from benchmarks.solvers.batched_power import distinct

LARGEST = 8  # dimensions: 3 s there, 18 s at 10, and from there on as about d^8; measured


def solve(T, rank, seed):
    from quartic._arrays import pack_rank_one, unpack
    from quartic.tensors.packed import as_four_tensor

    T = as_four_tensor(T)
    if T.dim > LARGEST:
        raise ValueError(f"the semidefinite program is for d up to {LARGEST}, where it takes seconds; got d = {T.dim}.")
    M = T.to_packed()
    X = relaxation(M, rank)
    count = max(1, math.ceil(rank * math.log(rank)))  # contractions, as in Algorithm 4.11
    g = np.random.default_rng(seed).standard_normal((X.shape[0], count))
    _, U = np.linalg.eigh(unpack(X @ g))  # (count, d, d), eigenvectors as columns
    U = U.transpose(0, 2, 1).reshape(-1, T.dim)
    U = np.linalg.eigh(unpack(M @ pack_rank_one(U)))[1][:, :, -1]  # top eigenvectors of T(u u')
    B = pack_rank_one(U)
    return U[distinct(U, np.sum(B * (M @ B), axis=0), np.zeros((0, T.dim)))[:rank]]


def relaxation(M, rank):
    """The ``X (N, N)`` of the program for a packed tensor ``M (N, N)``."""
    import cvxpy as cp

    N = M.shape[0]
    L = symmetric(N)
    x = cp.Variable(L.shape[1])
    X = cp.reshape(L @ x, (N, N), order="C")
    program = cp.Problem(cp.Maximize((L.T @ M.reshape(-1)) @ x), [X >> 0, np.eye(N) - X >> 0, cp.trace(X) == rank])
    program.solve(solver=cp.CLARABEL)
    return X.value


def symmetric(N):
    """The sparse map ``(N^2, C(d + 3, 4))`` from the entries of a symmetric tensor to its packed matrix."""
    from scipy.sparse import csr_array

    from quartic._arrays import unpacked_dim

    d = unpacked_dim(N)
    i, j = np.triu_indices(d)
    factor = np.where(i == j, 1.0, math.sqrt(2.0))
    entries = np.sort(np.stack(np.broadcast_arrays(i[:, None], j[:, None], i, j), axis=-1).reshape(N * N, 4), axis=1)
    _, column = np.unique(entries @ d ** np.arange(4), return_inverse=True)
    return csr_array((np.outer(factor, factor).reshape(-1), (np.arange(N * N), column.reshape(-1))))
