"""The terminal: tables in colour, and scripts that complete commands."""

import io
import subprocess
import sys

import numpy as np
import pytest

import quartic
from quartic.cli import main, terminal
from quartic.report.findings import findings

rich = pytest.importorskip("rich.console")


class Screen(io.StringIO):
    """Standard output that is a terminal."""

    def isatty(self):
        return True


def shown(subject, written=(), width=140, warnings=(), seen=()):
    out = io.StringIO()
    console = rich.Console(file=out, force_terminal=True, width=width)
    terminal.coloured(findings(subject, warnings), written, console, seen)
    return out.getvalue()


def test_beside_a_warning_nothing_is_green():
    green, warning = "\x1b[1;32m", "id counts the rows"
    model = quartic.SpectralICA().fit(quartic.datasets.nice_samples(2000, 5, random_state=0).samples)
    assert green in shown(model)
    text = shown(model, warnings=[warning])
    assert green not in text
    assert warning in text
    assert "with warnings" in text
    assert warning not in shown(model, warnings=[warning], seen=[warning])


def test_a_result_is_a_table_in_colour():
    result = quartic.decompose(quartic.datasets.planted_tensor(8, 5, 0.1, random_state=0).tensor, random_state=0)
    text = shown(result, ["result   file.npz"])
    assert "\x1b[" in text
    assert "5 components, 5 certified" in text
    assert all(f"{value:.4f}" in text for value in result.certificates)
    assert "file.npz" in text


def test_names_from_the_data_are_no_markup():
    pandas = pytest.importorskip("pandas")
    data = quartic.datasets.nice_samples(2000, 3, random_state=0)
    frame = pandas.DataFrame(data.samples, columns=["[red]a[/red]", "b", "c"])
    assert "[red]a[/red]" in shown(quartic.SpectralDictionaryLearning().fit(frame))


def test_wide_tables_lose_columns_and_no_heading_is_cut():
    model = quartic.SpectralDictionaryLearning().fit(quartic.datasets.nice_samples(2000, 5, random_state=0).samples)
    wide, narrow = shown(model), shown(model, width=80)
    headings = ("Index", "Energy", "Certificate", "Uncertainty", "Kurtosis", "Certified")
    assert all(heading in text for heading in headings for text in (wide, narrow))
    assert "Largest entries" in wide
    assert "Stability" in wide
    assert "Largest entries" not in narrow
    table = narrow[narrow.index("Index") :]
    assert "…" not in table
    assert len(table.splitlines()) == 2 + 5 + 1  # one line for each atom, and the frame


def test_sources_are_called_so():
    model = quartic.SpectralICA().fit(quartic.datasets.nice_samples(2000, 5, random_state=0).samples)
    text = shown(model)
    assert "5 sources" in text
    assert "atom" not in text


def test_long_tables_are_cut():
    result = quartic.decompose(quartic.datasets.planted_tensor(24, 24, 0.1, random_state=0).tensor, random_state=0)
    assert "... and 4 more" in shown(result)


def test_a_terminal_gets_colour_and_a_pipe_does_not(tmp_path, monkeypatch):
    np.save(tmp_path / "t.npy", quartic.datasets.planted_tensor(6, 3, 0.1, random_state=0).tensor)
    for screen, coloured in ((Screen(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stdout", screen)
        assert main(["decompose", str(tmp_path / "t.npy")]) == 0
        assert ("Index" in screen.getvalue()) == coloured  # the heading of the coloured table
        assert "3 components" in screen.getvalue()


def test_without_rich_a_terminal_gets_text(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    np.save(tmp_path / "t.npy", quartic.datasets.planted_tensor(6, 3, 0.1, random_state=0).tensor)
    screen = Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    assert main(["decompose", str(tmp_path / "t.npy")]) == 0
    assert "  component      weight  certificate" in screen.getvalue()


def test_bash_completes_commands(tmp_path, capsys):
    pytest.importorskip("shtab")
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    (tmp_path / "quartic").write_text(script)
    ask = (
        f"source {tmp_path / 'quartic'}; COMP_WORDS=(quartic dec); COMP_CWORD=1; _shtab_quartic; echo ${{COMPREPLY[*]}}"
    )
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["decompose"], done.stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("learn recor", "recording.npz"),
        ("check recor", "recording.npz"),
        ("learn x.npy --out recor", "recording.npz"),
        ("learn x.npy --report recor", "recording.npz"),
        ("decompose recor", "recording.npz"),
        ("decompose x.npy --plot recor", "recording.npz"),
        ("transform recor", "recording.npz"),
        ("transform m.npz recor", "recording.npz"),
        ("transform m.npz x.npy --out recor", "recording.npz"),
        ("merge recor", "recording.npz"),
        ("moments x.npy --frame recor", "recording.npz"),
        ("learn x.zarr --checkpoint recor", "recording.npz"),
        ("demo --out pict", "pictures"),
    ],
)
def test_bash_completes_files(tmp_path, capsys, words, expected):
    pytest.importorskip("shtab")
    assert main(["completion", "bash"]) == 0
    (tmp_path / "script").write_text(capsys.readouterr().out)
    (tmp_path / "recording.npz").touch()
    (tmp_path / "pictures").mkdir()
    ask = f"source ./script; COMP_WORDS=(quartic {words}); COMP_CWORD={len(words.split())}; _shtab_quartic; "
    done = subprocess.run(
        ["bash", "-c", ask + "echo ${COMPREPLY[*]}"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert expected in done.stdout.split(), done.stderr


def test_completion_asks_for_shtab_by_name(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 2
    assert "pip install shtab" in capsys.readouterr().err
