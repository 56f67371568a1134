"""Rank and eps from the spectrum alone.

Bar: ``rank=None, eps=None``, d = 30, n in {10, 30}, every family but the competing basis and the trap (exact low-rank
tensors themselves), eps up to 0.3, five seeds: the rank exactly right in every seed, and the measured eps within
20%, or 0.01, of the spectral norm of T minus its best fit on the planted components.
"""

import warnings

import numpy as np

import quartic
from benchmarks import report
from quartic._arrays import pack_rank_one
from quartic.datasets import ERRORS, planted_tensor

FAMILIES = [error for error in ERRORS if error not in ("basis", "trap")]


def reference(planted):
    """Spectral norm of ``T - sum_i w_i a_i^(x4)`` with least-squares weights.

    The ``a_i`` are orthonormal, so the Gram matrix ``<a_i, a_j>^4`` is the identity and ``w_i = <T, a_i^(x4)>``.
    """
    B = pack_rank_one(planted.components)
    w = np.sum(B * (planted.packed @ B), axis=0)
    return float(np.max(np.abs(np.linalg.eigvalsh(planted.packed - (B * w) @ B.T))))


def measure(d, n, error, eps, seeds):
    """Ranks, and the measured against the reference eps, over the seeds."""
    row = {"d": d, "n": n, "error": error, "eps": eps, "ranks": [], "measured": [], "reference": [], "status": []}
    for seed in range(seeds):
        planted = planted_tensor(d, n, eps, error, random_state=seed)
        result = quartic.decompose(quartic.PackedTensor(planted.packed), random_state=seed)
        row["ranks"].append(result.rank)
        row["measured"].append(result.eps)
        row["reference"].append(reference(planted))
        row["status"].append(result.status.code)
    off = np.abs(np.subtract(row["measured"], row["reference"]))
    row["off"] = float(np.max(off))
    row["eps_right"] = bool(np.all(off <= np.maximum(0.2 * np.asarray(row["reference"]), 0.01)))
    row["rank_right"] = row["ranks"] == [n] * seeds
    return row


def main(argv=None):
    parser = report.options(__doc__)
    parser.add_argument("--seeds", type=int, help="seeds a row (default 5)")
    args = parser.parse_args(argv)
    bars = report.Bars("rank", args)
    warnings.simplefilter("ignore", quartic.DecompositionWarning)
    d, sizes, norms = (12, (4, 12), (0.1, 0.3)) if args.quick else (30, (10, 30), (0, 0.05, 0.1, 0.2, 0.3))
    seeds = args.seeds or (1 if args.quick else 5)
    rows = [measure(d, n, error, eps, seeds) for n in sizes for error in FAMILIES for eps in norms]
    headers = ["n", "error", "eps", "ranks", "right", "reference", "measured", "off at most", "right", "status"]
    lines = []
    for row in rows:
        ranks, status = (" ".join(map(str, sorted(set(row[name])))) for name in ("ranks", "status"))
        norms_ = [float(np.median(row[name])) for name in ("reference", "measured")]
        rank_right, eps_right = ("yes" if row[name] else "NO" for name in ("rank_right", "eps_right"))
        lines.append([row["n"], row["error"], row["eps"], ranks, rank_right, *norms_, row["off"], eps_right, status])
    print(f"medians and extremes over {seeds} seeds\n")
    print(report.table(headers, lines))
    for name, bar in (("rank_right", "the rank right in every seed"), ("eps_right", "eps within 20%, or 0.01")):
        good = sum(row[name] for row in rows)
        bars.judge(bar, good == len(rows), f"{good} of {len(rows)} rows")
    return bars.close(rows=rows, seeds=seeds)


if __name__ == "__main__":
    raise SystemExit(main())
