"""The cost of ``import quartic``.

Bar: it loads none of the optional dependencies that scikit-learn does not load itself, and takes under twice the time
of ``import sklearn.decomposition``.
Medians over fresh interpreters, the two alternating.
"""

import json
import statistics
import subprocess
import sys

from benchmarks import report

OPTIONAL = ("torch", "cupy", "jax", "dask", "tensorly", "matplotlib", "zarr", "h5py", "pandas")
FACTOR = 2.0
CODE = """
import json, sys, time
start = time.perf_counter()
import {module}
seconds = time.perf_counter() - start
print(json.dumps([seconds, sorted({{name.partition(".")[0] for name in sys.modules}})]))
"""


def imported(module):
    """Seconds of the import in a fresh interpreter, and the packages it loaded."""
    command = [sys.executable, "-c", CODE.format(module=module)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def main(argv=None):
    parser = report.options(__doc__)
    parser.add_argument("--repeats", type=int, help="fresh interpreters for each (default 15)")
    args = parser.parse_args(argv)
    bars = report.Bars("import_time", args)
    repeats = args.repeats or (1 if args.quick else 15)
    modules = ("quartic", "sklearn.decomposition")
    times = {module: [] for module in modules}
    packages = {}
    for module in () if args.quick else modules:
        imported(module)  # from here on the files are in the cache of the system
    for _ in range(repeats):
        for module in modules:
            seconds, loaded = imported(module)
            times[module].append(seconds)
            packages[module] = set(loaded)
    # scikit-learn loads pandas by itself where it is installed.
    extras = [name for name in OPTIONAL if name in packages["quartic"] - packages["sklearn.decomposition"]]
    rows = [{"module": m, "seconds": statistics.median(t), "least": min(t), "most": max(t)} for m, t in times.items()]
    print(report.table(["import", "median s", "least", "most"], [list(row.values()) for row in rows]))
    ratio = rows[0]["seconds"] / rows[1]["seconds"]
    bars.judge("no optional dependency is loaded", not extras, ", ".join(extras) or "none")
    bars.judge(f"under {FACTOR:g} times sklearn.decomposition", ratio < FACTOR, f"{ratio:.2f}", full_size=True)
    return bars.close(rows=rows, repeats=repeats, loaded=extras)


if __name__ == "__main__":
    raise SystemExit(main())
