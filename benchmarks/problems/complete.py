"""Complete dictionaries: every model of supports, up to ``Pr[j | i] = 0.25``, with every kind of coefficients."""

from benchmarks.problems import SamplesProblem

COOCCURRENCE = {"independent": None, "blocks": 0.25, "markov": 0.25, "hubs": 0.25, "exclusive": None}

PROBLEMS = [
    *(
        SamplesProblem(15_000, 32, supports=supports, cooccurrence=cooccurrence, coefficients=coefficients)
        for supports, cooccurrence in COOCCURRENCE.items()
        for coefficients in ("sign", "gaussian", "laplace")
    ),
    *(
        SamplesProblem(60_000, 64, supports=supports, cooccurrence=COOCCURRENCE[supports], coefficients="gaussian")
        for supports in ("independent", "blocks")
    ),
    SamplesProblem(60_000, 64, supports="blocks", cooccurrence=0.5),  # beyond tau = 1/3
]
