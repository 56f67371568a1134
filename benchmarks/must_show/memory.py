"""Memory: a file several times larger than what is held.

Bar: d = n = 128 from a float64 ``.npy`` (2.1 GB) opened as a memory map and read by slabs: peak resident memory
(``ru_maxrss``) of a fresh process at most 1.5 times the packed size plus 400 MB; every component right.

The file is written slab by slab in another process, into a temporary folder (``--folder`` says where).
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

from benchmarks import report
from benchmarks.objective import ROOT, peak_mb, score
from benchmarks.problems import DenseProblem
from quartic._arrays import packed_dim, unpack


def write(folder, d):
    """Write the dense tensor, one slab ``T[i]`` at a time, from its packed form."""
    tensor, A = DenseProblem(d, d, 0.3, "gaussian").build(0)
    np.save(folder / "components.npy", A)
    i, j = np.triu_indices(d)
    position = np.empty((d, d), dtype=int)
    position[i, j] = position[j, i] = np.arange(i.size)
    with open(folder / "tensor.npy", "wb") as out:
        header = {"descr": "<f8", "fortran_order": False, "shape": (d, d, d, d)}
        np.lib.format.write_array_header_1_0(out, header)
        for row in range(d):
            factor = np.where(np.arange(d) == row, 1.0, np.sqrt(2.0))  # of the packed pairs (row, j)
            slab = unpack((tensor.matrix[position[row]] / factor[:, None]).T)  # (d, d, d): T[row, j] for each j
            out.write(np.ascontiguousarray(slab, dtype="<f8").data)


def solve(folder, d):
    """Decompose the file; what is measured is this process."""
    import quartic

    T = np.load(folder / "tensor.npy", mmap_mode="r")
    before = peak_mb()
    start = time.perf_counter()
    result = quartic.decompose(T, d, random_state=0)
    seconds = time.perf_counter() - start
    unit = 1 if sys.platform == "darwin" else 1024
    row = {"ru_maxrss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6, "peak_mb": peak_mb()}
    row |= {"before_mb": before, "seconds": seconds, "pack_s": result.timings["pack"]}
    row |= score(np.load(folder / "components.npy"), result.components)
    (folder / "row.json").write_text(json.dumps(row), encoding="utf-8")


def main(argv=None):
    parser = report.options(__doc__)
    parser.add_argument("--folder", type=Path, help="where the temporary folder is made")
    parser.add_argument("--stage", nargs=2, metavar=("NAME", "D"), help="internal: write or solve, in --folder")
    args = parser.parse_args(argv)
    if args.stage:
        {"write": write, "solve": solve}[args.stage[0]](args.folder, int(args.stage[1]))
        return 0
    bars = report.Bars("memory", args)
    d = 16 if args.quick else 128
    size, packed = 8 * d**4 / 1e6, 8 * packed_dim(d) ** 2 / 1e6
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        if shutil.disk_usage(folder).free < 1.1e6 * size:
            print(f"{folder} has no room for {size:.0f} MB: give another --folder")
            return 1
        # A new process starts at the ru_maxrss of its parent: this one stays small and leaves the work to two others.
        for stage in ("write", "solve"):
            command = [
                sys.executable,
                "-m",
                "benchmarks.must_show.memory",
                "--folder",
                folder,
                "--stage",
                stage,
                str(d),
            ]
            subprocess.run(command, cwd=ROOT, check=True)
        row = json.loads((Path(folder) / "row.json").read_text(encoding="utf-8"))
    allowed = 1.5 * packed + 400
    row |= {"d": d, "file_mb": size, "packed_mb": packed, "allowed_mb": allowed}
    headers = [
        "d",
        "file MB",
        "packed MB",
        "before MB",
        "ru_maxrss MB",
        "allowed MB",
        "seconds",
        "packing s",
        "found",
        "worst",
    ]
    keys = (
        "d",
        "file_mb",
        "packed_mb",
        "before_mb",
        "ru_maxrss_mb",
        "allowed_mb",
        "seconds",
        "pack_s",
        "fraction",
        "worst",
    )
    print(report.table(headers, [[row[key] for key in keys]]))
    bars.judge("ru_maxrss at most 1.5 packed + 400 MB", row["ru_maxrss_mb"] <= allowed, f"{row['ru_maxrss_mb']:.0f} MB")
    bars.judge("every component found", row["fraction"] == 1.0, f"{row['fraction']:.3f}")
    return bars.close(rows=[row])


if __name__ == "__main__":
    raise SystemExit(main())
