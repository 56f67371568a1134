"""More samples than memory: 8 GB in a Zarr data set, with 1 GB allowed.

Bar: d = 64, 16,000,000 samples in float64 (8.2 GB), blocks of 8 with tau 0.25 and noise at 10 dB, ``memory="1GB"``: a
fresh process peaks at 1.5 GB or less, and finds every atom; the spectral stage uses a subsample, all else all rows.
The rate of each pass is shown next to that of plainly reading the same chunks.

The data set is written into a temporary folder (``--folder`` says where), uncompressed.
"""

import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import zarr

import quartic
from benchmarks import report

ALLOWED = 1.5e9
MEMORY = "1GB"


def blocks(m, n, rng, group=8, p=0.1, cooccurrence=0.25, noise=0.1):
    """Samples of blocks with sign coefficients, in an orthonormal dictionary that is the identity."""
    on = np.repeat(rng.random((m, n // group)) < p / cooccurrence, group, axis=1)
    codes = np.where(on & (rng.random((m, n)) < cooccurrence), rng.choice([-1.0, 1.0], (m, n)), 0.0)
    return codes + np.sqrt(noise * p) * rng.standard_normal((m, n))


def write(path, m, n, rows):
    array = zarr.create_array(path, shape=(m, n), chunks=(rows, n), dtype="float64", compressors=None)
    rng = np.random.default_rng(0)
    for first in range(0, m, rows):
        last = min(first + rows, m)
        array[first:last] = blocks(last - first, n, rng)


class Timed(quartic.Collection):
    """That writes down how long each pass takes."""

    def total_of(self, task, merge, *what):
        """One pass."""
        start = time.perf_counter()
        answer = super().total_of(task, merge, *what)
        print(json.dumps({"pass": what[0], "seconds": time.perf_counter() - start}))
        return answer


def worker(path, n):
    """In a fresh process: read plainly, then learn; what it took."""
    X = quartic.open_samples(path, memory=MEMORY)
    start = time.perf_counter()
    X.map_blocks(lambda block: block[:1, :1].copy(), chunks=((1,) * len(X.chunks[0]), (1,))).compute()
    print(json.dumps({"pass": "plain", "seconds": time.perf_counter() - start}))
    start = time.perf_counter()
    model = quartic.SpectralDictionaryLearning(n).fit(Timed(X))
    row = {"seconds": time.perf_counter() - start, "samples": model.n_samples_seen_}
    row |= {"peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}
    row |= {"found": quartic.metrics.match(np.eye(n), model.components_).found(0.99)}
    row |= {"subsample": model.report_.subsample, "status": model.status_.code, "timings": model.report_.timings}
    print(json.dumps(row | {"refinement": model.report_.refinement}))
    return 0


def main(argv=None):
    parser = report.options(__doc__)
    parser.add_argument("--folder", type=Path, help="where the temporary folder is made")
    parser.add_argument("--worker", help="the fit itself (used by the script)")
    args = parser.parse_args(argv)
    if args.worker is not None:
        return worker(*json.loads(args.worker))
    bars = report.Bars("out_of_core", args)
    n, m, rows = (8, 40_000, 1000) if args.quick else (64, 16_000_000, 20_000)
    folder = Path(tempfile.mkdtemp(dir=args.folder))
    try:
        path = folder / "samples.zarr"
        write(path, m, n, rows)
        command = [sys.executable, "-m", "benchmarks.must_show.out_of_core", "--worker", json.dumps([str(path), n])]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    finally:
        shutil.rmtree(folder)
    if done.returncode:
        print(done.stderr)
        return 1
    *passes, row = (json.loads(line) for line in done.stdout.splitlines())
    size = 8 * m * n
    plain = size / passes[0]["seconds"]
    lines = [[p["pass"], p["seconds"], size / p["seconds"] / 1e9, size / p["seconds"] / plain] for p in passes]
    print(report.table(["pass", "seconds", "GB/s", "of plain reading"], lines))
    print(f"{size / 1e9:.1f} GB in {row['seconds']:.0f} s: {row['refinement']}; {row['subsample']:,} rows first")
    bars.judge("peak at most 1.5 GB", row["peak"] <= ALLOWED, f"{row['peak'] / 1e9:.2f} GB")
    bars.judge("every atom, from all rows", row["found"] == n and row["samples"] == m, f"{row['found']} of {n}")
    few = row["subsample"] < m
    bars.judge("the spectral stage uses a part of them", few, f"{row['subsample']:,} of {m:,}", full_size=True)
    row["passes"] = passes
    return bars.close(rows=[row])


if __name__ == "__main__":
    raise SystemExit(main())
