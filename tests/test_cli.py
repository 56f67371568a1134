import functools
import json
import os
import pickle
import re
import signal
import subprocess
import sys
from importlib.metadata import entry_points

import numpy as np
import pytest
from command_line import QUARTIC, BadStream, Terminal, assert_refused, outcome, shown, start

import quartic
from quartic import cli
from quartic.cli import decompose as command

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def run(capsys):
    """Run a command in this process: exit code, standard output, standard error."""
    return functools.partial(outcome, capsys)


def plant(seed=0):
    return quartic.datasets.planted_tensor(10, 4, 0.1, weights=[2.0, 1.5, 1.0, 0.5], random_state=seed)


@pytest.fixture
def file(tmp_path):
    np.save(tmp_path / "tensor.npy", plant().tensor)
    return tmp_path / "tensor.npy"


@pytest.fixture
def noise(tmp_path):
    """A tensor without any components: there is a result, and nothing in it."""
    np.save(tmp_path / "noise.npy", np.random.default_rng(0).standard_normal((6, 6, 6, 6)))
    return tmp_path / "noise.npy"


# What goes right


def test_decompose_prints_the_summary(run, file):
    code, out, err = run("decompose", file)
    assert (code, err) == (0, "")
    assert "4 components in dimension 10, 4 certified" in out
    assert out.count("\n  ") >= 5  # the table


def test_decompose_saves_what_it_found(run, tmp_path, seed):
    planted = plant(seed)
    file, path = tmp_path / "tensor.npy", tmp_path / "result.npz"
    np.save(file, planted.tensor)
    code, out, _ = run("decompose", file, "--rank", 4, "--eps", 0.1, "--seed", seed, "--out", path)
    assert code == 0
    assert str(path) in out
    result = quartic.Decomposition.load(path)
    assert result.rank == 4
    assert quartic.metrics.match(planted.components, result.components).found() == 4
    assert sorted(os.listdir(tmp_path)) == ["result.npz", "tensor.npy"]


def test_options_reach_the_library(run, file, monkeypatch):
    seen = {}
    real = command.decompose

    def spy(T, **options):
        seen.update(options, T=T)
        return real(T, **options)

    monkeypatch.setattr(command, "decompose", spy)
    assert run("decompose", file, "--rank", 4, "--eps", "1.5e-1", "--find", 2, "--seed", 3)[0] == 0
    assert isinstance(seen["T"], np.memmap)
    assert seen["T"].mode == "r"
    assert {name: seen[name] for name in ("rank", "eps", "find", "random_state", "callback")} == {
        "rank": 4,
        "eps": 0.15,
        "find": 2,
        "random_state": 3,
        "callback": None,  # nobody watches
    }


def test_flattened_and_integer_tensors_are_read(run, tmp_path):
    np.save(tmp_path / "flat.npy", plant().tensor.reshape(100, 100))
    np.save(tmp_path / "whole.npy", np.ones((1, 1, 1, 1), dtype=np.int16))
    assert "4 components" in run("decompose", tmp_path / "flat.npy")[1]
    assert "1 component " in run("decompose", tmp_path / "whole.npy")[1]


def test_json_is_one_object_that_round_trips(run, file, tmp_path, seed):
    path = tmp_path / "result.npz"
    code, out, err = run("decompose", file, "--json", "--seed", seed, "--out", path)
    assert (code, err) == (0, "")
    assert out.count("\n") == 1
    found = json.loads(out)
    result = quartic.Decomposition.load(path)
    for name in ("components", "weights", "certificates", "certified"):
        np.testing.assert_array_equal(np.asarray(found.pop(name)), getattr(result, name))  # to the last bit
    for name in ("eps", "eps_assumed", "rank", "reason", "timings", "asymmetry", "sweeps"):
        assert found.pop(name) == getattr(result, name)
    assert quartic.Status(**found.pop("status")) == result.status
    assert found == {}


def test_archives_are_read(run, file, tmp_path):
    expected = json.loads(run("decompose", file, "--json")[1])["components"]
    np.savez(tmp_path / "one.npz", T=plant().tensor)
    np.savez(tmp_path / "two.npz", T=plant().tensor, labels=np.arange(3))
    for argv in (["one.npz"], ["two.npz", "--key", "T"]):
        code, out, _ = run("decompose", tmp_path / argv[0], *argv[1:], "--json")
        assert code == 0
        np.testing.assert_allclose(json.loads(out)["components"], expected, rtol=0, atol=1e-12)
    assert_refused(run("decompose", tmp_path / "two.npz"), "holds 2 arrays, T, labels", "--key NAME")
    assert_refused(run("decompose", file, "--key", "T"), "--key T", "not an .npz archive")


