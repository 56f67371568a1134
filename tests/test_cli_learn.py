"""``quartic learn``."""

import functools
import io
import json
import os
import re
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.stats
from command_line import QUARTIC, BadStream, Terminal, assert_refused, outcome, shown, start

import quartic
from quartic.cli.learn import summary
from quartic.datasets import nice_samples

N, M = 8, 2500
LEARNED = {"--ica": quartic.SpectralICA, None: quartic.SpectralDictionaryLearning}
STAGES = ["gross samples", "whitening", "drawing samples", "searching", "proving", "refining", "measuring"]


@pytest.fixture
def run(capsys):
    """Run a command in this process: exit code, standard output, standard error."""
    return functools.partial(outcome, capsys)


def draw(seed=0, **options):
    return nice_samples(M, N, dictionary="orthonormal", random_state=seed, **options)


@pytest.fixture
def file(tmp_path):
    np.save(tmp_path / "samples.npy", draw().samples)
    return tmp_path / "samples.npy"


@pytest.fixture
def gaussian(tmp_path):
    """Samples without structure: there is a result, and nothing in it is certified."""
    np.save(tmp_path / "gaussian.npy", np.random.default_rng(0).standard_normal((400, 4)))
    return tmp_path / "gaussian.npy"


# What goes right


def test_prints_a_table(run, tmp_path, seed):
    np.save(tmp_path / "samples.npy", draw(seed).samples)
    code, out, err = run("learn", tmp_path / "samples.npy", "--seed", seed)
    assert (code, err) == (0, "")
    assert out.startswith(f"{N} atoms in dimension {N}, {N} certified\nstatus      {N} atoms found and certified.\n")
    assert re.search(rf"^samples +{M}$", out, re.MULTILINE)
    assert re.search(r"^refinement +the data are exactly sparse", out, re.MULTILINE)
    rows = re.findall(
        r"^ +(\d+) +([\d.]+) % +(0\.[5-9]\d*|1\.0*) +[01]\.\d\d +(\d\.\de-\d\d) +([\d.]+)  [+-].* feature \d$",
        out,
        re.MULTILINE,
    )
    assert [int(row[0]) for row in rows] == list(range(N))
    shares = [float(row[1]) for row in rows]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(100, abs=0.01 * N)
    assert "not certified" not in out


