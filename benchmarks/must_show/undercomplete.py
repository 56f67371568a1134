"""Fewer atoms than dimensions: how many, from the samples alone.

Bar: d = 100, n = 20, m = 20,000, noise at 10 dB, ``n_components=None``: n right in every one of twenty seeds, for sign
and for Gaussian coefficients.
"""

import warnings

import numpy as np

import quartic
from benchmarks import report
from benchmarks.objective import score
from benchmarks.problems import SamplesProblem


def measure(problem, seeds):
    """The number of components in each seed, and how many atoms they find."""
    row = {"problem": problem.name, "n": problem.n, "estimated": [], "fraction": [], "worst": []}
    for seed in range(seeds):
        Y, A = problem.given(seed)
        B = np.asarray(quartic.SpectralDictionaryLearning(random_state=seed).fit(Y).components_)
        figures = {"estimated": B.shape[0], **score(A, B)}
        for key in ("estimated", "fraction", "worst"):
            row[key].append(figures[key])
    return row


def main(argv=None):
    parser = report.options(__doc__)
    parser.add_argument("--seeds", type=int, help="seeds a row (default 20)")
    args = parser.parse_args(argv)
    bars = report.Bars("undercomplete", args)
    warnings.simplefilter("ignore")  # what is lost shows in the table
    m, n, d = (8000, 4, 12) if args.quick else (20_000, 20, 100)
    seeds = args.seeds or (1 if args.quick else 20)
    kinds = ("sign", "gaussian")
    rows = [measure(SamplesProblem(m, n, d, coefficients=kind, snr=10), seeds) for kind in kinds]
    lines = []
    for row in rows:
        estimated = " ".join(map(str, sorted(set(row["estimated"]))))
        lines.append([row["problem"], estimated, row["estimated"].count(n), min(row["fraction"]), min(row["worst"])])
    print(f"over {seeds} seeds\n")
    print(report.table(["problem", "estimated", "right", "least found", "worst"], lines))
    right = sum(row["estimated"].count(n) for row in rows)
    bars.judge("n right in every seed", right == seeds * len(rows), f"{right} of {seeds * len(rows)}")
    return bars.close(rows=rows, seeds=seeds)


if __name__ == "__main__":
    raise SystemExit(main())
