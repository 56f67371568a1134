"""The benchmark: every solver on every problem of a suite, a table, and the results kept as data.

``python -m benchmarks SUITE ...`` runs dense, samples, overcomplete or scaling, one after the other; ``--quick`` tiny
problems, once; ``--only quartic`` one solver; ``--problems gaussian`` one problem set.  The last two may be repeated.
Whatever is kept is shown in ``benchmarks/RESULTS.md``, which is written anew.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from benchmarks import page, problems, report, runs, solvers


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suites", nargs="+", choices=problems.SUITES, metavar="SUITE", help=", ".join(problems.SUITES))
    parser.add_argument("--quick", action="store_true", help="the tiny problems, once; kept only with --out")
    parser.add_argument("--only", action="append", metavar="NAME", help="solvers to run")
    parser.add_argument("--problems", action="append", metavar="SET", help="problem sets")
    parser.add_argument("--repeats", type=int, help="seeds a problem (default 3)")
    parser.add_argument("--limit", type=float, default=90.0, help="seconds a run may take (default 90)")
    parser.add_argument("--out", type=Path, help="file for the results (default benchmarks/results/SUITE.json)")
    args = parser.parse_args(argv)
    if args.out is not None and len(args.suites) > 1:
        parser.error(f"--out {args.out}: a file holds one suite, and {len(args.suites)} were given; run them in turn")
    load = report.load()  # before the first: afterwards it is the benchmark itself that keeps the machine busy
    for suite in args.suites:
        run(suite, load, args, parser)
    return 0


def run(suite: str, load: float | None, args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """One suite: its runs, its table, and what is kept of it."""
    sets = problems.names(suite)
    every = {name: problems.load(name, suite) for name in sets}
    able = {name for found in every.values() for p in found for name in solvers.names(*p.needs)}
    known = {"--only": sorted(able, key=lambda name: (name != "quartic", name)), "--problems": sets}
    for option, names in (("--only", args.only), ("--problems", args.problems)):
        for name in names or ():
            if name not in known[option]:
                parser.error(f"{option} {name}: for {suite} there are {', '.join(known[option])}")
    chosen = args.problems or [name for name in sets if name.startswith("tiny") == args.quick]
    repeats = args.repeats or (1 if args.quick else 3)
    # A part of the benchmark does not overwrite the results of the whole.
    whole = not (args.quick or args.only or args.problems)

    rows: list[dict[str, Any]] = []
    for problem in (p for name in chosen for p in every[name]):
        asked = solvers.names(*problem.needs, d=problem.d or problem.n)
        taking = [name for name in asked if name in (args.only or able)]
        rows += runs.measure(problem, taking, repeats, args.limit)
    summary = runs.summarise(rows)
    print("\n" + report.table(*runs.printed(summary)))
    path = args.out or (report.RESULTS / f"{suite}.json" if whole else None)
    if path is not None:
        report.save(path, {"load": load, "limit_s": args.limit, "summary": summary, "rows": rows})
    if whole and args.out is None:
        page.write()


if __name__ == "__main__":
    raise SystemExit(main())