@pytest.mark.parametrize("option", [None, "--ica"])
def test_saves_what_python_would_find(run, file, tmp_path, option):
    path = tmp_path / "model.npz"
    code, out, _ = run("learn", file, "--seed", 3, "--out", path, *filter(None, [option]))
    assert code == 0
    assert out.endswith(f"\n\nmodel       {path}\n")
    assert ("sources" in out.splitlines()[0]) == (option == "--ica")
    model = LEARNED[option].load(path)
    expected = LEARNED[option](random_state=3).fit(np.load(file))
    for name in ("components_", "mean_", "certificates_", "uncertainty_", "stability_", "kurtosis_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(expected, name))
    assert sorted(os.listdir(tmp_path)) == ["model.npz", "samples.npy"]


def test_options_reach_the_library(run, file, tmp_path):
    code = run("learn", file, "--components", 3, "--no-refine", "--seed", 5, "--out", tmp_path / "m.npz")[0]
    assert code in (0, 3)
    model = quartic.SpectralDictionaryLearning.load(tmp_path / "m.npz")
    assert (model.n_components, model.refine, model.random_state) == (3, False, 5)
    assert model.components_.shape == (3, N)
    assert model.report_.refinement.startswith("none")


def as_bytes(X):
    out = io.BytesIO()
    np.save(out, X)
    return out.getvalue()


def write_npz(path, X):
    np.savez(path, X)


def write_npz_with_a_key(path, X):
    np.savez_compressed(path, X=X, labels=np.arange(3))


def write_csv(path, X, newline="\n", head="", quote="", encoding="utf-8", gap="", separator=",", index=False):
    rows = [separator.join(f"{quote}{value!r}{quote}" for value in row) for row in X.tolist()]
    rows = [f"row {i}{separator}{row}" for i, row in enumerate(rows)] if index else rows
    path.write_bytes((head + newline.join(rows) + gap + newline).encode(encoding))


@pytest.mark.parametrize(
    ("name", "write", "options"),
    [
        ("a.npy", np.save, []),
        ("a.dat", lambda path, X: path.write_bytes(as_bytes(X)), []),  # known by its contents
        ("a.npy", lambda path, X: np.save(path, np.asfortranarray(X)), []),
        ("a.npy", lambda path, X: np.save(path, X.astype(">f8")), []),
        ("a.npz", write_npz, []),
        ("a.npz", write_npz, ["--key", "arr_0"]),
        ("a.npz", write_npz_with_a_key, ["--key", "X"]),
        ("a.csv", write_csv, []),
        ("a.CSV", functools.partial(write_csv, head="one,two,3rd,d,e,f,g,h\n"), []),
        ("a.csv", functools.partial(write_csv, newline="\r\n", head='"a, b",b,c,d,e,f,g,h\r\n'), []),
        ("a.csv", functools.partial(write_csv, encoding="utf-8-sig", quote='"'), []),
        ("a.csv", functools.partial(write_csv, encoding="utf-8-sig", head="ä,b,c,d,e,f,g,h\n"), []),
        ("a.csv", functools.partial(write_csv, head="\n\r\n", gap="\n\n"), []),
        ("a.csv", functools.partial(write_csv, head="# made by hand\na,b,c,d,e,f,g,h\n"), []),
        ("a.csv", functools.partial(write_csv, head="0,1,2,3,4,5,6,7\n"), []),  # as pandas numbers columns
        ("a.txt", functools.partial(write_csv, head='"a; b",b,c,d,e,f,g,h\n'), []),
        ("a.csv", functools.partial(write_csv, separator=";", head="a,b;b;c;d;e;f;g;h\n"), []),
        ("a.tsv", functools.partial(write_csv, separator="\t"), []),
        ("a.txt", functools.partial(write_csv, separator="  "), []),
        ("a.csv", functools.partial(write_csv, index=True, head=",a,b,c,d,e,f,g,h\n"), []),
        ("a.csv", functools.partial(write_csv, index=True, head=",0,1,2,3,4,5,6,7\n"), []),
        ("a.csv", functools.partial(write_csv, index=True, head="Unnamed: 0,a,b,c,d,e,f,g,h\n"), []),
    ],
)
def test_every_format_gives_the_same_answer(run, file, tmp_path, name, write, options):
    write(tmp_path / name, draw().samples)
    code, out, err = run("learn", tmp_path / name, "--json", *options)
    assert (code, err) == (0, "")
    found, expected = json.loads(out), json.loads(run("learn", file, "--json")[1])
    np.testing.assert_allclose(found["components"], expected["components"], rtol=0, atol=1e-12)
    assert found["status"] == expected["status"]


NAMES = [f"temp_{i}" for i in range(N)]


def test_names_of_features_are_kept_and_shown(run, tmp_path):
    write_csv(tmp_path / "a.csv", draw().samples, head=",".join(NAMES) + "\n")
    argv = ("learn", tmp_path / "a.csv", "--out", tmp_path / "m.npz", "--report", tmp_path / "r.html")
    code, out, _ = run(*argv)
    assert code == 0
    assert "header      line 1 names the columns" in out
    assert re.search(r"^ +0 .*  [+-][\d.]+ temp_\d, [+-][\d.]+ temp_", out, re.MULTILINE)
    assert "temp_" in (tmp_path / "r.html").read_text()
    assert quartic.SpectralDictionaryLearning.load(tmp_path / "m.npz").feature_names_in_.tolist() == NAMES
    assert json.loads(run(*argv, "--json")[1])["feature_names"] == NAMES


def test_names_of_parquet_files_are_kept(run, tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("dask")
    X = draw().samples
    pq.write_table(pa.table({name: X[:, k] for k, name in enumerate(NAMES)}), tmp_path / "a.parquet")
    found = json.loads(run("learn", tmp_path / "a.parquet", "--json")[1])
    assert found["feature_names"] == NAMES
    assert found["report"]["samples"] == M


@pytest.mark.parametrize(
    ("head", "index", "said"),
    [
        ("", False, "none, line 1 is a sample"),
        ("0,1,2,3,4,5,6,7\n", False, "line 1 numbers the columns and is no sample"),
        (",0,1,2,3,4,5,6,7\n", True, "numbers the columns and is no sample; column 1 is left out, as an index"),
        (",a,b,c,d,e,f,g,h\n", True, "line 1 names the columns; column 1 is left out, as an index"),
    ],
)
def test_what_was_taken_for_a_header_is_said(run, tmp_path, head, index, said):
    write_csv(tmp_path / "a.csv", draw().samples, head=head, index=index)
    code, out, _ = run("learn", tmp_path / "a.csv")
    assert code == 0
    assert f"in dimension {N}," in out
    assert re.search(rf"^samples +{M}$", out, re.MULTILINE)
    assert said in out


def test_atoms_as_text(run, file, tmp_path):
    write_csv(tmp_path / "a.csv", draw().samples, head=",".join(['"a, b"', *NAMES[1:]]) + "\n")
    expected = json.loads(run("learn", file, "--json")[1])["components"]
    numbered = ",".join(f"feature{j}" for j in range(N))
    for source, header in ((file, numbered), (tmp_path / "a.csv", ",".join(['"a, b"', *NAMES[1:]]))):
        code, out, _ = run("learn", source, "--out", tmp_path / "atoms.csv")
        assert code == 0
        assert out.endswith(f"\natoms       {tmp_path / 'atoms.csv'}\n")
        assert (tmp_path / "atoms.csv").read_text().splitlines()[0] == header
        rows = np.genfromtxt(tmp_path / "atoms.csv", delimiter=",", skip_header=1)
        np.testing.assert_allclose(rows, expected, rtol=0, atol=1e-12)
    assert run("learn", file, "--ica", "--out", tmp_path / "sources.csv")[0] == 0
    rows = np.loadtxt(tmp_path / "sources.csv", delimiter=",", skiprows=1)
    mixing = quartic.SpectralICA().fit(np.load(file)).mixing_
    np.testing.assert_allclose(rows, (mixing / np.linalg.norm(mixing, axis=0)).T, rtol=0, atol=1e-12)


def test_sources_are_called_so(run, file, gaussian):
    for path in (file, gaussian):
        _, out, err = run("learn", path, "--ica")
        assert "atom" not in out + err
        assert re.search(r"^sources     \S", out, re.MULTILINE)


def test_whole_and_single_precision_numbers_are_read(run, tmp_path):
    codes = np.random.default_rng(0).choice([-1, 0, 1], size=(M, 4), p=[0.1, 0.8, 0.1])
    np.save(tmp_path / "whole.npy", codes.astype(np.int16))
    np.save(tmp_path / "single.npy", draw(dtype=np.float32).samples)
    found = json.loads(run("learn", tmp_path / "whole.npy", "--json")[1])
    np.testing.assert_allclose(np.sort(np.abs(found["components"]), axis=None), [0] * 12 + [1] * 4, atol=1e-9)
    assert run("learn", tmp_path / "single.npy")[0] == 0


@pytest.mark.parametrize("option", [None, "--ica"])
def test_json_is_one_object_that_round_trips(run, file, tmp_path, option):
    path = tmp_path / "model.npz"
    code, out, err = run("learn", file, "--json", "--out", path, *filter(None, [option]))
    assert (code, err) == (0, "")
    assert out.count("\n") == 1
    found, model = json.loads(out), LEARNED[option].load(path)
    assert found.pop("kind") == type(model).__name__
    for name in ("components", "mean", "certificates", "certified", "uncertainty", "stability", "kurtosis", "eps"):
        np.testing.assert_array_equal(found.pop(name), getattr(model, f"{name}_"))  # to the last bit
    for name in ("mixing",) if option else ("thresholds",):
        np.testing.assert_array_equal(found.pop(name), getattr(model, f"{name}_"))
    spread = model.learned_.spread
    np.testing.assert_allclose(found.pop("energy"), spread**2 / np.sum(spread**2), rtol=1e-14)
    status = found.pop("status")
    assert quartic.Status(**status | {"causes": tuple(status["causes"])}) == model.status_
    report = found.pop("report")
    assert report["samples"] == M
    assert report.keys() == vars(model.report_).keys()
    assert found == {"feature_names": None, "warnings": []}


def test_a_long_table_is_cut():
    model = quartic.SpectralDictionaryLearning().fit(
        nice_samples(M, N, dictionary="orthonormal", random_state=0).samples
    )
    text = summary(model, most=5)
    assert text.endswith(f"... and {N - 5} more")
    assert len(re.findall(r"^ +\d+ .* %", text, re.MULTILINE)) == 5


def test_no_array_is_copied_that_need_not_be(run, file, monkeypatch):
    seen = []
    monkeypatch.setattr(
        quartic.SpectralDictionaryLearning,
        "fit",
        lambda self, X, **options: seen.append(X) or self.stop,  # the work ends here
    )
    with pytest.raises(AttributeError, match="stop"):
        run("learn", file)
    assert isinstance(seen[0], np.memmap)
    assert seen[0].mode == "r"


# What is found but not proved


def test_an_uncertified_result_is_printed_saved_and_warned_of(run, gaussian, tmp_path):
    code, out, err = run("learn", gaussian, "--out", tmp_path / "model.npz")
    assert code == 3
    assert out.startswith("4 atoms in dimension 4, 0 certified")
    assert out.count("not certified") == 4
    status = quartic.SpectralDictionaryLearning.load(tmp_path / "model.npz").status_
    assert not status.ok
    assert err == f"quartic: warning: {status}\n"


def test_gross_samples_are_mentioned(run, tmp_path):
    X = draw().samples.copy()
    X[7] = 1e6
    np.save(tmp_path / "a.npy", X)
    code, out, _ = run("learn", tmp_path / "a.npy")
    assert code == 0
    assert re.search(rf"^samples +{M}, 1 trimmed$", out, re.MULTILINE)
    assert "1 sample was left out" in out.splitlines()[1]


@pytest.mark.filterwarnings("always")
def test_any_warning_is_one_line(run, file, monkeypatch):
    real = quartic.SpectralDictionaryLearning.fit

    def fit(self, X, **options):
        warnings.warn("strange\nindeed", RuntimeWarning, stacklevel=1)
        return real(self, X, **options)

    monkeypatch.setattr(quartic.SpectralDictionaryLearning, "fit", fit)
    code, _, err = run("learn", file)
    assert (code, err) == (0, "quartic: warning: strange indeed\n")


# What goes wrong


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--components", "0"], ["--components must lie between 1 and 36", "got 0"]),
        (["--components", "-3"], ["--components must lie between 1", "got -3"]),
        (["--components", "37"], ["--components must lie between 1 and 36", "got 37"]),
        (["--components", "2.5"], ["argument --components", "whole number", "'2.5'"]),
        (["--seed", "-1"], ["argument --seed", "at least 0"]),
        (["--rank", "1"], ["unrecognized arguments: --rank 1; see quartic learn --help"]),
        (["--comp", "1"], ["unrecognized arguments: --comp"]),
        (["again.npy"], ["unrecognized arguments: again.npy"]),
    ],
)
def test_bad_options_are_refused(run, file, tmp_path, options, said):
    assert_refused(run("learn", file, *options, "--out", tmp_path / "m.npz"), *said)
    assert os.listdir(tmp_path) == ["samples.npy"]


