"""Few samples: nowhere worse than ICA, and no wrong certificate.

Bar: m from 1,000 to 64,000, d = n = 20, 40 and 60, independent supports and blocks with tau 0.25, sign coefficients,
twenty seeds: the fraction of the atoms found (squared correlation 0.99), certified or not, is on average nowhere lower
than FastICA's by more than the standard error of the paired difference.  No certificate is wrong in these 840 runs:
above the squared correlation with the nearest true atom, in whitened coordinates (which is what it claims) and in the
space of the data.  Shown: the share of the found atoms that are certified.
"""

import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from threadpoolctl import threadpool_limits

import quartic
from benchmarks import report, solvers
from benchmarks.certified import SLACK, whitened, wrong
from benchmarks.objective import FOUND, squared
from benchmarks.problems import SamplesProblem
from quartic.algorithms.certify import is_certified
from quartic.metrics import match

PEER = "fastica_logcosh"
RUNS = 500  # at least, for the bar on certificates


def measure(problem, seeds):
    """One row: fractions found over the seeds, and what the certificates say."""
    warnings.simplefilter("ignore")  # what is lost shows in the table
    row = {"d": problem.n, "supports": problem.supports, "m": problem.m, "found": [], "peer": []}
    row |= {"components": 0, "wrong_whitened": 0, "wrong_atom": 0, "found_atoms": 0, "certified": 0, "status": []}
    for seed in range(seeds):
        Y, A = problem.given(seed)
        model = quartic.SpectralDictionaryLearning(problem.n, random_state=seed).fit(Y)
        B, certificates = np.asarray(model.components_), np.asarray(model.certificates_)
        pairs = match(A, B)
        good = pairs.squared >= FOUND
        row["found"].append(float(np.sum(good)) / problem.n)
        row["peer"].append(float(np.mean(squared(A, solvers.load(PEER)(Y, problem.n, seed)) >= FOUND)))
        row["components"] += B.shape[0]
        for name, table in (("wrong_whitened", whitened(Y, A, B)), ("wrong_atom", pairs.table)):
            row[name] += wrong(certificates, table)
        row["found_atoms"] += int(np.sum(good))
        row["certified"] += int(np.sum(is_certified(certificates[pairs.columns[good]])))
        row["status"].append(model.status_.code)
    difference = np.subtract(row["found"], row["peer"])
    row["difference"] = float(np.mean(difference))
    row["error"] = float(np.std(difference, ddof=1) / np.sqrt(seeds)) if seeds > 1 else 0.0
    return row


def main(argv=None):
    parser = report.options(__doc__)
    parser.add_argument("--seeds", type=int, help="seeds a row (default 20)")
    parser.add_argument("--jobs", type=int, default=2, help="rows at a time (default 2)")
    args = parser.parse_args(argv)
    bars = report.Bars("few_samples", args)
    sizes, counts = ((8,), (4000,)) if args.quick else ((20, 40, 60), [1000 * 2**k for k in range(7)])
    seeds = args.seeds or (2 if args.quick else 20)
    chosen = [
        SamplesProblem(m, n, supports=supports, cooccurrence=cooccurrence)
        for n in sizes
        for supports, cooccurrence in (("independent", None), ("blocks", 0.25))
        for m in counts
    ]
    with ProcessPoolExecutor(args.jobs, initializer=threadpool_limits, initargs=(1,)) as pool:
        rows = list(pool.map(measure, chosen, [seeds] * len(chosen)))
    headers = ["d", "supports", "m", "found", PEER, "difference", "+-", "certified", "wrong", "status"]
    lines = []
    for row in rows:
        means = [f"{np.mean(row[key]):.3f}" for key in ("found", "peer", "difference", "error")]
        share = f"{row['certified']}/{row['found_atoms']}"
        status = " ".join(sorted(set(row["status"])))
        both = f"{row['wrong_whitened']} {row['wrong_atom']}"
        lines.append([row["d"], row["supports"], row["m"], *means, share, both, status])
    print(f"means over {seeds} seeds; certified of the found; wrong certificates whitened and in the data\n")
    print(report.table(headers, lines))
    worse = [f"d={r['d']} {r['supports']} m={r['m']}" for r in rows if r["difference"] < -r["error"] - SLACK]
    measured = f"{len(rows) - len(worse)} of {len(rows)} rows"
    bars.judge("fraction found nowhere lower than FastICA's", not worse, "; not ".join([measured, *worse]))
    total, runs = sum(row["components"] for row in rows), seeds * len(rows)
    for name, words in (("wrong_whitened", "in whitened coordinates"), ("wrong_atom", "in the space of the data")):
        above = sum(row[name] for row in rows)
        bars.judge(f"no wrong certificate, {words}", above == 0, f"{above} of {total} in {runs} runs")
    bars.judge(f"certificates checked in at least {RUNS} runs", runs >= RUNS, f"{runs}", full_size=True)
    share = sum(row["certified"] for row in rows) / max(1, sum(row["found_atoms"] for row in rows))
    print(f"\n{share:.1%} of the found atoms are certified")
    return bars.close(rows=rows, seeds=seeds, certified_share=share)


if __name__ == "__main__":
    raise SystemExit(main())
