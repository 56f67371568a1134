"""A report as one HTML file: what was found, how sure it is, and what to do if something did not work.

The page is complete in itself: figures are images inside of it, and nothing is loaded from anywhere.  It follows the
reader's light or dark scheme, fits a phone, and prints.  The same input gives the same page, up to its date.
"""

from __future__ import annotations

import base64
import importlib.metadata
import importlib.resources
import io
import os
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

import quartic
from quartic._files import atomic, check_suffix
from quartic.report import figures
from quartic.report.findings import Findings, findings
from quartic.report.markup import Html, escaped, joined, tag

OPEN = 20  # rows of a table that are shown at once, the others on demand; arbitrary
GLANCE = 10  # the same in a notebook
NEAR = 1e-6  # degrees: nearer is said as this; arbitrary
SIZE = (3.9, 2.9)  # inches of a figure: letters of 8 points are legible on a phone
PACKAGES = ("numpy", "scipy", "scikit-learn", "matplotlib")
# What figures are drawn in, for a dark page: as far from it as the colours themselves are from white.
DARK = {
    figures.KEPT: "#6CB8F0",
    figures.REST: "#F79A55",
    figures.LINE: "#C4CCD4",
    figures.INK: "#E6E9EC",
    figures.BAND: "#2B333B",
}


def write_report(
    subject: Any,
    path: str | os.PathLike[str],
    *,
    truth: Any = None,
    shape: tuple[int, int] | None = None,
    title: str | None = None,
    settings: Mapping[str, Any] | None = None,
    warnings: Sequence[str] = (),
) -> None:
    """Write an HTML page about a decomposition or a fitted model, all at once or not at all.

    Parameters
    ----------
    subject : Decomposition or fitted estimator
    path : str or path
    truth : array-like of shape (m, d), or an object with such ``components``, optional
        True components: found ones are shown against them.
    shape : (int, int), optional
        Of the images that the components are, which are then shown.
    title : str, optional
        What the page is about, such as the name of a file; how many components there are follows it.
    settings : mapping, optional
        Further settings to list, such as the file that was read.
    warnings : sequence of str
        What was warned of while it was computed.

    Notes
    -----
    Without matplotlib the page says that its figures are missing, and how to get them.

    Examples
    --------
    >>> import os, tempfile, quartic.report
    >>> result = quartic.decompose(quartic.datasets.planted_tensor(6, 4, 0.1, random_state=0).tensor, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = os.path.join(folder, "report.html")
    ...     quartic.report.write_report(result, page, title="A planted tensor", settings={"seed": 0})
    ...     with open(page, encoding="utf-8") as file:
    ...         "A planted tensor: 4 components" in file.read()
    True
    """
    check_suffix(path, ".html", ".htm")
    found = findings(subject, warnings)
    heading = found.headline if title is None else f"{title}: {found.headline}"
    content = page(found, truth, shape, heading, settings or {})
    with atomic(path) as out:
        out.write(content.encode())


def page(
    found: Findings,
    truth: Any,
    shape: tuple[int, int] | None,
    title: str,
    settings: Mapping[str, Any],
) -> Html:
    """The whole page."""
    style = importlib.resources.files(quartic.report).joinpath("style.css").read_text(encoding="utf-8")
    now = datetime.now(UTC).replace(microsecond=0)
    date = tag("time", f"{now:%Y-%m-%d %H:%M} UTC", datetime=now.isoformat())
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        tag("style", Html(style)),
    )
    body = tag(
        "body",
        tag("header", tag("h1", title), tag("p", f"{found.kind}, quartic {quartic.__version__}, ", date)),
        tag(
            "main",
            _verdict(found),
            _key_figures(found),
            _section("How sure", _how_sure(found)),
            _section("Warnings", _warnings(found)),
            _section("Figures", _figures(found, truth, shape)),
            _section(f"{found.noun.capitalize()}s", _components(found, truth, OPEN)),
            _section("How it was found", _facts("Steps and figures", found.facts)),
            _section("Settings", _settings(found, settings)),
            _section("Times", _times(found.timings)),
            _section("Versions", _facts("Software that was used", versions())),
        ),
        tag("footer", tag("p", "Written by quartic. This page is complete in itself and loads nothing.")),
    )
    return joined(Html("<!DOCTYPE html>\n"), tag("html", head, Html("\n"), body, lang="en"), Html("\n"))


