"""One look for all figures: readable in print, in grey, and for colour-blind readers.

A line differs from the others in colour (Okabe and Ito's palette), in marker and in dashes.
"""

from __future__ import annotations

from itertools import cycle
from pathlib import Path
from typing import Any

import matplotlib

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F", "#5D3A9B")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "h")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)), (0, (4, 1, 1, 1, 1, 1)))
STYLE = {
    "figure.dpi": 100,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 160,
    "font.size": 10,
    "axes.grid": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.alpha": 0.3,
    "lines.linewidth": 1.6,
    "lines.markersize": 5,
    "legend.frameon": False,
}
FOLDER = Path(__file__).parent.parent / "docs" / "images" / "experiments"


def panels(rows: int = 1, columns: int = 1, width: float = 4.5, height: float = 3.4, **kwargs: Any) -> tuple[Any, Any]:
    """A figure and its axes, an array ``(rows, columns)``; width and height are those of one panel, in inches."""
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(columns * width, rows * height))
        return figure, figure.subplots(rows, columns, squeeze=False, **kwargs)


def styles(names: Any) -> dict[Any, dict[str, Any]]:
    """Colour, marker and dashes for each name: keywords of ``Axes.plot``."""
    looks = zip(cycle(COLOURS), cycle(MARKERS), cycle(DASHES), strict=False)
    return {
        name: {"color": colour, "marker": marker, "linestyle": dashes, "label": str(name)}
        for name, (colour, marker, dashes) in zip(names, looks, strict=False)
    }


def save(figure: Any, path: Path) -> None:
    """Write a figure, without the date: the same data give the same file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context(STYLE):
        figure.savefig(path, metadata={"Software": None})
