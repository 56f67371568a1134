"""The report as a page: what it says, that everyone can read it, and that it needs nothing but itself."""

import copy
import dataclasses
import functools
import os
import re
import sys
import warnings
from datetime import datetime

import numpy as np
import pages
import pandas as pd
import pytest
from command_line import assert_refused, outcome
from sklearn.exceptions import NotFittedError

import quartic
from quartic.datasets import nice_samples
from quartic.report import page as writer
from quartic.report.findings import VERDICTS, findings

HOSTILE = "<script>alert('1 & \"2\"')</script>"


@pytest.fixture(scope="module")
def planted():
    return quartic.datasets.planted_tensor(12, 6, 0.2, error="trap", random_state=0)


@pytest.fixture(scope="module")
def result(planted):
    return quartic.decompose(planted.tensor, random_state=0)


@pytest.fixture(scope="module")
def data():
    return nice_samples(6000, 25, supports="blocks", group=5, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return quartic.SpectralDictionaryLearning().fit(data.samples)


@pytest.fixture(scope="module")
def uncertified():
    """A model of samples without structure, with names that are not to be trusted."""
    X = np.random.default_rng(0).standard_normal((60, 4))
    names = [HOSTILE, "a" * 80, "ä & b", "tab\tand \x07bell"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", quartic.DecompositionWarning)
        return quartic.SpectralICA().fit(pd.DataFrame(X, columns=names))


@pytest.fixture(scope="module")
def nothing():
    """A decomposition that found nothing."""
    status = quartic.Status("nothing", "no component found for rank 2 (given).", "Try another rank.")
    none = np.zeros(0)
    return quartic.Decomposition(np.zeros((0, 5)), none, none, 0.5, 0.5, 2, "given", status, np.array([0.5, 0.4, 0.1]))


@pytest.fixture(scope="module")
def written(tmp_path_factory, result, planted, model, data, uncertified, nothing):
    """The pages, by name."""
    folder = tmp_path_factory.mktemp("pages")
    result.write_report(folder / "result.html", truth=planted)
    model.write_report(folder / "model.html", truth=data.components, shape=(5, 5))
    uncertified.write_report(folder / "uncertified.html", title=HOSTILE)
    nothing.write_report(folder / "nothing.html")
    return {path.stem: path for path in folder.iterdir()}


WIDTHS = (1280, 390)  # pixels of a desk and of a phone


@pytest.fixture
def no_figures(monkeypatch):
    """As if matplotlib were not installed: pages are written in no time."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)


PAGES = ("result", "model", "uncertified", "nothing")


@pytest.fixture(params=PAGES)
def text(request, written):
    return written[request.param].read_text(encoding="utf-8")


def words(text, *tags):
    return [" ".join(element["text"].split()) for element in pages.Page(text).all(*tags)]


# Everyone can read it, and it needs nothing but itself


def test_it_is_accessible(text):
    assert pages.problems(text) == []


def test_every_text_can_be_read_on_every_surface_in_both_schemes(text):
    ratios = pages.contrasts(text)
    assert {scheme for scheme, *_ in ratios} == {"light", "dark"}
    assert {one for _, one, _ in ratios} >= {"--text", "--muted", "--good", "--fair", "--bad"}
    assert min(ratios.values()) >= pages.LEVEL_AA, min(ratios, key=ratios.get)
    (style,) = words(text, "style")
    assert pages.bare_colours(style) == []  # else there are pairs that were not looked at


def test_it_loads_and_runs_nothing(text):
    assert pages.outside(text) == []


def broken(text, old, new):
    assert old in text
    return text.replace(old, new)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (' alt="Plot', ' data-alt="Plot', "alternative text"),
        ("<h2>Figures", "<h4>Figures", "level 4"),
        (' scope="row"', "", "scope"),
        (' lang="en"', "", "language"),
        ('name="viewport"', 'name="other"', "viewport"),
        ("</caption>", "", "closes nothing"),
        (' tabindex="0"', "", "keyboard"),
    ],
)
def test_the_checks_can_fail(written, old, new, said):
    text = broken(written["result"].read_text(encoding="utf-8"), old, new)
    assert any(said in problem for problem in pages.problems(text))


def test_the_checks_of_contrast_and_loading_can_fail(written):
    text = written["result"].read_text(encoding="utf-8")
    assert min(pages.contrasts(broken(text, "--muted: #4a545e", "--muted: #9a949e")).values()) < pages.LEVEL_AA
    assert pages.contrast("#000000", "#ffffff") == pytest.approx(21)
    assert pages.contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)  # known to fail by a little
    for extra in ('<script src="a.js"></script>', '<img src="http://a/b.png" alt="">', '<p style="x:url(a)"></p>'):
        assert pages.outside(broken(text, "</main>", extra + "</main>"))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_browser_shows_it_without_scrolling_sideways(written, tmp_path, dark):
    browser = pages.find_browser()
    if browser is None:
        pytest.skip("no Chromium is installed")
    for width, seen in zip(WIDTHS, pages.seen_by(browser, written["uncertified"], tmp_path, WIDTHS, dark), strict=True):
        assert (seen["width"], seen["dark"]) == (width, dark)
        assert seen["page"] <= width
        assert seen["wider"] == []
        assert seen["loaded"] == []
        assert seen["broken"] == 0
        assert (seen["background"] == "rgb(255, 255, 255)") != dark


# What it says


def test_it_says_what_was_found_and_how_sure_it_is(written, result, planted):
    text = written["result"].read_text(encoding="utf-8")
    assert words(text, "h1") == words(text, "title") == ["6 components, 6 certified"]
    assert words(text, "h2")[:2] == [VERDICTS["complete"], "How sure"]
    said = " ".join(words(text, "p"))
    assert result.status.message in said
    assert f"at most {result.eps_assumed:.4g}" in said
    assert f"weakest certificate among them is {np.min(result.certificates):.3f}" in said
    rows = [[cell["text"] for cell in pages.Page(row).all("th", "td")] for row in re.findall("<tr>.*?</tr>", text)]
    table = [row for row in rows if row[0].isdigit()]
    matched = quartic.metrics.match(result.components, planted.components)
    for i, (number, weight, bound, squared, certified, largest) in enumerate(table):
        assert (int(number), certified) == (i, "yes")
        assert float(weight) == pytest.approx(result.weights[i], rel=1e-3)
        assert float(bound) == pytest.approx(result.certificates[i], abs=1e-4)
        assert float(squared) == pytest.approx(matched.squared[i], abs=1e-4)
        top = int(np.argmax(np.abs(result.components[i])))
        assert largest.startswith(f"{result.components[i, top]:+.2f} feature {top}, ")
    assert len(table) == 6
    assert all(stage in text for stage in result.timings)
    assert np.__version__ in text


def test_a_model_tells_of_uncertainties_groups_and_settings(written, model):
    text = written["model"].read_text(encoding="utf-8")
    alternatives = [image["attrs"]["alt"] for image in pages.Page(text).all("img")]
    assert len(alternatives) == 6
    spectrum, certificates, uncertainty, together, match, images = alternatives
    assert f"{model.report_.kept} are kept" in spectrum
    assert "certified above 0.5: 25 of 25" in certificates
    assert f"{np.max(model.uncertainty_):.1e}" in uncertainty
    assert str([len(group) for group in model.groups_])[1:-1] in together
    assert "25 of 25 true ones are found" in match
    assert "25 of 25 atoms as images of 5 by 5" in images
    settings = dict(re.findall(r'<tr><th scope="row">([^/]*?)</th><td>(.*?)</td></tr>', text.replace("<wbr>", "")))
    assert model.get_params().keys() <= settings.keys()
    assert settings["Refinement"] == model.report_.refinement


def test_a_long_table_is_cut_and_the_rest_is_there(written):
    page = pages.Page(written["model"].read_text(encoding="utf-8"))
    (details,) = page.all("details")
    assert len(page.under(details, "tr")) == 1 + 5
    assert "the other 5 atoms" in page.under(details, "summary")[0]["text"]


@pytest.mark.parametrize("name", ["uncertified", "nothing"])
def test_a_run_that_failed_says_first_what_to_do(written, uncertified, nothing, name):
    text = written[name].read_text(encoding="utf-8")
    status = uncertified.status_ if name == "uncertified" else nothing.status
    page = pages.Page(text)
    first = page.all("section")[0]
    assert "bad" in first["attrs"]["class"].split()
    assert first["text"].startswith(VERDICTS[status.code] + status.message)
    assert f"What to do: {status.remedy}" in first["text"]
    main = page.all("main")[0]["text"]
    assert main.index(status.remedy) < main.index("How sure")
    assert ("Sources 0, 1, 2, 3 are not certified" in text) == (name == "uncertified")


def test_beside_a_warning_nothing_is_simply_good(model, written, tmp_path, no_figures):
    first = pages.Page(written["model"].read_text(encoding="utf-8")).all("section")[0]
    assert (first["attrs"]["class"], findings(model).tone) == ("verdict good", "good")
    path = tmp_path / "a.html"
    quartic.report.write_report(model, path, warnings=["id counts the rows"])
    page = pages.Page(path.read_text(encoding="utf-8"))
    first = page.all("section")[0]
    assert first["attrs"]["class"] == "verdict fair"
    assert first["text"].startswith(f"{VERDICTS['complete']}, with warnings: read them first")
    assert [note["text"] for note in page.all("li")] == ["id counts the rows"]


def test_a_certified_atom_that_may_be_far_off_is_a_warning(model):
    coarse = copy.copy(model)
    coarse.learned_ = dataclasses.replace(model.learned_, uncertainty=np.array([0.4, 0.31] + 23 * [0.01]))
    found = findings(coarse)
    assert found.tone == "fair"
    (note,) = found.notes
    assert note.startswith("2 certified atoms may lie more than 17 degrees from the truth")


def test_every_status_of_the_library_has_a_verdict():
    folder = os.path.dirname(quartic.__file__)
    codes = set()
    for name in ("decomposition.py", "dictionary.py", "given_moment.py"):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            codes |= set(re.findall(r'Status\(\s*"([a-z-]+)"', file.read()))
    assert codes
    assert codes <= VERDICTS.keys()


def test_nothing_that_was_given_becomes_markup(written, result, tmp_path, no_figures):
    text = written["uncertified"].read_text(encoding="utf-8")
    assert "<script" not in text
    assert HOSTILE in words(text, "h1")[0]
    assert any(HOSTILE in cell for cell in words(text, "td"))
    assert "\x07" not in text
    assert "\\x07bell" in text
    path = tmp_path / "a.html"
    hostile = {HOSTILE: HOSTILE, "half \udc80": "half \udc80"}
    quartic.report.write_report(result, path, title=HOSTILE, settings=hostile, warnings=[HOSTILE])
    text = path.read_text(encoding="utf-8")
    assert "<script" not in text
    assert HOSTILE in words(text, "li")
    assert "half \\udc80" in text
    assert pages.problems(text) == []


def test_the_same_input_gives_the_same_page_but_for_the_date(result, planted, tmp_path, monkeypatch):
    class Later(datetime):
        @classmethod
        def now(cls, zone):
            return cls(2051, 1, 2, 3, 4, 5, 6, zone)

    result.write_report(tmp_path / "a.html", truth=planted)
    monkeypatch.setattr(writer, "datetime", Later)
    result.write_report(tmp_path / "b.html", truth=planted)
    one, other = ((tmp_path / name).read_text(encoding="utf-8") for name in ("a.html", "b.html"))
    assert '<time datetime="2051-01-02T03:04:05+00:00">2051-01-02 03:04 UTC</time>' in other
    assert re.sub("<time.*?</time>", "", one) == re.sub("<time.*?</time>", "", other)


def test_settings_do_not_say_where_in_memory_they_lie(tmp_path, no_figures):
    X = np.random.default_rng(0).standard_normal((50, 3))
    model = quartic.SpectralDictionaryLearning(random_state=np.random.default_rng(0), known_components=np.eye(3)[:1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", quartic.DecompositionWarning)
        model.fit(X).write_report(tmp_path / "a.html")
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "given, a Generator" in text
    assert "given, of shape (1, 3)" in text
    assert "0x" not in "".join(words(text, "td"))


def test_without_matplotlib_the_page_says_so(result, tmp_path, no_figures):
    result.write_report(tmp_path / "a.html")
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "<img" not in text
    assert any("pip install matplotlib" in paragraph for paragraph in words(text, "p"))
    assert pages.problems(text) == []


def test_a_failure_leaves_the_old_page(result, tmp_path, monkeypatch, no_figures):
    path = tmp_path / "a.html"
    path.write_text("the old page")
    with pytest.raises(ValueError, match=r"shape \(3, 3\) is not that of images of 12 features"):
        result.write_report(path, shape=(3, 3))
    monkeypatch.setattr(os, "replace", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        result.write_report(path)
    assert os.listdir(tmp_path) == ["a.html"]
    assert path.read_text() == "the old page"


def test_what_is_no_result_is_refused(tmp_path):
    with pytest.raises(TypeError, match=r"Decomposition or a fitted estimator.*got dict"):
        quartic.report.write_report({}, tmp_path / "a.html")
    with pytest.raises(NotFittedError):
        quartic.SpectralICA().write_report(tmp_path / "a.html")
    assert os.listdir(tmp_path) == []


# In a notebook


def test_a_notebook_shows_a_table(result, nothing):
    page = pages.Page(result._repr_html_())
    assert page.broken == []
    assert len(page.all("tr")) == 7
    assert VERDICTS["complete"] in page.elements[0]["text"]
    assert pages.outside(result._repr_html_()) == []
    assert nothing.status.remedy in nothing._repr_html_()


def test_a_notebook_shows_nothing_that_is_not_escaped(result):
    hostile = quartic.Status("uncertified", HOSTILE, HOSTILE)
    shown = quartic.Decomposition(**{**vars(result), "status": hostile})._repr_html_()
    assert "<script" not in shown
    assert pages.Page(shown).elements[0]["text"].count(HOSTILE) == 2


def test_estimators_have_no_link_to_documentation_that_is_not_there():
    assert quartic.SpectralICA()._get_doc_link() == ""


# On the command line


@pytest.fixture
def run(capsys):
    return functools.partial(outcome, capsys)


@pytest.fixture
def file(tmp_path):
    np.save(tmp_path / "samples.npy", nice_samples(1500, 5, dictionary="orthonormal", random_state=0).samples)
    return tmp_path / "samples.npy"


@pytest.fixture
def tensor(tmp_path, planted):
    np.save(tmp_path / "a<b>.npy", planted.tensor)
    return tmp_path / "a<b>.npy"


def test_learn_writes_a_page(run, file, tmp_path):
    code, out, err = run("learn", file, "--report", tmp_path / "r.html")
    assert (code, err) == (0, "")
    assert out.endswith(f"\n\nreport      {tmp_path / 'r.html'}\n")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert words(text, "h1") == ["samples.npy: 5 atoms, 5 certified"]
    assert str(file) in words(text, "td")
    assert pages.problems(text) == []


def test_decompose_writes_a_page(run, tensor, tmp_path, no_figures):
    code, out, _ = run("decompose", tensor, "--rank", 6, "--report", tmp_path / "r.html", "--out", tmp_path / "r.npz")
    assert code == 0
    assert out.endswith(f"\n\nresult   {tmp_path / 'r.npz'}\nreport   {tmp_path / 'r.html'}\n")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert words(text, "h1") == ["a<b>.npy: 6 components, 6 certified"]
    settings = pages.Page(text).all("td")
    assert {"6", str(tensor)} <= {cell["text"] for cell in settings}


def test_a_run_without_a_proof_writes_its_page_too(run, tmp_path, no_figures):
    np.save(tmp_path / "a.npy", np.random.default_rng(0).standard_normal((50, 3)))
    code, _, err = run("learn", tmp_path / "a.npy", "--report", tmp_path / "r.html", "--json")
    assert code == 3
    first = pages.Page((tmp_path / "r.html").read_text(encoding="utf-8")).all("section")[0]["text"]
    assert err.removeprefix("quartic: warning: ").split(". ")[0] in first


@pytest.mark.filterwarnings("always")
def test_warnings_of_the_work_are_on_the_page(run, file, tmp_path, monkeypatch, no_figures):
    real = quartic.SpectralDictionaryLearning.fit

    def fit(self, X, **options):
        warnings.warn("strange indeed", RuntimeWarning, stacklevel=1)
        return real(self, X, **options)

    monkeypatch.setattr(quartic.SpectralDictionaryLearning, "fit", fit)
    run("learn", file, "--report", tmp_path / "r.html")
    assert "strange indeed" in words((tmp_path / "r.html").read_text(encoding="utf-8"), "li")


@pytest.mark.parametrize("command", ["learn", "decompose"])
def test_an_output_that_cannot_be_written_is_refused_first(run, file, tmp_path, command):
    before = os.listdir(tmp_path)
    assert_refused(run(command, file, "--report", tmp_path / "none" / "r.html"), "--report", "there is no folder")
    assert_refused(run(command, file, "--report", file), "--report", "would replace")
    out = tmp_path / "same.npz"
    assert_refused(run(command, file, "--out", out, "--report", out), "--report", "would replace")
    assert os.listdir(tmp_path) == before
