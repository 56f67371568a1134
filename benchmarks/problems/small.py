"""Sizes at which a semidefinite program can be solved: the guarantees of sum of squares, and what they cost."""

from benchmarks.problems import DenseProblem

PROBLEMS = [DenseProblem(8, 8, 0.3, error) for error in ("gaussian", "low-rank", "trap")]
