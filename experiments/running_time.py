"""Time against the number of dimensions and of components, next to the paper's exponents.

Theorem 1.1: all components in time about d^(2 + omega) + n d^4, where omega is the exponent of matrix multiplication:
d^5 with the product that is in use everywhere, of an input of d^4 numbers.  On the packed tensor, of rank n after the
truncation, all the work is a few products of an N x N matrix, N = d (d + 1) / 2, with blocks of about n vectors: n d^4.
At small d fixed costs flatten the curve: the exponent in d is that of the last octave, and can not be below 4 for long,
which is what reading the tensor costs.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np

import quartic
from benchmarks.fits import Exponent, exponent
from benchmarks.problems import DenseProblem
from experiments import figures
from experiments.experiment import Run, Table, Verdict

TITLE = "Running time"
EPS = 0.3
PROVED = {"d": 5.0, "n": 1.0}  # with plain matrix products, where n = d; and at a given d
UPPER = {"d": 64, "n": 20}  # fits are from here on: below, fixed costs flatten the curve


def timed(d: int, n: int, repeats: int) -> dict[str, Any]:
    """Medians of the seconds for all components with their certificates, and of one sweep, over repeats."""
    tensor, A = DenseProblem(d, n, EPS, "gaussian").build(0)
    block = np.random.default_rng(0).standard_normal((tensor.pair_dim, n))
    quartic.decompose(tensor, n, random_state=0)  # warm
    seconds, sweeps, counts, found = [], [], [], []
    for repeat in range(repeats):
        result = quartic.decompose(tensor, n, random_state=repeat)
        seconds.append(sum(result.timings.values()) - result.timings["measure"])  # measuring eps is an extra
        start = time.perf_counter()
        tensor.apply(block)
        sweeps.append(time.perf_counter() - start)
        counts.append(result.sweeps)
        found.append(quartic.metrics.match(A, result.components).found() / n)
    row = {"seconds": seconds, "sweep_s": sweeps, "sweeps": counts}
    return {"d": d, "n": n, "fraction": min(found)} | {name: statistics.median(v) for name, v in row.items()}


def measure(run: Run) -> dict[str, Any]:
    """Times at n = d for growing d, and at one d for growing n: one after the other, so that they do not disturb."""
    # Some sizes lie above UPPER also in the quick run, where the fits mean nothing.
    sizes = (8, 64, 66, 68) if run.quick else (14, 20, 28, 40, 48, 56, 68, 80, 96, 112, 128)
    d, counts = (30, (5, 20, 25, 30)) if run.quick else (100, (5, 10, 20, 28, 40, 56, 70, 84, 100))
    repeats = 1 if run.quick else 7
    rows = {"d": [timed(k, k, repeats) for k in sizes], "n": [timed(d, k, repeats) for k in counts]}
    return {"rows": rows, "d": d, "repeats": repeats}


def fit(data: dict[str, Any], axis: str, key: str) -> Exponent:
    """The exponent of a time against d or n, from ``UPPER`` on."""
    upper = [row for row in data["rows"][axis] if row[axis] >= UPPER[axis]]
    return exponent([row[axis] for row in upper], [row[key] for row in upper])


def tables(data: dict[str, Any]) -> list[Table]:
    """The times, and the exponents."""
    headers = ["d", "n", "found", "seconds", "sweeps counted", "one sweep, s", "time in sweeps"]
    lines = [
        [r["d"], r["n"], r["fraction"], r["seconds"], r["sweeps"], r["sweep_s"], r["seconds"] / r["sweep_s"]]
        for axis in ("d", "n")
        for r in data["rows"][axis]
    ]
    fitted = [
        [f"against {axis}, from {UPPER[axis]} on", *(str(fit(data, axis, key)) for key in keys)]
        for keys in [("seconds", "sweep_s")]
        for axis in ("d", "n")
    ]
    title = f"Gaussian error of norm {EPS}, float64, from the packed tensor; medians of {data['repeats']} repeats"
    return [
        Table(title, headers, lines),
        Table("Exponents, with intervals of 95%", ["fit", "all components", "one sweep"], fitted),
    ]


def verdicts(data: dict[str, Any]) -> list[Verdict]:
    """The exponents next to the proved ones."""
    states = {"d": "time d^(2 + omega), d^5 with plain products, at n = d", "n": "time n d^4: linear in n"}
    found = []
    for axis, bound in PROVED.items():
        power = fit(data, axis, "seconds")
        verdict = "does not hold at these sizes" if power.low > bound else "holds"
        range_ = [row[axis] for row in data["rows"][axis] if row[axis] >= UPPER[axis]]
        measured = f"{axis}^{power}, {axis} from {min(range_)} to {max(range_)}"
        found.append(Verdict("Theorem 1.1", states[axis], measured, verdict))
    return found


def draw(data: dict[str, Any]) -> Any:
    """Seconds for all components, and for one sweep, against d at n = d and against n, with their power laws."""
    figure, axes = figures.panels(1, 2)
    titles = {"d": "n = d", "n": f"d = {data['d']}"}
    for ax, axis in zip(axes[0], ("d", "n"), strict=True):
        rows = data["rows"][axis]
        x = np.array([row[axis] for row in rows], dtype=float)
        looks = figures.styles(["all components", "one sweep"])
        for key, look in zip(("seconds", "sweep_s"), looks.values(), strict=True):
            power = fit(data, axis, key)
            upper = x[x >= UPPER[axis]]
            ax.loglog(x, [row[key] for row in rows], **{**look, "linestyle": "none"})
            label = f"{axis}^{power.slope:.1f}"
            ax.loglog(upper, power(upper), color=look["color"], linestyle=look["linestyle"], label=label)
        ax.set(xlabel=axis, ylabel="seconds", title=titles[axis])
        ax.set_xticks(x[::2], [f"{k:g}" for k in x[::2]])
        ax.set_ylim(min(row["sweep_s"] for row in rows) / 3, 3 * max(row["seconds"] for row in rows))
        ax.minorticks_off()
        ax.legend(fontsize=8)
    return figure
