"""How many samples all atoms take: n^3 is proved, n^2 suspected.

Theorem 1.3: O~(n^3) samples of a tau-nice distribution suffice to recover 0.99 n orthonormal atoms by the spectral
method; the authors add that this may be sub-optimal, and suspect that O~(n^2) is closer to the truth.  Measured are
the fewest samples, of one nested draw, from which all n atoms are found (squared correlation 0.95), and from which
all are certified, against n: for the spectral stage alone, as the paper has it (on the moment, also cleaned by
Algorithm 5.4) and as the library has it (on the cumulant, plain or tempered), and for the whole fit with its
refinement on the samples, which below what the spectral stage needs is a local search from random starts: what it
finds is not certified.  With a constant p the number of active atoms grows with n; with p = 2 / n it does not.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import numpy as np

import quartic
from benchmarks import solvers
from benchmarks.fits import Exponent, exponent, median
from experiments import figures
from experiments._smallest import grid, smallest
from experiments.experiment import Run, Table, Verdict
from quartic.algorithms.temper import Tempering, tempering
from quartic.datasets import NiceSamples, nice_samples
from quartic.learn.plan import choose_form, moment_of
from quartic.metrics import match
from quartic.propose.span import search
from quartic.samples import Held

TITLE = "How many samples all atoms take"
MODELS: dict[str, Callable[[int], dict[str, Any]]] = {
    "independent, p = 0.1": lambda n: {"p": 0.1},
    "blocks, tau = 0.25": lambda n: {"p": 0.1, "supports": "blocks", "cooccurrence": 0.25, "group": 5},
    "independent, p = 2 / n": lambda n: {"p": 2 / n},
}
SEEDS = {10: 6, 15: 6, 20: 6, 30: 5, 40: 3, 60: 2, 80: 2}  # a size; the large ones take most of the time
MOST = 2**16  # samples
FOUND = 0.95  # squared correlation at which an atom counts
CRITERIA = ("found", "certified")

Outcome = tuple[np.ndarray, int | None]  # atoms as rows, and how many are certified, where that is known


def top_of_moment(Y: np.ndarray, drawn: NiceSamples, seed: int, cleaned: bool) -> Outcome:
    """Problem 5.2 on the empirical moment: its top n eigenvectors, or what Algorithm 5.4 makes of it."""
    n = len(drawn.components)
    frame = quartic.Covariance().update(Y).frame(n)
    T = quartic.FourthMoment(frame).update(Y).moment()
    alpha = drawn.tau / drawn.pair[0, 0]  # the largest pair moment, whitened
    result = quartic.dictionary_from_moment(T, n, clean=3 * alpha if cleaned else None, random_state=seed)
    return result.components @ frame.backward, None


def top_of_cumulant(Y: np.ndarray, drawn: NiceSamples, seed: int, tempered: bool) -> Outcome:
    """The spectral stage of the library on all samples, with its weights or none, without refinement."""
    n, data, rows = len(drawn.components), Held(Y), np.arange(len(Y))
    frame = data.covariance().frame(n)
    squares = data.squared_norms(rows, frame)
    weights = (tempering(squares) if tempered else Tempering(0.0, 0.0)).weights(squares)
    moment = moment_of(data, frame, rows, weights, choose_form("auto", len(Y), n, n, np.inf))
    result = search(moment, n, np.zeros((0, n)), np.random.default_rng(seed), halves=True)
    return result.atoms @ frame.backward, int(np.sum(result.likely > 0.5))


def fit(Y: np.ndarray, drawn: NiceSamples, seed: int, temperature: float | None) -> Outcome:
    """The whole estimator."""
    n = len(drawn.components)
    model = quartic.SpectralDictionaryLearning(n, temperature=temperature, random_state=seed).fit(Y)
    return model.components_, int(np.sum(model.certified_))


def fastica(Y: np.ndarray, drawn: NiceSamples, seed: int) -> Outcome:
    """scikit-learn's, with its contrast logcosh."""
    return solvers.load("fastica_logcosh")(Y, len(drawn.components), seed), None


CLEANED = "moment, cleaned"  # Algorithm 5.4, of which the paper's bound speaks
METHODS: dict[str, tuple[Callable[..., Outcome], dict[str, Any], int]] = {  # with the largest n it is run at
    CLEANED: (top_of_moment, {"cleaned": True}, 20),  # cleaning takes minutes at n = 40
    "moment": (top_of_moment, {"cleaned": False}, 60),  # formed whole, in float64
    "cumulant": (top_of_cumulant, {"tempered": False}, 80),
    "tempered cumulant": (top_of_cumulant, {"tempered": True}, 80),
    "fit, not tempered": (fit, {"temperature": 0.0}, 60),
    "fit": (fit, {"temperature": None}, 80),
    "FastICA": (fastica, {}, 80),
}
SPECTRAL = ("moment", "cumulant")  # the spectral stage without it
FLOOR = 1.0  # an exponent below it can not last: n atoms take n samples at least


