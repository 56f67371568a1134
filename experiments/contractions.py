"""How many contractions: n^(1 + O(eps)) for top singular vectors, a handful for all eigenvectors.

Theorem 4.4: the top singular vector of a random contraction (Algorithm 4.3) is near a component with probability about
n^(-O(eps)), so that n^(1 + O(eps)) contractions, up to logarithms, find 0.99 n of the components: with no error, the
n log n draws that collect n coupons.  quartic takes every eigenvector of a contraction as a candidate instead, and lets
post-processing and its acceptance test decide: how many contractions does it take then?
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import quartic
from benchmarks.fits import Exponent, exponent
from benchmarks.problems import DenseProblem
from experiments import figures
from experiments.experiment import Run, Table, Verdict
from quartic.algorithms.contract import candidates, contract
from quartic.algorithms.postprocess import evaluate, postprocess
from quartic.tensors.factored import FactoredTensor

TITLE = "How many contractions"
NEAR = 0.9  # squared correlation at which a candidate is near a component: post-processing does the rest
ERROR = "trap"  # of the families the one that misleads most; Gaussian errors of these norms cost nothing
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


def counted(n: int, eps: float, seed: int) -> dict[str, Any]:
    """Contractions until 0.99 n components were near a top singular vector, or were found from all eigenvectors."""
    T, A = DenseProblem(n, n, eps, ERROR).build(seed)
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
        "n": n,
        "eps": eps,
        "seed": seed,
        "top": done,
        "success": float(np.mean(np.any(near, axis=1))),
        "all": every,
        "quartic": quartic.metrics.match(A, found.components).found(NEAR) / n,
    }


def measure(run: Run) -> dict[str, Any]:
    """Counts over n, eps and seeds, and exponents against n."""
    sizes, seeds, grid = (6, 8, 10), 2, (0.0, 0.3)
    if not run.quick:
        sizes, seeds, grid = (8, 12, 16, 24, 32, 48, 64), 5, (0.0, 0.1, 0.2, 0.3, 0.4)
    cases = [(n, eps, seed) for n in reversed(sizes) for eps in grid for seed in range(seeds)]
    rows = run.each(counted, cases)
    fits: dict[str, dict[str, Any]] = {}
    for eps in grid:
        mine = [row for row in rows if row["eps"] == eps]
        fits[str(eps)] = {}
        for key in ("top", "all", "success"):
            points = [(r["n"], 1 / r[key] if key == "success" else r[key]) for r in mine if r[key]]
            if len(points) == len(mine):  # a count that was not reached would bend the line
                fits[str(eps)][key] = exponent(*zip(*points, strict=True)).as_dict()
    return {"rows": rows, "fits": fits, "sizes": sizes, "eps": grid, "seeds": seeds}


def _median(values: list[float | None]) -> float | None:
    """The median, with what was not reached as infinite; None if it is."""
    middle = float(np.median([np.inf if v is None else v for v in values]))
    return middle if np.isfinite(middle) else None


def tables(data: dict[str, Any]) -> list[Table]:
    """Medians over seeds, and the exponents."""
    lines = []
    for eps in data["eps"]:
        for n in data["sizes"]:
            mine = [row for row in data["rows"] if (row["eps"], row["n"]) == (eps, n)]
            top, every = (_median([row[key] for row in mine]) for key in ("top", "all"))
            rate = float(np.mean([row["success"] for row in mine]))
            lines.append([eps, n, rate, top, n * math.log(n), every, min(row["quartic"] for row in mine)])
    shown = {"success": "one, top vector", "top": "all, top vectors", "all": "all, all eigenvectors"}
    fitted = [
        [eps, *(str(Exponent(**fits[key])) if key in fits else "-" for key in shown)]
        for eps, fits in ((eps, data["fits"][str(eps)]) for eps in data["eps"])
    ]
    headers = [
        "eps",
        "n",
        "top vector is near",
        "contractions, top",
        "n log n",
        "contractions, all",
        "found by quartic",
    ]
    return [
        Table(f"Until 0.99 n components were found; error {ERROR}, d = n, medians over seeds", headers, lines),
        Table("Exponents against n, with intervals of 95%", ["eps", *shown.values()], fitted),
    ]


def verdicts(data: dict[str, Any]) -> list[Verdict]:
    """The exponents against eps."""
    tops = {eps: Exponent(**data["fits"][str(eps)]["top"]) for eps in data["eps"] if "top" in data["fits"][str(eps)]}
    ones = {eps: Exponent(**data["fits"][str(eps)]["success"]) for eps in tops if "success" in data["fits"][str(eps)]}
    most = [row["all"] for row in data["rows"]]
    largest = max(data["sizes"])
    return [
        Verdict(
            "Theorem 4.4",
            "n^(1 + O(eps)) contractions find 0.99 n components by their top singular vectors, n^O(eps) find one",
            "exponents for all: "
            + ", ".join(f"{fit} at eps {eps:g}" for eps, fit in tops.items())
            + "; for one: "
            + ", ".join(f"{fit} at eps {eps:g}" for eps, fit in ones.items()),
            # n log n itself has a slope of 1 + 1 / log n.
            "holds" if tops and all(fit.low <= 1.5 + 3 * eps for eps, fit in tops.items()) else "open",
        ),
        Verdict(
            "Theorem 4.4, departure 1",
            "all eigenvectors of a contraction as candidates need far fewer",
            f"{_median(most):g} contractions in the middle, {'more than ' + str(MOST) if None in most else max(most)} "
            f"at most, n up to {largest}",
            "holds beyond what is proved" if None not in most and max(most) < largest else "open",
        ),
    ]


def draw(data: dict[str, Any]) -> Any:
    """Contractions until 0.99 n components were found, against n, by top singular vectors and by all eigenvectors."""
    figure, axes = figures.panels(1, 2, sharey=True)
    for ax, key, title in zip(
        axes[0], ("top", "all"), ("top singular vectors (the paper)", "all eigenvectors (quartic)"), strict=True
    ):
        for eps, look in figures.styles(data["eps"]).items():
            medians = [
                _median([row[key] for row in data["rows"] if (row["eps"], row["n"]) == (eps, n)]) for n in data["sizes"]
            ]
            points = [(n, m) for n, m in zip(data["sizes"], medians, strict=True) if m is not None]
            if points:
                ax.loglog(*zip(*points, strict=True), **{**look, "label": f"eps {eps:g}"})
        n = np.array(data["sizes"], dtype=float)
        ax.loglog(n, n * np.log(n), color="black", linewidth=2.5, linestyle=":", label="n log n")
        ax.set(xlabel="n = d", title=title)
        ax.set_xticks(data["sizes"], [str(k) for k in data["sizes"]], minor=False)
        ax.minorticks_off()
    axes[0, 0].set_ylabel("contractions until 0.99 n components are found")
    axes[0, 0].legend(fontsize=8)
    return figure
