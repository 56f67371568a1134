"""Complete dictionaries: every atom, in every seed.

Bar: d = n = 64, m = 60,000, Gaussian dictionaries, p = 0.1, every model of supports with Pr[j | i] up to 0.25, sign and
Gaussian coefficients, ten seeds: every atom found (squared correlation 0.99) in every seed.  The peers are shown next
to it, on three seeds: each run is a process of its own that may take ``--limit`` seconds.
"""

import statistics

from benchmarks import report, runs, solvers
from benchmarks.problems import SamplesProblem
from benchmarks.problems.complete import COOCCURRENCE


def summarise(rows):
    """One entry a problem and solver: in how many seeds every atom was found, and the worst of all."""
    entries = []
    for problem, solver in dict.fromkeys((row["problem"], row["solver"]) for row in rows):
        mine = [row for row in rows if (row["problem"], row["solver"]) == (problem, solver)]
        good = [row for row in mine if row["status"] == "ok"]
        entry = {"problem": problem, "solver": solver, "runs": len(mine)}
        entry["complete"] = sum(row["fraction"] == 1 for row in good)
        for name, figure in (("fraction", min), ("worst", min), ("seconds", statistics.median)):
            entry[name] = figure(row[name] for row in good) if good else None
        remarks = [row["reason"] for row in mine if row["reason"]] + [text for row in good for text in row["warnings"]]
        entries.append({**entry, "remark": "".join(remarks[:1])[:60]})
    return entries


def main(argv=None):
    parser = report.options(__doc__)
    parser.add_argument("--seeds", type=int, help="seeds a problem (default 10)")
    parser.add_argument("--peer-seeds", type=int, help="seeds a problem for the peers (default 3); 0 leaves them out")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds a run may take (default 120)")
    args = parser.parse_args(argv)
    bars = report.Bars("complete", args)
    chosen = [
        SamplesProblem(60_000, 64, supports=supports, cooccurrence=cooccurrence, coefficients=coefficients)
        for supports, cooccurrence in COOCCURRENCE.items()
        for coefficients in ("sign", "gaussian")
    ]
    seeds, peer_seeds, peers = 10, 3, solvers.names("samples")[1:]  # quartic is the first
    if args.quick:
        chosen = [SamplesProblem(8000, 8, supports="blocks", cooccurrence=0.25)]
        seeds, peer_seeds, peers = 1, 1, ["fastica_logcosh"]
    seeds = args.seeds or seeds
    peer_seeds = peer_seeds if args.peer_seeds is None else args.peer_seeds
    rows = []
    for problem in chosen:
        rows += runs.measure(problem, ["quartic"], seeds, args.limit)
        rows += runs.measure(problem, peers, peer_seeds, args.limit)
    summary = summarise(rows)
    headers = ["problem", "solver", "seeds", "complete", "least found", "worst", "seconds", "remark"]
    print("\n" + report.table(headers, [list(entry.values()) for entry in summary]))
    ours = [entry for entry in summary if entry["solver"] == "quartic"]
    missed = [entry["problem"] for entry in ours if entry["complete"] < seeds]
    measured = f"{sum(entry['complete'] for entry in ours)} of {seeds * len(ours)} runs"
    bars.judge("every atom found in every seed", not missed, "; not ".join([measured, *missed]))
    return bars.close(rows=rows, summary=summary, seeds=seeds, peer_seeds=peer_seeds, limit_s=args.limit)


if __name__ == "__main__":
    raise SystemExit(main())
