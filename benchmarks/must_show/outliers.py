"""Outliers: one sample in a thousand, a hundred times as long as the others.

Bar: replaced by gross samples in independent directions, one sample in a thousand changes no squared correlation with a
true atom by 1e-3.  d = n = 40, m = 20,000, independent supports and blocks of 5 with Pr[j | i] = 0.5, Gaussian
dictionaries without noise and orthonormal ones at 20 dB, sign and Gaussian coefficients, five seeds.  FastICA is shown
beside it.

Rare atoms are no outliers.  Bar: of samples with a pair of atoms that are active in 0.2 to 2% of them, 25 times at
least, alone or together (Pr[j | i] = 0.8), with Gaussian coefficients of the variance of the d - 2 other sources
(Laplace, or signs with p = 0.1), mixed at random, none is trimmed; d = 4, 8, 16, m = 5,000 and 20,000.  Where an atom
comes only two to ten times (0.2% of 1,000 and 5,000), nothing tells its samples from outliers: counted, and no bar.
"""

from dataclasses import replace

import numpy as np

from benchmarks import report, solvers
from benchmarks.objective import squared
from benchmarks.problems import SamplesProblem
from quartic.samples import trim

SHARE, BAR = 0.001, 1e-3
NAMES = ("quartic", "fastica_logcosh")
OFTEN = 25  # times that an atom of the bar is active, on average


def rare_pair(m, d, p, ordinary, together, seed):
    """Samples with a pair of atoms, each active in a share ``p``, the second with Pr[j | i] = ``together``."""
    rng = np.random.default_rng(seed)
    if ordinary == "laplace":
        x = rng.laplace(size=(m, d - 2)) / np.sqrt(2)
    else:
        x = (rng.random((m, d - 2)) < 0.1) * rng.choice([-1.0, 1.0], (m, d - 2)) / np.sqrt(0.1)
    first = rng.random(m) < p
    second = rng.random(m) < np.where(first, together, p * (1 - together) / (1 - p))
    pair = np.stack((first, second), axis=1) * rng.standard_normal((m, 2)) / np.sqrt(p)
    return np.concatenate((x, pair), axis=1) @ rng.standard_normal((d, d))


def rare_pairs(dims, sizes, seeds):
    """How many draws of each kind have samples trimmed."""
    rows = []
    for d in dims:
        for m in sizes:
            for p in (0.002, 0.005, 0.01, 0.02):
                draws = [
                    (ordinary, together, seed)
                    for ordinary in ("laplace", "signs")
                    for together in (p, 0.8)
                    for seed in range(seeds)
                ]
                trimmed = [trim(rare_pair(m, d, p, *draw), None)[1] for draw in draws]
                row = {"d": d, "m": m, "p": p, "draws": len(draws), "trimmed": int(np.count_nonzero(trimmed))}
                rows.append({**row, "most": max(trimmed)})
    return rows


def main(argv=None):
    parser = report.options(__doc__)
    parser.add_argument("--seeds", type=int, help="seeds a problem (default 5)")
    args = parser.parse_args(argv)
    bars = report.Bars("outliers", args)
    m, n, seeds = (4000, 8, 1) if args.quick else (20_000, 40, args.seeds or 5)
    chosen = [
        SamplesProblem(m, n, supports=supports, cooccurrence=c, group=5, coefficients=x, dictionary=A, snr=snr)
        for supports, c in (("independent", None), ("blocks", 0.5))
        for A, snr in (("gaussian", None), ("orthonormal", 20.0))
        for x in ("sign", "gaussian")
    ]
    rows = []
    for problem in chosen:
        for name in NAMES:
            changes = []
            for seed in range(seeds):
                both = [p.given(seed) for p in (problem, replace(problem, outliers=SHARE))]
                clean, spoiled = (squared(A, solvers.load(name)(Y, n, seed)) for Y, A in both)
                changes.append(np.max(np.abs(clean - spoiled)))
            rows.append({"problem": problem.name, "solver": name, "change": float(np.max(changes))})
    print(f"largest change of a squared correlation over {seeds} seeds\n")
    print(report.table(["problem", "solver", "change"], [list(row.values()) for row in rows]))
    worst = max(row["change"] for row in rows if row["solver"] == "quartic")
    bars.judge(f"no squared correlation changes by {BAR}", worst < BAR, f"{worst:.2g}")
    dims, sizes = ((4, 8), (5000,)) if args.quick else ((4, 8, 16), (1000, 5000, 20_000))
    pairs = rare_pairs(dims, sizes, 2 if args.quick else 2 * seeds)
    print("\ndraws of a rare pair with samples trimmed, and how many at most\n")
    print(report.table(list(pairs[0]), [list(row.values()) for row in pairs]))
    often = [row for row in pairs if row["m"] * row["p"] >= OFTEN]
    lost, draws = (sum(row[name] for row in often) for name in ("trimmed", "draws"))
    bars.judge(f"0 of {draws} fits trim a real sample of rare atoms", lost == 0, f"{lost} of {draws}")
    return bars.close(rows=rows, pairs=pairs, seeds=seeds)


if __name__ == "__main__":
    raise SystemExit(main())
