"""A result on a terminal: with a table in colour where rich is installed, in plain text elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from quartic._words import called
from quartic.cli.common import say
from quartic.report.findings import Findings, findings

MOST = 20  # rows of the table; the report has them all
LEFT_OUT = ("Largest entries", "Stability")  # of a table that is too wide, in this order


def present(subject: Any, text: str, written: Sequence[str], warnings: Sequence[str] = ()) -> None:
    """Print a decomposition or a model: ``text`` in a pipe or a file, and on a terminal without rich."""
    if sys.stdout.isatty():
        try:
            from rich.console import Console
        except ImportError:
            pass
        else:
            coloured(findings(subject, warnings), written, Console(highlight=False), warnings)
            return
    say("\n".join([text, *([""] if written else []), *written]))


def coloured(found: Findings, written: Sequence[str], console: Any, seen: Sequence[str] = ()) -> None:
    """The status, notes but those already seen, how it was found, and a table whose uncertified rows stand out."""
    from rich.table import Table
    from rich.text import Text

    style = "bold green" if found.tone == "good" else "bold yellow"
    console.print(Text(found.headline, style="bold"))
    console.print(Text(f"{found.verdict}.", style=style), Text(str(found.status)))
    for note in found.notes:
        if note not in seen:
            console.print(Text(note, style="yellow"))
    facts = Table(box=None, show_header=False, pad_edge=False)
    for name, fact in found.facts.items():
        facts.add_row(Text(name, style="dim"), Text(called(fact, found.noun)))
    console.print(facts)
    n, columns = found.components.shape[0], found.columns()
    for name in LEFT_OUT:
        if _width(columns) > console.width:
            columns.pop(name, None)
    if n:
        table = Table("Index", header_style="bold")
        for name in columns:
            table.add_column(name, justify="left" if name == "Largest entries" else "right")
        for i in found.ranked[:MOST]:
            cells = (Text(cells[i]) for cells in columns.values())  # never markup: names come from the data
            table.add_row(str(i), *cells, style=None if found.certified[i] else "yellow")
        console.print(table)
    if n > MOST:
        console.print(Text(f"... and {n - MOST} more"))
    for line in written:
        console.print(Text(line))


def _width(columns: dict[str, list[str]]) -> int:
    """Of a table with an index: each column takes a frame and two blanks."""
    return 9 + sum(3 + max(map(len, (name, *cells[:MOST]))) for name, cells in columns.items())
