"""``quartic transform``."""

import functools
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from command_line import QUARTIC, BadStream, assert_refused, outcome

import quartic
from quartic.datasets import nice_samples

N, M = 8, 2500
KINDS = [quartic.SpectralDictionaryLearning, quartic.SpectralICA]
DATA = nice_samples(M, N, dictionary="orthonormal", random_state=0)
NEW = nice_samples(100, N, dictionary=DATA.dictionary, random_state=1).samples


@pytest.fixture
def run(capsys):
    """Run a command in this process: exit code, standard output, standard error."""
    return functools.partial(outcome, capsys)


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def model(tmp_path, kind):
    kind().fit(DATA.samples).save(tmp_path / "model.npz")
    return tmp_path / "model.npz"


@pytest.fixture
def file(tmp_path):
    np.save(tmp_path / "new.npy", NEW)
    return tmp_path / "new.npy"


def read(path):
    if path.suffix.lower() == ".csv":
        return np.loadtxt(path, delimiter=",", skiprows=1)
    data = np.load(path)
    return data["codes"] if path.suffix == ".npz" else data


@pytest.mark.parametrize("name", ["codes.npy", "codes.npz", "codes.csv", "codes.CSV"])
def test_codes_are_those_of_python(run, model, file, tmp_path, kind, name):
    assert run("transform", model, file, "--out", tmp_path / name) == (0, "", "")
    np.testing.assert_array_equal(read(tmp_path / name), kind.load(model).transform(NEW))  # to the last bit
    assert sorted(os.listdir(tmp_path)) == sorted([name, "model.npz", "new.npy"])


def test_text_on_standard_output_is_the_default(run, model, file, kind, monkeypatch):
    monkeypatch.setattr("quartic.cli.text.ROWS", 7)  # more than one part
    code, out, err = run("transform", model, file)
    assert (code, err) == (0, "")
    header, *lines = out.splitlines()
    noun = "source" if kind is quartic.SpectralICA else "atom"
    assert header.split(",") == [f"{noun}{i}" for i in range(N)]
    rows = [[float(field) for field in line.split(",")] for line in lines]
    np.testing.assert_array_equal(rows, kind.load(model).transform(NEW))


def test_what_was_learned_is_undone(run, tmp_path):
    np.save(tmp_path / "samples.npy", DATA.samples)
    assert run("learn", tmp_path / "samples.npy", "--out", tmp_path / "m.npz")[0] == 0
    assert run("transform", tmp_path / "m.npz", tmp_path / "samples.npy", "--out", tmp_path / "c.npy")[0] == 0
    codes, model = np.load(tmp_path / "c.npy"), quartic.SpectralDictionaryLearning.load(tmp_path / "m.npz")
    np.testing.assert_allclose(model.inverse_transform(codes), DATA.samples, rtol=0, atol=1e-12)
    assert np.count_nonzero(codes) == np.count_nonzero(DATA.codes)  # exact zeros


def test_an_uncertified_model_transforms(run, tmp_path, file):
    with pytest.warns(quartic.DecompositionWarning):
        model = quartic.SpectralDictionaryLearning().fit(np.random.default_rng(0).standard_normal((300, N)))
    model.save(tmp_path / "m.npz")
    assert run("transform", tmp_path / "m.npz", file, "--out", tmp_path / "c.npy") == (0, "", "")


def test_single_precision_stays(run, model, tmp_path):
    np.save(tmp_path / "a.npy", NEW.astype(np.float32))
    assert run("transform", model, tmp_path / "a.npy", "--out", tmp_path / "c.npy")[0] == 0
    codes = np.load(tmp_path / "c.npy")
    assert codes.dtype == np.float32
    out = run("transform", model, tmp_path / "a.npy")[1]
    rows = [[np.float32(field) for field in line.split(",")] for line in out.splitlines()[1:]]
    np.testing.assert_array_equal(np.asarray(rows), codes)


def test_one_sample_and_other_formats_are_read(run, model, tmp_path, kind):
    expected = kind.load(model).transform(NEW)
    np.savetxt(tmp_path / "a.csv", NEW[:1], delimiter=",", fmt="%.17g")
    np.savez(tmp_path / "a.npz", X=NEW, Y=NEW[:, :3])
    for name, options, rows in (("a.csv", [], 1), ("a.npz", ["--key", "X"], len(NEW))):
        assert run("transform", model, tmp_path / name, *options, "--out", tmp_path / "c.npy")[0] == 0
        np.testing.assert_allclose(np.load(tmp_path / "c.npy"), expected[:rows], rtol=0, atol=1e-12)


@pytest.mark.parametrize("out", ["c.npy", "c.npz", "c.csv"])
def test_data_in_chunks_are_read(run, model, tmp_path, kind, out):
    zarr = pytest.importorskip("zarr")
    pytest.importorskip("dask")
    zarr.create_array(tmp_path / "a.zarr", data=NEW, chunks=(30, N))
    assert run("transform", model, tmp_path / "a.zarr", "--out", tmp_path / out) == (0, "", "")
    np.testing.assert_allclose(read(tmp_path / out), kind.load(model).transform(NEW), rtol=0, atol=1e-12)