def test_components_as_text(run, file, tmp_path):
    code, out, _ = run("decompose", file, "--out", tmp_path / "a.csv")
    assert code == 0
    assert out.endswith(f"\ncomponents {tmp_path / 'a.csv'}\n")
    assert (tmp_path / "a.csv").read_text().splitlines()[0] == ",".join(f"feature{j}" for j in range(10))
    expected = json.loads(run("decompose", file, "--json")[1])["components"]
    rows = np.loadtxt(tmp_path / "a.csv", delimiter=",", skiprows=1)
    np.testing.assert_allclose(rows, expected, rtol=0, atol=1e-12)


def test_one_seed_gives_one_answer(run, file):
    def found(*options):
        return np.asarray(json.loads(run("decompose", file, "--json", *options)[1])["components"])

    np.testing.assert_allclose(found(), found("--seed", 0), rtol=0, atol=1e-12)  # zero is the default
    np.testing.assert_allclose(found("--seed", 9), found("--seed", 9), rtol=0, atol=1e-12)


def test_decompose_draws(run, file, tmp_path):
    code, out, _ = run("decompose", file, "--plot", tmp_path / "a.png")
    assert code == 0
    assert str(tmp_path / "a.png") in out
    assert (tmp_path / "a.png").read_bytes().startswith(PNG)


def test_demo_prints_a_table_and_writes_a_picture(run, tmp_path, seed):
    folder = tmp_path / "new" / "out"
    code, out, err = run("demo", "--out", folder, "--seed", seed)
    assert (code, err) == (0, "")
    assert out.count(" yes\n") == 30
    assert "30 of 30 planted components" in out
    assert "rank     30 found, 30 planted" in out
    assert re.search(r"eps +0\.\d+ measured, 0\.4 planted", out)
    assert all(stage in out for stage in ("pack", "truncate", "recover", "measure"))
    assert out.endswith(f"picture  {folder / 'spectrum.png'}\n")
    assert os.listdir(folder) == ["spectrum.png"]
    data = (folder / "spectrum.png").read_bytes()
    assert data.startswith(PNG)
    assert 10_000 < len(data) < 100_000


