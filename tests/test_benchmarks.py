"""The benchmark scripts run: tiny versions, whose times are not judged."""

import importlib
import json
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from quartic import PackedTensor
from quartic.datasets import planted_tensor
from quartic.metrics import match

ROOT = Path(__file__).parent.parent
if not (ROOT / "benchmarks").is_dir():
    pytest.skip("the benchmarks are not part of a source distribution", allow_module_level=True)

SCRIPTS = sorted(path.stem for path in (ROOT / "benchmarks" / "must_show").glob("[!_]*.py"))


def run(*arguments, cwd=ROOT):
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300, check=False)


# What starts clusters, looks at its own process or sets up libraries gets a process of its own; the others save the
# seconds that it takes to import everything again.
ALONE = {"cluster", "faults", "gpu", "import_time", "memory", "memory_samples", "no_slower", "out_of_core", "streaming"}


@pytest.mark.parametrize("script", SCRIPTS)
def test_bars_hold_in_the_quick_version(script, tmp_path, capsys):
    if script == "gpu":
        pytest.importorskip("torch")
    out = tmp_path / "results.json"
    module, options = f"benchmarks.must_show.{script}", ["--quick", "--out", str(out)]
    if script in ALONE:
        done = run(module, *options)
        assert done.returncode == 0, done.stdout + done.stderr
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("default")  # as in a process of its own: what peers warn of is no error here
            code = importlib.import_module(module).main(options)
        assert code == 0, capsys.readouterr().out
    results = json.loads(out.read_text())
    assert results["bars"]
    assert not any(bar["holds"] is False for bar in results["bars"])
    assert results["machine"]["versions"]["quartic"]


def test_runs_that_were_stopped_go_on(tmp_path):
    kept, out = tmp_path / "kept.jsonl", tmp_path / "results.json"
    script = ("benchmarks.must_show.correlated", "--quick", "--keep", str(kept), "--out", str(out))
    assert run(*script).returncode == 0
    complete = kept.read_text().splitlines(keepends=True)
    first, other = (run for run in map(json.loads, complete) if run["row"]["peers"])
    first["row"]["seconds"] = 12345.0  # recognised when it is taken from the file
    # The first run is kept, the second is of another version, and the third was cut off while it was written.
    kept.write_text(json.dumps(first) + "\n" + json.dumps(other | {"version": "older"}) + "\n" + complete[1][:20])
    assert run(*script).returncode == 0
    rows = json.loads(out.read_text())["rows"]
    assert len(rows) == len(complete)
    assert [row["seconds"] == 12345.0 for row in rows].count(True) == 1
    # Kept without its peers: these are run, and nothing else.
    alone = first | {"job": first["job"].replace("peers=('fastica_logcosh',)", "peers=()")}
    assert alone["job"] != first["job"]
    kept.write_text(json.dumps(alone | {"row": first["row"] | {"peers": {}}}) + "\n" + json.dumps(other) + "\n")
    assert run(*script).returncode == 0
    rows = json.loads(out.read_text())["rows"]
    assert [row["seconds"] == 12345.0 for row in rows].count(True) == 1
    assert [bool(row["peers"].get("fastica_logcosh")) for row in rows] == [not row["options"] for row in rows]


@pytest.mark.parametrize(
    ("suite", "solvers"),
    [
        ("dense", ("quartic", "batched_power", "jennrich")),
        ("samples", ("quartic", "fastica_logcosh", "msp")),
        ("overcomplete", ("quartic",)),
        ("scaling", ("quartic", "batched_power", "msp")),
    ],
)
def test_benchmark_prints_a_table_and_keeps_its_rows(suite, solvers, tmp_path):
    out = tmp_path / "results.json"
    chosen = [word for name in solvers for word in ("--only", name)]
    done = run("benchmarks", suite, "--quick", *chosen, "--out", str(out))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "peak MB" in done.stdout
    results = json.loads(out.read_text())
    assert {row["solver"] for row in results["rows"]} == set(solvers)
    assert all(row["status"] == "ok" for row in results["rows"])
    assert all(row["fraction"] == 1 for row in results["rows"] if row["solver"] != "jennrich")
    assert all(row["worst"] <= row["median"] for row in results["rows"])


def test_the_page_of_results_is_that_of_the_data():
    """``benchmarks/RESULTS.md`` is generated: nobody wrote into it, and no data came after it."""
    from benchmarks import page

    assert page.PAGE.read_text(encoding="utf-8") == page.markdown()


