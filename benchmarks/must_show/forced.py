"""Weights forced to be far too strong: nothing is certified wrongly, here or in any run of the scripts beside it.

Bar: no wrong certificate with temperatures of 4, 16 and 64 times the one that is chosen, independent supports, blocks
of 2, 3 and 5, a chain and hubs, d = n = 20, m = 1,000 to 16,000, with and without noise; and none in the kept results
of ``correlated``, ``overlapping`` and ``fewest_samples``: at least 1,000 runs in all.
"""

import json

from benchmarks import certified, report
from benchmarks.certified import Job
from benchmarks.problems import SamplesProblem

MODELS = (
    ("independent", None, 2), ("blocks", 0.5, 2), ("blocks", 0.8, 3), ("blocks", 0.5, 5), ("markov", 0.6, 2),
    ("hubs", 0.5, 4),
)  # fmt: skip
NOISE = (("gaussian", None), ("orthonormal", 10.0))
OTHERS = ("correlated", "overlapping", "fewest_samples")
RUNS = 1000


def main(argv=None):
    parser = certified.options(report.options(__doc__))
    parser.add_argument("--seeds", type=int, default=3, help="seeds a problem (default 3)")
    args = parser.parse_args(argv)
    bars = report.Bars("forced", args)
    n, counts, seeds, models = 20, (1000, 4000, 16_000), args.seeds, MODELS
    if args.quick:
        n, counts, seeds, models = 6, (2000,), 1, MODELS[1:2]
    usual = 0.7 / n  # about what is chosen: half of the effective sample size at a typical ||z||^2 of n
    jobs = [
        Job(
            SamplesProblem(m, n, supports=supports, cooccurrence=c, group=group, dictionary=A, snr=snr),
            seed,
            {"temperature": factor * usual},
        )
        for supports, c, group in models
        for A, snr in NOISE
        for m in counts
        for factor in (4, 16, 64)
        for seed in range(seeds)
    ]
    rows = certified.run_all(jobs, args)
    wrong = sum(row["wrong"] for row in rows)
    sure = sum(row["certified"] for row in rows)
    bars.judge("no wrong certificate", wrong == 0, f"{wrong} of {sure} certified in {len(rows)} runs")
    if not args.quick:
        every = [rows]
        for name in OTHERS:
            kept = json.loads((report.RESULTS / "must_show" / f"{name}.json").read_text())
            every.append(kept["rows"])
        runs, wrong = sum(map(len, every)), sum(row["wrong"] for part in every for row in part)
        bars.judge(f"none in at least {RUNS} runs of all", wrong == 0 and runs >= RUNS, f"{wrong} in {runs} runs")
    return bars.close(rows=rows)


if __name__ == "__main__":
    raise SystemExit(main())
