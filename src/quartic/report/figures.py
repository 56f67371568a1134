"""Figures of a decomposition or of a fitted model, each with its content in words.

A panel is one pair of axes: what is drawn in it, how to read it, and what it shows.  ``plot`` puts all of them into one
figure, the page takes them one by one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from quartic._files import atomic
from quartic.algorithms.certify import CERTIFIED
from quartic.report.findings import Findings, findings

# Okabe and Ito's blue, and their vermilion, darkened until small letters can be read on white: apart for every colour
# vision; the markers differ too, for print in grey.
KEPT, REST, LINE, INK, BAND = "#0072B2", "#B84A00", "#444444", "#222222", "#F2F2F2"
SHOWN = 2.5  # eigenvalues drawn, times the rank: what lies far beyond is not resolved by the iteration
CLEAR = 1.5  # factor of a gap that a caption calls clear; arbitrary
TINY = 1e-6  # a gap down to less than this is down to nothing, and has no factor worth printing; arbitrary
LEAST = 8  # eigenvalues drawn at least; arbitrary
FOUND = 0.99  # squared correlation at which a true component counts as found
FLOOR = 1e-16  # uncertainties below are rounding, and are drawn here
TILES = 64  # atoms drawn as images at most; arbitrary
ACROSS = 12  # images in a row; arbitrary
WIDTH, HEIGHT = 7.5, 3.0  # inches of a row of two panels
TICKS = 20  # rows of a matrix that are numbered one by one, at most


@dataclass(frozen=True)
class Panel:
    """One pair of axes.

    Attributes
    ----------
    title : str
    caption : str
        How to read it.
    says : str
        What it shows, for those who do not see it.
    draw : callable
        Draws it in axes.
    wide : float
        Height over width where it takes all of the width; otherwise 0.
    """

    title: str
    caption: str
    says: str
    draw: Callable[[Any], Any]
    wide: float = 0.0

    def drawn(self, ax: Any) -> Any:
        """The axes, drawn in, with a title."""
        self.draw(ax).set_title(self.title, loc="left", fontsize=10, color=INK)
        return ax


def require_matplotlib() -> None:
    """Raise an ImportError that says how to install matplotlib, if it cannot be imported.

    Examples
    --------
    >>> import quartic.report
    >>> quartic.report.require_matplotlib()  # before long work whose result is to be drawn
    """
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise ImportError("drawing needs matplotlib: pip install matplotlib") from error


def plot(
    subject: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    truth: Any = None,
    shape: tuple[int, int] | None = None,
) -> Any:
    """The spectrum beside the certificates; of a model also the uncertainties and which atoms occur together.

    Parameters
    ----------
    subject : Decomposition or fitted estimator
    path : str or path, optional
        Where to write the figure, all at once or not at all; the suffix is the format (``.png`` when there is none).
    truth : array-like of shape (m, d), or an object with such ``components``, optional
        True components: found ones are shown against them.
    shape : (int, int), optional
        Of the images that the components are, which are then shown.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import quartic.report
    >>> planted = quartic.datasets.planted_tensor(6, 4, 0.1, random_state=0)
    >>> figure = quartic.report.plot(quartic.decompose(planted.tensor, random_state=0), truth=planted)
    >>> [ax.get_title("left") for ax in figure.get_axes()][:3]
    ['Spectrum of the tensor', 'Certificates', '4 of 4 true components found']
    """
    shown = panels(findings(subject), truth, shape)
    narrow, wide = ([panel for panel in shown if bool(panel.wide) is full] for full in (False, True))
    rows = [narrow[i : i + 2] for i in range(0, len(narrow), 2)] + [[panel] for panel in wide]
    heights = [WIDTH * row[0].wide or HEIGHT for row in rows]
    figure = blank(WIDTH, sum(heights))
    parts = figure.subfigures(len(rows), 1, height_ratios=heights, squeeze=False)[:, 0]
    for i, (part, row) in enumerate(zip(parts, rows, strict=True)):
        # The spectrum, which comes first, has more to say than what is beside it.
        axes = part.subplots(1, 1 if row[0].wide else 2, width_ratios=None if row[0].wide else ((1, 1), (5, 3))[i == 0])
        for ax, panel in zip(np.ravel(axes), row, strict=False):
            panel.drawn(ax)
        for ax in np.ravel(axes)[len(row) :]:
            ax.set_axis_off()
    if path is not None:
        suffix = os.path.splitext(os.fspath(path))[1]
        with atomic(path) as out:
            figure.savefig(out, format=suffix[1:].lower() or "png", dpi=150)
    return figure


def plot_spectrum(subject: Any, ax: Any = None) -> Any:
    """Leading eigenvalues: those that were kept, the rest, the gap between them, and eps.

    Parameters
    ----------
    subject : Decomposition or fitted estimator
    ax : matplotlib.axes.Axes, optional
        Where to draw; a figure of its own when not given.

    Returns
    -------
    matplotlib.axes.Axes

    Notes
    -----
    The values are Ritz values: the kept ones have converged, the others approach their eigenvalues from below.

    Examples
    --------
    >>> import quartic.report
    >>> result = quartic.decompose(quartic.datasets.planted_tensor(6, 4, 0.1, random_state=0).tensor, random_state=0)
    >>> quartic.report.plot_spectrum(result).get_ylabel()
    'eigenvalue (units of $T$)'
    """
    return _spectrum(findings(subject)).drawn(blank().subplots() if ax is None else ax)


def plot_certificates(subject: Any, ax: Any = None) -> Any:
    """The certificate of every component, with the level above which it is *certified*.

    Parameters
    ----------
    subject : Decomposition or fitted estimator
    ax : matplotlib.axes.Axes, optional
        Where to draw; a figure of its own when not given.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import quartic.report
    >>> result = quartic.decompose(quartic.datasets.planted_tensor(6, 4, 0.1, random_state=0).tensor, random_state=0)
    >>> quartic.report.plot_certificates(result).get_ylabel()
    'lower bound on squared correlation'
    """
    return _certificates(findings(subject)).drawn(blank(3.4).subplots() if ax is None else ax)


def panels(found: Findings, truth: Any = None, shape: tuple[int, int] | None = None) -> list[Panel]:
    """Everything there is to draw."""
    shown = [_spectrum(found), _certificates(found)]
    if found.uncertainty is not None and found.correlations is not None:
        shown += [_uncertainty(found, found.uncertainty), _together(found, found.correlations)]
    if truth is not None:
        shown.append(_match(found, truth))
    if shape is not None:
        shown.append(_images(found, shape))
    return shown


def _spectrum(found: Findings) -> Panel:
    """Leading eigenvalues, with the gap below those that were kept."""
    n = int(np.sum(found.kept))
    cut = n + found.skipped  # eigenvalues down to the last that was kept
    values = found.spectrum[: max(LEAST, round(SHOWN * cut))]
    kept = found.kept[: values.shape[0]]
    shown, of = values.shape[0], "cumulant" if found.is_model else "tensor"
    top = max(float(np.max(values, initial=0.0)), found.assumed or 0.0)
    # As where the rank is chosen: the largest magnitude beyond, which may be that of a negative one.
    upper, lower = (values[cut - 1], float(np.max(np.abs(found.spectrum[cut:])))) if 0 < cut < shown else (0.0, 0.0)
    gap = f"gap {upper - lower:.3g}" + (f", a factor of {upper / lower:.3g}" if lower > TINY * upper else "")
    small = max(found.assumed or 0.0, found.eps) <= TINY * top
    eps = "eps: rounding" if small else f"eps {found.assumed or 0.0:.3g} (measured {found.eps:.3g})"

    says = f"Plot of the {shown} leading eigenvalues of {found.eigenvalues}. "
    says += f"{n} are kept, from {values[kept][0]:.3g} down to {values[kept][-1]:.3g}. " if n else "None is kept. "
    says += f"{found.skipped} larger ones are skipped. " if found.skipped else ""
    says += f"The largest beyond them is {lower:.3g}: {gap}. " if 0 < cut < shown else ""
    says += f"A dashed line marks the error that certificates rest on, {eps}." if found.assumed is not None else ""

    def draw(ax: Any) -> Any:
        low = min(float(np.min(values, initial=0.0)), 0.0)
        height = (top - low) or 1.0
        number = np.arange(1, shown + 1)
        ax.set_ylim(low - 0.12 * height, top + 0.15 * height)  # room for labels below the last and above the first
        ax.set_xlim(0.0, shown + 1.0)
        ax.plot(number[kept], values[kept], "o", ms=4.5, color=KEPT, label="kept")
        ax.plot(number[~kept], values[~kept], "s", ms=4, mfc="none", mew=1, color=REST, label="not kept")
        if found.assumed is not None:
            ax.axhline(found.assumed, color=LINE, lw=0.8, ls="--", zorder=1)
            side = -4 if found.assumed > low + 0.8 * height else 3
            _label(ax, eps, (shown + 1, found.assumed), (-2, side), LINE, "right", "top" if side < 0 else "bottom")
        if n:
            skipped = f", {found.skipped} skipped" if found.skipped else ""
            _label(ax, f"{n} kept{skipped}", (1, values[0]), (2, 6), KEPT)
        if cut < shown:
            rest = found.eigenvalues - cut
            beyond = f"{shown - cut} of the other {rest}" if shown - cut < rest else f"the other {rest}"
            _label(ax, beyond, (shown, values[-1]), (3, -7), REST, ha="right", va="top")
        if 0 < cut < shown:
            ax.axhspan(lower, upper, color=BAND, lw=0, zorder=0)
            ends = {"arrowstyle": "<->", "color": LINE, "lw": 1, "shrinkA": 0, "shrinkB": 0}
            ax.annotate("", (cut + 0.5, lower), (cut + 0.5, upper), arrowprops=ends)
            # Beside its arrow if there is room; else above everything, where no eigenvalue beyond the cut can be.
            middle = (upper + lower) / 2 if upper - lower > 0.2 * height else top + 0.1 * height
            _label(ax, gap, (cut + 0.5, middle), (6, 0), LINE, va="center")
        ax.set_xlabel("eigenvalue number, largest first")
        ax.set_ylabel("eigenvalue" if found.skipped else "size of the eigenvalue" if found.is_model else _UNITS)
        return _plain(ax)

    caption = (
        f"Eigenvalues of the {of}, as a matrix on symmetric matrices. Components lie in the span of the kept ones "
        "(blue)"
    )
    caption += "; a clear gap below them says that their number is right." if upper > CLEAR * lower else "."
    return Panel(f"Spectrum of the {of}", caption, says, draw)


_UNITS = "eigenvalue (units of $T$)"


def _certificates(found: Findings) -> Panel:
    """The certificate of each component, and the level above which it is certified."""
    bounds, good = found.certificates, found.certified
    text = f"certified above {CERTIFIED:g}: {int(np.sum(good))} of {bounds.shape[0]}"
    says = f"Plot of the certificates of {found.counted(bounds.shape[0])}; {text}."
    if bounds.shape[0]:
        says += f" They lie between {np.min(bounds):.3f} and {np.max(bounds):.3f}, median {np.median(bounds):.3f}."

    def draw(ax: Any) -> Any:
        number = np.arange(bounds.shape[0])
        ax.plot(number[good], bounds[good], "o", ms=4.5, color=KEPT, label="certified")
        ax.plot(number[~good], bounds[~good], "x", ms=5, color=REST, label="not certified")
        ax.axhline(CERTIFIED, color=LINE, lw=0.8, ls="--", zorder=0)
        ax.set_ylim(-0.04, 1.04)  # crosses at 0 are not cut in half
        ax.set_xlim(-1.0, max(bounds.shape[0], 1))
        # On the side of the line where fewer points are in the way.
        above = np.sum(np.abs(bounds - CERTIFIED - 0.06) < 0.06) < np.sum(np.abs(bounds - CERTIFIED + 0.06) < 0.06)
        _label(ax, text, (-1, CERTIFIED), (5, 3 if above else -4), LINE, va="bottom" if above else "top")
        ax.set_xlabel(f"index of the {found.noun}")
        ax.set_ylabel("lower bound on squared correlation")
        return _plain(ax)

    caption = (
        f"A lower bound on the squared correlation of each {found.noun} with a true one. Above one half it is nearer "
        "to one of them than to all others together: certified."
    )
    return Panel("Certificates", caption, says, draw)


def _uncertainty(found: Findings, sines: np.ndarray) -> Panel:
    """Estimated angles to the truth, on a logarithmic scale."""
    good = found.certified
    values = np.maximum(sines, FLOOR)
    says = (
        f"Plot of the uncertainties of {found.counted(sines.shape[0])}, sines of angles, on a logarithmic scale: "
        f"between {np.min(sines):.1e} and {np.max(sines):.1e}, median {np.median(sines):.1e}."
    )

    def draw(ax: Any) -> Any:
        number = np.arange(values.shape[0])
        ax.set_yscale("log")
        ax.plot(number[good], values[good], "o", ms=4.5, color=KEPT, label="certified")
        ax.plot(number[~good], values[~good], "x", ms=5, color=REST, label="not certified")
        ax.set_ylim(min(float(np.min(values)) / 3, 0.01), 2.0)
        ax.set_xlim(-1.0, values.shape[0])
        ax.set_xlabel(f"index of the {found.noun}")
        ax.set_ylabel("sine of the angle to the truth")
        return _plain(ax)

    caption = (
        f"How far each certified {found.noun} may be from the truth, from two halves of the samples. Crosses are not "
        "certified: there may be no truth that they are near to."
    )
    return Panel("Uncertainty", caption, says, draw)


def _together(found: Findings, R: np.ndarray) -> Panel:
    """Correlations of energies, the groups first and framed."""
    inside = [i for group in found.groups for i in group]
    order = inside + sorted(set(range(R.shape[0])) - set(inside))
    sizes = ", ".join(str(len(group)) for group in found.groups)
    largest = float(np.max(R, initial=0.0))
    groups = {0: "No group", 1: "One group"}.get(len(found.groups), f"{len(found.groups)} groups")
    says = (
        f"Matrix of the correlations of the energies of {found.counted(R.shape[0])}; the largest is {largest:.2f}. "
        f"{groups} of {found.noun}s that occur together{f', of sizes {sizes}' if sizes else ''}."
    )

    def draw(ax: Any) -> Any:
        from matplotlib.patches import Rectangle

        _matrix(ax, R[np.ix_(order, order)], order, order, max(largest, 0.1))
        start = 0
        for group in found.groups:
            side = len(group)
            ax.add_patch(Rectangle((start - 0.5, start - 0.5), side, side, fill=False, ec="#FFFFFF", lw=1.5))
            start += side
        ax.set_xlabel(f"{found.noun}s, by group")
        ax.set_ylabel(f"{found.noun}s, by group")
        return _plain(ax)

    caption = (
        f"Correlations of the energies of {found.noun}s, sorted by group; frames are groups that occur together. "
        "Where all is dark they occur independently."
    )
    return Panel("Occurring together", caption, says, draw)


def _match(found: Findings, truth: Any) -> Panel:
    """Squared correlations of found and true components, partners on the diagonal."""
    matched = found.matched(truth)
    n, m = matched.table.shape
    order = [*matched.columns.tolist(), *sorted(set(range(m)) - set(matched.columns.tolist()))]
    rows = [*matched.rows.tolist(), *sorted(set(range(n)) - set(matched.rows.tolist()))]
    least = f"; the weakest pair has {np.min(matched.squared):.3f}" if matched.squared.size else ""
    says = (
        f"Matrix of the squared correlations of {n} found and {m} true {found.noun}s, partners on the diagonal: "
        f"{matched.found(FOUND)} of {m} true ones are found at {FOUND} or better{least}."
    )

    def draw(ax: Any) -> Any:
        _matrix(ax, matched.table[np.ix_(rows, order)], rows, order, 1.0)
        ax.set_xlabel(f"true {found.noun}s, by partner")
        ax.set_ylabel(f"found {found.noun}s")
        return _plain(ax)

    caption = f"Squared correlation of every found {found.noun} with every true one: a bright diagonal is a full match."
    return Panel(f"{matched.found(FOUND)} of {m} true {found.noun}s found", caption, says, draw)


def _images(found: Findings, shape: tuple[int, int]) -> Panel:
    """The components as images, side by side, each on a scale of its own."""
    n, d = found.components.shape
    h, w = shape
    if h < 1 or w < 1 or h * w != d:
        raise ValueError(f"shape ({h}, {w}) is not that of images of {d} features.")
    shown = min(n, TILES)
    down = -(-shown // ACROSS) or 1
    says = f"The first {shown} of {found.counted(n)} as images of {h} by {w}, in the order of the table."

    def draw(ax: Any) -> Any:
        sheet = np.full((down * ACROSS, h + 1, w + 1), np.nan)
        peaks = np.max(np.abs(found.components[:shown]), axis=1)
        sheet[:shown, :h, :w] = (found.components[:shown] / peaks[:, None]).reshape(shown, h, w)
        sheet = sheet.reshape(down, ACROSS, h + 1, w + 1).swapaxes(1, 2).reshape(down * (h + 1), -1)
        ax.imshow(sheet[:-1, :-1], cmap="RdBu_r", vmin=-1, vmax=1, interpolation="none")
        ax.set_axis_off()
        return ax

    caption = (
        "Row by row in the order of the table, each on a scale of its own: red positive, white zero, blue negative."
    )
    title = 0.06  # height over width of the title of the figure
    return Panel(
        f"{found.noun.capitalize()}s as images", caption, says, draw, wide=title + down * (h + 1) / (ACROSS * (w + 1))
    )


def _matrix(ax: Any, X: np.ndarray, rows: Sequence[int], columns: Sequence[int], most: float) -> None:
    """A matrix as an image with a scale; its rows are numbered if they are few."""
    image = ax.imshow(X, cmap="cividis", vmin=0.0, vmax=most, interpolation="none", aspect="auto")
    bar = ax.figure.colorbar(image, ax=ax)
    bar.ax.tick_params(labelsize=8, colors=INK)
    bar.outline.set_visible(False)
    for axis, names in ((ax.xaxis, columns), (ax.yaxis, rows)):
        axis.set_ticks(range(len(names)) if len(names) <= TICKS else [], names if len(names) <= TICKS else None)


def blank(width: float = 4.6, height: float = 3.0) -> Any:
    """An empty figure, of so many inches."""
    require_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _label(
    ax: Any,
    text: str,
    at: tuple[float, float],
    offset: tuple[float, float],
    color: str,
    ha: str = "left",
    va: str = "bottom",
) -> None:
    """Text beside a point, ``offset`` printer's points away from it."""
    ax.annotate(text, at, offset, textcoords="offset points", color=color, ha=ha, va=va, fontsize=8)


def _plain(ax: Any) -> Any:
    """Two axes instead of a box, small ticks, whole numbers along the bottom."""
    from matplotlib.ticker import MaxNLocator

    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(INK)
    ax.tick_params(labelsize=8, colors=INK, which="both")
    if not ax.images:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=(1, 2, 5, 10)))
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set(fontsize=9, color=INK)
    return ax