def fewest(n: int, model: str, method: str, seed: int, most: int) -> dict[str, int | None]:
    """The fewest samples from which all atoms are found, and certified; None where ``most`` do not do."""
    drawn = nice_samples(most, n, dictionary="orthonormal", random_state=seed, **MODELS[model](n))
    function, options, _ = METHODS[method]

    @cache
    def outcome(m: int) -> dict[str, bool]:
        if np.linalg.matrix_rank(drawn.codes[:m].T @ drawn.codes[:m]) < n:  # some atoms were never active, or alone
            return dict.fromkeys(CRITERIA, False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is lost shows
            B, certified = function(drawn.samples[:m], drawn, seed, **options)
        found = len(B) > 0 and match(drawn.components, B).found(FOUND) == n
        return {"found": found, "certified": found and certified == n}

    numbers = grid(2 * n, most)
    reached: dict[str, int | None] = {"found": smallest(lambda m: outcome(m)["found"], numbers), "certified": None}
    if METHODS[method][0] in (fit, top_of_cumulant) and reached["found"] is not None:
        after = [m for m in numbers if m >= reached["found"]]
        reached["certified"] = smallest(lambda m: outcome(m)["certified"], after)
    return reached


def measure(run: Run) -> dict[str, Any]:
    """The fewest samples for every size, model, method and seed; the largest sizes first."""
    seeds, most, models, methods = SEEDS, MOST, list(MODELS), dict(METHODS)
    if run.quick:
        seeds, most, models = {8: 1, 9: 1, 10: 1}, 512, models[:1]
        del methods["fit, not tempered"]  # the slowest, and the same path as the fit
    cases = [
        (n, model, method, seed, most)
        for n in sorted(seeds, reverse=True)
        for model in models
        for method, (_, _, largest) in methods.items()
        if n <= largest and not (method == CLEANED and "blocks" in model)  # 3 alpha leaves nothing at 1/4
        for seed in range(seeds[n])
    ]
    rows = [
        {"n": n, "model": model, "method": method, "seed": seed, **found}
        for (n, model, method, seed, _), found in zip(cases, run.each(fewest, cases), strict=True)
    ]
    return {"most": most, "rows": rows}


def reached(data: dict[str, Any], model: str, method: str, criterion: str) -> list[tuple[int, int | None]]:
    """Sizes with their fewest samples, a pair for each seed."""
    return [(r["n"], r[criterion]) for r in data["rows"] if (r["model"], r["method"]) == (model, method)]


def large(data: dict[str, Any]) -> int:
    """The size from which on a law in n shows: below it single atoms must be seen often enough, whatever n is."""
    sizes = sorted({row["n"] for row in data["rows"]})
    return sizes[(len(sizes) - 1) // 3]


def power(data: dict[str, Any], model: str, method: str, criterion: str, least: int = 0) -> Exponent | None:
    """The exponent in n from ``least`` on, over the sizes that were solved in every seed, three at least."""
    pairs = [(n, m) for n, m in reached(data, model, method, criterion) if n >= least]
    missed = {n for n, m in pairs if m is None}
    solved = [(n, m) for n, m in pairs if n not in missed]
    return exponent(*zip(*solved, strict=True)) if len({n for n, _ in solved}) > 2 else None


def middle(data: dict[str, Any], model: str, method: str, criterion: str, n: int) -> float | None:
    """The median over the seeds of one size; None where half of them or more were not solved."""
    return median(m for size, m in reached(data, model, method, criterion) if size == n)


def lines_of(data: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Model, method and criterion of all that was measured."""
    keys = dict.fromkeys((row["model"], row["method"]) for row in data["rows"])
    return [
        (model, method, criterion)
        for model in MODELS
        for method in METHODS
        if (model, method) in keys
        for criterion in CRITERIA
        if criterion == "found" or METHODS[method][0] in (fit, top_of_cumulant)
    ]


def tables(data: dict[str, Any]) -> list[Table]:
    """Medians for every size, and exponents."""
    sizes = sorted({row["n"] for row in data["rows"]})
    rows = []
    for key in lines_of(data):
        medians = [middle(data, *key, n) for n in sizes]
        powers = [power(data, *key, least) for least in (0, large(data))]
        rows.append([*key, *(m and round(m) for m in medians), *(None if e is None else str(e) for e in powers)])
    title = (
        f"Fewest samples for all n atoms, orthonormal dictionaries, signs, at most {data['most']}; medians over the "
        "seeds, and the exponent in n over all of them"
    )
    headers = [
        "supports",
        "method",
        "all atoms",
        *(f"n = {n}" for n in sizes),
        "exponent",
        f"from n = {large(data)} on",
    ]
    return [Table(title, headers, rows)]


def verdicts(data: dict[str, Any]) -> list[Verdict]:
    """What is proved, of Algorithm 5.4; what is suspected, of the spectral stage; then what lies beyond the paper."""
    constant = [model for model in MODELS if "2 / n" not in model]
    spectral = {
        f"{method}, {model.split(',')[0]}": e
        for model in constant
        for method in SPECTRAL
        if (e := power(data, model, method, "found", large(data))) is not None
    }
    whole = {model: power(data, model, "fit", "found", large(data)) for model in MODELS}
    certified = {model: power(data, model, "fit", "certified", large(data)) for model in MODELS}
    if not spectral:
        return []
    words = "; ".join(f"{name} {e}" for name, e in spectral.items())

    def judged(claimed: int, powers: Iterable[Exponent]) -> str:
        """One interval above it; all below it, and all of them such as may last; or neither."""
        powers = list(powers)
        if max(e.low for e in powers) > claimed:
            return "does not hold at these sizes"
        lasting = min(e.high for e in powers) >= FLOOR
        return "holds beyond what is proved" if lasting and max(e.high for e in powers) < claimed else "holds"

    independent, blocks = constant
    cleaned = power(data, independent, CLEANED, "found")
    sizes = [n for n, _ in reached(data, independent, CLEANED, "found")]
    beyond = "; ".join(f"{m.replace('independent, ', '')} {e}, certified {certified[m]}" for m, e in whole.items() if e)
    return [
        Verdict(
            "Theorem 1.3",
            "n^3 samples suffice, up to logarithms, to Algorithm 5.4 and tau below a constant",
            f"exponent {cleaned}, {independent}, n from {min(sizes)} to {max(sizes)}; for {blocks} it is not run: of "
            "the eigenvalues 1 - tau of a block the 3 tau that it subtracts leave nothing from tau = 1/4 on",
            "open" if cleaned is None else "holds" if cleaned.low <= 3 else "does not hold at these sizes",
        ),
        Verdict(
            "remark after Theorem 1.3",
            "n^2 samples are suspected to suffice",
            f"exponents from n = {large(data)} on of the spectral stage without cleaning: {words}",
            judged(2, spectral.values()),
        ),
        Verdict(
            "beyond the paper",
            "n^2 samples suffice with weights and refinement",
            f"exponents of the whole fit: {beyond}",
            judged(2, [e for e in whole.values() if e is not None]) if all(whole.values()) else "open",
        ),
    ]


def draw(data: dict[str, Any]) -> Any:
    """Fewest samples for all atoms against n, a line a method, faint where all are certified; guides n to n^3."""
    figure, axes = figures.panels(1, len(MODELS), width=4.4, height=4.4, sharey=True)
    sizes = sorted({row["n"] for row in data["rows"]})
    looks = figures.styles(METHODS)
    for ax, model in zip(axes[0], MODELS, strict=True):
        for _, method, criterion in (key for key in lines_of(data) if key[0] == model):
            points = [(n, middle(data, model, method, criterion, n)) for n in sizes]
            solved = [(n, m) for n, m in points if m is not None]
            if solved:
                faint = {"alpha": 0.35, "label": None} if criterion == "certified" else {}
                ax.loglog(*zip(*solved, strict=True), **{**looks[method], **faint})
        ends = np.array([sizes[0], sizes[-1]], dtype=float)
        for slope in (1, 2, 3):
            guide = 20 * ends[0] * (ends / ends[0]) ** slope
            ax.loglog(ends, guide, color="black", linewidth=0.8, alpha=0.6)
            ax.annotate(
                f"n^{slope}" if slope > 1 else "n", (ends[1], guide[1]), xytext=(3, -3), textcoords="offset points"
            )
        ax.set(xlabel="atoms n", title=model)
        ax.set_xticks(sizes, [str(n) for n in sizes])
        ax.minorticks_off()
    axes[0, 0].set(ylabel="fewest samples for all atoms")
    axes[0, 0].plot([], [], color="black", alpha=0.35, linewidth=3, label="faint: all of them certified")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8)
    return figure
