"""What can be said of an HTML page without looking at it, and what a browser says of it.

Shared by the tests and ``benchmarks/must_show/report_page.py``.
"""

import base64
import html
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

VOID = {"meta", "img", "wbr", "br", "hr", "link", "input", "source"}
LEVEL_AA = 4.5  # WCAG 2.2, success criterion 1.4.3: the contrast of text
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
MEASURE = """<script>
for (const box of document.querySelectorAll("details")) box.open = true;
window.addEventListener("load", () => {
  const seen = {
    width: innerWidth,
    page: document.documentElement.scrollWidth,
    wider: [...document.querySelectorAll("body *")].filter(e => !e.closest(".scroll")
      && e.getBoundingClientRect().right > innerWidth + 0.5).map(e => e.outerHTML.slice(0, 80)),
    broken: [...document.images].filter(i => !i.complete || !i.naturalWidth).length,
    loaded: performance.getEntriesByType("resource").map(r => r.name).filter(n => !n.startsWith("data:")),
    dark: matchMedia("(prefers-color-scheme: dark)").matches,
    background: getComputedStyle(document.body).backgroundColor,
  };
  frameElement.setAttribute("data-seen", JSON.stringify(seen));
});
</script>"""


class Page(HTMLParser):
    """The elements of a page, in order, and what is wrong with how they are nested."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.stack, self.broken = [], [], []
        self.feed(text)
        self.close()
        self.broken += [f"<{element['tag']}> is never closed" for element in self.stack]

    def handle_starttag(self, tag, attrs):
        element = {"tag": tag, "attrs": dict(attrs), "text": "", "inside": [e["tag"] for e in self.stack]}
        element["parents"] = list(self.stack)
        self.elements.append(element)
        if tag not in VOID:
            self.stack.append(element)

    def handle_endtag(self, tag):
        if not self.stack or self.stack[-1]["tag"] != tag:
            self.broken.append(f"</{tag}> closes nothing")
        else:
            self.stack.pop()

    def handle_data(self, data):
        for element in self.stack:
            element["text"] += data

    def all(self, *tags):
        return [element for element in self.elements if element["tag"] in tags]

    def under(self, element, *tags):
        return [other for other in self.all(*tags) if any(parent is element for parent in other["parents"])]


def problems(text):
    """What a reader with a screen reader, a keyboard or a small screen would stumble over; empty if nothing."""
    page = Page(text)
    found = list(page.broken)
    if not text.startswith("<!DOCTYPE html>"):
        found.append("no doctype")
    if not any(e["attrs"].get("lang") for e in page.all("html")):
        found.append("no language")
    if [e["text"].strip() == "" for e in page.all("title")] != [False]:
        found.append("not one title")
    viewports = [e["attrs"]["content"] for e in page.all("meta") if e["attrs"].get("name") == "viewport"]
    if len(viewports) != 1 or "width=device-width" not in viewports[0] or "scalable" in viewports[0]:
        found.append("no viewport")
    for landmark in ("main", "h1"):
        if len(page.all(landmark)) != 1:
            found.append(f"not one {landmark}")
    for image in page.all("img", "svg"):
        words = image["attrs"].get("alt") or image["attrs"].get("aria-label") or ""
        if len(words.split()) < 4:  # a label such as "figure" says nothing
            found.append(f"an image without an alternative text: {words!r}")
    level = 0
    for heading in page.all("h1", "h2", "h3", "h4", "h5", "h6"):
        new = int(heading["tag"][1])
        if new > level + 1 or (level == 0 and new != 1) or not heading["text"].strip():
            found.append(f"heading {heading['text']!r} of level {new} after level {level}")
        level = new
    for table in page.all("table"):
        if [bool(e["text"].strip()) for e in page.under(table, "caption")] != [True]:
            found.append("a table without a caption")
        heads = page.under(table, "th")
        if not heads or any(e["attrs"].get("scope") not in ("col", "row") for e in heads):
            found.append("a table whose headings have no scope")
    for box in (e for e in page.elements if "scroll" in e["attrs"].get("class", "").split()):
        if box["attrs"].get("tabindex") != "0" or not box["attrs"].get("aria-label"):
            found.append("a box that scrolls, and not by the keyboard")
    names = [e["attrs"]["id"] for e in page.elements if "id" in e["attrs"]]
    if len(names) != len(set(names)):
        found.append("an id twice")
    return found


def outside(text):
    """What a page would load from elsewhere, or run; its images are looked into."""
    page = Page(text)
    found = [e["tag"] for e in page.all("script", "link", "iframe", "object", "embed", "base", "form")]
    for element in page.elements:
        for name, value in element["attrs"].items():
            if name.startswith("on"):
                found.append(f"{name}={value}")
            if name in ("src", "href", "srcset", "action", "poster", "data", "xlink:href"):
                if value.startswith("data:image/svg+xml;base64,"):
                    image = base64.b64decode(value.partition(",")[2]).decode()
                    found += re.findall(r"<(?:script|foreignObject|a|iframe)\b[^>]*>", image)
                    found += [x for x in re.findall(r'\bhref="([^"]*)"', image) if not re.match(r"#|data:image/png", x)]
                    found += urls(image)
                elif not value.startswith("#"):
                    found.append(value)
        found += urls(element["attrs"].get("style") or "")
    return found + [url for style in page.all("style") for url in urls(style["text"])]


def urls(style):
    """What a style sheet would load."""
    return [x for x in re.findall(r"url\(([^)]*)\)|@import ([^;]*)", style) if not "".join(x).startswith("#")]


def contrast(one, other):
    """The contrast ratio of two colours ``#rrggbb``, by the formula of WCAG 2."""

    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def schemes(style):
    """The named colours of a style sheet, in its light and in its dark scheme."""
    light, _, dark = style.partition("prefers-color-scheme")
    blocks = light, dark.partition("}")[0]
    return {
        name: dict(re.findall(r"(--[\w-]+):\s*(#[0-9a-fA-F]{6})\b", block))
        for name, block in zip(("light", "dark"), blocks, strict=True)
    }


