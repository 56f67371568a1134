"""For trying the scaling suite: every solver needs well under a second."""

from benchmarks.problems import DenseProblem, SamplesProblem

SUITE = "scaling"
PROBLEMS = [DenseProblem(4, 4, 0.1, "gaussian"), SamplesProblem(2000, 4)]
