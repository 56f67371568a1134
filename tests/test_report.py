import copy
import dataclasses
import os
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError

import quartic
from quartic import report

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def planted(seed):
    return quartic.datasets.planted_tensor(12, 6, 0.2, error="trap", random_state=seed)


@pytest.fixture
def result(planted, seed):
    return quartic.decompose(planted.tensor, random_state=seed)


def outcome(rank, spectrum, bounds, eps=0.1, d=5):
    """A result with a given spectrum and given certificates."""
    bounds = np.asarray(bounds, dtype=float)
    return quartic.Decomposition(
        components=np.eye(d)[: bounds.shape[0]],
        weights=np.ones(bounds.shape[0]),
        certificates=bounds,
        eps=eps,
        eps_assumed=eps,
        rank=rank,
        reason="given",
        status=quartic.Status("complete", "made up."),
        spectrum=np.asarray(spectrum, dtype=float),
    )


def texts(ax):
    return [text.get_text() for text in ax.texts if text.get_text()]


def test_spectrum_shows_kept_and_rest_apart(result):
    ax = report.plot_spectrum(result)
    assert isinstance(ax, Axes)
    kept, rest = ax.lines[:2]
    np.testing.assert_array_equal(kept.get_ydata(), result.spectrum[:6])
    np.testing.assert_array_equal(rest.get_xdata(), np.arange(7, 16))  # 2.5 times the rank in all
    np.testing.assert_array_equal(rest.get_ydata(), result.spectrum[6:15])
    assert kept.get_marker() != rest.get_marker()
    assert kept.get_color() != rest.get_color()
    (threshold,) = {*np.ravel(ax.lines[2].get_ydata())}
    assert threshold == result.eps_assumed
    assert "units" in ax.get_ylabel()
    assert ax.get_xlabel()
    said = " ".join(texts(ax))
    assert "6 kept" in said
    assert "gap" in said
    assert f"measured {result.eps:.3g}" in said
    assert "9 of the other 72" in said


def test_certificates_show_certified_and_others_apart():
    ax = report.plot_certificates(outcome(3, [1, 1, 1, 0.2], [0.9, 0.55, 0.45]))
    good, bad = ax.lines[:2]
    assert good.get_ydata().tolist() == [0.9, 0.55]
    assert bad.get_xdata().tolist() == [2]  # its index
    assert good.get_marker() != bad.get_marker()
    assert texts(ax) == ["certified above 0.5: 2 of 3"]


def test_draws_on_the_axes_that_are_given(result):
    left, right = Figure().subplots(1, 2)
    assert report.plot_spectrum(result, left) is left
    assert report.plot_certificates(result, ax=right) is right


def test_nothing_but_the_file_asked_for_is_written(result, tmp_path):
    assert isinstance(report.plot(result), Figure)
    assert os.listdir(tmp_path) == []
    report.plot(result, tmp_path / "spectrum.png")
    assert os.listdir(tmp_path) == ["spectrum.png"]
    data = (tmp_path / "spectrum.png").read_bytes()
    assert data.startswith(PNG)
    assert 10_000 < len(data) < 100_000  # small enough for a README


@pytest.mark.parametrize(("name", "start"), [("a.pdf", b"%PDF"), ("a.svg", b"<?xml"), ("a.PNG", PNG), ("a", PNG)])
def test_the_suffix_is_the_format(result, tmp_path, name, start):
    report.plot(result, tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)


