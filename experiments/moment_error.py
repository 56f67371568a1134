"""The error of the empirical moment, and what a dictionary that is no basis of orthonormal atoms costs.

Proposition 5.8: with atoms that are orthonormal, codes scaled to E x_i^4 = 1 and bounded by kappa, and beta = E
x_i^8, the empirical fourth moment errs by o(1) in spectral norm from m = O~(max(beta n^3, (kappa n)^2)) samples on,
by a matrix Bernstein inequality; the authors believe that it may be loose.  Corollary 1.4: for independent atoms,
first whitened, O~(n^2 f(mu)) additional samples do, for a polynomial f of the condition number mu of the covariance.
Measured are the spectral norm of the error against m and n, for the moment and for the cumulant (the moment less the
three pairings of the empirical covariance), which is what the library decomposes; and the fewest samples from which
all atoms are found against the condition number of the dictionary (mu is its square), without noise and with it.  Atoms
are compared in the coordinates in which the true ones are orthonormal.  Without noise whitening then undoes the
dictionary altogether, but for rounding, so that the number of samples should not depend on it; with noise it can not.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import quartic
from benchmarks.fits import Exponent, exponent, median
from experiments import figures
from experiments._smallest import grid, smallest
from experiments.experiment import Run, Table, Verdict
from quartic._arrays import pack_rank_one
from quartic.datasets import nice_samples, population_moment
from quartic.metrics import match

TITLE = "The error of the moment, and the condition of the dictionary"
P = 0.1  # how often an atom is active, where nothing else is said
SUPPORTS = {  # tau is 0.1, 0.25 and 0.3 for signs
    "independent": {"supports": "independent", "p": P},
    "blocks": {"supports": "blocks", "cooccurrence": 0.25, "group": 4, "p": P},
    "dense": {"supports": "independent", "p": 0.3},
}
COEFFICIENTS = ("sign", "gaussian")
WHAT = ("moment", "cumulant")
SMALL = 0.5  # the error that counts as small, of components of weight 1; half of it is that of the paper's examples
SURE = 0.05  # probability with which the bound may fail
FOUND = 0.95  # squared correlation, in the coordinates in which the atoms are orthonormal


def pairings(C: np.ndarray) -> np.ndarray:
    """The fourth moment of Gaussians of covariance ``C (d, d)``, packed: its three pairings."""
    values, V = np.linalg.eigh(C)
    R = V.T * np.sqrt(np.maximum(values, 0.0))[:, None]  # y = sum_i g_i r_i
    return population_moment(R, 1 + 2 * np.eye(len(R)))


def norm(E: np.ndarray) -> float:
    """Spectral norm of a symmetric matrix."""
    values = np.linalg.eigvalsh(E)
    return float(max(values[-1], -values[0]))


def errors(n: int, supports: str, coefficients: str, seed: int, numbers: list[int]) -> dict[str, list[float]]:
    """The error of the moment and of the cumulant after each of ascending numbers of samples, for E x_i^4 = 1.

    The atoms are the unit vectors: the spectral norm is the same for all orthonormal ones.
    """
    options = {"coefficients": coefficients, "dictionary": np.eye(n), "random_state": seed, **SUPPORTS[supports]}
    data = nice_samples(numbers[-1], n, **options)
    scale = data.moments[0, 0]
    M = population_moment(data.dictionary, data.moments)
    exact = {"moment": M, "cumulant": M - pairings(np.diag(np.diagonal(data.pair)))}
    total, before, out = np.zeros_like(M), 0, {what: [] for what in WHAT}
    for m in numbers:
        for part in np.array_split(data.samples[before:m], 1 + (m - before) // 4096):  # some megabytes at a time
            F = pack_rank_one(part)
            total += F @ F.T
        before, Y = m, data.samples[:m]
        empirical = {"moment": total / m, "cumulant": total / m - pairings(Y.T @ Y / m)}
        for what in WHAT:
            out[what].append(norm(empirical[what] - exact[what]) / scale)
    return out


def bound(n: int, m: Any, p: float = P) -> np.ndarray:
    """What the proof of Proposition 5.8 says of signs: the error is below it but with probability ``SURE``.

    Bernstein, with the proof's variance ``3 beta n^3 / m`` and summands of norm ``kappa^4 n^2 / m`` (it prints
    ``kappa^2``); here ``beta = kappa^4 = 1 / p``.
    """
    beta = 1 / p
    log = np.log(2 * n**2 / SURE)
    variance, largest = 3 * beta * n**3 / np.asarray(m, float), beta * n**2 / np.asarray(m, float)
    return largest * log / 3 + np.sqrt((largest * log / 3) ** 2 + 2 * variance * log)


def crossing(numbers: list[int], values: list[float]) -> float | None:
    """The number of samples at which the error falls to ``SMALL``, between two measured ones."""
    below = next((k for k, v in enumerate(values) if v <= SMALL), None)
    if not below:
        return None
    x, y = np.log(numbers[below - 1 : below + 1]), np.log(values[below - 1 : below + 1])
    return float(np.exp(np.interp(np.log(SMALL), y[::-1], x[::-1])))


def fewest(condition: float, snr: float | None, n: int, seed: int, numbers: list[int]) -> int | None:
    """The fewest samples from which all atoms are found."""
    data = nice_samples(numbers[-1], n, p=P, condition=condition, snr=snr, random_state=seed)

    def solved(m: int) -> bool:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is lost shows
            B = quartic.SpectralDictionaryLearning(n, random_state=seed).fit(data.samples[:m]).components_
        return match(np.eye(n), B @ np.linalg.inv(data.dictionary)).found(FOUND) == n

    return smallest(solved, numbers)


def measure(run: Run) -> dict[str, Any]:
    """Errors for every size, model and number of samples; and the fewest samples for every condition and noise."""
    sizes, seeds, numbers = [8, 12, 16, 24, 32, 48], 2, [2**k for k in range(5, 18)]
    conditions = {None: [1, 10, 100, 1e3, 1e4], 40.0: [1, 10, 100, 1e3], 20.0: [1, 3, 10, 30, 100]}
    n, repeats, most = 16, 3, 2**16
    if run.quick:
        sizes, seeds, numbers = [3, 4, 6, 8], 1, [2**k for k in range(6, 13)]
        conditions = {None: [1, 100], 20.0: [100]}
        n, repeats, most = 6, 1, 256
    cases = [
        (size, supports, coefficients, seed, numbers)
        for size in reversed(sizes)
        for supports in SUPPORTS
        for coefficients in COEFFICIENTS
        for seed in range(seeds)
    ]
    rows = [
        {"n": case[0], "supports": case[1], "coefficients": case[2], "seed": case[3], "what": what, "errors": errors}
        for case, found in zip(cases, run.each(errors, cases), strict=True)
        for what, errors in found.items()
    ]
    steps = grid(4 * n, most)
    tried = [(c, snr, n, seed, steps) for snr, row in conditions.items() for c in row for seed in range(repeats)]
    counts = run.each(fewest, tried)
    needed = [{"condition": t[0], "snr": t[1], "seed": t[3], "m": m} for t, m in zip(tried, counts, strict=True)]
    return {"numbers": numbers, "rows": rows, "n": n, "most": most, "needed": needed}


def chosen(data: dict[str, Any], **wanted: Any) -> list[dict[str, Any]]:
    """The rows of the first part with these values."""
    return [row for row in data["rows"] if all(row[key] == value for key, value in wanted.items())]


def fit(x: list[float], y: list[Any]) -> Exponent | None:
    """An exponent, where there are three different ``x``; None too where some ``y`` was not reached: it would bend."""
    return exponent(x, y) if len(set(x)) > 2 and None not in y else None


def large(data: dict[str, Any]) -> int:
    """The size from which on exponents are fitted: below it the error is that of single atoms, whatever n is."""
    sizes = sorted({row["n"] for row in data["rows"]})
    return sizes[len(sizes) // 3]


def in_samples(data: dict[str, Any], small: bool, **wanted: Any) -> Exponent | None:
    """The exponent of the error in m at the largest n, where the error is small, or where it is above 1."""
    rows = chosen(data, n=max(row["n"] for row in data["rows"]), **wanted)
    pairs = [(m, e) for row in rows for m, e in zip(data["numbers"], row["errors"], strict=True)]
    pairs = [(m, e) for m, e in pairs if (e <= SMALL if small else e > 1)]
    return fit([m for m, _ in pairs], [e for _, e in pairs])


def in_size(data: dict[str, Any], **wanted: Any) -> Exponent | None:
    """The exponent in n of the samples at which the error falls to ``SMALL``, without the smallest sizes."""
    rows = [row for row in chosen(data, **wanted) if row["n"] >= large(data)]
    return fit([row["n"] for row in rows], [crossing(data["numbers"], row["errors"]) for row in rows])


def last_slope(data: dict[str, Any], **wanted: Any) -> float | None:
    """The same between the medians of the two largest sizes: whether the exponent is still rising."""
    last = sorted({row["n"] for row in data["rows"]})[-2:]
    ends = [median(crossing(data["numbers"], row["errors"]) for row in chosen(data, n=n, **wanted)) for n in last]
    return None if None in ends else float(np.log(ends[1] / ends[0]) / np.log(last[1] / last[0]))


def over_condition(data: dict[str, Any], snr: float | None) -> Exponent | None:
    """The exponent of the fewest samples in the condition number of the dictionary."""
    rows = [row for row in data["needed"] if row["snr"] == snr]
    return fit([row["condition"] for row in rows], [row["m"] for row in rows])


def kinds(data: dict[str, Any]) -> list[float | None]:
    """Noise in decibels; None for none."""
    return list(dict.fromkeys(row["snr"] for row in data["needed"]))


def samples_needed(data: dict[str, Any], snr: float | None) -> dict[float, float | None]:
    """Condition numbers with the median of the fewest samples."""
    rows = [row for row in data["needed"] if row["snr"] == snr]
    conditions = sorted({row["condition"] for row in rows})
    return {c: median([row["m"] for row in rows if row["condition"] == c]) for c in conditions}


def highest(data: dict[str, Any], snr: float | None) -> float:
    """The largest condition number at which all atoms were found in most seeds."""
    return max((c for c, m in samples_needed(data, snr).items() if m is not None), default=0.0)


def tables(data: dict[str, Any]) -> list[Table]:
    """Samples for a small error with their exponents; and samples for all atoms."""
    sizes = sorted({row["n"] for row in data["rows"]})
    lines = []
    for what in WHAT:
        for supports in SUPPORTS:
            for coefficients in COEFFICIENTS:
                key = {"what": what, "supports": supports, "coefficients": coefficients}
                reached = [
                    median([crossing(data["numbers"], r["errors"]) for r in chosen(data, n=n, **key)]) for n in sizes
                ]
                exponents = [in_samples(data, False, **key), in_samples(data, True, **key), in_size(data, **key)]
                words = [None if e is None else str(e) for e in exponents]
                lines.append([f"{what}, {supports}, {coefficients}", *(m and round(m) for m in reached), *words])
    most = np.geomspace(1, 1e9, 2000)
    proved = [round(float(np.interp(-SMALL, -bound(n, most), most))) for n in sizes]
    lines.append([f"proved, signs, p = {P}", *proved, None, "-1/2", "3"])
    headers = [
        "",
        *(f"n = {n}" for n in sizes),
        "error in m, above 1",
        f"in m, below {SMALL}",
        f"samples in n, from {large(data)} on",
    ]
    first = Table(
        f"Samples at which the error falls to {SMALL} of the weight of a component, p = {P} (dense: 0.3), medians; "
        "exponents of the error in m at the largest n, and of these samples in n",
        headers,
        lines,
    )
    conditions = sorted({row["condition"] for row in data["needed"]})
    lines = []
    for snr in kinds(data):
        needed, power = samples_needed(data, snr), over_condition(data, snr)
        cells = [
            None if c not in needed else round(m) if (m := needed[c]) else f"above {data['most']}" for c in conditions
        ]
        lines.append(["no noise" if snr is None else f"{snr:g} dB", *cells, None if power is None else str(power)])
    second = Table(
        f"Fewest samples from which all {data['n']} atoms are found, independent supports, signs, medians; the "
        "exponent in the condition number of the dictionary",
        ["", *(f"condition {c:g}" for c in conditions), "exponent"],
        lines,
    )
    return [first, second]


def verdicts(data: dict[str, Any]) -> list[Verdict]:
    """The bound with its exponents, and the dependence on the condition number."""
    signs = chosen(data, what="moment", coefficients="sign")
    proved = [bound(row["n"], data["numbers"], SUPPORTS[row["supports"]]["p"]) for row in signs]
    ratio = max(float(np.max(np.asarray(row["errors"]) / b)) for row, b in zip(signs, proved, strict=True))
    powers = {
        (what, supports): e
        for what in WHAT
        for supports in SUPPORTS
        if (e := in_size(data, what=what, supports=supports, coefficients="sign")) is not None
    }
    lasts = {key: last_slope(data, what=key[0], supports=key[1], coefficients="sign") for key in powers}
    moments = [(e, lasts[key]) for key, e in powers.items() if key[0] == "moment"]
    words = "; ".join(
        f"{what}, {supports} {e}" + (f", {last:.1f} at the end" if (last := lasts[what, supports]) is not None else "")
        for (what, supports), e in powers.items()
    )
    wrong = ratio > 1 or any(e.low > 3 for e, _ in moments)
    below = bool(moments) and all(e.high < 3 and last is not None and last < 3 for e, last in moments)
    first = Verdict(
        "Proposition 5.8",
        "n^3 samples, for a constant p, give a moment with an error of o(1) in spectral norm",
        f"the error is at most {ratio:.2g} of the bound; exponents in n of samples for an error of {SMALL}, and those "
        f"between the two largest n: {words}",
        "does not hold at these sizes" if wrong else "holds beyond what is proved" if below else "holds",
    )
    power = over_condition(data, None)
    noise = [f"at {snr:g} dB up to {highest(data, snr):g}" for snr in kinds(data) if snr is not None]
    most = max(row["condition"] for row in data["needed"] if row["snr"] is None)
    slope = "" if power is None else f" as it to the power {power}"
    second = Verdict(
        "Corollary 1.4",
        "samples grow as a polynomial of the condition number",
        f"without noise, where whitening undoes the dictionary up to rounding, all atoms up to a condition number of "
        f"{highest(data, None):g}, from samples that grow{slope}; {', '.join(noise)}, of which nothing is proved: "
        "whitening takes noise for signal",
        "does not hold at these sizes" if highest(data, None) < most else "holds",
    )
    return [first, second]


def draw(data: dict[str, Any]) -> Any:
    """The error against samples; samples for a small error against n; samples for all atoms against condition."""
    figure, axes = figures.panels(1, 3, width=4.3, height=4.2)
    sizes = sorted({row["n"] for row in data["rows"]})
    shown = sizes[:: max(1, (len(sizes) - 1) // 2)][-3:]
    m = np.array(data["numbers"])
    looks = figures.styles([(what, n) for n in shown for what in WHAT])
    ax = axes[0, 0]
    for (what, n), look in looks.items():
        rows = chosen(data, what=what, n=n, supports="independent", coefficients="sign")
        mean = np.median([row["errors"] for row in rows], axis=0)
        ax.loglog(m, mean, **{**look, "label": f"{what}, n = {n}"})
    ax.loglog(m, bound(shown[-1], m), color="black", linewidth=2.5, label=f"proved, n = {shown[-1]}")
    ax.axhline(SMALL, color="grey", linewidth=1)
    ax.set(xlabel="samples m", ylabel="error, spectral norm (E x^4 = 1)", title="Error: independent supports, signs")
    ax.set_ylim(bottom=1e-4)  # room for the legend
    ax.legend(fontsize=7, loc="lower left")

    ax = axes[0, 1]
    keys = [(what, supports) for what in WHAT for supports in SUPPORTS]
    for key, look in figures.styles(keys).items():
        wanted = {"what": key[0], "supports": key[1], "coefficients": "sign"}
        points = [
            (n, median([crossing(data["numbers"], r["errors"]) for r in chosen(data, n=n, **wanted)])) for n in sizes
        ]
        reached = [(n, v) for n, v in points if v is not None]
        if reached:
            ax.loglog(*zip(*reached, strict=True), **{**look, "label": ", ".join(key)})
    ax.set(xlabel="atoms n", ylabel=f"samples for an error of {SMALL}", title="Samples that it takes, signs")
    ax.set_xticks(sizes, [str(n) for n in sizes])
    ax.minorticks_off()
    ax.legend(fontsize=7)

    ax = axes[0, 2]
    for snr, look in figures.styles(kinds(data)).items():
        needed = samples_needed(data, snr)
        solved = [(c, m) for c, m in needed.items() if m is not None]
        missed = [c for c, m in needed.items() if m is None]
        label = "no noise" if snr is None else f"{snr:g} dB"
        ax.loglog(*zip(*(solved or [(np.nan, np.nan)]), strict=True), **{**look, "label": label})
        ax.plot(missed, [data["most"]] * len(missed), linestyle="", **{k: look[k] for k in ("color", "marker")})
    ax.axhline(data["most"], color="grey", linewidth=1)
    ax.set(xlabel="condition number of the dictionary", ylabel="fewest samples for all atoms")
    ax.set_title(f"n = {data['n']}; grey line: not reached")
    ax.legend(fontsize=8)
    return figure
