"""Time against the dimension.

Shown: the exponent of the time against d, from 20 to 128 at n = d, from the packed tensor, fitted to the medians, next
to the paper's 5.  Missed if its confidence interval lies above 5.

The interval is that of a straight line in logarithms; at small d fixed costs flatten the curve, so the upper half of
the sizes is fitted apart.
"""

import statistics
import time

import numpy as np

import quartic
from benchmarks import report
from benchmarks.fits import exponent
from benchmarks.must_show.sweeps import seconds_of
from benchmarks.problems import DenseProblem
from quartic.metrics import match

PAPER = 5.0


def measure(d, eps, repeats):
    """Medians over the repeats at one size."""
    tensor, A = DenseProblem(d, d, eps, "gaussian").build(0)
    block = np.random.default_rng(0).standard_normal((tensor.pair_dim, d))
    quartic.decompose(tensor, d, random_state=0)  # warm
    walls, seconds, sweeps, founds = [], [], [], []
    for repeat in range(repeats):
        start = time.perf_counter()
        result = quartic.decompose(tensor, d, random_state=repeat)
        walls.append(time.perf_counter() - start)
        seconds.append(sum(result.timings.values()) - result.timings["measure"])
        sweeps += seconds_of(lambda: tensor.matrix @ block)
        founds.append(match(A, result.components).found() / d)
    medians = (statistics.median(values) for values in (seconds, walls, sweeps))
    return dict(zip(("seconds", "wall_s", "sweep_s"), medians, strict=True)) | {"d": d, "fraction": min(founds)}


def main(argv=None):
    parser = report.options(__doc__)
    parser.add_argument("--repeats", type=int, help="decompositions a size (default 7)")
    args = parser.parse_args(argv)
    bars = report.Bars("scaling", args)
    sizes = (8, 10, 12) if args.quick else (20, 28, 40, 56, 80, 100, 128)
    eps, repeats = 0.3, args.repeats or (2 if args.quick else 7)
    rows = [measure(d, eps, repeats) for d in sizes]
    keys = ("d", "fraction", "sweep_s", "seconds", "wall_s")
    print(f"n = d, Gaussian error of norm {eps}, medians of {repeats} repeats; seconds: all stages but measure\n")
    print(report.table(["d", "found", "one sweep", "seconds", "wall"], [[row[key] for key in keys] for row in rows]))
    fits = {}
    upper = min(len(sizes) // 2, len(sizes) - 3)  # an interval takes three points
    for name, part in (("all sizes", rows), (f"d from {sizes[upper]}", rows[upper:])):
        for key in ("seconds", "wall_s", "sweep_s"):
            fits[f"{name}, {key}"] = exponent([row["d"] for row in part], [row[key] for row in part])
    print()
    print(report.table(["fit", "exponent, with its interval of 95%"], [[name, str(fit)] for name, fit in fits.items()]))
    fit = fits["all sizes, seconds"]
    bars.judge(f"time grows like d^{PAPER:g} or slower", fit.low <= PAPER, f"d^{fit}", full_size=True)
    lost = [row["d"] for row in rows if row["fraction"] < 1]
    bars.judge("every component found at every size", not lost, f"lost at d = {lost}" if lost else "all")
    return bars.close(rows=rows, fits={name: fit.as_dict() for name, fit in fits.items()}, eps=eps, repeats=repeats)


if __name__ == "__main__":
    raise SystemExit(main())
