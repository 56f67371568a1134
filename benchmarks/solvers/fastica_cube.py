"""scikit-learn ``FastICA`` with the contrast ``cube``."""

from benchmarks.solvers._fastica import fastica

TAKES = {"samples"}


def solve(Y, n, seed):
    return fastica(Y, n, seed, "cube")
