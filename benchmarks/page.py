"""``RESULTS.md``, written from the data in ``results/``: ``python -m benchmarks.page`` writes it anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks import problems, report, runs

PAGE = Path(__file__).parent / "RESULTS.md"
OPENING = """\
# Results

Written by `python -m benchmarks.page` from the data in `results/`, not by hand. What the columns mean, and how to run
it again, is in [README.md](README.md). Medians over the runs that ended well; `found` is the fraction of the components
with squared correlation 0.99 or more, `worst` the smallest squared correlation.
"""
TITLES = {
    "dense": "Dense tensors",
    "samples": "Samples",
    "overcomplete": "More components than dimensions",
    "scaling": "Growing sizes",
}


def machine(kept: dict[str, Any]) -> str:
    """In a line: what the figures were measured on, and how busy it was."""
    m = kept["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in m["versions"].items())
    return f"{m['processor']}, {m['cores']} cores, {m['memory_gb']} GB, {m['system']}, load {kept['load']}; {versions}."


def markdown(folder: Path = report.RESULTS) -> str:
    """The page: a table for each suite, then the bars of every script of ``must_show``."""
    parts = [OPENING.rstrip()]
    for suite in problems.SUITES:
        path = folder / f"{suite}.json"
        if path.exists():
            kept = json.loads(path.read_text(encoding="utf-8"))
            parts += [f"## {TITLES[suite]}", machine(kept), report.markdown(*runs.printed(kept["summary"]))]
    bars = []
    for path in sorted((folder / "must_show").glob("*.json")):
        kept = json.loads(path.read_text(encoding="utf-8"))
        verdicts = {True: "holds", False: "**missed**", None: "not judged"}
        bars += [[f"`{path.stem}`", b["bar"], b["measured"], verdicts[b["holds"]]] for b in kept["bars"]]
    parts += ["## Figures that are claimed", "Each by the script of its name in `must_show/`."]
    return "\n\n".join([*parts, report.markdown(["script", "bar", "measured", ""], bars)]) + "\n"


def write() -> None:
    """Write the page."""
    PAGE.write_text(markdown(), encoding="utf-8")
    print(f"written: benchmarks/{PAGE.name}")


if __name__ == "__main__":
    write()