def test_demo_for_machines(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run("demo", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["rank"] == found["planted"]["n"] == 30
    assert min(found["matching"]["squared_correlation"]) > 0.99
    assert found["picture"] == os.path.join("out", "spectrum.png")
    assert os.listdir(tmp_path / "out") == ["spectrum.png"]


def test_demo_without_matplotlib_says_so_and_succeeds(run, tmp_path, monkeypatch):
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    code, out, err = run("demo", "--out", tmp_path / "out")
    assert (code, err) == (0, "")
    assert "pip install matplotlib" in out.splitlines()[-1]
    assert os.listdir(tmp_path) == []


def test_version_help_and_entry_point(capsys):
    for argv, said in [
        (["--version"], f"quartic {quartic.__version__}\n"),
        (["--help"], "quartic demo"),
        (["decompose", "--help"], "quartic decompose tensor.npy"),
        (["demo", "--help"], "quartic demo --seed 7"),
    ]:
        with pytest.raises(SystemExit) as stop:
            cli.main(argv)
        assert stop.value.code == 0
        out = capsys.readouterr().out
        assert said in out
        assert "--version" in argv or "exit codes:" in out
    (script,) = entry_points(group="console_scripts", name="quartic")
    assert script.load() is cli.main


# What is found but not proved


def test_an_incomplete_result_is_printed_saved_and_warned_of(run, noise, tmp_path):
    code, out, err = run("decompose", noise, "--out", tmp_path / "result.npz")
    assert code == 3
    assert "0 certified" in out
    status = quartic.Decomposition.load(tmp_path / "result.npz").status
    assert not status.ok
    assert err == f"quartic: warning: {status}\n"


def test_an_incomplete_result_for_machines(run, noise):
    code, out, err = run("decompose", noise, "--json")
    assert code == 3
    assert json.loads(out)["status"]["code"] != "complete"
    assert re.fullmatch(r"quartic: warning: .+\n", err)


def test_advice_fits_the_command_line_too(run, file):
    code, out, err = run("decompose", file, "--rank", 6)
    assert code == 3
    for said in (out, err):
        assert "a smaller rank, or none" in said


def test_a_warning_does_not_repeat_what_the_same_screen_shows(run, noise, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    code, out, err = run("decompose", noise)
    assert code == 3
    assert "status " in out
    assert err.endswith("quartic: warning: not everything is found and certified: see above\n")


# What goes wrong


def with_value(value):
    T = np.ones((3, 3, 3, 3))
    T[0, 2, 1, 0] = value
    return T


@pytest.mark.parametrize(
    ("T", "said"),
    [
        (np.ones((3, 3, 3)), ["3 modes", "(d, d, d, d)"]),
        (np.ones(()), ["0 modes", "(d, d, d, d)"]),
        (np.ones((3, 3, 3, 4)), ["unequal", "(3, 3, 3, 4)"]),
        (np.ones((4, 9)), ["unequal", "(4, 9)"]),
        (np.ones((5, 5)), ["5 is not a square"]),
        (np.ones((0, 0, 0, 0)), ["empty"]),
        (np.zeros((3, 3, 3, 3)), ["zero tensor"]),
        (with_value(np.nan), ["T[0, 2, 1, 0] is nan", "replace"]),
        (with_value(-np.inf), ["T[0, 2, 1, 0] is -inf", "replace"]),
        (np.ones((3, 3, 3, 3), dtype=complex), ["complex128", "real part"]),
        (np.full((3, 3, 3, 3), "a"), ["real numbers"]),
        (np.ones((3, 3, 3, 3), dtype=np.float16), ["float16", "float32"]),
        (np.ones((2, 2, 2, 2), dtype=object), ["pickled Python objects", "never loaded", "dtype=float"]),
    ],
    ids=lambda value: f"{value.dtype}-{value.shape}" if isinstance(value, np.ndarray) else "",
)
def test_bad_tensors_are_refused(run, tmp_path, T, said):
    np.save(tmp_path / "bad.npy", T)
    assert_refused(
        run("decompose", tmp_path / "bad.npy", "--out", tmp_path / "r.npz"), str(tmp_path / "bad.npy"), *said
    )
    assert os.listdir(tmp_path) == ["bad.npy"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"\x93NUM", "not a .npy or .npz file"),
        (b"1.0,2.0\n3.0,4.0\n", "not a .npy or .npz file"),
        (pickle.dumps(np.ones((2, 2, 2, 2))), "pickles are never loaded"),
        (b"PK\x03\x04 and so on", ".npz archive"),
        (b"\x93NUMPY\x01\x00", "header is damaged or truncated"),
        (b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f8', 'fort", "header is damaged or truncated"),
        (b"\x93NUMPY\x01\x00\x05\x00oops\n", "header is damaged or truncated"),
        (b"\x93NUMPY\x09\x00\x05\x00oops\n", "numpy.save again"),  # a version that does not exist
    ],
)
def test_files_that_are_no_arrays_are_refused(run, tmp_path, content, said):
    (tmp_path / "bad.npy").write_bytes(content)
    assert_refused(run("decompose", tmp_path / "bad.npy"), str(tmp_path / "bad.npy"), said, "numpy.save")


@pytest.mark.parametrize("kept", [130, 500, 10_000])
def test_truncated_files_are_refused(run, file, kept):
    os.truncate(file, kept)
    assert_refused(run("decompose", file), str(file), f"truncated, {kept - 128} of 80000 bytes", "again")


def test_paths_that_cannot_be_read_are_refused(run, file, tmp_path):
    assert_refused(run("decompose", tmp_path / "none.npy"), "none.npy", "no such file", "check the path")
    assert_refused(run("decompose", tmp_path), str(tmp_path), "is a directory", "give a .npy or .npz file")
    assert_refused(run("decompose", file / "inside"), "cannot be read", "Not a directory")
    assert_refused(run("decompose", os.devnull), os.devnull, "not a regular file")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="permissions do not bind the superuser")
def test_permissions_are_respected(run, file, tmp_path):
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o500)
    assert_refused(run("decompose", file, "--out", folder / "r.npz"), "--out", "Permission denied")
    file.chmod(0)
    assert_refused(run("decompose", file), str(file), "Permission denied")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--rank", "0"], ["--rank must be at least 1; got 0"]),
        (["--rank", "-3"], ["--rank must be at least 1; got -3"]),
        (["--rank", "56"], ["--rank must be at most 55; got 56"]),
        (["--rank", "2.5"], ["argument --rank", "whole number", "'2.5'"]),
        (["--rank"], ["argument --rank", "expected one argument"]),
        (["--find", "0"], ["--find must be at least 1"]),
        (["--find", "3", "--rank", "2"], ["--find must be at most rank = 2"]),
        (["--eps", "-0.5"], ["--eps", "not negative"]),
        (["--eps", "nan"], ["--eps", "finite"]),
        (["--eps", "1e9"], ["--eps", "largest eigenvalue"]),
        (["--eps", "small"], ["argument --eps", "must be a number", "'small'"]),
        (["--seed", "-1"], ["argument --seed", "at least 0"]),
        (["--seed", "x"], ["argument --seed", "whole number"]),
        (["--sed", "1"], ["unrecognized arguments: --sed"]),
        (["again.npy"], ["unrecognized arguments: again.npy"]),
    ],
)
def test_bad_options_are_refused(run, file, tmp_path, options, said):
    assert_refused(run("decompose", file, *options, "--out", tmp_path / "r.npz"), *said)
    assert os.listdir(tmp_path) == ["tensor.npy"]


