"""TensorLy ``parafac`` (alternating least squares), started from singular vectors."""

from benchmarks.solvers._tensorly import parafac

TAKES = {"dense", "overcomplete"}


def solve(T, rank, seed):
    return parafac(T, rank, seed, init="svd")