def twice(tmp_path):
    """A file of samples that vary in 8 of 16 directions."""
    X = draw().samples
    np.save(tmp_path / "twice.npy", np.column_stack([X, X]))
    return tmp_path / "twice.npy"


def test_more_components_than_squares_are_refused(run, tmp_path):
    assert_refused(run("learn", twice(tmp_path), "--components", 37), "--components must be at most 36", "got 37")


def test_outputs_are_checked_before_the_work(run, file, tmp_path, monkeypatch):
    monkeypatch.setattr(quartic.SpectralDictionaryLearning, "fit", lambda self, X: pytest.fail("the work began"))

    def refused(path, *said):
        assert_refused(run("learn", file, "--out", path), "--out", *said)
        assert os.listdir(tmp_path) == ["samples.npy"]

    refused(tmp_path / "none" / "m.npz", "there is no folder", "make it")
    refused(tmp_path, "is a directory")
    refused(os.devnull, "device")
    refused("", "give the name of a file")
    refused(file, "would replace")


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (OSError(28, "No space left on device"), 2, r"quartic: error: --out .*: cannot be written \(No space left.*\n"),
        (KeyboardInterrupt(), 130, "quartic: interrupted\n"),
    ],
)
def test_a_write_that_fails_leaves_the_old_model(run, file, tmp_path, monkeypatch, error, code, said):
    (tmp_path / "m.npz").write_bytes(b"the old model")

    def savez(out, **arrays):
        out.write(b"half of a mod")
        raise error

    monkeypatch.setattr(np, "savez", savez)
    got, out, err = run("learn", file, "--out", tmp_path / "m.npz")
    assert (got, out) == (code, "")
    assert re.fullmatch(said, err)
    assert sorted(os.listdir(tmp_path)) == ["m.npz", "samples.npy"]
    assert (tmp_path / "m.npz").read_bytes() == b"the old model"


