"""Every family of errors at one size and one norm: errors that mislead, not only noise."""

from benchmarks.problems import Problem
from quartic.datasets import ERRORS

PROBLEMS = [Problem(20, 20, 0.3, error) for error in ERRORS]
