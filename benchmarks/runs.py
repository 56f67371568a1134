"""Many runs: solvers on a problem over seeds, their medians, and the table."""

from __future__ import annotations

import statistics
import tempfile
import textwrap
from pathlib import Path
from typing import Any

from benchmarks import objective, problems, report


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
                    row = objective.run(name, Path(folder), seed, limit)
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
        medians = {name: statistics.median(row[name] for row in good) if good else None for name in objective.FIGURES}
        failures = list(dict.fromkeys(row["reason"] for row in mine if row["status"] != "ok"))
        entry = {"problem": key[0], "solver": key[1], "runs": len(mine), "ok": len(good)}
        said = list(dict.fromkeys(warning for row in good for warning in row["warnings"]))
        summary.append({**entry, **medians, "failures": failures, "warnings": said})
    return summary


def printed(summary: list[dict[str, Any]]) -> tuple[list[str], list[list[Any]]]:
    """Headers and rows of the table; the problem is named in the first of its rows."""
    rows: list[list[Any]] = []
    seen = None
    for s in summary:
        found, *squared = (("-" if s[key] is None else f"{s[key]:.4f}") for key in ("fraction", "worst", "median"))
        memory = "-" if s["peak_mb"] is None else f"{s['peak_mb']:.0f}"
        name = s["problem"] if s["problem"] != seen else ""
        seen = s["problem"]
        remark = textwrap.shorten("".join((s["failures"] + s["warnings"])[:1]), 60, placeholder=" ...")
        rows.append([name, s["solver"], s["seconds"], memory, found, *squared, remark])
    return ["problem", "solver", "seconds", "peak MB", "found", "worst", "median", "remark"], rows