def fragment(found: Findings) -> Html:
    """What a notebook shows: the status and a table."""
    remedy = [tag("p", found.status.remedy)] if found.status.remedy else []
    status = tag("p", tag("b", found.verdict), f". {found.status.message}")
    return tag("div", tag("p", f"{found.kind}: {found.headline}"), status, *remedy, _components(found, None, GLANCE))


def versions() -> dict[str, str]:
    """Of what the figures depend on."""
    found = {"quartic": quartic.__version__, "Python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found | {"System": f"{platform.system()}, {platform.machine()}"}


def _section(heading: str, *content: str) -> Html:
    return joined(tag("section", tag("h2", heading), *content), Html("\n"))


def _verdict(found: Findings) -> Html:
    """What happened, and the remedy if something did not work: before everything else."""
    status = found.status
    remedy = [tag("p", tag("strong", "What to do: "), status.remedy)] if status.remedy else []
    return tag("section", tag("h2", found.verdict), tag("p", status.message), *remedy, class_=f"verdict {found.tone}")


def _key_figures(found: Findings) -> Html:
    n, d = found.components.shape
    extra = {"Error measured": f"{found.eps:.3g}"}
    if found.uncertainty is not None:
        good = found.uncertainty[found.certified]
        extra = {"Median uncertainty (sine)": f"{np.median(good):.1e}" if good.size else "unknown"}
    shown = {
        f"{found.noun.capitalize()}s": str(n),
        "Certified": str(int(np.sum(found.certified))),
        "Features" if found.is_model else "Dimension": str(d),
        "Median certificate": f"{np.median(found.certificates):.3f}" if n else "none",
        **extra,
        "Time": f"{sum(found.timings.values()):.2f} s",
    }
    return tag("dl", *(tag("div", tag("dt", k), tag("dd", v)) for k, v in shown.items()), class_="figures")


def _how_sure(found: Findings) -> Html:
    """What is known of the components, in plain words."""
    n, good = found.certificates.shape[0], found.certificates[found.certified]
    noun = found.noun
    if n == 0:
        return tag("p", "There is nothing to be sure of.")
    if not good.size:
        certified = f"None of the {found.counted(n)} is certified: they may be right, and nothing here proves it."
    else:
        which = "All of them are" if good.size == n else f"{good.size} of {found.counted(n)} are"
        certified = (
            f"{which} certified: nearer to one true {noun} than to all others together. The weakest certificate among "
            f"them is {np.min(good):.3f}: its squared correlation with a true {noun} is at least that."
        )
    pieces = [tag("p", certified), tag("p", found.basis)]
    if found.uncertainty is not None:
        text = f"Uncertainties say nothing here: there may be no truth that the {noun}s are near to."
        if good.size:
            angle = np.degrees(np.arcsin(np.clip(np.median(found.uncertainty[found.certified]), 0.0, 1.0)))
            near = f"within {angle:.2g} degrees" if angle > NEAR else f"within {NEAR:g} degrees, to rounding,"
            text = f"Half of the certified {noun}s are estimated to lie {near} of the truth, if the model holds."
        pieces.append(tag("p", text))
    return joined(*pieces)


def _warnings(found: Findings) -> Html:
    if found.notes:
        return tag("ul", *(tag("li", note) for note in found.notes))
    more = " Samples were looked at in passing only: quartic check, or diagnose, measures what certificates rest on."
    return tag("p", "None." + (more if found.is_model else ""))


def _figures(found: Findings, truth: Any, shape: tuple[int, int] | None) -> Html:
    panels = figures.panels(found, truth, shape)
    try:
        figures.require_matplotlib()
    except ImportError as error:
        return tag("p", f"None: {error}.")
    return tag("div", *map(_figure, panels), class_="plots")


def _figure(panel: figures.Panel) -> Html:
    width, height = (2 * SIZE[0], 2 * SIZE[0] * panel.wide) if panel.wide else SIZE
    figure = figures.blank(width, height)
    panel.draw(figure.subplots())
    source = "data:image/svg+xml;base64," + base64.b64encode(themed_svg(figure).encode()).decode()
    image = tag("img", src=source, alt=panel.says, width=f"{96 * width:.0f}", height=f"{96 * height:.0f}")
    return tag(
        "figure",
        image,
        tag("figcaption", tag("b", panel.title), f". {panel.caption}"),
        **({"class_": "wide"} if panel.wide else {}),
    )


def themed_svg(figure: Any) -> str:
    """A figure as SVG, transparent, in colours that follow the reader's scheme."""
    import matplotlib

    out = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "quartic", "svg.fonttype": "path"}):  # the same names in every run
        figure.savefig(
            out, format="svg", transparent=True, metadata=dict.fromkeys(("Date", "Creator", "Type", "Format"))
        )
    svg = out.getvalue()
    svg = svg[svg.index("<svg") :]
    light, dark = [], []
    for i, (colour, other) in enumerate(DARK.items()):
        svg = re.sub(f"{colour}\\b", f"var(--c{i})", svg, flags=re.IGNORECASE)
        light.append(f"--c{i}:{colour}")
        dark.append(f"--c{i}:{other}")
    style = f"svg{{{';'.join(light)}}}@media(prefers-color-scheme:dark){{svg{{{';'.join(dark)}}}}}"
    return svg.replace("<defs>", f"<style>{style}</style><defs>", 1)