def test_a_solver_of_the_other_kind_is_refused():
    done = run("benchmarks", "dense", "--quick", "--only", "msp")
    assert done.returncode == 2
    assert "for dense there are quartic" in done.stderr


def test_a_solver_is_asked_up_to_its_largest_dimension(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks import solvers

    assert "sum_of_squares" in solvers.names("dense", d=8)
    assert "sum_of_squares" not in solvers.names("dense", d=9)
    assert set(solvers.names("dense", d=9)) == set(solvers.names("dense")) - {"sum_of_squares"}


def test_two_suites_are_not_written_to_one_file(tmp_path):
    done = run("benchmarks", "dense", "samples", "--quick", "--out", str(tmp_path / "results.json"))
    assert done.returncode == 2
    assert "a file holds one suite, and 2 were given" in done.stderr
    assert not any(tmp_path.iterdir())


def test_sum_of_squares_solves_its_program_and_refuses_what_is_too_large(monkeypatch):
    pytest.importorskip("cvxpy")
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.solvers import sum_of_squares

    planted = planted_tensor(5, 4, 0.5, "low-rank", random_state=0)
    T, S = planted.packed, planted.packed - planted.error
    X = sum_of_squares.relaxation(T, 4)
    values = np.linalg.eigvalsh(X)
    assert values[0] > -1e-6
    assert values[-1] < 1 + 1e-6
    assert np.trace(X) == pytest.approx(4, abs=1e-6)
    full = PackedTensor(X).to_dense()
    np.testing.assert_allclose(full, full.transpose(0, 2, 1, 3), atol=1e-9)
    assert np.sum(T * X) >= np.sum(T * S) - 1e-6  # the planted components are feasible
    assert match(planted.components, sum_of_squares.solve(planted.tensor, 4, 0)).found(0.95) == 4
    with pytest.raises(ValueError, match=r"d up to 8.*got d = 9"):
        sum_of_squares.solve(np.ones((9, 9, 9, 9)), 9, 0)


FAILING = {
    "raises": ("raise ValueError('no')", "error", "ValueError: no"),
    "missing": ("import a_peer_that_is_not_installed", "missing", "a_peer_that_is_not_installed"),
    "dies": ("import os; os._exit(3)", "error", "code 3"),
    "not_finite": ("return [[float('nan')] * T.shape[0]]", "error", "not finite"),
    "slow": ("import time; time.sleep(600)", "timeout", "ran past"),
}
WARNING = "import warnings; warnings.warn('not sure', stacklevel=1); return [[1.0] * T.shape[0]]"


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the benchmark with one small problem, solvers that fail in every way, and one that warns."""
    copy = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "benchmarks", copy / "benchmarks", ignore=shutil.ignore_patterns("results", "__pycache__"))
    problem = "from benchmarks.problems import DenseProblem\n\nPROBLEMS = [DenseProblem(4, 2, 0.1, 'gaussian')]\n"
    (copy / "benchmarks" / "problems" / "one.py").write_text(problem)
    bodies = {"warns": WARNING, **{name: body for name, (body, _, _) in FAILING.items()}}
    for name, body in bodies.items():
        (copy / "benchmarks" / "solvers" / f"{name}.py").write_text(f"def solve(T, rank, seed):\n    {body}\n")
    return copy


def rows_of(copy, solvers, limit):
    """The rows of a run of some solvers on the problem of the copy."""
    chosen = [word for name in sorted(solvers) for word in ("--only", name)]
    arguments = ("--problems", "one", "--repeats", "1", *chosen, "--limit", limit, "--out", "dense.json")
    done = run("benchmarks", "dense", *arguments, cwd=copy)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads((copy / "dense.json").read_text())["rows"]
    assert {row["solver"] for row in rows} == solvers
    return rows


@pytest.mark.parametrize(("limit", "solvers"), [("100", set(FAILING) - {"slow"}), ("1", {"slow"})])
def test_failures_are_rows_with_a_reason(copy, limit, solvers):
    for row in rows_of(copy, solvers, limit):
        _, status, reason = FAILING[row["solver"]]
        assert row["status"] == status
        assert reason in row["reason"]


def test_warnings_are_kept_and_one_component_finds_one_at_most(copy):
    (row,) = rows_of(copy, {"warns"}, "100")
    assert row["status"] == "ok"
    assert row["warnings"] == ["UserWarning: not sure"]
    assert row["worst"] == 0
    assert row["fraction"] <= 0.5
