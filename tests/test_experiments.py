"""The experiments: tiny versions of all of them, the fits, and the page that is written from the data."""

import json

import numpy as np
import pytest

pytest.importorskip("experiments", reason="the experiments are not part of a source distribution")
from benchmarks import fits, report
from experiments import __main__ as command
from experiments import experiment, figures, page


@pytest.mark.parametrize("name", experiment.names())
def test_an_experiment_measures_draws_and_judges(name, tmp_path, capsys):
    """All that the data are used for works on the data as they are kept."""
    assert command.main([name, "--quick", "--jobs", "1", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    module, kept = experiment.load(name), experiment.kept(name, tmp_path)
    assert module.TITLE in printed
    assert len(experiment.claim(module)) > 100
    assert kept["source"] == experiment.source(name)
    verdicts = module.verdicts(kept["data"])
    assert verdicts
    assert all(v.measured in printed for v in verdicts)
    json.dumps(kept["data"], allow_nan=False)  # another reader of JSON knows no NaN
    figure = module.draw(kept["data"])
    assert module.draw.__doc__
    axes = [ax for ax in figure.axes if ax.axison]
    assert all(ax.get_xlabel() or ax.get_title() for ax in axes)
    assert (tmp_path / f"{name}.png").stat().st_size > 1000


def test_the_page_is_that_of_the_data():
    """``docs/experiments.md`` is generated: nobody wrote into it, and no data came after it."""
    assert page.PAGE.read_text(encoding="utf-8") == page.markdown()


@pytest.mark.parametrize("name", experiment.names())
def test_a_full_run_is_kept(name):
    assert (experiment.RESULTS / f"{name}.json").exists()
    assert (figures.FOLDER / f"{name}.png").exists()


def test_exponents_cover_the_truth(seed):
    """Of 400 intervals of 95% about 380 hold the slope; fewer than 360 or more than 397 have a probability of 1e-4."""
    rng = np.random.default_rng(seed)
    x = np.geomspace(10, 80, 7)
    fitted = [fits.exponent(x, 3 * x**2.5 * np.exp(0.1 * rng.standard_normal(7))) for _ in range(400)]
    assert 360 <= sum(f.low <= 2.5 <= f.high for f in fitted) <= 397
    assert fitted[0](x) == pytest.approx(3 * x**2.5, rel=1)


def test_exponents_of_too_few_points():
    with pytest.raises(ValueError, match="at least three"):
        fits.exponent([1.0, 2.0], [1.0, 2.0])


def test_a_constant_has_exponent_zero():
    fit = fits.exponent([1.0, 2.0, 4.0], [3.0, 3.0, 3.0])
    assert (fit.slope, fit.low, fit.high) == pytest.approx((0, 0, 0), abs=1e-12)


def test_a_median_of_what_was_not_always_reached():
    assert fits.median([3.0, None, 1.0]) == 3
    assert fits.median([1.0, None, None]) is None
    assert fits.median([]) is None


def _spoil(name, data):
    """Data of a claim that does not hold, made of those of one that does."""
    if name == "accuracy":
        for row in data["rows"]:
            row["lost"] = 1.01 * min(1.0, 3 * row["eps"])
    elif name == "contractions":
        data["fits"][1]["top"] = None  # trap: the counts are expected to be reached
    elif name == "nearly_orthonormal":
        for row in data["rows"]:
            row["quartic"] = 1.1 * (np.sqrt(row["eta"]) + 3 * row["eps"])
    elif name == "robustness":
        for row in data["rows"]:
            row["found"]["quartic"] = 0.5
    return data


@pytest.mark.parametrize("name", ["accuracy", "contractions", "nearly_orthonormal", "robustness"])
def test_verdicts_can_fail(name):
    module, kept = experiment.load(name), experiment.kept(name)
    claims = [v.claim for v in module.verdicts(kept["data"]) if v.verdict == "does not hold at these sizes"]
    spoiled = [v.claim for v in module.verdicts(_spoil(name, kept["data"])) if v.verdict.startswith("does not hold")]
    assert claims == []
    assert spoiled


def test_a_verdict_is_one_of_four():
    with pytest.raises(ValueError, match="verdict must be one of"):
        experiment.Verdict("Theorem 1.1", "states", "measured", "perhaps")


def _double(x):
    if x < 0:
        raise ArithmeticError("negative")
    return 2 * x


@pytest.mark.parametrize("jobs", [1, 2])
def test_runs_come_in_order_and_fail_aloud(jobs):
    run = experiment.Run(jobs=jobs)
    assert run.each(_double, [(3,), (1,), (2,)]) == [6, 2, 4]
    with pytest.raises(ArithmeticError, match="negative"):
        run.each(_double, [(3,), (-1,)])


def test_what_is_kept_is_left_out_and_can_be_drawn_again(tmp_path, capsys):
    name, options = "accuracy", ["--jobs", "1", "--out", str(tmp_path)]
    command.main([name, "--quick", *options])
    figure = (tmp_path / f"{name}.png").read_bytes()
    before = experiment.kept(name, tmp_path)
    experiment.keep(name, {**before["data"], "d": 99}, tmp_path, 1.0)
    command.main([name, "--quick", "--resume", *options])  # measured again, d would be 8
    command.main([name, "--draw", *options])
    assert experiment.kept(name, tmp_path)["data"]["d"] == 99
    assert (tmp_path / f"{name}.png").read_bytes() != figure
    experiment.keep(name, before["data"], tmp_path, 1.0)
    command.main([name, "--draw", *options])
    assert (tmp_path / f"{name}.png").read_bytes() == figure
    assert "d = n = 99" in capsys.readouterr().out


@pytest.mark.parametrize("argv", [["nonsense"], ["--draw", "--quick"]])
def test_bad_arguments(argv, capsys):
    with pytest.raises(SystemExit):
        command.main(argv)
    assert "there are" in capsys.readouterr().err or argv[0] == "--draw"


def test_tables_in_markdown():
    table = report.markdown(["a", "b|c"], [[1.23456, None], ["x|y", 2]])
    assert table.splitlines() == ["| a | b\\|c |", "| --- | --- |", "| 1.235 | - |", "| x\\|y | 2 |"]
    assert report.plain({"a": np.float64(1 / 3), "b": (np.int64(1),)}) == {"a": 0.333333, "b": [1]}
