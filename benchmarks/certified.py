"""Runs of the dictionary learner in which every certificate is checked against the truth, several at a time."""

from __future__ import annotations

import argparse
import hashlib
import json
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import quartic
from benchmarks import solvers
from benchmarks.objective import squared
from benchmarks.problems import SamplesProblem
from quartic.algorithms.certify import is_certified
from quartic.datasets import NiceSamples, nice_samples
from quartic.metrics import match

SLACK = 1e-9  # rounding of a correlation
NEAR, FOUND = 0.95, 0.99  # squared correlations at which an atom counts


@dataclass(frozen=True)
class Job:
    """One fit of ``SpectralDictionaryLearning``, and of peers on the same samples.

    Attributes
    ----------
    problem : SamplesProblem
    seed : int
    options : dict
        Of the estimator.
    peers : tuple of str
        Solvers.
    """

    problem: SamplesProblem
    seed: int
    options: dict[str, Any] = field(default_factory=dict)
    peers: tuple[str, ...] = ()


def whitened(Y: np.ndarray, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Squared correlations ``(n, k)`` of atoms ``A (n, d)`` and ``B (k, d)``, whitened by samples ``Y (m, d)``."""
    C = np.cov(Y, rowvar=False)
    F, G = np.linalg.solve(C, A.T), np.linalg.solve(C, B.T)
    return (A @ G) ** 2 / np.outer(np.sum(A.T * F, axis=0), np.sum(B.T * G, axis=0))


def wrong(certificates: np.ndarray, table: np.ndarray) -> int:
    """How many ``certificates (k,)`` lie above the squared correlation with the nearest atom, of ``table (n, k)``."""
    return int(np.sum(certificates > np.max(table, axis=0) + SLACK))


def run(job: Job, row: dict[str, Any] | None = None) -> dict[str, Any]:
    """One row: what was found, what was certified, and what was certified wrongly; peers alone, if there is a row."""
    drawn = nice_samples(**asdict(job.problem), random_state=job.seed)
    Y, A, n = drawn.samples, drawn.components, job.problem.n
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is lost shows in the row
        row = fitted(job, drawn) if row is None else row
        peers = {name: squared(A, solvers.load(name)(Y, n, job.seed)) for name in job.peers}
    found = {
        name: {"near": int(np.sum(values >= NEAR)), "found": int(np.sum(values >= FOUND))}
        for name, values in peers.items()
    }
    return {**row, "peers": found}


def fitted(job: Job, drawn: NiceSamples) -> dict[str, Any]:
    """The row without peers."""
    Y, A, n = drawn.samples, drawn.components, job.problem.n
    start = time.perf_counter()
    options = {"n_components": n, **job.options}
    model = quartic.SpectralDictionaryLearning(random_state=job.seed, **options).fit(Y)
    seconds = time.perf_counter() - start
    B, certificates = np.asarray(model.components_), np.asarray(model.certificates_)
    pairs = match(A, B)
    # A whitener needs samples, and must not be made by outliers.
    table = whitened(Y[~drawn.outliers], A, B) if Y.shape[0] > 2 * n else np.ones((n, n))
    row = {**job.problem.as_dict(), "seed": job.seed, "options": job.options, "tau": drawn.tau, "seconds": seconds}
    row |= {"near": int(np.sum(pairs.squared >= NEAR)), "found": int(np.sum(pairs.squared >= FOUND))}
    row |= {"worst": float(np.min(pairs.squared)), "certified": int(np.sum(is_certified(certificates)))}
    row |= {"wrong": wrong(certificates, table), "local": model.report_.local, "rank": B.shape[0]}
    return row | {"tau_measured": model.tau_, "groups": len(model.groups_), "status": model.status_.code}


def options(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """With the options of :func:`run_all`."""
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default 2)")
    parser.add_argument("--keep", type=Path, help="file of finished runs: a script that was stopped goes on from there")
    return parser


def run_all(jobs: Sequence[Job], args: argparse.Namespace) -> list[dict[str, Any]]:
    """All jobs, one thread each, in the order they were given; a line for each while they run.

    A kept run counts only for the same job and the same source: the figures of a script are those of one version.  For
    a job that is kept without its peers only these are run.
    """
    version = _version()
    kept = _kept(args.keep, version)
    with ProcessPoolExecutor(args.jobs, initializer=threadpool_limits, initargs=(1,)) as pool:
        wanted = [(job, kept.get(str(replace(job, peers=())))) for job in jobs if str(job) not in kept]
        for job, row in _finished(pool, wanted):
            print(
                f"{row['problem']} {row['options'] or ''} seed {row['seed']}: {row['near']} of {row['n']}, "
                f"{row['certified']} certified, {row['wrong']} wrong, {row['seconds']:.1f} s",
                flush=True,
            )
            kept[str(job)] = row
            if args.keep is not None:
                with args.keep.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"version": version, "job": str(job), "row": row}) + "\n")
    return [kept[str(job)] for job in jobs]


def _finished(
    pool: ProcessPoolExecutor, wanted: Sequence[tuple[Job, dict[str, Any] | None]]
) -> Iterator[tuple[Job, dict[str, Any]]]:
    runs = {pool.submit(run, job, row): job for job, row in wanted}
    for future in as_completed(runs):
        if future.exception() is not None:
            pool.shutdown(wait=False, cancel_futures=True)  # or the error would wait for all other runs
            raise RuntimeError(f"this run failed: {runs[future]}") from future.exception()
        yield runs[future], future.result()


def _version() -> str:
    """A digest of the library's source."""
    files = sorted(Path(quartic.__file__).parent.rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _kept(path: Path | None, version: str) -> dict[str, dict[str, Any]]:
    if path is None or not path.exists():
        return {}
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:  # stopped while it wrote a line
        path.write_text(whole, encoding="utf-8")
    runs = [json.loads(line) for line in whole.splitlines()]
    return {run["job"]: run["row"] for run in runs if run["version"] == version}


def by_problem(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Rows of one problem and its options together."""
    keys = dict.fromkeys((row["problem"], str(row["options"])) for row in rows)
    return [[row for row in rows if (row["problem"], str(row["options"])) == key] for key in keys]


def peer_share(rows: list[dict[str, Any]], name: str, level: str = "near") -> float | None:
    """The mean share of the atoms that a peer finds, over the seeds it was run on."""
    shares = [row["peers"][name][level] / row["n"] for row in rows if name in row["peers"]]
    return float(np.mean(shares)) if shares else None
