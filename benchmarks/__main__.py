"""The benchmark: every solver on every problem of one kind, a table, and the results kept as data.

``python -m benchmarks`` runs everything on dense tensors, ``python -m benchmarks samples`` on samples; ``--quick`` two
tiny problems, once; ``--only quartic`` one solver; ``--problems gaussian`` one problem set.  The last two may be
repeated.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from benchmarks import problems, report, runs, solvers


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", nargs="?", choices=problems.KINDS, default="dense", help="of problem (default dense)")
    parser.add_argument("--quick", action="store_true", help="the tiny problems, once; kept only with --out")
    parser.add_argument("--only", action="append", metavar="NAME", help="solvers to run")
    parser.add_argument("--problems", action="append", metavar="SET", help="problem sets")
    parser.add_argument("--repeats", type=int, help="seeds a problem (default 3)")
    parser.add_argument("--limit", type=float, default=90.0, help="seconds a run may take (default 90)")
    parser.add_argument("--out", type=Path, help="file for the results (default benchmarks/results/KIND.json)")
    args = parser.parse_args(argv)
    known = {"--only": solvers.names(args.kind), "--problems": problems.names(args.kind)}
    for option, chosen in (("--only", args.only), ("--problems", args.problems)):
        for name in chosen or ():
            if name not in known[option]:
                parser.error(f"{option} {name}: for {args.kind} there are {', '.join(known[option])}")
    sets = args.problems or (["tiny"] if args.quick else [name for name in known["--problems"] if name != "tiny"])
    repeats = args.repeats or (1 if args.quick else 3)
    # A part of the benchmark does not overwrite the results of the whole.
    whole = not (args.quick or args.only or args.problems)

    load = report.load()
    rows: list[dict[str, Any]] = []
    for problem in (p for name in sets for p in problems.load(name, args.kind)):
        rows += runs.measure(problem, args.only or known["--only"], repeats, args.limit)
    summary = runs.summarise(rows)
    print("\n" + report.table(*runs.printed(summary)))
    path = args.out or (report.RESULTS / f"{args.kind}.json" if whole else None)
    if path is not None:
        report.save(path, {"load": load, "limit_s": args.limit, "summary": summary, "rows": rows})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
