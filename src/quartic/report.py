"""Results to look at: the spectrum with its gap, the certificates, and found against planted components.

matplotlib is an extra (``pip install 'quartic[plot]'``) and is imported inside the functions that draw.  They use
its objects only, never ``pyplot``: no window, no display, no global state.

The picture of ``quartic demo`` is made by

>>> import quartic, quartic.report
>>> planted = quartic.datasets.planted_tensor(12, 6, 0.2, error="trap", random_state=0)
>>> result = quartic.decompose(planted.tensor, random_state=0)
>>> figure = quartic.report.plot(result)  # plot(result, "spectrum.png") writes it to a file
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from quartic._arrays import to_numpy
from quartic._files import atomic
from quartic.algorithms.certify import CERTIFIED
from quartic.datasets import PlantedTensor
from quartic.metrics import match
from quartic.result import Decomposition

__all__ = ["compare", "plot", "plot_certificates", "plot_spectrum", "require_matplotlib"]

# Okabe and Ito's blue and vermilion: apart for every colour vision; the markers differ too, for print in grey.
KEPT, REST, LINE = "#0072B2", "#D55E00", "#444444"
SHOWN = 2.5  # eigenvalues drawn, times the rank: what lies far beyond is not resolved by the iteration
TINY = 1e-6  # a gap down to less than this is down to nothing, and has no factor worth printing; arbitrary
LEAST = 8  # eigenvalues drawn at least; arbitrary
FOUND = 0.99  # squared correlation at which a planted component counts as found


def require_matplotlib() -> None:
    """Raise an ImportError that says how to install matplotlib, if it cannot be imported."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise ImportError("drawing needs matplotlib: pip install 'quartic[plot]'") from error


