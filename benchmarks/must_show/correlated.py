"""Strongly correlated supports: every atom, far beyond tau = 1/3.

Bar: blocks of 3, 5 and 10, p = 0.1, every atom at squared correlation 0.95: sign coefficients, d = n = 60, m = 60,000,
Pr[j | i] of 0.4, 0.5, 0.6 and 0.8, ten seeds, and d = n = 120, m = 100,000, Pr[j | i] of 0.5 and 0.8, three seeds;
Gaussian dictionaries without noise, in every seed, and orthonormal ones at 10 dB, in 95% of the seeds.  Gaussian
coefficients, d = n = 60, Pr[j | i] up to 0.8, three seeds: the same.  The number not given, blocks of 3, 1,000 samples
a dimension, d = n = 6, 12, 18 and 24, ten seeds: as many atoms as dimensions, all found.  No certificate is wrong.
FastICA, Picard and MSP are shown beside it where coefficients are signs.
"""

import numpy as np

from benchmarks import certified, report
from benchmarks.certified import Job
from benchmarks.problems import SamplesProblem

PEERS = ("fastica_logcosh", "picard", "msp")
NOISE = (("gaussian", None), ("orthonormal", 10.0))
LEAST = 0.95  # of the seeds, with noise
COUNTED = {"n_components": None}


def problems_of(m, n, chances, coefficients="sign"):
    return [
        SamplesProblem(
            m, n, supports="blocks", group=group, cooccurrence=c, coefficients=coefficients, dictionary=A, snr=snr
        )
        for group in (3, 5, 10)
        for c in chances
        for A, snr in NOISE
    ]


def main(argv=None):
    parser = certified.options(report.options(__doc__))
    parser.add_argument("--seeds", type=int, default=10, help="seeds a problem of 60 atoms (default 10)")
    parser.add_argument("--peer-seeds", type=int, default=3, help="seeds a problem for the peers (default 3)")
    parser.add_argument("--large-seeds", type=int, default=3, help="seeds a problem of 120 atoms (default 3)")
    args = parser.parse_args(argv)
    bars = report.Bars("correlated", args)
    peers = PEERS
    if args.quick:
        peers = PEERS[:1]
        small = SamplesProblem(12000, 12, supports="blocks", group=3, cooccurrence=0.6)
        chosen = [(small, 1, 1), (SamplesProblem(**(vars(small) | {"dictionary": "orthonormal", "snr": 10.0})), 1, 1)]
        alone = [SamplesProblem(6000, 6, supports="blocks", group=3, cooccurrence=0.8)]
    else:
        large, gaussian = problems_of(100_000, 120, (0.5, 0.8)), problems_of(60_000, 60, (0.4, 0.6, 0.8), "gaussian")
        chosen = [(problem, args.seeds, args.peer_seeds) for problem in problems_of(60_000, 60, (0.4, 0.5, 0.6, 0.8))]
        chosen += [(problem, args.large_seeds, args.peer_seeds) for problem in large]
        chosen += [(problem, 3, 0) for problem in gaussian]
        sizes = [(1000 * d, d, c) for d in (6, 12, 18, 24) for c in (0.4, 0.5, 0.6, 0.8)]
        alone = [SamplesProblem(m, d, supports="blocks", group=3, cooccurrence=c) for m, d, c in sizes]
    jobs = [
        Job(problem, seed, peers=peers if seed < peer_seeds else ())
        for problem, seeds, peer_seeds in chosen
        for seed in range(seeds)
    ]
    jobs += [Job(problem, seed, COUNTED) for problem in alone for seed in range(1 if args.quick else args.seeds)]
    rows = certified.run_all(jobs, args)
    lines, missed = [], {"sign, no noise": [], "sign, 10 dB": [], "gaussian, no noise": [], "gaussian, 10 dB": []}
    missed["number not given"] = []
    complete = {kind: [0, 0] for kind in missed}
    for mine in certified.by_problem(rows):
        one = mine[0]
        n, good = one["n"], sum(row["near"] == row["n"] == row["rank"] for row in mine)
        kind = f"{one['coefficients']}, {'10 dB' if one['snr'] else 'no noise'}"
        kind = "number not given" if one["options"] else kind
        complete[kind][0] += good
        complete[kind][1] += len(mine)
        if good < len(mine):
            missed[kind].append(f"{one['problem']} {good}/{len(mine)}")
        least = min(row["near"] for row in mine) / n
        shares = [certified.peer_share(mine, name) for name in peers]
        seconds = float(np.median([row["seconds"] for row in mine]))
        sure = float(np.mean([row["certified"] for row in mine])) / n
        wrong = sum(row["wrong"] for row in mine)
        name = f"{one['problem']}, number not given" if one["options"] else one["problem"]
        lines.append([name, one["tau"], f"{good}/{len(mine)}", least, sure, wrong, seconds, *shares])
    headers = ["problem", "tau", "complete", "least found", "certified", "wrong", "seconds", *peers]
    print("\n" + report.table(headers, lines))
    for kind, (good, total) in complete.items():
        if total:
            holds = good >= (LEAST if kind.endswith("10 dB") else 1.0) * total
            measured = "; not ".join([f"{good} of {total} runs", *missed[kind]])
            bars.judge(f"every atom, {kind}", holds, measured)
    wrong = sum(row["wrong"] for row in rows)
    bars.judge("no wrong certificate", wrong == 0, f"{wrong} of {sum(r['n'] for r in rows)} in {len(rows)} runs")
    return bars.close(rows=rows)


if __name__ == "__main__":
    raise SystemExit(main())
