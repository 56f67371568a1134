"""The objective: one solver on one problem, in a process of its own.

Recorded are the wall time of the solve alone, the peak of the resident memory, how many components were found
(squared correlation at least 0.99 with a component of its own), and the worst and the median squared correlation
over the planted components.  A solver that fails, runs past the limit or is not installed gives a row with the
reason; what a solver warns of is kept.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import solvers
from benchmarks.problems import Problem
from quartic.metrics import match

FOUND = 0.99
ROOT = Path(__file__).parent.parent
FIGURES = ("seconds", "peak_mb", "loaded_mb", "fraction", "worst", "median")
EMPTY = {**dict.fromkeys(FIGURES), "warnings": []}


def squared(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Squared correlation of each planted ``A (n, d)`` with a row of its own in ``B (m, d)``; 0 for what has none."""
    B = np.asarray(B, dtype=np.float64).reshape(-1, A.shape[1])
    if not np.all(np.isfinite(B)):
        raise ValueError(f"{np.sum(~np.isfinite(B).all(axis=1))} of {B.shape[0]} components are not finite")
    pairs = match(A, B)
    values = np.zeros(A.shape[0])
    values[pairs.rows] = pairs.squared
    return values


def score(A: np.ndarray, B: np.ndarray) -> dict[str, float]:
    """Fraction of the planted ``A (n, d)`` found among ``B (m, d)``, the worst and the median squared correlation."""
    values = squared(A, B)
    figures = {"fraction": np.mean(values >= FOUND), "worst": np.min(values), "median": np.median(values)}
    return {name: float(value) for name, value in figures.items()}


def run(solver: str, folder: Path, seed: int, limit: float) -> dict[str, Any]:
    """One row: the solver on the problem kept in ``folder``, in a fresh process that may run ``limit`` seconds."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "row.json"
        command = [sys.executable, "-m", "benchmarks.objective", solver, str(folder), str(seed), str(out)]
        try:
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=limit, check=False)
        except subprocess.TimeoutExpired:
            return {**EMPTY, "status": "timeout", "reason": f"ran past {limit:g} s"}
        if out.exists():
            return {**EMPTY, **json.loads(out.read_text(encoding="utf-8"))}
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        return {**EMPTY, "status": "error", "reason": f"ended with code {done.returncode}: {last[0]}"}


def keep(problem: Problem, seed: int, folder: Path) -> None:
    """Draw a problem, and a small one of its kind, and write them where :func:`run` finds them."""
    for name, drawn in (("problem", problem.given(seed)), ("small", problem.small().given(0))):
        for part, array in zip(("given", "components"), drawn, strict=True):
            np.save(folder / f"{name}_{part}.npy", array)


def peak_mb() -> float:
    """Peak of the resident memory of this process, in MB.

    From ``VmHWM`` where the system has it: ``ru_maxrss`` of a new process starts at what its parent held.
    """
    try:
        with open("/proc/self/status", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024 / 1e6
    except OSError:
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6


def measure(solver: str, folder: Path, seed: int) -> dict[str, Any]:
    """Run a solver in this process and measure it."""

    def read(name: str) -> list[np.ndarray]:
        return [np.load(folder / f"{name}_{part}.npy") for part in ("given", "components")]

    try:
        solve = solvers.load(solver)
        X, A = read("small")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            solve(X, A.shape[0], 0)  # loads what is loaded once: libraries, BLAS threads
        X, A = read("problem")
        loaded = peak_mb()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            start = time.perf_counter()
            B = solve(X, A.shape[0], seed)
            seconds = time.perf_counter() - start
        row = {"seconds": seconds, "peak_mb": peak_mb(), "loaded_mb": loaded, **score(A, B)}
        said = {w.category.__name__: w.message for w in reversed(caught)}  # the first of each kind
        return {**row, "warnings": [f"{kind}: {text}" for kind, text in said.items()], "status": "ok", "reason": ""}
    except ImportError as error:
        return {"status": "missing", "reason": str(error)}
    except Exception as error:
        return {"status": "error", "reason": f"{type(error).__name__}: {error}"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("solver")
    parser.add_argument("folder", type=Path)
    parser.add_argument("seed", type=int)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    row = measure(args.solver, args.folder, args.seed)
    args.out.write_text(json.dumps(row), encoding="utf-8")


if __name__ == "__main__":
    main()
