"""Gaussian errors of growing norm: the easy case, and how far each solver goes."""

from benchmarks.problems import DenseProblem

PROBLEMS = [
    *(DenseProblem(20, 20, eps, "gaussian") for eps in (0.1, 0.3, 0.5, 0.7)),
    DenseProblem(36, 36, 0.1, "gaussian"),
    DenseProblem(36, 18, 0.3, "gaussian"),
]
