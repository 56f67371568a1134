"""For trying the overcomplete suite: every solver needs a few seconds at most."""

from benchmarks.problems import GeneralProblem, SamplesProblem

SUITE = "overcomplete"
PROBLEMS = [GeneralProblem(6, 9, 0.1), SamplesProblem(4000, 8, 6, coefficients="gaussian")]
