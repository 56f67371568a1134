"""Additive noise: orthonormal dictionaries at falling signal to noise, and fewer atoms than dimensions."""

from benchmarks.problems import SamplesProblem

PROBLEMS = [
    *(
        SamplesProblem(20_000, 40, coefficients=coefficients, dictionary="orthonormal", snr=snr)
        for coefficients in ("sign", "gaussian")
        for snr in (20, 10, 5)
    ),
    SamplesProblem(20_000, 20, 100, snr=10),
]