def test_bad_commands_are_refused(run):
    assert_refused(run(), "required: COMMAND", "quartic --help")
    assert_refused(run("recompose"), "recompose", "'decompose'")
    assert_refused(run("decompose"), "required: FILE", "quartic decompose --help")


@pytest.mark.parametrize("option", ["--out", "--plot"])
def test_outputs_are_checked_before_the_work(run, file, tmp_path, monkeypatch, option):
    monkeypatch.setattr(command, "decompose", lambda *args, **options: pytest.fail("the work began"))

    def refused(path, *said):
        assert_refused(run("decompose", file, option, path), option, *said)
        assert os.listdir(tmp_path) == ["tensor.npy"]

    refused(tmp_path / "none" / "a.png", "there is no folder", "make it")
    refused(tmp_path, "is a directory")
    refused(os.devnull, "device")  # replacing it would be a disaster
    refused("", "give the name of a file")
    refused(file / "a.png", "cannot write in", "Not a directory")
    refused(file, "would replace")
    link = tmp_path.parent / f"{tmp_path.name}-link"
    link.symlink_to(tmp_path)
    refused(link / "tensor.npy", "would replace")


@pytest.mark.parametrize(
    ("option", "name", "formats"),
    [("--out", "x.json", ".npz or .csv"), ("--out", "x", ".npz or .csv"), ("--report", "x.pdf", ".html or .htm")],
)
@pytest.mark.parametrize("verb", ["decompose", "learn"])
def test_outputs_of_other_formats_are_refused(run, file, tmp_path, verb, option, name, formats):
    assert_refused(run(verb, file, option, tmp_path / name), f"{option} {tmp_path / name}", f"use {formats}")
    assert os.listdir(tmp_path) == ["tensor.npy"]


def test_two_outputs_cannot_be_one_file(run, file, tmp_path):
    assert_refused(
        run("decompose", file, "--out", tmp_path / "a.npz", "--plot", tmp_path / "a.npz"), "--plot", "would replace"
    )


def test_pictures_that_cannot_be_drawn_are_refused_before_the_work(run, file, tmp_path, monkeypatch):
    monkeypatch.setattr(command, "decompose", lambda *args, **options: pytest.fail("the work began"))
    assert_refused(run("decompose", file, "--plot", tmp_path / "a.xyz"), "--plot", "unknown format xyz", ".png")
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    assert_refused(run("decompose", file, "--plot", tmp_path / "a.png"), "--plot", "pip install matplotlib")


def test_demo_refuses_a_folder_it_cannot_make(run, file):
    assert_refused(run("demo", "--out", file), "--out", "Not a directory")
    assert_refused(run("demo", "--out", file / "deeper" / "still"), "--out", "Not a directory")


