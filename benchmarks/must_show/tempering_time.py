"""What weights cost on independent supports: time against the same estimator without them, and against FastICA.

Bar: independent supports, d = n = 64, m = 1,000,000, float32: at most 1.3 times the time of ``temperature=0``.
"""

import statistics
import time
import warnings

import quartic
from benchmarks import report, solvers
from benchmarks.problems import SamplesProblem

BAR = 1.3


def main(argv=None):
    parser = report.options(__doc__)
    parser.add_argument("--repeats", type=int, help="runs of each (default 5)")
    args = parser.parse_args(argv)
    bars = report.Bars("tempering_time", args)
    warnings.simplefilter("ignore")
    m, n, repeats = (8000, 8, 1) if args.quick else (1_000_000, 64, args.repeats or 5)
    Y, _ = SamplesProblem(m, n, dtype="float32").given(0)
    contestants = {
        "with weights": lambda: quartic.SpectralDictionaryLearning(n).fit(Y),
        "temperature=0": lambda: quartic.SpectralDictionaryLearning(n, temperature=0.0).fit(Y),
        "fastica_logcosh": lambda: solvers.load("fastica_logcosh")(Y, n, 0),
    }
    seconds = {name: [] for name in contestants}
    for _ in range(repeats):
        for name, fit in contestants.items():
            start = time.perf_counter()
            fit()
            seconds[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    print(report.table(["estimator", "seconds"], list(medians.items())))
    ratio = medians["with weights"] / medians["temperature=0"]
    bars.judge(f"at most {BAR} times the time without weights", ratio <= BAR, f"{ratio:.2f}", full_size=True)
    faster = medians["fastica_logcosh"] / medians["with weights"]
    bars.judge("no slower than FastICA", faster >= 1, f"{faster:.2f} times faster", full_size=True)
    return bars.close(seconds=seconds)


if __name__ == "__main__":
    raise SystemExit(main())
