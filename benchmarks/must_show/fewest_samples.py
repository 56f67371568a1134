"""Fewest samples: nowhere worse than ICA, down to 250 samples, and how many samples all atoms take.

Bar: m from 250 to 8,000, d = n = 20, 40 and 60, independent supports with p = 0.1 and 0.2 and blocks of 5 with Pr[j |
i] of 0.25 and 0.5, sign coefficients, ten seeds: the share of the atoms found (squared correlation 0.95), certified or
not, is on average nowhere lower than FastICA's or Picard's by more than the standard error of the paired difference.
No certificate is wrong.  Shown: the smallest m at which all atoms are certified in most seeds, against d, with weights
and without.
"""

import numpy as np

from benchmarks import certified, report
from benchmarks.certified import SLACK, Job
from benchmarks.problems import SamplesProblem

PEERS = ("fastica_logcosh", "picard")
MODELS = (("independent", None, 0.1), ("independent", None, 0.2), ("blocks", 0.25, 0.1), ("blocks", 0.5, 0.1))
PLAIN = {"temperature": 0.0}


def exponent(sizes, counts):
    """The slope of ``log m`` over ``log d``, of the sizes that were reached."""
    reached = [(d, m) for d, m in zip(sizes, counts, strict=True) if m is not None]
    if len(reached) < 2:
        return None
    d, m = np.log(np.array(reached, dtype=float)).T
    return float(np.polyfit(d, m, 1)[0])


def main(argv=None):
    parser = certified.options(report.options(__doc__))
    parser.add_argument("--seeds", type=int, default=10, help="seeds a row (default 10)")
    args = parser.parse_args(argv)
    bars = report.Bars("fewest_samples", args)
    sizes, counts, seeds, peers = (20, 40, 60), [250 * 2**k for k in range(6)], args.seeds, PEERS
    if args.quick:
        sizes, counts, seeds, peers = (8,), [500, 2000], 1, PEERS[:1]
    jobs = [
        Job(
            SamplesProblem(m, n, supports=supports, cooccurrence=c, p=p, group=5),
            seed,
            options,
            () if options else peers,
        )
        for supports, c, p in MODELS
        for n in sizes
        for m in counts
        for options in ({}, PLAIN)
        for seed in range(seeds)
    ]
    rows = certified.run_all(jobs, args)
    lines, worse, smallest = [], [], {}
    for mine in certified.by_problem(rows):
        one = mine[0]
        n = one["n"]
        model = f"{one['supports']} p={one['p']} Pr={one['cooccurrence'] or one['p']}"
        key = (model, "plain" if one["options"] else "weights")
        if np.mean([row["certified"] == n for row in mine]) > 0.5:
            smallest.setdefault(key, {}).setdefault(n, one["m"])
        if one["options"]:
            continue
        found = np.array([row["near"] / n for row in mine])
        cells = []
        for name in peers:
            difference = found - np.array([row["peers"][name]["near"] / n for row in mine])
            error = float(np.std(difference, ddof=1) / np.sqrt(seeds)) if seeds > 1 else 0.0
            if np.mean(difference) < -error - SLACK:
                worse.append(f"{one['problem']} {name} by {-np.mean(difference):.3f} +- {error:.3f}")
            cells += [certified.peer_share(mine, name), float(np.mean(difference)), error]
        sure = float(np.mean([row["certified"] / n for row in mine]))
        lines.append([model, n, one["m"], float(np.mean(found)), sure, *cells])
    headers = ["supports", "d", "m", "found", "certified", *(w for name in peers for w in (name, "difference", "+-"))]
    print(f"\nmeans over {seeds} seeds\n")
    print(report.table(headers, lines))
    print("\nsmallest m at which all atoms are certified in most seeds\n")
    summary = []
    for (model, kind), reached in smallest.items():
        least = [reached.get(n) for n in sizes]
        summary.append([model, kind, *least, exponent(sizes, least)])
    print(report.table(["supports", "moments", *(f"d={n}" for n in sizes), "exponent"], summary))
    compared = len(lines) * len(peers)
    measured = "; not ".join([f"{compared - len(worse)} of {compared} pairs", *worse])
    bars.judge("share found nowhere lower than the peers'", not worse, measured, full_size=True)
    wrong = sum(row["wrong"] for row in rows)
    bars.judge("no wrong certificate", wrong == 0, f"{wrong} of {sum(r['n'] for r in rows)} in {len(rows)} runs")
    return bars.close(rows=rows, smallest=summary)


if __name__ == "__main__":
    raise SystemExit(main())
