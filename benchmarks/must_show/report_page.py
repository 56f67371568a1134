"""The HTML report: everyone can read it, and it needs nothing but itself.

Bars: no page has a problem of accessibility that can be seen without eyes (alternative texts, headings, captions and
scopes, language, title, viewport), nor a text of a contrast below 4.5; none loads or runs anything; and where Chromium
is installed, none scrolls sideways on a desk (1280 pixels) or a phone (390), light or dark.
The checks are those of ``tests/pages.py``, which the tests show to be able to fail.
"""

import tempfile
import warnings
from pathlib import Path

import numpy as np

import quartic
from benchmarks import report
from quartic.datasets import nice_samples, planted_tensor
from tests import pages

WIDTHS = (1280, 390)


def write(folder, quick):
    """Pages of runs that went well and badly, with short and long tables, and names that are not to be trusted."""
    d, n = (12, 6) if quick else (40, 30)
    planted = planted_tensor(d, n, 0.3, error="trap", random_state=0)
    quartic.decompose(planted.tensor, random_state=0).write_report(folder / "tensor.html", truth=planted)
    noise = np.random.default_rng(0).standard_normal((60, 4))
    failed = quartic.SpectralICA().fit(noise)
    settings = {"<script>alert(1)</script>": "word" * 100}
    quartic.report.write_report(failed, folder / "nothing_there.html", title="x" * 200, settings=settings)
    if not quick:
        data = nice_samples(20_000, 64, supports="blocks", random_state=0)
        model = quartic.SpectralDictionaryLearning().fit(data.samples)
        model.write_report(folder / "images.html", truth=data, shape=(8, 8))
        more = nice_samples(40_000, 32, 16, p=1.5 / 32, random_state=0)
        quartic.SpectralDictionaryLearning(32).fit(more.samples).write_report(folder / "more_than_dimensions.html")
    return sorted(folder.glob("*.html"))


def main(argv=None):
    args = report.options(__doc__).parse_args(argv)
    bars = report.Bars("report_page", args)
    browser = pages.find_browser()
    rows = []
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore", quartic.DecompositionWarning)
        folder = Path(name)
        for path in write(folder, args.quick):
            text = path.read_text(encoding="utf-8")
            row = {
                "page": path.stem,
                "kilobytes": len(text.encode()) / 1000,
                "problems": len(pages.problems(text)),
                "contrast": min(pages.contrasts(text).values()),
                "loaded": len(pages.outside(text)),
                "overflow": None,
            }
            if browser is not None:
                work = folder / path.stem
                work.mkdir()
                seen = [s for dark in (False, True) for s in pages.seen_by(browser, path, work, WIDTHS, dark)]
                row["overflow"] = sum(s["page"] > s["width"] or bool(s["wider"]) for s in seen)
                row["loaded"] += sum(len(s["loaded"]) for s in seen)
            rows.append(row)
    print(report.table(["page", "kB", "problems", "least contrast", "loaded", "overflow"], [r.values() for r in rows]))
    count = {name: sum(row[name] for row in rows) for name in ("problems", "loaded")}
    least = min(row["contrast"] for row in rows)
    bars.judge("no problem of accessibility", count["problems"] == 0, str(count["problems"]))
    bars.judge(f"contrasts of at least {pages.LEVEL_AA}", least >= pages.LEVEL_AA, f"{least:.2f}")
    bars.judge("nothing is loaded or run", count["loaded"] == 0, str(count["loaded"]))
    if browser is None:
        print("\nno Chromium is installed: whether a page scrolls sideways is not known")
    else:
        wide = sum(row["overflow"] for row in rows)
        bars.judge("no page scrolls sideways", wide == 0, f"{wide} of {4 * len(rows)} views")
    return bars.close(rows=rows, browser=browser is not None)


if __name__ == "__main__":
    raise SystemExit(main())
