"""Sizes at which the cost decides; a solver that needs longer than the limit has a row that says so."""

from benchmarks.problems import DenseProblem

PROBLEMS = [
    DenseProblem(60, 60, 0.3, "gaussian"),
    DenseProblem(80, 80, 0.6, "trap"),
]
