"""For trying the benchmark itself: every solver needs well under a second."""

from benchmarks.problems import Problem

PROBLEMS = [Problem(8, 8, 0.1, "gaussian"), Problem(8, 4, 0.3, "trap")]
