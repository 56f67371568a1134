"""How many contractions: n^(1 + O(eps)) for top singular vectors, a handful for all eigenvectors.

Theorem 4.4: the top singular vector of a random contraction (Algorithm 4.3) is near a component with probability about
n^(-O(eps)), so that n^(1 + O(eps)) contractions, up to logarithms, find 0.99 n of the components: with no error, the
n log n draws that collect n coupons.  The theorem's eta is that of ||E||_F <= eta sqrt(n), which the truncation brings
below 2 sqrt(2) eps (Lemma 4.2).  Near is a squared correlation of 0.9, where the theorem says 0.99: post-processing
does the rest.  An error that lowers the weight of some components to 1 - eps, and to 1 - 2 eps after the truncation,
where the others keep 1 - eps (cancel), should cost the exponent ((1 - eps) / (1 - 2 eps))^2: so often is a Gaussian
that much larger than n others.  One that leaves the weights alike (trap) should cost nothing.  quartic takes every
eigenvector of a contraction as a candidate instead, with equal weights, and lets post-processing and its acceptance
test decide: how many contractions does it take then?
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import quartic
from benchmarks.fits import Exponent, exponent, median
from benchmarks.problems import DenseProblem
from experiments import figures
from experiments.experiment import Run, Table, Verdict
from quartic.algorithms.contract import candidates, contract
from quartic.algorithms.postprocess import evaluate, postprocess
from quartic.tensors.factored import FactoredTensor

TITLE = "How many contractions"
NEAR = 0.9  # squared correlation at which a candidate is near a component: post-processing does the rest
ERRORS = ("trap", "cancel")  # the family that misleads most, and the one that weakens a tenth of the components
MOST = 64  # contractions of all eigenvectors, at most
PATIENCE = 40  # times n log n contractions of which the top singular vectors are taken, at most


def truncated(T: quartic.PackedTensor, n: int, eps: float) -> FactoredTensor:
    """Algorithm 4.1, literally: the largest eigenvalues of the packed tensor, lowered by eps."""
    values, vectors = np.linalg.eigh(T.matrix)
    return FactoredTensor(np.maximum(values[-n:] - eps, 0.0), vectors[:, -n:])


def collected(near: np.ndarray, count: int) -> int | None:
    """After how many rows of ``near (k, n)`` every column, but for a hundredth, has been true; None if it never is."""
    ever = np.maximum.accumulate(near, axis=0)
    enough = np.sum(ever, axis=1) >= math.ceil(0.99 * count)
    return int(np.argmax(enough)) + 1 if enough[-1] else None


def counted(error: str, n: int, eps: float, seed: int) -> dict[str, Any]:
    """Contractions until 0.99 n components were near a top singular vector, or were found from all eigenvectors."""
    T, A = DenseProblem(n, n, eps, error).build(seed)
    L = truncated(T, n, eps)
    rng = np.random.default_rng(seed)
    batch, most = 256, math.ceil(PATIENCE * n * math.log(n))
    near, done = np.zeros((0, n), dtype=bool), None
    while done is None and near.shape[0] < most:
        left, _, right = np.linalg.svd(contract(L, batch, rng))
        tops = np.stack((left[:, :, 0], right[:, 0, :]))  # (2, batch, n)
        near = np.concatenate((near, np.any((tops @ A.T) ** 2 >= NEAR, axis=0)))
        done = collected(near, n)
    # All eigenvectors: post-processed on the truncated tensor, and accepted by their part in the span.
    flat = L.flattened()
    M = contract(flat, MOST, rng)
    hits = []
    for k in range(MOST):
        B = postprocess(flat, candidates(M[k : k + 1], n), passes=3)
        accepted = evaluate(flat, B).values > 0.5
        hits.append(np.any((B[accepted] @ A.T) ** 2 >= NEAR, axis=0))
        every = collected(np.array(hits), n)
        if every is not None:
            break
    found = quartic.decompose(T, n, random_state=seed)
    return {
        "error": error,
        "n": n,
        "eps": eps,
        "seed": seed,
        "top": done,
        "success": float(np.mean(np.any(near, axis=1))),
        "all": every,
        "quartic": quartic.metrics.match(A, found.components).found(NEAR) / n,
    }


def expected(error: str, eps: float) -> float:
    """The exponent that an error should cost: ``cancel`` lowers the weights of some components, ``trap`` of none."""
    return ((1 - eps) / (1 - 2 * eps)) ** 2 if error == "cancel" else 1.0


def measure(run: Run) -> dict[str, Any]:
    """Counts over errors, n, eps and seeds, and exponents against n."""
    sizes, seeds, grid = (6, 8, 10), 2, (0.0, 0.2)
    if not run.quick:
        sizes, seeds, grid = (8, 12, 16, 24, 32, 48, 64), 5, (0.0, 0.1, 0.2, 0.3, 0.4)
    kinds = [(error, eps) for error in ERRORS for eps in grid if eps or error == ERRORS[0]]  # without an error, once
    cases = [(error, n, eps, seed) for n in reversed(sizes) for error, eps in kinds for seed in range(seeds)]
    rows = run.each(counted, cases)
    fits = []
    for error, eps in kinds:
        mine = [row for row in rows if (row["error"], row["eps"]) == (error, eps)]
        fit: dict[str, Any] = {"error": error, "eps": eps}
        for key in ("top", "all", "success"):
            points = [(r["n"], 1 / r[key] if key == "success" else r[key]) for r in mine if r[key]]
            whole = len(points) == len(mine)  # a count that was not reached would bend the line
            fit[key] = exponent(*zip(*points, strict=True)).as_dict() if whole else None
        fits.append(fit)
    return {"rows": rows, "fits": fits, "sizes": sizes, "seeds": seeds}


def _of(data: dict[str, Any], fit: dict[str, Any], n: int, key: str) -> list[Any]:
    """A figure over the seeds of one error, eps and n."""
    return [r[key] for r in data["rows"] if (r["error"], r["eps"], r["n"]) == (fit["error"], fit["eps"], n)]


def _shown(fit: dict[str, Any], key: str) -> str:
    return "-" if fit[key] is None else str(Exponent(**fit[key]))


def tables(data: dict[str, Any]) -> list[Table]:
    """Medians over seeds, and the exponents."""
    lines = [
        [
            fit["error"] if fit["eps"] else "none",
            fit["eps"],
            n,
            float(np.mean(_of(data, fit, n, "success"))),
            median(_of(data, fit, n, "top")),
            n * math.log(n),
            median(_of(data, fit, n, "all")),
            min(_of(data, fit, n, "quartic")),
        ]
        for fit in data["fits"]
        for n in data["sizes"]
    ]
    headers = [
        "error",
        "eps",
        "n",
        "top vector is near",
        "contractions, top",
        "n log n",
        "contractions, all",
        "quartic",
    ]
    fitted = [
        [
            fit["error"] if fit["eps"] else "none",
            fit["eps"],
            *(_shown(fit, key) for key in ("success", "top", "all")),
            expected(fit["error"], fit["eps"]),
        ]
        for fit in data["fits"]
    ]
    columns = ["error", "eps", "one, top vector", "all, top vectors", "all, all eigenvectors", "expected of the second"]
    return [
        Table("Until 0.99 n components were found; d = n, medians over seeds; - where most never were", headers, lines),
        Table("Exponents against n, with intervals of 95%; - where a count was not reached", columns, fitted),
    ]


def verdicts(data: dict[str, Any]) -> list[Verdict]:
    """The exponents against eps."""
    tops = [fit for fit in data["fits"] if fit["top"] is not None]
    # n log n itself has a slope of 1 + 1 / log n; the rest is what the error may cost.
    logarithm, largest = 1 / math.log(min(data["sizes"])), max(data["sizes"])

    def as_expected(fit: dict[str, Any]) -> bool:
        """No steeper than it should be; where counts were not reached, they should not have been."""
        power = expected(fit["error"], fit["eps"])
        if fit["top"] is None:
            return largest**power > PATIENCE * largest * math.log(largest)
        return Exponent(**fit["top"]).low <= power + logarithm

    said = [f"{_shown(fit, 'top')} for {fit['error']} {fit['eps']:g}" for fit in tops if fit["eps"]]
    missing = [f"{fit['error']} {fit['eps']:g}" for fit in data["fits"] if fit["top"] is None]
    most = [row["all"] for row in data["rows"]]
    return [
        Verdict(
            "Theorem 4.4",
            "n^(1 + O(eps)) contractions find 0.99 n components by their top singular vectors (own bar: the exponents "
            "expected, and a logarithm)",
            f"exponents {_shown(data['fits'][0], 'top')} without an error, {', '.join(said)}"
            + (f"; not within {PATIENCE} n log n: {', '.join(missing)}" if missing else ""),
            "holds" if all(map(as_expected, data["fits"])) else "does not hold at these sizes",
        ),
        Verdict(
            "Theorem 4.4, departure 1",
            "all eigenvectors of a contraction as candidates need far fewer",
            f"{median(most):g} contractions in the middle, {'more than ' + str(MOST) if None in most else max(most)} "
            f"at most, n up to {largest}",
            "holds beyond what is proved" if None not in most and max(most) < largest else "open",
        ),
    ]


def draw(data: dict[str, Any]) -> Any:
    """Contractions until 0.99 n components were found, against n: by top singular vectors, and by all eigenvectors."""
    figure, axes = figures.panels(1, 3, width=3.6, sharey=True)
    looks = figures.styles(sorted({fit["eps"] for fit in data["fits"]}))
    titles = ("top vectors, error trap", "top vectors, error cancel", "all eigenvectors, both errors")
    n = np.array(data["sizes"], dtype=float)
    for ax, errors, key, title in zip(
        axes[0], (("trap",), ("cancel",), ERRORS), ("top", "top", "all"), titles, strict=True
    ):
        for fit in data["fits"]:
            if fit["error"] in errors or not fit["eps"]:
                medians = [median(_of(data, fit, k, key)) for k in data["sizes"]]
                points = [(k, m) for k, m in zip(data["sizes"], medians, strict=True) if m is not None]
                # In the last panel both errors have the look of their eps.
                ax.loglog(*zip(*(points or [(np.nan, np.nan)]), strict=True), **looks[fit["eps"]])
        ax.loglog(n, n * np.log(n), color="black", linewidth=2.5, linestyle=":")
        ax.set(xlabel="n = d", title=title)
        ax.set_xticks(data["sizes"], [str(k) for k in data["sizes"]])
        ax.minorticks_off()
    handles = axes[0, 0].get_lines()
    labels = [*(f"eps {line.get_label()}" for line in handles[:-1]), "n log n"]
    axes[0, 2].legend(handles, labels, fontsize=8, loc="upper left", ncols=2)
    axes[0, 0].set_ylabel("contractions")
    return figure
