"""Two versions of quartic on the same problems, in turn, on the processor.

Bar: the newer one takes at most 10% more time on any of them, in the median over repeats in alternation, and finds as
much.

    python -m benchmarks.must_show.no_slower --before CHECKOUT/src

Each version solves all problems in a process of its own, small ones several times; the least time counts, for noise
only adds to it.  Processes take turns.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks import report

HERE = Path(__file__).parents[2] / "src"
SLACK = 1.1
REPEATS = 5
BUDGET = 3  # seconds for the repeats of a small problem
# Kind, and what it takes: dense tensors (d, n), samples (m, n, d) of blocks or of independent supports.
PROBLEMS = {
    "dense d=60 n=60": ("dense", 60, 60),
    "dense d=100 n=100": ("dense", 100, 100),
    "dense d=20 n=100": ("general", 20, 100),
    "samples d=n=40 m=20,000": ("samples", 20_000, 40, 40),
    "samples d=n=64 m=200,000": ("samples", 200_000, 64, 64),
    "samples d=n=96 m=100,000": ("samples", 100_000, 96, 96),
    "samples d=16 n=32 m=20,000": ("samples", 20_000, 32, 16),
}
QUICK = {"dense d=12 n=12": ("dense", 12, 12), "samples d=n=10 m=3,000": ("samples", 3000, 10, 10)}
ONE = """
import json, sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
import quartic
from quartic.metrics import match

def solve(kind, *size):
    if kind in ("dense", "general"):
        d, n = size
        if kind == "dense":
            planted = quartic.datasets.planted_tensor(d=d, n=n, eps=0.3, random_state=0)
            A, T = planted.components, quartic.PackedTensor(planted.packed)
        else:
            A = np.random.default_rng(0).standard_normal((n, d))
            A /= np.linalg.norm(A, axis=1, keepdims=True)
            T = quartic.FactoredTensor.from_components(np.ones(n), A)
            T = quartic.PackedTensor(T.to_packed())
        work = lambda: quartic.decompose(T, n, random_state=0).components
    else:
        m, n, d = size
        data = quartic.datasets.nice_samples(m, n, d=d, p=0.1 if n == d else 0.05, random_state=0)
        A, Y = data.components, data.samples.astype(np.float32)
        work = lambda: quartic.SpectralDictionaryLearning(n).fit(Y).components_
    times = []
    while not times or (sum(times) < BUDGET and len(times) < 9):
        start = time.perf_counter()
        found = work()
        times.append(time.perf_counter() - start)
    return min(times), match(A, found).found(0.99)

print(json.dumps({name: solve(*problem) for name, problem in json.loads(sys.argv[1]).items()}))
"""


def solved(source, problems, budget):
    """Seconds and components found of every problem, by one version in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(source)}
    command = [sys.executable, "-c", f"BUDGET = {budget}\n{ONE}", json.dumps(problems)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{source}: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(done.stdout)


def main(argv=None):
    parser = report.options(__doc__)
    parser.add_argument("--before", type=Path, help="the sources of the older version (default: this one again)")
    parser.add_argument("--repeats", type=int, help=f"runs of each version (default {REPEATS})")
    args: argparse.Namespace = parser.parse_args(argv)
    bars = report.Bars("no_slower", args)
    problems = QUICK if args.quick else PROBLEMS
    runs = {"before": [], "after": []}
    for _ in range(args.repeats or (1 if args.quick else REPEATS)):
        for version, source in (("before", args.before or HERE), ("after", HERE)):
            runs[version].append(solved(source, problems, 0 if args.quick else BUDGET))
    rows = []
    for name in problems:
        before, after = ([run[name] for run in runs[version]] for version in ("before", "after"))
        ratio = statistics.median(a[0] / b[0] for a, b in zip(after, before, strict=True))
        seconds = [statistics.median(run[0] for run in each) for each in (before, after)]
        rows.append([name, *seconds, ratio, before[0][1], after[0][1]])
        bars.judge(f"{name}: at most {SLACK} times", ratio <= SLACK, f"{ratio:.2f}", True)
        bars.judge(f"{name}: finds as much", after[0][1] >= before[0][1], f"{after[0][1]} of {before[0][1]}")
    headers = ["problem", "before s", "after s", "ratio", "found before", "found after"]
    print(report.table(headers, rows))
    return bars.close(rows=[dict(zip(headers, row, strict=True)) for row in rows])


if __name__ == "__main__":
    raise SystemExit(main())
