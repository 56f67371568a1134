"""TensorLy ``parafac`` (alternating least squares), started at random."""

from benchmarks.solvers._tensorly import parafac

TAKES = {"dense", "overcomplete"}


def solve(T, rank, seed):
    return parafac(T, rank, seed, init="random")
