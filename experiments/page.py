"""``docs/experiments.md``, written from the data that are kept: never by hand."""

from __future__ import annotations

import inspect
from pathlib import Path

from benchmarks.report import markdown as markdown_table
from experiments import experiment
from experiments.experiment import RESULTS

PAGE = Path(__file__).parent.parent / "docs" / "experiments.md"
OPENING = """\
# The paper's claims, measured

Written by `python -m experiments` from the data in `experiments/results/`, not by hand. The paper proves and does not
measure: here is what each of its claims comes to at sizes that run on two cores, where the method wins, and where it
does not. Every figure comes from one file in `experiments/`; `make experiments` runs them all.
"""


def markdown(folder: Path = RESULTS) -> str:
    """The page: the claims with their verdicts, then each experiment with its figure and tables."""
    found = [(name, experiment.load(name), experiment.kept(name, folder)) for name in experiment.names()]
    verdicts, sections = [], []
    for name, module, kept in found:
        if kept is None:
            continue
        data = kept["data"]
        for v in module.verdicts(data):
            verdicts.append([v.claim, v.states, v.measured, f"**{v.verdict}**", f"[{name}](#{anchor(module.TITLE)})"])
        minutes = f"{kept['seconds'] / 60:.1f} minutes on {kept['machine']['cores']} cores"
        sections += [
            f"## {module.TITLE}",
            experiment.claim(module),
            f"![{module.TITLE}: {inspect.getdoc(module.draw)}](images/experiments/{name}.png)",
            *(f"{table.title}\n\n{markdown_table(table.headers, table.rows)}" for table in module.tables(data)),
            f"`experiments/{name}.py`, {minutes}.",
        ]
    claims = markdown_table(["claim", "states", "measured", "verdict", "experiment"], verdicts)
    return "\n\n".join([OPENING.rstrip(), claims, *sections]) + "\n"


def anchor(title: str) -> str:
    """Where a heading is found on its page."""
    return "".join(c for c in title.lower().replace(" ", "-") if c.isalnum() or c == "-")
