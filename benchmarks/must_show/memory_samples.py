"""Memory for many samples.

Bar: m = 1,000,000 samples, d = n = 64, float32 (256 MB), blocks with tau 0.25: a fresh process that opens them from a
``.npy`` file, not memory-mapped, peaks at 1.2 GB or less; every atom found.

The file is written into a temporary folder (``--folder`` says where).
"""

import tempfile
from pathlib import Path

from benchmarks import objective, report
from benchmarks.problems import SamplesProblem

ALLOWED = 1200.0  # MB


def main(argv=None):
    parser = report.options(__doc__)
    parser.add_argument("--folder", type=Path, help="where the temporary folder is made")
    args = parser.parse_args(argv)
    bars = report.Bars("memory_samples", args)
    n, m = (8, 8000) if args.quick else (64, 1_000_000)
    problem = SamplesProblem(m, n, supports="blocks", cooccurrence=0.25, dtype="float32")
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        objective.keep(problem, 0, Path(folder))
        row = objective.run("quartic", Path(folder), 0, limit=600)
    if row["status"] != "ok":
        print(row["reason"])
        return 1
    row = {"problem": problem.name, "samples_mb": 4 * m * n / 1e6, **row}
    keys = ("problem", "samples_mb", "loaded_mb", "peak_mb", "seconds", "fraction", "worst")
    headers = ["problem", "samples MB", "loaded MB", "peak MB", "seconds", "found", "worst"]
    print(report.table(headers, [[row[key] for key in keys]]))
    bars.judge(f"peak at most {ALLOWED:g} MB", row["peak_mb"] <= ALLOWED, f"{row['peak_mb']:.0f} MB")
    bars.judge("every atom found", row["fraction"] == 1.0, f"{row['fraction']:.3f}")
    return bars.close(rows=[row])


if __name__ == "__main__":
    raise SystemExit(main())
