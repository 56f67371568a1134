"""The same problem in growing sizes: what a solver costs, and from where on it does not answer within the limit."""

from benchmarks.problems import DenseProblem, SamplesProblem

SUITE = "scaling"
PROBLEMS = [
    *(DenseProblem(d, d, 0.3, "gaussian") for d in (8, 14, 20, 28, 40, 56, 80)),
    *(SamplesProblem(20_000, n) for n in (8, 16, 32, 64, 96)),
]
