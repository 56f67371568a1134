"""Tables, the machine a figure was measured on, and bars that hold or do not."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
PACKAGES = (
    "quartic",
    "numpy",
    "scipy",
    "scikit-learn",
    "array-api-compat",
    "tensorly",
    "python-picard",
    "pyriemann",
    "cvxpy",
)


def table(headers: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Aligned columns: words to the left, numbers to the right."""
    cells = [[cell(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(headers, *cells, strict=True)]
    words = [any(c[:1].isalpha() for c in column) for column in zip(*cells, strict=True)] or [True] * len(headers)

    def line(row: Sequence[str]) -> str:
        padded = (c.ljust(w) if left else c.rjust(w) for c, w, left in zip(row, widths, words, strict=True))
        return "  ".join(padded).rstrip()

    return "\n".join([line(headers), line(["-" * w for w in widths]), *map(line, cells)])


def markdown(headers: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table in Markdown."""

    def line(cells: Sequence[Any]) -> str:
        return "| " + " | ".join(cell(c).replace("|", "\\|") for c in cells) + " |"

    return "\n".join([line(headers), line(["---"] * len(headers)), *map(line, rows)])


def cell(value: Any) -> str:
    """A value as it stands in a table: four digits, a dash for what is not there."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


def machine() -> dict[str, Any]:
    """Processor, cores, memory, BLAS and versions: what a time depends on."""
    from threadpoolctl import threadpool_info

    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "not installed"
    blas = [f"{p['internal_api']} {p['version']}, {p['num_threads']} threads" for p in threadpool_info()]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "processor": _processor(),
        "cores": cores,
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": platform.system(),
        "blas": sorted(set(blas)),
        "versions": versions,
    }


def load() -> float | None:
    """Processes that run on the machine, averaged over a minute; says so when it is no time to measure."""
    try:
        busy = os.getloadavg()[0]
    except (AttributeError, OSError):
        return None
    if busy > 0.5:
        print(f"the machine is busy (load {busy:.1f}): times are not to be trusted\n")
    return round(busy, 2)


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def save(path: Path, content: dict[str, Any]) -> None:
    """Write results as JSON, with the machine they were measured on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rounded = plain({"machine": machine(), **content})
    path.write_text(json.dumps(rounded, indent=1) + "\n", encoding="utf-8")
    print(f"\nkept in {path}")


def plain(value: Any) -> Any:
    """Six digits, and nothing that JSON does not know."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if hasattr(value, "item"):
        value = value.item()
    return float(f"{value:.6g}") if isinstance(value, float) else value


def options(description: str | None) -> argparse.ArgumentParser:
    """The options that every script of ``must_show`` has."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tiny version; times are shown, and not judged")
    parser.add_argument("--out", type=Path, help="file for the results (default of a full run: benchmarks/results)")
    return parser


class Bars:
    """The bars of one script: each is printed with whether it holds.

    Parameters
    ----------
    name : str
        Of the script, for the file of its results.
    args : argparse.Namespace
        ``quick`` and ``out`` of :func:`options`.  In a quick run a bar that holds at full size only, such as one on
        time, is not judged.
    """

    def __init__(self, name: str, args: argparse.Namespace) -> None:
        self.name, self.args = name, args
        self.bars: list[dict[str, Any]] = []
        self.load = load()

    def judge(self, bar: str, holds: bool, measured: str, full_size: bool = False) -> None:
        """Record a bar, what was measured, and whether it holds."""
        judged = not (full_size and self.args.quick)
        self.bars.append({"bar": bar, "measured": measured, "holds": bool(holds) if judged else None})

    def close(self, **content: Any) -> int:
        """Print the bars, keep the results, and return the exit code: 1 when a bar is missed."""
        print()
        for bar in self.bars:
            verdict = {True: "holds", False: "MISSED", None: "not judged at this size"}[bar["holds"]]
            print(f"{verdict}: {bar['bar']}; measured {bar['measured']}")
        path = self.args.out or (None if self.args.quick else RESULTS / "must_show" / f"{self.name}.json")
        if path is not None:
            save(path, {"load": self.load, "bars": self.bars, **content})
        return int(any(bar["holds"] is False for bar in self.bars))
