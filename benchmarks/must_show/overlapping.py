"""Supports that overlap: chains and hubs, from weakly to strongly correlated.

Shown: the share of the atoms found (squared correlation 0.95) and certified for a Markov chain of supports and for hubs
of 4 and of 8 atoms, Pr[j | i] from 0.1 to 0.8, d = n = 40, m = 40,000, sign coefficients, without noise and at 10 dB,
three seeds, beside FastICA, Picard and MSP on the first.  Bar: no certificate is wrong.
"""

import numpy as np

from benchmarks import certified, report
from benchmarks.certified import Job
from benchmarks.problems import SamplesProblem

PEERS = ("fastica_logcosh", "picard", "msp")
MODELS = (("markov", 2), ("hubs", 4), ("hubs", 8))
NOISE = (("gaussian", None), ("orthonormal", 10.0))


def main(argv=None):
    parser = certified.options(report.options(__doc__))
    parser.add_argument("--seeds", type=int, default=3, help="seeds a problem (default 3)")
    args = parser.parse_args(argv)
    bars = report.Bars("overlapping", args)
    m, n, chances, seeds, peers = 40_000, 40, [c / 10 for c in range(1, 9)], args.seeds, PEERS
    if args.quick:
        m, n, chances, seeds, peers = 8000, 10, [0.5], 1, PEERS[:1]
    jobs = [
        Job(
            SamplesProblem(m, n, supports=supports, group=group, cooccurrence=c, dictionary=A, snr=snr),
            seed,
            peers=peers if seed == 0 else (),
        )
        for supports, group in MODELS
        for A, snr in NOISE
        for c in chances
        for seed in range(seeds)
    ]
    rows = certified.run_all(jobs, args)
    lines = []
    for mine in certified.by_problem(rows):
        one = mine[0]
        found, sure = (float(np.mean([row[key] / n for row in mine])) for key in ("near", "certified"))
        seconds = float(np.median([row["seconds"] for row in mine]))
        wrong = sum(row["wrong"] for row in mine)
        shares = [certified.peer_share(mine, name) for name in peers]
        words = f"{one['supports']} {one['group']} {'10 dB' if one['snr'] else 'no noise'}"
        lines.append([words, one["cooccurrence"], one["tau"], found, sure, wrong, seconds, *shares])
    print(f"\nmeans over {seeds} seeds, d = n = {n}, m = {m}\n")
    headers = ["supports", "Pr[j|i]", "tau", "found", "certified", "wrong", "seconds", *peers]
    print(report.table(headers, lines))
    wrong = sum(row["wrong"] for row in rows)
    bars.judge("no wrong certificate", wrong == 0, f"{wrong} of {n * len(rows)} in {len(rows)} runs")
    return bars.close(rows=rows)


if __name__ == "__main__":
    raise SystemExit(main())