@pytest.mark.parametrize("option", ["--out", "--plot"])
def test_a_disk_that_fills_up_leaves_no_file(run, file, tmp_path, monkeypatch, option):
    def fail(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", fail)
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", fail)
    outcome = run("decompose", file, option, tmp_path / ("a.png" if option == "--plot" else "a.npz"))
    assert_refused(outcome, option, "cannot be written (No space left on device)")
    assert os.listdir(tmp_path) == ["tensor.npy"]


def test_a_tensor_too_large_for_memory_is_refused_with_the_figures(run, file, monkeypatch):
    monkeypatch.setattr("quartic.tensors.packed.free_memory", lambda like: 1000)
    assert_refused(run("decompose", file), str(file), "GB", "free", "float32")


def test_memory_that_runs_out_later_is_said(run, file, monkeypatch):
    def fail(*args, **options):
        raise MemoryError

    monkeypatch.setattr(command, "decompose", fail)
    assert_refused(run("decompose", file), str(file), "out of memory", "float32")


def test_interrupted_while_saving_leaves_no_file(run, file, tmp_path, monkeypatch):
    def interrupt(out, **arrays):
        out.write(b"half of a res")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", interrupt)
    assert run("decompose", file, "--out", tmp_path / "r.npz") == (130, "", "quartic: interrupted\n")
    assert os.listdir(tmp_path) == ["tensor.npy"]


def test_odd_names_are_printed(run, tmp_path):
    np.save(tmp_path / "a.npy", np.ones((1, 1, 1, 1)))
    code, out, _ = run("decompose", tmp_path / "a.npy", "--out", tmp_path / "\udcff\n.npz")
    assert code == 0
    assert "\\udcff" in out
    assert_refused(run("decompose", tmp_path / "no\nsuch"), "no such")


def test_standard_output_that_cannot_be_written(run, file, monkeypatch):
    monkeypatch.setattr(sys, "stdout", BadStream(BrokenPipeError()))
    assert run("decompose", file) == (141, "", "")
    monkeypatch.setattr(sys, "stdout", BadStream(OSError(28, "No space left on device")))
    assert_refused(run("decompose", file), "standard output", "No space left on device")


def test_progress_is_one_line_that_is_cleared(run, file, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    code, _, err = run("decompose", file)
    assert code == 0
    assert "\n" not in err
    assert "\rquartic: truncating the spectrum, sweep 1" in err
    assert shown(err) == ""
    code, _, err = run("decompose", file, "--eps", "1e9")  # an error in the middle of the work
    assert code == 2
    before, _, after = err.partition("quartic: error: ")
    assert shown(before) == ""
    assert after.count("\n") == 1


# The program itself, in a process of its own


@pytest.fixture
def terminal():
    terminal = Terminal()
    yield terminal
    terminal.close()


def test_quiet_in_a_pipe(file, tmp_path):
    done = subprocess.run(
        [QUARTIC, "decompose", file, "--out", tmp_path / "r.npz", "--plot", tmp_path / "p.png"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    assert "4 components in dimension 10, 4 certified" in done.stdout
    assert quartic.Decomposition.load(tmp_path / "r.npz").status.ok
    assert (tmp_path / "p.png").read_bytes().startswith(PNG)


def test_progress_on_a_terminal(file, terminal):
    with start("decompose", file, "--json", stdout=subprocess.PIPE, stderr=terminal.slave) as program:
        text = terminal.read()
        assert json.loads(program.stdout.read())["rank"] == 4  # progress does not mix with the result
    assert program.returncode == 0
    assert "\n" not in text  # one line, rewritten
    stages = ["reading the tensor", "truncating the spectrum, sweep 1", "recovering components, 4", "measuring eps"]
    assert sorted(stages, key=text.index) == stages
    assert text.endswith("\r")
    assert shown(text) == ""  # cleared at the end


def test_a_warning_on_a_terminal_starts_on_a_clean_line(noise, terminal):
    with start("decompose", noise, stdout=subprocess.DEVNULL, stderr=terminal.slave) as program:
        text = terminal.read()
    assert program.returncode == 3
    before, warning = text.split("quartic: warning: ")
    assert shown(before) == ""
    assert warning.count("\n") == 1


def test_interrupted_in_the_middle_of_the_work(tmp_path, terminal):
    # Noise without a gap keeps the iteration busy for seconds; the signal goes out when it has begun.
    T = np.random.default_rng(0).standard_normal((60, 60, 60, 60), dtype=np.float32)
    np.save(tmp_path / "tensor.npy", T)
    # A signal that is ignored here, as in a job in the background, would be ignored there.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        program = start("decompose", tmp_path / "tensor.npy", "--out", tmp_path / "r.npz", stderr=terminal.slave)
    finally:
        signal.signal(signal.SIGINT, before)
    with program:
        terminal.read(until="truncating")
        program.send_signal(signal.SIGINT)
        text = terminal.read()
    assert program.returncode == 130
    assert text.endswith("\rquartic: interrupted\r\n")
    assert os.listdir(tmp_path) == ["tensor.npy"]


def test_the_module_is_the_program():
    for argv, code in ((["--version"], 0), (["recompose"], 2)):
        done = subprocess.run([sys.executable, "-m", "quartic", *argv], capture_output=True, text=True, check=False)
        assert done.returncode == code
    assert done.stderr.startswith("quartic: error: ")


def test_a_broken_pipe_is_no_drama(file):
    with start("decompose", file, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        program.stdout.close()
        assert program.stderr.read() == b""
    assert program.returncode == 141


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_behind_standard_output(file):
    with open("/dev/full", "w") as full, start("decompose", file, stdout=full, stderr=subprocess.PIPE) as program:
        error = program.stderr.read().decode()
    assert program.returncode == 2
    assert re.fullmatch(r"quartic: error: standard output: cannot be written .+\n", error)