def contrasts(text):
    """The contrast of every colour of text on every surface it may be on, in both schemes, figures included."""
    page = Page(text)
    (style,) = (e["text"] for e in page.all("style"))
    texts = set(re.findall(r"(?<![\w-])color:\s*var\((--[\w-]+)\)", style))
    surfaces = set(re.findall(r"background(?:-color)?:\s*var\((--[\w-]+)\)", style))
    ratios = {}
    for scheme, colours in schemes(style).items():
        for one in texts:
            for other in surfaces:
                ratios[scheme, one, other] = contrast(colours[one], colours[other])
    for number, image in enumerate(page.all("img")):
        svg = base64.b64decode(image["attrs"]["src"].partition(",")[2]).decode()
        for scheme, drawn in schemes(svg).items():
            *inks, band = drawn.values()  # what is written and drawn, and the band of the gap behind it
            for i, ink in enumerate(inks):
                for under, behind in (("page", schemes(style)[scheme]["--page"]), ("band", band)):
                    ratios[scheme, f"figure {number}, ink {i}", under] = contrast(ink, behind)
    return ratios


def bare_colours(style):
    """Colours of a style sheet that have no name, and so no contrast that is known."""
    return [x for x in re.findall(r"[{;]\s*([a-z-]+:[^;{}]*#[0-9a-fA-F]{3,8})", style) if not x.startswith("--")]


def find_browser():
    """A browser that can be driven from here, or None."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def seen_by(browser, page, folder, widths, dark):
    """What a browser without a network sees of a page, at each width, in a light or dark scheme.

    The page is in frames of these widths: windows as narrow as a phone there are not.
    """
    copy = folder / "frames.html"
    text = html.escape(page.read_text(encoding="utf-8").replace("</body>", MEASURE + "</body>"))
    frames = "".join(f'<iframe style="width: {width}px; border: 0" srcdoc="{text}"></iframe>' for width in widths)
    copy.write_text(f"<!DOCTYPE html><html><body>{frames}</body></html>", encoding="utf-8")
    command = [
        browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
        f"--user-data-dir={folder / 'profile'}", "--host-resolver-rules=MAP * ~NOTFOUND",
        "--window-size=1400,900", f"--blink-settings=preferredColorScheme={0 if dark else 1}",
        "--dump-dom", copy.resolve().as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return [json.loads(e["attrs"]["data-seen"]) for e in Page(done.stdout).all("iframe")]
