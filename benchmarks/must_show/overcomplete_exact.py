"""More atoms than features, exactly sparse samples: the dictionary up to rounding.

Bar: no noise, d = 16, n = 32, p = 0.05, m = 20,000, sign and Gaussian coefficients, ten seeds: one minus the squared
correlation is at most 1e-10 for every atom.
"""

import warnings

import numpy as np

from benchmarks import report, solvers
from benchmarks.must_show.exact import gaps
from benchmarks.problems import SamplesProblem

BAR = 1e-10


def main(argv=None):
    parser = report.options(__doc__)
    parser.add_argument("--seeds", type=int, help="seeds a row (default 10)")
    args = parser.parse_args(argv)
    bars = report.Bars("overcomplete_exact", args)
    warnings.simplefilter("ignore")  # what is lost shows in the table
    d, n, m = (10, 16, 10_000) if args.quick else (16, 32, 20_000)
    rows = []
    for coefficients in ("sign", "gaussian"):
        problem = SamplesProblem(m, n, d, coefficients=coefficients, p=(1.2 if args.quick else 1.6) / n)
        for seed in range(args.seeds or (1 if args.quick else 10)):
            Y, A = problem.given(seed)
            values = gaps(A, solvers.load("quartic")(Y, n, seed))
            rows.append({"problem": problem.name, "seed": seed, "median": np.median(values), "most": np.max(values)})
    print(report.table(["problem", "seed", "median", "most"], [list(row.values()) for row in rows]))
    most = max(row["most"] for row in rows)
    bars.judge(f"1 - squared correlation at most {BAR:g} for every atom", most <= BAR, f"{most:.2g}")
    return bars.close(rows=rows)


if __name__ == "__main__":
    raise SystemExit(main())
