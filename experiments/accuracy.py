"""Accuracy against the error: what is lost of the squared correlation falls with the square of eps.

Theorem 1.1: for orthonormal components and an error of spectral norm eps, the components come out with l2-error O(eps),
which is a squared correlation of 1 - O(eps^2).  What is proved of it, Lemma 4.9 and Theorem 4.12, is 1 - 3 eps.  With
errors that are symmetric in their pairs of modes, as they are once the tensor is packed, a sharper bound can be proved,
1 - eps^2 / (2 (0.98 - sqrt(2) eps)^2).  Measured is what is lost under noise, under errors that mislead, and under the
one that tilts every component as far as it can be tilted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import quartic
from benchmarks.fits import Exponent, exponent
from experiments import figures
from experiments.experiment import Run, Table, Verdict
from quartic._arrays import pack, pack_rank_one
from quartic.datasets import ERRORS, random_orthonormal

TITLE = "Accuracy against the error"
SMALL = 0.1  # fits are over eps up to here: beyond it the terms of higher order show


def tilt(A: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The error that tilts each component towards the next: ``sum_i b_i v_i' + v_i b_i'``, of norm 1.

    ``b_i = a_i a_i'`` and ``v_i`` the unit matrix along ``a_i a_j' + a_j a_i'``: ``T b_i = b_i + eps v_i``, whose top
    eigenvector makes an angle of about ``eps / sqrt(2)`` with ``a_i``.
    """
    B = pack_rank_one(A)
    V = pack(A[:, :, None] * np.roll(A, -1, axis=0)[:, None, :]) * np.sqrt(2)
    return B @ V.T + V @ B.T


FAMILIES = {**ERRORS, "tilt": tilt}


def lost(d: int, family: str, eps: float, seed: int) -> float:
    """``1 - squared correlation``, the largest over the components."""
    rng = np.random.default_rng(seed)
    A = random_orthonormal(d, d, rng)
    E = FAMILIES[family](A, rng)
    B = pack_rank_one(A)
    T = quartic.PackedTensor(B @ B.T + E * (eps / np.linalg.norm(E, 2)))
    return float(1 - np.min(quartic.metrics.match(A, quartic.decompose(T, d, random_state=seed).components).squared))


def sharper(eps: Any) -> np.ndarray:
    """The sharper bound on what is lost; 1 where it says nothing."""
    rest = 0.98 - np.sqrt(2) * np.asarray(eps, dtype=float)
    return np.where(rest > 0, np.minimum(1.0, np.asarray(eps) ** 2 / (2 * np.where(rest > 0, rest, 1.0) ** 2)), 1.0)


def measure(run: Run) -> dict[str, Any]:
    """What is lost, for every family of errors and every eps, over seeds."""
    d, seeds, grid = (8, 1, [0.01, 0.03, 0.1]) if run.quick else (30, 5, [0.003, 0.01, 0.03, 0.05, 0.1, 0.2, 0.3, 0.4])
    cases = [(d, family, eps, seed) for family in FAMILIES for eps in grid for seed in range(seeds)]
    values = run.each(lost, cases)
    rows = [{"family": f, "eps": eps, "seed": s, "lost": v} for (_, f, eps, s), v in zip(cases, values, strict=True)]
    slopes = {}
    for family in FAMILIES:
        points = [(r["eps"], r["lost"]) for r in rows if r["family"] == family and r["eps"] <= SMALL]
        if min(v for _, v in points) > 1e-12:  # nothing is lost to a multiple of the identity: no slope
            slopes[family] = exponent(*zip(*points, strict=True)).as_dict()
    return {"d": d, "rows": rows, "slopes": slopes}


def tables(data: dict[str, Any]) -> list[Table]:
    """The worst over seeds, next to both bounds."""
    grid = sorted({row["eps"] for row in data["rows"]})
    lines = []
    for family in dict.fromkeys(row["family"] for row in data["rows"]):
        worst = [max(r["lost"] for r in data["rows"] if (r["family"], r["eps"]) == (family, eps)) for eps in grid]
        slope = data["slopes"].get(family)
        lines.append([family, *(f"{max(v, 0.0):.1e}" for v in worst), "-" if slope is None else str(Exponent(**slope))])
    lines.append(["proved: 3 eps", *(f"{min(1.0, 3 * eps):.1e}" for eps in grid), "1"])
    lines.append(["sharper bound", *(f"{float(sharper(eps)):.1e}" for eps in grid), "2"])
    title = f"1 - squared correlation of the worst component, d = n = {data['d']}; the slope for eps up to {SMALL}"
    return [Table(title, ["error", *(f"eps {eps:g}" for eps in grid), "slope"], lines)]


def verdicts(data: dict[str, Any]) -> list[Verdict]:
    """The order that is claimed, the bound that is proved, and the sharper one."""
    rows, fails = data["rows"], "does not hold at these sizes"
    slopes = [Exponent(**s) for s in data["slopes"].values()]
    least, most = min(slopes, key=lambda s: s.slope), max(slopes, key=lambda s: s.slope)
    factor = max(row["lost"] / row["eps"] ** 2 for row in rows)
    proved = max(row["lost"] / min(1.0, 3 * row["eps"]) for row in rows)
    sharp = max(row["lost"] / float(sharper(row["eps"])) for row in rows)
    return [
        Verdict(
            "Theorem 1.1",
            "l2-error O(eps): what is lost of squared correlation 1 falls as eps^2",
            f"it falls as eps to the power {least} to {most}, and is at most {factor:.2f} eps^2",
            "holds" if least.low > 1.5 else fails,  # quadratic, and not linear
        ),
        Verdict(
            "Lemma 4.9",
            "squared correlation at least 1 - 3 eps",
            f"what is lost is at most {proved:.2f} of 3 eps",
            "holds" if proved <= 1 else fails,
        ),
        Verdict(
            "own bound",
            "squared correlation at least 1 - eps^2 / (2 (0.98 - sqrt(2) eps)^2)",
            f"what is lost is at most {sharp:.2f} of that",
            "holds" if sharp <= 1 else fails,
        ),
    ]


def draw(data: dict[str, Any]) -> Any:
    """What is lost against eps on doubly logarithmic axes, a line for each family of errors, below both bounds."""
    figure, axes = figures.panels(width=6.5, height=4.2)
    ax = axes[0, 0]
    families = list(dict.fromkeys(row["family"] for row in data["rows"]))
    grid = np.array(sorted({row["eps"] for row in data["rows"]}))
    for family, look in figures.styles(families).items():
        worst = np.array([max(r["lost"] for r in data["rows"] if (r["family"], r["eps"]) == (family, e)) for e in grid])
        shown = worst > 1e-13
        label = family if np.any(shown) else f"{family}: nothing is lost"
        ax.loglog(grid[shown], worst[shown], **{**look, "label": label})
    ax.loglog(grid, 3 * grid, color="black", linewidth=2.5, label="3 eps, proved")
    ax.loglog(grid, sharper(grid), color="black", linewidth=2.5, linestyle=":", label="sharper bound")
    ax.set(xlabel="eps, spectral norm of the error", ylabel="1 - squared correlation, worst component")
    ax.set_title(f"What an error costs, d = n = {data['d']}")
    ax.set_ylim(bottom=1e-11)  # room for the legend below all lines
    ax.legend(fontsize=8, ncols=2, loc="lower right")
    return figure