NAMES = [f"temp_{i}" for i in range(N)]


def write_table(path, X, names):
    np.savetxt(path, X, delimiter=",", fmt="%.17g", header=",".join(names), comments="")
    return path


@pytest.fixture
def named(tmp_path, kind):
    """A model that knows the names of its features."""
    learned = kind().fit(DATA.samples)
    learned.feature_names_in_ = np.array(NAMES, dtype=object)
    learned.save(tmp_path / "named.npz")
    return tmp_path / "named.npz"


def test_columns_go_by_their_names(run, model, named, tmp_path, kind):
    path, expected = tmp_path / "a.csv", kind.load(model).transform(NEW)
    note = f"quartic: note: {path}: has its columns in another order than {named}; they are taken by their names\n"
    for order, said in ((slice(None), ""), (slice(None, None, -1), note)):
        write_table(path, NEW[:, order], NAMES[order])
        assert run("transform", named, path, "--out", tmp_path / "c.npy") == (0, "", said)
        np.testing.assert_allclose(np.load(tmp_path / "c.npy"), expected, rtol=0, atol=1e-12)
    assert run("transform", model, path, "--out", tmp_path / "c.npy") == (0, "", "")  # which knows no names


def test_columns_of_parquet_files_go_by_their_names(run, model, named, tmp_path, kind):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("dask")
    table = pa.table({name: NEW[:, k] for k, name in reversed(list(enumerate(NAMES)))})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=30)
    code, out, err = run("transform", named, tmp_path / "a.parquet", "--out", tmp_path / "c.npy")
    assert (code, out) == (0, "")
    assert "they are taken by their names" in err
    expected = kind.load(model).transform(NEW)
    np.testing.assert_allclose(np.load(tmp_path / "c.npy"), expected, rtol=0, atol=1e-12)


def test_a_file_without_names_is_taken_in_order_with_a_warning(run, model, named, file, tmp_path, kind):
    code, out, err = run("transform", named, file, "--out", tmp_path / "c.npy")
    assert (code, out) == (0, "")
    assert err == f"quartic: warning: {file}: has no names of features; its columns are taken in the order of {named}\n"
    np.testing.assert_array_equal(np.load(tmp_path / "c.npy"), kind.load(model).transform(NEW))


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ([*NAMES[:-1], "other"], "has no column 'temp_7'"),
        (NAMES[:-1], "has no column 'temp_7'"),
        ([*NAMES, "label"], "has a column 'label' more"),
        ([*NAMES, NAMES[0]], "has a name twice"),
    ],
)
def test_other_names_are_refused(run, named, tmp_path, names, said):
    path = write_table(tmp_path / "a.csv", np.ones((3, len(names))), names)
    assert_refused(run("transform", named, path), f"{path}: {said}", "named.npz was learned from temp_0, temp_1")


def test_help(capsys):
    for command in ("learn", "transform"):
        with pytest.raises(SystemExit) as stop:
            quartic.cli.main([command, "--help"])
        assert stop.value.code == 0
        out = capsys.readouterr().out
        assert f"quartic {command} " in out
        assert "exit codes:" in out


# What goes wrong


def test_another_width_is_refused(run, model, tmp_path):
    np.save(tmp_path / "a.npy", NEW[:, :5])
    said = ["a.npy: has 5 columns", f"{model} was learned from {N}"]
    assert_refused(run("transform", model, tmp_path / "a.npy", "--out", tmp_path / "c.npy"), *said)
    assert sorted(os.listdir(tmp_path)) == ["a.npy", "model.npz"]


def test_bad_samples_are_refused(run, model, tmp_path):
    (tmp_path / "a.csv").write_text("1,2\n3,x\n")
    assert_refused(run("transform", model, tmp_path / "a.csv"), "line 2, column 2: 'x' is not a number")
    bad = NEW.copy()
    bad[3, 4] = np.nan
    np.save(tmp_path / "a.npy", bad)
    assert_refused(run("transform", model, tmp_path / "a.npy"), "X[3, 4] is nan")
    assert_refused(run("transform", model, tmp_path / "none.npy"), "no such file")
    zarr = pytest.importorskip("zarr")
    zarr.create_array(tmp_path / "a.zarr", data=bad, chunks=(2, N))
    assert_refused(run("transform", model, tmp_path / "a.zarr", "--out", tmp_path / "c.npy"), "X[3, 4] is nan")
    assert not (tmp_path / "c.npy").exists()
    assert_refused(run("transform", model, model), str(model), "arrays", "--key NAME")


