"""Every family of errors at one size and one norm: errors that mislead, not only noise."""

from benchmarks.problems import DenseProblem
from quartic.datasets import ERRORS

PROBLEMS = [DenseProblem(20, 20, 0.3, error) for error in ERRORS]