def test_memory_that_runs_out_is_said(run, file, monkeypatch):
    def fail(*args, **options):
        raise MemoryError

    monkeypatch.setattr("quartic.estimators.learn", fail)
    assert_refused(run("learn", file), str(file), "out of memory", "float32")


def test_standard_output_that_cannot_be_written(run, file, monkeypatch):
    monkeypatch.setattr(sys, "stdout", BadStream(BrokenPipeError()))
    assert run("learn", file) == (141, "", "")
    monkeypatch.setattr(sys, "stdout", BadStream(OSError(28, "No space left on device")))
    assert_refused(run("learn", file), "standard output", "No space left on device")


def test_progress_is_one_line_that_is_cleared(run, file, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    code, _, err = run("learn", file, "--out", tmp_path / "m.npz")
    assert code == 0
    assert "\n" not in err
    assert sorted(STAGES, key=err.index) == STAGES
    assert shown(err) == ""
    quartic.SpectralDictionaryLearning.load(tmp_path / "m.npz")  # the callback is no part of the model
    code, _, err = run("learn", twice(tmp_path), "--components", 37)  # an error in the middle of the work
    before, _, after = err.partition("quartic: error: ")
    assert (code, shown(before), after.count("\n")) == (2, "", 1)


# The program itself, in a process of its own


def test_quiet_in_a_pipe(file, tmp_path):
    argv = [QUARTIC, "learn", file, "--out", tmp_path / "m.npz"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert f"{N} atoms in dimension {N}, {N} certified" in done.stdout
    assert quartic.SpectralDictionaryLearning.load(tmp_path / "m.npz").status_.ok


def test_interrupted_in_the_middle_of_the_work(tmp_path):
    # Samples without structure keep the search busy for seconds; the signal goes out when it has begun.
    np.save(tmp_path / "a.npy", np.random.default_rng(0).standard_normal((60_000, 40)))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a signal ignored here would be ignored there
    terminal = Terminal()
    try:
        program = start("learn", tmp_path / "a.npy", "--out", tmp_path / "m.npz", stderr=terminal.slave)
    finally:
        signal.signal(signal.SIGINT, before)
    with program:
        terminal.read(until="searching")
        program.send_signal(signal.SIGINT)
        text = terminal.read()
    terminal.close()
    assert program.returncode == 130
    assert text.endswith("\rquartic: interrupted\r\n")
    assert os.listdir(tmp_path) == ["a.npy"]


# Tables that are not quite what they should be


def as_text(names, X):
    lines = [",".join(names), *(",".join(map(str, row)) for row in X.tolist())]
    return "\n".join(lines) + "\n"


def test_a_constant_feature_is_named(run, tmp_path, seed):
    X = draw(seed).samples
    (tmp_path / "t.csv").write_text(as_text([*(f"t{j}" for j in range(N)), "flat"], np.insert(X, N, 3.7, axis=1)))
    code, out, err = run("learn", tmp_path / "t.csv")
    assert (code, err) == (0, "")
    assert out.startswith(f"{N} atoms in dimension {N}, ")
    assert "\nconstant    flat: no atom has a part in it\n" in out
    np.save(tmp_path / "t.npy", X)
    assert "constant" not in run("learn", tmp_path / "t.npy")[1]


def test_a_column_that_counts_the_rows_is_named(run, tmp_path, seed):
    X = np.insert(draw(seed).samples, 2, np.arange(M), axis=1)
    (tmp_path / "t.csv").write_text(as_text(["a", "b", "id", *(f"t{j}" for j in range(2, N))], X))
    assert "id counts the rows: leave it out" in run("learn", tmp_path / "t.csv")[2]
    np.save(tmp_path / "t.npy", X)
    assert (
        "feature 2 counts the rows: leave it out"
        in run("learn", tmp_path / "t.npy", "--report", tmp_path / "t.html")[2]
    )
    assert 'class="verdict good"' not in (tmp_path / "t.html").read_text(encoding="utf-8")


def test_a_certified_atom_that_may_be_far_off_is_warned_of_everywhere(run, file, tmp_path, monkeypatch):
    monkeypatch.setattr("quartic.report.findings.COARSE", -0.5)  # whatever their uncertainty is, it is more than that
    code, out, err = run("learn", file, "--json", "--report", tmp_path / "t.html")
    (warning,) = json.loads(out)["warnings"]
    assert "degrees from the truth" in warning
    assert warning in err
    assert (tmp_path / "t.html").read_text(encoding="utf-8").count(warning) == 1
    assert code == 0


def test_skewed_sources_are_measured_in_their_own_units(run, tmp_path, seed):
    rng = np.random.default_rng(seed)
    codes = rng.exponential(size=(5000, 4))
    np.save(tmp_path / "t.npy", codes @ rng.standard_normal((4, 4)))
    for kind in ((), ("--ica",)):
        err = run("learn", tmp_path / "t.npy", *kind)[2]
        most = float(re.search(r"t.npy: 4 of 4 sources are skewed .* the most by ([0-9]+[.]?[0-9]*)", err)[1])
        assert abs(most - np.max(scipy.stats.skew(codes))) < 0.5


def test_temperature(run, file):
    code, out, _ = run("learn", file, "--temperature", "0", "--json")
    assert (code, json.loads(out)["report"]["temperature"]) == (0, 0.0)
    assert_refused(run("learn", file, "--temperature", "-1"), "--temperature must be a number")
    assert_refused(run("learn", file, "--temperature", "1", "--no-refine"), "--temperature must be None or 0")


def test_a_transposed_file_is_asked_about(run, tmp_path):
    np.save(tmp_path / "t.npy", draw().samples[:40].T)
    assert (
        f"Are the samples in columns ({N} rows, 40 columns)? Then transpose them" in run("learn", tmp_path / "t.npy")[2]
    )


def test_standard_input(run, tmp_path, monkeypatch):
    text = as_text([f"t{j}" for j in range(N)], draw().samples)
    (tmp_path / "t.csv").write_text(text)

    def given(text):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))

    given(text.encode())
    untimed = [re.sub(r"time .*| in [0-9.]+ s", "", run("learn", path)[1]) for path in ("-", tmp_path / "t.csv")]
    assert untimed[0] == untimed[1]
    given(text.encode())
    assert run("check", "-")[0] == 0
    given(b"a,b\n1,x\n")
    assert_refused(run("learn", "-"), "standard input: line 2, column 2 (b): 'x' is not a number")
    given(b"")
    assert_refused(run("learn", "-"), "standard input: ")
    given(b"\xff\xfe\x00")
    assert_refused(run("learn", "-"), "standard input: ")
    assert_refused(run("learn", "-", "--memory", "1GB"), "is read as a whole")
    given(text.encode())
    run("learn", "-", "--report", tmp_path / "r.html")
    assert "standard input" in (tmp_path / "r.html").read_text()