def test_a_failure_leaves_no_file(result, tmp_path):
    with pytest.raises(ValueError, match="xyz"):
        report.plot(result, tmp_path / "a.xyz")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "made_up",
    [
        outcome(0, [], []),
        outcome(0, [0.3, 0.2, -0.4], [], eps=0.4),
        outcome(1, [1.0], [1.0], eps=0.0, d=1),
        outcome(3, [1, 1, 1], [0.3, 0.4, 0.45]),
        outcome(2, [1, 1, 0, 0, 0], [1, 1], eps=0.0),
        outcome(2, [1, 0.99, 0.98, 0.97], [0.1, 0.1], eps=0.98),
        outcome(2, [1, 0.9, -0.1, -2.0], [0.9, 0.2], eps=2.0),
        outcome(2, [1e-150, 0.9e-150, 0.1e-150], [0.9, 0.9], eps=1e-151),
        outcome(2, [1e150, 0.9e150, 0.1e150], [0.9, 0.9], eps=1e149),
    ],
)
def test_any_result_can_be_drawn(made_up, tmp_path):
    report.plot(made_up, tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 5_000


def test_labels_stay_inside_the_axes_and_apart(result):
    figure = report.plot(result)
    figure.draw_without_rendering()
    for ax in [ax for part in figure.subfigs for ax in part.axes]:
        frame = ax.get_window_extent()
        boxes = [text.get_window_extent() for text in ax.texts if text.get_text()]
        for i, box in enumerate(boxes):
            assert frame.x0 <= box.x0
            assert box.x1 <= frame.x1 + 5
            assert frame.y0 <= box.y0
            assert box.y1 <= frame.y1
            assert not any(box.overlaps(other) for other in boxes[:i])


def test_compare_prints_one_line_a_component(planted, result):
    lines = report.compare(planted, result, 0.2).splitlines()
    rows = [line.split() for line in lines[2 : lines.index("")]]
    assert len(rows) == 6
    matched = quartic.metrics.match(result.components, planted.components)
    for i, row in enumerate(rows):
        number, was, found, squared, bound, mark = row
        assert int(number) == i
        assert float(was) == pytest.approx(planted.weights[matched.columns[i]], abs=1e-4)
        assert float(found) == pytest.approx(result.weights[i], abs=1e-4)
        assert float(squared) == pytest.approx(matched.squared[i], abs=1e-4)
        assert float(bound) == pytest.approx(result.certificates[i], abs=1e-4)
        assert mark == "yes"
    rest = "\n".join(lines)
    assert "6 of 6 planted" in rest
    assert f"{result.eps:.4g} measured, 0.2 planted" in rest
    assert all(stage in rest for stage in result.timings)


def test_compare_says_what_is_missing_and_what_was_never_planted(planted, seed):
    few = quartic.decompose(planted.tensor, find=2, random_state=seed)
    assert report.compare(planted, few, 0.2).count("not found") == 6 - few.components.shape[0] > 0
    made_up = outcome(8, np.ones(8), np.full(8, 0.2), d=12)
    table = report.compare(planted, made_up, 0.2).split("\n\n")[0]
    assert sum(line.split()[1] == "-" for line in table.splitlines()[2:]) == 2
    assert "yes" not in table


@pytest.fixture(scope="module")
def data():
    return quartic.datasets.nice_samples(6000, 20, supports="blocks", group=5, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return quartic.SpectralDictionaryLearning().fit(data.samples)


def titles(figure):
    return [ax.get_title(loc="left") for part in figure.subfigs for ax in part.axes if ax.get_title(loc="left")]


def axes(figure, title):
    (found,) = (ax for part in figure.subfigs for ax in part.axes if ax.get_title(loc="left") == title)
    return found


def test_a_result_draws_itself(result, planted, tmp_path):
    assert titles(result.plot()) == ["Spectrum of the tensor", "Certificates"]
    figure = result.plot(tmp_path / "a.svg", truth=planted, shape=(3, 4))
    assert titles(figure)[2:] == ["6 of 6 true components found", "Components as images"]
    assert os.listdir(tmp_path) == ["a.svg"]


@pytest.mark.parametrize("kind", [quartic.SpectralDictionaryLearning, quartic.SpectralICA])
def test_a_model_draws_itself(kind, data):
    model = kind(temperature=0.1).fit(data.samples)  # with a span of the cumulant
    word = "source" if kind is quartic.SpectralICA else "atom"
    figure = model.plot(truth=data, shape=(4, 5))
    assert titles(figure) == [
        "Spectrum of the cumulant", "Certificates", "Uncertainty", "Occurring together",
        f"20 of 20 true {word}s found", f"{word.capitalize()}s as images",
    ]  # fmt: skip
    kept, rest = axes(figure, "Spectrum of the cumulant").lines[:2]
    np.testing.assert_array_equal(kept.get_ydata(), np.abs(model.report_.spectrum[:20]))
    assert max(rest.get_ydata()) < min(kept.get_ydata())
    np.testing.assert_array_equal(axes(figure, "Uncertainty").lines[0].get_ydata(), model.uncertainty_)
    squared = axes(figure, f"20 of 20 true {word}s found").images[0].get_array()
    assert np.min(np.diagonal(squared)) > 0.99


def test_groups_are_framed_and_their_atoms_beside_each_other(model):
    ax = axes(model.plot(), "Occurring together")
    assert [patch.get_width() for patch in ax.patches] == [len(group) for group in model.groups_]
    assert len(ax.patches) > 1
    shown = np.asarray(ax.images[0].get_array())
    inside = np.zeros(shown.shape, dtype=bool)
    for patch in ax.patches:
        place = slice(round(patch.get_x() + 0.5), round(patch.get_x() + 0.5) + patch.get_width())
        inside[place, place] = True
    np.fill_diagonal(inside, False)
    off = ~inside & ~np.eye(20, dtype=bool)
    assert np.mean(shown[inside]) > 5 * np.mean(np.abs(shown[off]))


def test_energy_correlations_are_kept_with_a_model(model, data, tmp_path):
    codes = model.transform(data.samples) ** 2
    expected = np.corrcoef(codes.T) - np.eye(20)
    assert np.max(np.abs(model.learned_.correlations - expected)) < 0.1  # on the samples of the spectral stage
    model.save(tmp_path / "m.npz")
    again = quartic.SpectralDictionaryLearning.load(tmp_path / "m.npz")
    np.testing.assert_array_equal(again.learned_.correlations, model.learned_.correlations)
    assert again.report_.kept == 20
    few = quartic.SpectralDictionaryLearning(5).fit(data.samples)
    assert few.learned_.correlations.shape == (5, 5)
    assert few.report_.kept == 20
    assert "20 kept" in texts(axes(few.plot(), "Spectrum of the cumulant"))


def test_a_window_of_the_spectrum_is_shown_as_it_is(model):
    how = dataclasses.replace(model.report_, window=(2, 5), spectrum=np.linspace(4, -1, 40), kept=10)
    other = copy.copy(model)
    other.learned_ = dataclasses.replace(model.learned_, report=how)
    ax = report.plot_spectrum(other)
    assert ax.lines[0].get_xdata().tolist() == [1, 2, *range(6, 14)]
    assert "10 kept, 3 skipped" in texts(ax)


def test_images_must_have_the_shape_of_the_components(result):
    for shape in [(5, 5), (-3, -4), (0, 12)]:
        with pytest.raises(ValueError, match=r"is not that of images of 12 features"):
            result.plot(shape=shape)


def test_models_that_are_not_fitted_are_refused():
    with pytest.raises(NotFittedError):
        quartic.SpectralICA().plot()
    with pytest.raises(NotFittedError):
        report.plot(quartic.SpectralICA())
    with pytest.raises(TypeError, match="fitted estimator"):
        report.plot(np.eye(3))


def test_without_matplotlib_the_remedy_is_named(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        report.plot(result)


def test_matplotlib_is_loaded_only_to_draw_and_pyplot_never():
    code = """
import sys
import numpy, quartic, quartic.cli, quartic.report
assert "matplotlib" not in sys.modules
quartic.report.plot(quartic.decompose(numpy.ones((1, 1, 1, 1))))
assert "matplotlib.figure" in sys.modules and "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
