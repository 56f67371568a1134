"""Exactly sparse data: the dictionary up to rounding.

Bar: no noise, d = n = 40, m = 8,000, sign and Gaussian coefficients, independent and block supports, ten seeds: one
minus the squared correlation is at most 1e-12 for every atom.  FastICA is shown next to it.
"""

import warnings

import numpy as np

from benchmarks import report, solvers
from benchmarks.problems import SamplesProblem
from quartic.metrics import match

BAR = 1e-12
PEER = "fastica_logcosh"


def gaps(A, B):
    """One minus the squared correlation of each atom ``A (n, d)`` with its partner in ``B``; 1 for what has none.

    As ``|u - <u, a> a|^2`` of unit vectors, which does not cancel.
    """
    pairs = match(A, B)
    U, A_ = B[pairs.columns], A[pairs.rows]
    U = U / np.linalg.norm(U, axis=1, keepdims=True)
    values = np.ones(A.shape[0])
    values[pairs.rows] = np.sum((U - np.sum(U * A_, axis=1, keepdims=True) * A_) ** 2, axis=1)
    return values


def main(argv=None):
    parser = report.options(__doc__)
    parser.add_argument("--seeds", type=int, help="seeds a row (default 10)")
    args = parser.parse_args(argv)
    bars = report.Bars("exact", args)
    warnings.simplefilter("ignore")  # what is lost shows in the table
    n, m = (8, 4000) if args.quick else (40, 8000)
    seeds = args.seeds or (1 if args.quick else 10)
    rows = []
    for supports, cooccurrence in (("independent", None), ("blocks", 0.25)):
        for coefficients in ("sign", "gaussian"):
            problem = SamplesProblem(m, n, supports=supports, cooccurrence=cooccurrence, coefficients=coefficients)
            values = {name: [] for name in ("quartic", PEER)}  # of each solver (seeds, n)
            for seed in range(seeds):
                Y, A = problem.given(seed)
                for name, found in values.items():
                    found.append(gaps(A, solvers.load(name)(Y, n, seed)))
            row = {"problem": problem.name}
            for name, found in values.items():
                row |= {f"{name}_median": np.median(found), f"{name}_most": np.max(found)}
            rows.append(row)
    print(f"1 - squared correlation over the atoms of {seeds} seeds\n")
    headers = ["problem", "quartic: median", "most", f"{PEER}: median", "most"]
    print(report.table(headers, [list(row.values()) for row in rows]))
    most = max(row["quartic_most"] for row in rows)
    bars.judge(f"1 - squared correlation at most {BAR:g} for every atom", most <= BAR, f"{most:.2g}")
    return bars.close(rows=rows, seeds=seeds)


if __name__ == "__main__":
    raise SystemExit(main())
