"""The dense benchmark: every solver on every problem, a table, and the results kept as data.

``python -m benchmarks`` runs everything, some twenty minutes on two cores; ``--quick`` two tiny problems, once;
``--only quartic`` one solver; ``--problems gaussian`` one problem set.  The last two may be repeated.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import objective, problems, report, solvers

FIGURES = ("seconds", "peak_mb", "loaded_mb", "fraction", "worst")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    every = [name for name in problems.names() if name != "tiny"]
    parser.add_argument("--quick", action="store_true", help="the tiny problems, once; kept only with --out")
    parser.add_argument("--only", action="append", choices=solvers.names(), metavar="NAME", help="solvers to run")
    parser.add_argument("--problems", action="append", choices=problems.names(), metavar="SET", help="problem sets")
    parser.add_argument("--repeats", type=int, help="seeds a problem (default 3)")
    parser.add_argument("--limit", type=float, default=90.0, help="seconds a run may take (default 90)")
    parser.add_argument("--out", type=Path, help="file for the results (default benchmarks/results/dense.json)")
    args = parser.parse_args(argv)
    sets = args.problems or (["tiny"] if args.quick else every)
    repeats = args.repeats or (1 if args.quick else 3)
    # A part of the benchmark does not overwrite the results of the whole.
    whole = not (args.quick or args.only or args.problems)

    load = report.load()
    rows: list[dict[str, Any]] = []
    for problem in (p for name in sets for p in problems.load(name)):
        rows += measure(problem, args.only or solvers.names(), repeats, args.limit)
    summary = summarise(rows)
    print("\n" + report.table(*printed(summary)))
    path = args.out or (report.RESULTS / "dense.json" if whole else None)
    if path is not None:
        report.save(path, {"load": load, "limit_s": args.limit, "summary": summary, "rows": rows})
    return 0


def measure(problem: problems.Problem, names: list[str], repeats: int, limit: float) -> list[dict[str, Any]]:
    """All solvers on one problem; seeds in the outer loop, so that solvers alternate on the machine."""
    rows: list[dict[str, Any]] = []
    late: set[str] = set()
    for seed in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            objective.keep(problem, seed, Path(folder))
            for name in names:
                if name in late:
                    row = {**objective.EMPTY, "status": "timeout", "reason": "not run: an earlier seed was too slow"}
                else:
                    row = objective.run(name, Path(folder), problem.n, seed, limit)
                if row["status"] == "timeout":
                    late.add(name)
                rows.append({**problem.as_dict(), "solver": name, "seed": seed, **row})
                took = report.cell(row["seconds"]) + " s"
                print(f"{problem.name}  seed {seed}  {name}: {row['reason'] or took}", flush=True)
    return rows


def summarise(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Medians over the seeds of each problem and solver that ran, and what went wrong in the others."""
    summary = []
    for key in dict.fromkeys((row["problem"], row["solver"]) for row in rows):
        mine = [row for row in rows if (row["problem"], row["solver"]) == key]
        good = [row for row in mine if row["status"] == "ok"]
        medians = {name: statistics.median(row[name] for row in good) if good else None for name in FIGURES}
        failures = list(dict.fromkeys(row["reason"] for row in mine if row["status"] != "ok"))
        entry = {"problem": key[0], "solver": key[1], "runs": len(mine), "ok": len(good)}
        summary.append({**entry, **medians, "failures": failures})
    return summary


def printed(summary: list[dict[str, Any]]) -> tuple[list[str], list[list[Any]]]:
    """Headers and rows of the table; the problem is named in the first of its rows."""
    rows: list[list[Any]] = []
    seen = None
    for s in summary:
        found = "-" if s["fraction"] is None else f"{s['fraction']:.3f}"
        worst = "-" if s["worst"] is None else f"{s['worst']:.4f}"
        memory = "-" if s["peak_mb"] is None else f"{s['peak_mb']:.0f}"
        name = s["problem"] if s["problem"] != seen else ""
        seen = s["problem"]
        rows.append([name, s["solver"], s["seconds"], memory, found, worst, "; ".join(s["failures"][:1])])
    return ["problem", "solver", "seconds", "peak MB", "found", "worst", "failures"], rows


if __name__ == "__main__":
    raise SystemExit(main())
