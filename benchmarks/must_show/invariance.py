"""What must not matter does not: the order of rows and of columns, the seed, the number of threads.

Independent sources of every law of ``benchmarks/strangers.py``, d = 8, m = 3,000, fitted as they are and once more with
each of these changed.  Bars, for each change: at most 5% of the certificates flip (of those of either fit), and no
atom that both certify moves by more than a degree in whitened coordinates.
"""

import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from threadpoolctl import threadpool_limits

import quartic
from benchmarks import report, strangers

SHAPE = (3000, 8)
DEGREE = np.pi / 180
CHANGES = ("rows", "columns", "seed", "threads")


def certified(Y, seed):
    """Certified atoms of a fit, as unit rows in coordinates whitened by all samples."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = quartic.SpectralDictionaryLearning(random_state=seed).fit(Y)
    U = np.asarray(model.components_)[np.asarray(model.certified_)]
    U = U @ np.linalg.inv(np.linalg.cholesky(np.cov(Y, rowvar=False))).T
    return U / np.linalg.norm(U, axis=1, keepdims=True)


def compared(A, B, Q):
    """Atoms certified in one of two fits alone, in both, and the largest angle of the latter; ``Q`` maps B to A."""
    if not len(A) or not len(B):
        return len(A) + len(B), 0, 0.0
    cosine = np.abs(A @ (B @ Q).T)
    same = cosine > np.cos(np.pi / 8)
    both = int(np.sum(np.any(same, axis=1)))
    angles = np.arccos(np.minimum(np.max(np.where(same, cosine, -1.0), axis=1), 1.0))[np.any(same, axis=1)]
    return len(A) + len(B) - 2 * both, both, float(np.max(angles, initial=0.0))


def one(job):
    """A case as it is, and with each change."""
    law, seed = job
    Y = strangers.draw("law", seed, law=law, shape=SHAPE).samples
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(SHAPE[0]), rng.permutation(SHAPE[1])
    root = np.linalg.inv(np.linalg.cholesky(np.cov(Y, rowvar=False)))
    moved = np.linalg.inv(np.linalg.cholesky(np.cov(Y[:, columns], rowvar=False)))
    turn = np.linalg.inv(moved.T) @ np.eye(SHAPE[1])[columns] @ root.T  # from one whitening to the other
    with threadpool_limits(1):
        base = certified(Y, 0)
        others = {
            "rows": (certified(Y[rows], 0), np.eye(SHAPE[1])),
            "columns": (certified(Y[:, columns], 0), turn),
            "seed": (certified(Y, 1), np.eye(SHAPE[1])),
        }
    with threadpool_limits(2):
        others["threads"] = (certified(Y, 0), np.eye(SHAPE[1]))
    return {"law": law, "seed": seed, **{name: compared(base, *other) for name, other in others.items()}}


def main(argv=None):
    parser = report.options(__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default 2)")
    parser.add_argument("--seeds", type=int, help="seeds of each law (default 5)")
    args = parser.parse_args(argv)
    laws = ["laplace", "t5"] if args.quick else list(strangers.LAWS)
    jobs = [(law, seed) for law in laws for seed in range(args.seeds or (1 if args.quick else 5))]
    with ProcessPoolExecutor(args.jobs) as pool:
        rows = list(pool.map(one, jobs))
    bars = report.Bars("invariance", args)
    lines = []
    for law in laws:
        some = [row for row in rows if row["law"] == law]
        lines.append([law, *(f"{sum(r[c][0] for r in some)} / {sum(r[c][1] for r in some)}" for c in CHANGES)])
    print(report.table(["law: flipped / in both", *CHANGES], lines))
    for change in CHANGES:
        flipped, both = (sum(row[change][k] for row in rows) for k in (0, 1))
        angle = max(row[change][2] for row in rows)
        share = flipped / max(flipped + both, 1)
        bars.judge(f"{change}: at most 5% flip", share <= 0.05, f"{flipped} of {flipped + both} ({share:.1%})", True)
        bars.judge(f"{change}: none moves by a degree", angle < DEGREE, f"{angle / DEGREE:.2g} degrees")
    return bars.close(rows=rows)


if __name__ == "__main__":
    raise SystemExit(main())
