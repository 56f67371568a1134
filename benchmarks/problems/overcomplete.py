"""More components than dimensions: tensors with components in general position, and sparse samples."""

from benchmarks.problems import GeneralProblem, SamplesProblem

SUITE = "overcomplete"
PROBLEMS = [
    *(GeneralProblem(d, n, share) for d, n in ((10, 20), (16, 48), (20, 100)) for share in (0.0, 0.3)),
    *(SamplesProblem(20_000, 32, 16, coefficients=coefficients, p=0.05) for coefficients in ("sign", "gaussian")),
    SamplesProblem(100_000, 48, 24, p=0.04, coefficients="gaussian", snr=20),
]
