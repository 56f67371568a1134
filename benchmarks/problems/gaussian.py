"""Gaussian errors of growing norm: the easy case, and how far each solver goes."""

from benchmarks.problems import Problem

PROBLEMS = [
    *(Problem(20, 20, eps, "gaussian") for eps in (0.1, 0.3, 0.5, 0.7)),
    Problem(36, 36, 0.1, "gaussian"),
    Problem(36, 18, 0.3, "gaussian"),
]