def _components(found: Findings, truth: Any, most: int) -> Html:
    """A table of the components; those beyond the first ``most`` are shown on demand."""
    n = found.components.shape[0]
    if n == 0:
        return tag("p", f"No {found.noun} was found.")
    columns = found.columns(truth)
    first, rest = found.ranked[:most], found.ranked[most:]
    order = "energy" if found.is_model else "weight"
    if found.ranked != list(range(n)):
        order = "stability, for none is certified"
    caption = f"{found.noun.capitalize()}s by {order}, the largest first" + (f"; {most} of {n}" if rest else "")
    shown = _table(found, columns, first, caption)
    if not rest:
        return shown
    others = _table(found, columns, rest, f"The other {found.noun}s")
    return joined(shown, tag("details", tag("summary", f"Show the other {found.counted(len(rest))}"), others))


def _table(found: Findings, columns: Mapping[str, list[str]], rows: Iterable[int], caption: str) -> Html:
    """Some components, in a box of its own that scrolls where the page is narrow."""
    classes = {"Certified": "mark", "Largest entries": ""}
    heads = [tag("th", "Index", scope="col"), *(_cell("th", name, classes.get(name, "number")) for name in columns)]
    lines = [
        tag(
            "tr",
            tag("th", str(i), scope="row"),
            *(_cell("td", cells[i], classes.get(name, "number")) for name, cells in columns.items()),
            **({} if found.certified[i] else {"class_": "uncertified"}),
        )
        for i in rows
    ]
    table = tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", *heads)),
        tag("tbody", *lines),
        class_="components",
    )
    return tag("div", table, class_="scroll", tabindex="0", role="region", aria_label=caption)


def _cell(name: str, text: str, class_: str) -> Html:
    attributes = ({"scope": "col"} if name == "th" else {}) | ({"class_": class_} if class_ else {})
    return tag(name, text, **attributes)


def _facts(caption: str, facts: Mapping[str, Any]) -> Html:
    """A table of names and what is to be said of them."""
    lines = [tag("tr", tag("th", _breakable(name), scope="row"), tag("td", str(text))) for name, text in facts.items()]
    return tag("table", tag("caption", caption), tag("tbody", *lines), class_="facts")


def _breakable(name: str) -> Html:
    """A name that may be broken after each underscore."""
    return Html(escaped(name).replace("_", "_<wbr>"))


def _settings(found: Findings, given: Mapping[str, Any]) -> Html:
    settings = {k: "chosen by itself" if str(v) == "None" else v for k, v in {**given, **found.settings}.items()}
    if not settings:
        return tag("p", "Not recorded: a decomposition does not hold the arguments that it was called with.")
    return _facts("Parameters of the run", settings)


def _times(timings: Mapping[str, float]) -> Html:
    if not timings:
        return tag("p", "Not recorded.")
    shown = {stage: f"{seconds:.3f} s" for stage, seconds in timings.items()}
    return _facts("Seconds by stage", shown | {"all": f"{sum(timings.values()):.3f} s"})