def write_damaged(path, whole):
    path.write_bytes(whole[: len(whole) // 2])


def write_other_version(path, whole):
    path.write_bytes(whole)
    arrays = dict(np.load(path))
    np.savez(path, **arrays | {"format": np.asarray(99)})


def write_incomplete(path, whole):
    path.write_bytes(whole)
    arrays = dict(np.load(path))
    np.savez(path, **{name: x for name, x in arrays.items() if name != "unmixing"})


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (write_damaged, "not a model, or is damaged"),
        (write_incomplete, "damaged"),
        (write_other_version, "has format 99"),
        (lambda path, whole: path.write_bytes(b""), "not a model, or is damaged"),
        (lambda path, whole: path.write_text("1,2\n"), "not a model, or is damaged"),
        (lambda path, whole: path.write_bytes(b"\x80\x04N."), "not a model, or is damaged"),  # a pickle
        (lambda path, whole: np.savez(path, a=np.ones(3)), "not a model, or is damaged"),
        (lambda path, whole: quartic.Covariance().update(NEW).frame().save(path), "holds a Frame, not a model"),
        (lambda path, whole: quartic.Covariance().update(NEW).save(path), "holds a Covariance, not a model"),
    ],
)
def test_files_that_are_no_models_are_refused(run, model, file, tmp_path, write, said):
    bad = tmp_path / "bad.npz"
    write(bad, model.read_bytes())
    assert_refused(run("transform", bad, file, "--out", tmp_path / "c.npy"), str(bad), said)
    assert not (tmp_path / "c.npy").exists()


def test_a_decomposition_and_an_array_are_no_models(run, file, tmp_path):
    planted = quartic.datasets.planted_tensor(6, 2, 0.1, random_state=0)
    quartic.decompose(planted.tensor, random_state=0).save(tmp_path / "r.npz")
    assert_refused(run("transform", tmp_path / "r.npz", file), "r.npz", "not a model", "quartic learn --out")
    assert_refused(run("transform", file, file), "new.npy", "not a model", "quartic learn --out")


def test_models_that_cannot_be_read_are_refused(run, file, tmp_path):
    assert_refused(run("transform", tmp_path / "none.npz", file), "none.npz: no such file; check the path")
    assert_refused(run("transform", tmp_path, file), str(tmp_path), "Is a directory")


def test_outputs_are_checked_before_the_work(run, model, file, tmp_path, kind, monkeypatch):
    monkeypatch.setattr(kind, "transform", lambda self, X: pytest.fail("the work began"))

    def refused(path, *said):
        assert_refused(run("transform", model, file, "--out", path), "--out", *said)
        assert sorted(os.listdir(tmp_path)) == ["model.npz", "new.npy"]

    refused(tmp_path / "none" / "c.npy", "there is no folder", "make it")
    refused(tmp_path, "is a directory")
    refused(tmp_path / "codes.txt", "unknown format", ".npy, .npz or .csv")
    refused(tmp_path / "codes", "unknown format")
    refused(tmp_path / ".csv", "unknown format")  # a hidden file without a suffix
    refused(file, "would replace")
    refused(model, "would replace")


def test_bad_options_are_refused(run, model, file):
    assert_refused(run("transform", model), "required: DATA", "quartic transform --help")
    assert_refused(run("transform", model, file, "--json"), "unrecognized arguments: --json")
    assert_refused(run("transform", model, file, "--key", "X"), "--key X", "not an .npz archive")


@pytest.mark.parametrize("name", ["c.npy", "c.npz", "c.csv"])
@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (OSError(28, "No space left on device"), 2, r"quartic: error: --out .*: cannot be written \(No space left.*\n"),
        (KeyboardInterrupt(), 130, "quartic: interrupted\n"),
    ],
)
def test_a_write_that_fails_leaves_the_old_codes(run, model, file, tmp_path, monkeypatch, name, error, code, said):
    (tmp_path / name).write_bytes(b"the old codes")

    def fail(out, codes, names):
        out.write(b"half of the co")
        raise error

    monkeypatch.setitem(quartic.cli.transform.WRITERS, name[1:], fail)
    got, out, err = run("transform", model, file, "--out", tmp_path / name)
    assert (got, out) == (code, "")
    assert re.fullmatch(said, err)
    assert sorted(os.listdir(tmp_path)) == sorted([name, "model.npz", "new.npy"])
    assert (tmp_path / name).read_bytes() == b"the old codes"


def test_memory_that_runs_out_is_said(run, model, file, kind, monkeypatch):
    def fail(*args, **options):
        raise MemoryError

    monkeypatch.setattr(kind, "transform", fail)
    assert_refused(run("transform", model, file), str(file), "out of memory")


def test_standard_output_that_cannot_be_written(run, model, file, monkeypatch):
    monkeypatch.setattr(sys, "stdout", BadStream(BrokenPipeError()))
    assert run("transform", model, file) == (141, "", "")
    monkeypatch.setattr(sys, "stdout", BadStream(OSError(28, "No space left on device")))
    assert_refused(run("transform", model, file), "standard output", "No space left on device")


def test_the_program_itself(tmp_path, file):
    quartic.SpectralICA().fit(DATA.samples).save(tmp_path / "m.npz")
    done = subprocess.run([QUARTIC, "transform", tmp_path / "m.npz", file], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == len(NEW) + 1
