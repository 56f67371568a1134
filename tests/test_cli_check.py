"""``quartic check``."""

import functools
import json

import numpy as np
import pytest
from command_line import assert_refused, outcome

import quartic
from quartic.datasets import nice_samples

M, D = 1500, 6


@pytest.fixture
def run(capsys):
    return functools.partial(outcome, capsys)


def draw(seed=0, **options):
    return nice_samples(M, D, dictionary="orthonormal", random_state=seed, **options).samples


@pytest.fixture
def file(tmp_path):
    np.save(tmp_path / "samples.npy", draw())
    return tmp_path / "samples.npy"


@pytest.fixture
def gaussian(tmp_path):
    np.save(tmp_path / "gaussian.npy", np.random.default_rng(0).standard_normal((M, D)))
    return tmp_path / "gaussian.npy"


def test_good_samples(run, tmp_path, seed):
    np.save(tmp_path / "samples.npy", draw(seed))
    code, out, err = run("check", tmp_path / "samples.npy", "--seed", seed)
    assert (code, err) == (0, "")
    assert out == quartic.diagnose(draw(seed), random_state=seed).summary() + "\n"


def test_a_broken_assumption_is_a_warning_and_an_exit_code(run, gaussian):
    code, out, err = run("check", gaussian)
    assert code == 3
    assert "broken    structure " in out
    assert err == f"quartic: warning: {quartic.diagnose(np.load(gaussian)).verdict}\n"


def test_json(run, gaussian):
    code, out, _ = run("check", gaussian, "--json")
    found = json.loads(out)
    assert code == 3
    assert found["broken"] == ["structure"]
    assert next(f["value"] for f in found["findings"] if f["code"] == "noise") is None  # no floor, no number


def test_the_number_of_atoms_reaches_the_library(run, file):
    out = run("check", file, "--components", 2 * D)[1]
    assert f"for {2 * D} atoms in {D} dimensions" in out
    assert_refused(run("check", file, "--components", 0), "--components must be at least 1")


def test_text_and_archives(run, tmp_path):
    np.savetxt(tmp_path / "a.csv", draw(), delimiter=",")
    np.savez(tmp_path / "a.npz", X=draw(), other=np.zeros(3))
    code, out, _ = run("check", tmp_path / "a.csv")
    expected, header = out.rstrip("\n").rsplit("\n", 1)
    assert (code, header) == (0, "header    none, line 1 is a sample")
    assert run("check", tmp_path / "a.npz", "--key", "X")[:2] == (0, f"{expected}\n")


@pytest.mark.parametrize("missing", ["", "NA", "nan", "N/A", " null "])
@pytest.mark.parametrize("index", [False, True])
def test_missing_values_in_text_are_a_finding(run, tmp_path, missing, index):
    rows = [[f"row {i}"] * index + [repr(x) for x in row] for i, row in enumerate(draw().tolist())]
    rows[3][4] = rows[7][5] = missing
    head = [""] * index + list("abcdef")
    (tmp_path / "a.csv").write_text("\n".join(map(",".join, [head, *rows])))
    code, out, _ = run("check", tmp_path / "a.csv", "--json")
    assert (code, json.loads(out)["broken"]) == (3, ["finite"])
    assert json.loads(out)["features"] == D
    assert_refused(run("learn", tmp_path / "a.csv"), f"line 5, column 5 ({head[4]})", "a value is missing: fill it in")


def test_what_is_not_finite_is_a_finding(run, tmp_path):
    Y = draw()
    Y[3, 4] = np.nan
    np.save(tmp_path / "a.npy", Y)
    code, out, _ = run("check", tmp_path / "a.npy", "--json")
    assert (code, json.loads(out)["broken"]) == (3, ["finite"])


def test_samples_in_chunks(run, tmp_path):
    zarr = pytest.importorskip("zarr")
    pytest.importorskip("dask")
    zarr.create_array(tmp_path / "a.zarr", data=draw(), chunks=(400, D))
    code, out, _ = run("check", tmp_path / "a.zarr")
    assert code == 0
    assert out.startswith(f"{M} samples of {D} features, {M} looked at\nNothing speaks against")
    (tmp_path / "empty").mkdir()
    assert_refused(run("check", tmp_path / "empty"), "holds no .npy and no .parquet files")


def test_under_a_model(run, file, gaussian, tmp_path):
    model = quartic.SpectralDictionaryLearning().fit(np.load(file))
    model.save(tmp_path / "model.npz")
    assert run("check", file, "--model", tmp_path / "model.npz")[0] == 0
    code, out, _ = run("check", gaussian, "--model", tmp_path / "model.npz", "--json")
    assert code == 3
    assert {"structure", "scale"} <= set(json.loads(out)["broken"])
    np.save(tmp_path / "narrow.npy", draw()[:, :2])
    refused = run("check", tmp_path / "narrow.npy", "--model", tmp_path / "model.npz")
    assert_refused(refused, "narrow.npy: has 2 columns", f"learned from {D}")
    assert_refused(run("check", file, "--model", file), "is not a model")


def test_names_go_with_those_of_the_model(run, tmp_path):
    names = list("abcdef")

    def write(order, header):
        text = "\n".join(",".join(map(repr, row)) for row in draw()[:, order].tolist())
        (tmp_path / "a.csv").write_text(",".join(header) + f"\n{text}\n")
        return tmp_path / "a.csv"

    order = list(range(D))
    assert run("learn", write(order, names), "--out", tmp_path / "m.npz")[0] == 0
    argv = ("check", tmp_path / "a.csv", "--model", tmp_path / "m.npz")
    write(order[::-1], names[::-1])
    assert run(*argv)[0] == 0  # columns go by their names
    write(order, [*names[:-1], "g"])
    assert_refused(run(*argv), "a.csv: has no column 'f'", "m.npz was learned from a, b, c, d, e, f")


def test_bad_files_are_refused(run, tmp_path):
    assert_refused(run("check", tmp_path / "none.npy"), "no such file")
    (tmp_path / "a.csv").write_text("1,2\n3,x\n")
    assert_refused(run("check", tmp_path / "a.csv"), "line 2, column 2: 'x' is not a number")
    np.save(tmp_path / "a.npy", np.zeros(3))
    assert_refused(run("check", tmp_path / "a.npy"), "shape (m, d)")


def test_help(capsys):
    with pytest.raises(SystemExit) as stop:
        quartic.cli.main(["check", "--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert "quartic check samples.npy" in out
    assert "exit codes:" in out