def test_codes_for_what_is_missing_are_named_also_on_the_page(run, tmp_path, seed):
    X = nice_samples(M, N, coefficients="gaussian", random_state=seed).samples
    X[np.random.default_rng(seed).random(M) < 0.1, 3] = -999
    (tmp_path / "t.csv").write_text(as_text([f"t{j}" for j in range(N)], X))
    _, _, err = run("learn", tmp_path / "t.csv", "--report", tmp_path / "r.html")
    assert "t3 is -999 in " in err
    assert "t3 is -999 in " in (tmp_path / "r.html").read_text()


def test_skewed_sources_are_named(run, tmp_path, seed):
    codes = np.abs(draw(seed, coefficients="gaussian").codes)
    np.save(tmp_path / "t.npy", codes @ np.random.default_rng(seed).standard_normal((N, N)))
    assert "skewed by more than" in run("learn", tmp_path / "t.npy")[2]
    np.save(tmp_path / "t.npy", draw(seed, coefficients="gaussian").samples)
    assert "skewed" not in run("learn", tmp_path / "t.npy")[2]


def test_more_atoms_than_the_data_have(run, tmp_path, seed):
    np.save(tmp_path / "t.npy", draw(seed, coefficients="gaussian").samples)
    code, out, _ = run("learn", tmp_path / "t.npy", "--components", N + 4)
    assert code == 3
    assert f"{N} of {N + 4} atoms certified. As many atoms are certified as there are dimensions." in out
    assert f"The data may have no more: ask for {N}," in out