def plot(result: Decomposition, path: str | os.PathLike[str] | None = None) -> Any:
    """The spectrum beside the certificates.

    Parameters
    ----------
    result : Decomposition
    path : str or path, optional
        Where to write the figure, all at once or not at all; the suffix is the format (``.png`` when there is none).

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = _figure(width=7.5)
    left, right = figure.subplots(1, 2, width_ratios=(5, 3))
    plot_spectrum(result, left)
    plot_certificates(result, right)
    if path is not None:
        suffix = os.path.splitext(os.fspath(path))[1]
        with atomic(path) as out:
            figure.savefig(out, format=suffix[1:].lower() or "png", dpi=150)
    return figure


def plot_spectrum(result: Decomposition, ax: Any = None) -> Any:
    """Leading eigenvalues of the tensor: those that were kept, the rest, the gap between them, and eps.

    Parameters
    ----------
    result : Decomposition
    ax : matplotlib.axes.Axes, optional
        Where to draw; a figure of its own when not given.

    Returns
    -------
    matplotlib.axes.Axes

    Notes
    -----
    The values are Ritz values: the kept ones have converged, the others approach their eigenvalues from below.
    """
    ax = _figure().subplots() if ax is None else ax
    d = result.components.shape[1]
    n = min(result.rank - result.known, result.spectrum.shape[0])
    values = result.spectrum[: max(LEAST, round(SHOWN * n))]
    shown = values.shape[0]
    number = np.arange(1, shown + 1)
    top = max(float(np.max(values, initial=0.0)), result.eps_assumed)
    low = min(float(np.min(values, initial=0.0)), 0.0)
    height = (top - low) or 1.0
    ax.set_ylim(low - 0.12 * height, top + 0.15 * height)  # room for the labels below the last and above the first
    ax.set_xlim(0.0, shown + 1.0)

    ax.plot(number[:n], values[:n], "o", ms=4.5, color=KEPT, label="kept")
    ax.plot(number[n:], values[n:], "s", ms=4, mfc="none", mew=1, color=REST, label="not kept")
    ax.axhline(result.eps_assumed, color=LINE, lw=0.8, ls="--", zorder=1)
    if n:
        _label(ax, f"{n} kept", (1, values[0]), (2, 6), KEPT)
    if n < shown:
        rest = d * (d + 1) // 2 - n
        beyond = f"{shown - n} of the other {rest}" if shown - n < rest else f"the other {rest}"
        _label(ax, beyond, (shown, values[-1]), (3, -7), REST, ha="right", va="top")
    if 0 < n < shown:
        upper, lower = values[n - 1], max(values[n], 0.0)
        ax.axhspan(lower, upper, color="0.93", lw=0, zorder=0)
        ends = {"arrowstyle": "<->", "color": LINE, "lw": 1, "shrinkA": 0, "shrinkB": 0}
        ax.annotate("", (n + 0.5, lower), (n + 0.5, upper), arrowprops=ends)
        ratio = f", a factor of {upper / lower:.3g}" if lower > TINY * upper else ""
        # Beside its arrow if there is room; else above everything, where no eigenvalue beyond the cut can be.
        middle = (upper + lower) / 2 if upper - lower > 0.2 * height else top + 0.1 * height
        _label(ax, f"gap {upper - lower:.3g}{ratio}", (n + 0.5, middle), (6, 0), LINE, va="center")
    side = -4 if result.eps_assumed > low + 0.8 * height else 3
    small = max(result.eps_assumed, result.eps) <= TINY * top
    eps = "eps: rounding" if small else f"eps: assumed {result.eps_assumed:.3g}, measured {result.eps:.3g}"
    _label(ax, eps, (shown + 1, result.eps_assumed), (-2, side), LINE, "right", "top" if side < 0 else "bottom")
    ax.set_xlabel("eigenvalue number, largest first")
    ax.set_ylabel("eigenvalue (units of $T$)")
    ax.set_title("Spectrum of the tensor", loc="left", fontsize=10)
    return _plain(ax)


def plot_certificates(result: Decomposition, ax: Any = None) -> Any:
    """The certificate of every component, with the level above which it is *certified*.

    Parameters
    ----------
    result : Decomposition
    ax : matplotlib.axes.Axes, optional
        Where to draw; a figure of its own when not given.

    Returns
    -------
    matplotlib.axes.Axes
    """
    ax = _figure(width=3.4).subplots() if ax is None else ax
    bounds = np.asarray(to_numpy(result.certificates), dtype=np.float64)
    good = np.asarray(to_numpy(result.certified))
    number = np.arange(1, bounds.shape[0] + 1)
    ax.plot(number[good], bounds[good], "o", ms=4.5, color=KEPT, label="certified")
    ax.plot(number[~good], bounds[~good], "x", ms=5, color=REST, label="not certified")
    ax.axhline(CERTIFIED, color=LINE, lw=0.8, ls="--", zorder=0)
    ax.set_ylim(0.0, 1.04)
    ax.set_xlim(0.0, max(bounds.shape[0], 1) + 1.0)
    # On the side of the line where fewer points are in the way.
    above = np.sum(np.abs(bounds - CERTIFIED - 0.06) < 0.06) < np.sum(np.abs(bounds - CERTIFIED + 0.06) < 0.06)
    text = f"certified above {CERTIFIED:g}: {int(np.sum(good))} of {bounds.shape[0]}"
    _label(ax, text, (0, CERTIFIED), (5, 3 if above else -4), LINE, va="bottom" if above else "top")
    ax.set_xlabel("component, largest weight first")
    ax.set_ylabel("lower bound on squared correlation")
    ax.set_title("Certificates", loc="left", fontsize=10)
    return _plain(ax)


def compare(planted: PlantedTensor, result: Decomposition, eps: float) -> str:
    """A table of what was planted against what was found, and the figures of the whole.

    Parameters
    ----------
    planted : PlantedTensor
    result : Decomposition
        Of ``planted.tensor``.
    eps : float
        Spectral norm of the planted error.

    Returns
    -------
    str
        Lines without a newline at the end.
    """
    weights, bounds = (np.asarray(to_numpy(x), dtype=np.float64) for x in (result.weights, result.certificates))
    certified = to_numpy(result.certified)
    matched = match(result.components, planted.components)
    partner = dict(zip(matched.rows.tolist(), matched.columns.tolist(), strict=True))
    squared = dict(zip(matched.rows.tolist(), matched.squared.tolist(), strict=True))

    lines = [
        "             weight              squared",
        "         planted     found   correlation   certificate   certified",
    ]
    for i in range(weights.shape[0]):
        was = f"{planted.weights[partner[i]]:8.4f}" if i in partner else f"{'-':>8}"
        fit = f"{squared[i]:12.4f}" if i in squared else f"{'-':>12}"
        mark = "yes" if certified[i] else "no"
        lines.append(f"  {i + 1:4d}{was:>10}{weights[i]:10.4f}{fit:>14}{bounds[i]:14.4f}{mark:>12}")
    for j in sorted(set(range(planted.weights.shape[0])) - set(partner.values())):
        lines.append(f"     -{planted.weights[j]:10.4f}   not found")

    n = planted.weights.shape[0]
    off = np.abs(weights[matched.rows] - planted.weights[matched.columns])
    stages = ", ".join(f"{stage} {seconds:.3f}" for stage, seconds in result.timings.items())
    lines += [
        "",
        f"found    {matched.found(FOUND)} of {n} planted components at squared correlation {FOUND} or better",
        f"weights  within {np.max(off, initial=0.0):.3g} of the planted ones; the error can shift them by eps",
        f"rank     {result.rank} found, {n} planted: {result.reason}",
        f"eps      {result.eps:.4g} measured, {eps:.4g} planted",
        f"status   {result.status}",
        f"time     {sum(result.timings.values()):.3f} s: {stages}; {result.sweeps} sweeps",
    ]
    return "\n".join(lines)


def _figure(width: float = 4.6) -> Any:
    require_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, 3.0), layout="constrained")


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
    ax.tick_params(labelsize=8)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=(1, 2, 5, 10)))
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set_fontsize(9)
    return ax
