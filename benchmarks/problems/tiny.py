"""For trying the benchmark itself: every solver needs well under a second."""

from benchmarks.problems import DenseProblem, SamplesProblem

PROBLEMS = [
    DenseProblem(8, 8, 0.1, "gaussian"),
    DenseProblem(8, 4, 0.3, "trap"),
    SamplesProblem(4000, 8),
    SamplesProblem(4000, 6, 8, coefficients="gaussian", snr=20),
]
