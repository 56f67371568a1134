"""Sizes at which the cost decides; a solver that needs longer than the limit has a row that says so."""

from benchmarks.problems import Problem

PROBLEMS = [
    Problem(60, 60, 0.3, "gaussian"),
    Problem(80, 80, 0.6, "trap"),
]
