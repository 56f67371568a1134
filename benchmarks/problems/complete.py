"""Complete dictionaries: every model of supports, up to ``Pr[j | i] = 0.25``, with every kind of coefficients."""

from benchmarks.problems import SamplesProblem

COOCCURRENCE = {"independent": None, "blocks": 0.25, "markov": 0.25, "hubs": 0.25, "exclusive": None}

PROBLEMS = [
    SamplesProblem(m, n, supports=supports, cooccurrence=cooccurrence, coefficients=coefficients)
    for n, m in ((32, 15_000), (64, 60_000))
    for supports, cooccurrence in COOCCURRENCE.items()
    for coefficients in ("sign", "gaussian", "laplace")
]
