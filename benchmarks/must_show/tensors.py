"""Certificates of ``decompose`` under errors of many kinds.

Components orthonormal and in general position, weights of one sign and of both, the rank given and found, eps from a
hundredth to a third of the smallest weight.  Bars: with the true eps 0 wrong of 3,000 certificates or more; with an
estimated eps the wrong ones are counted, and none has a status that hides that its certificates rest on an estimate.
A certificate is wrong if it lies above the squared correlation with the nearest component that was planted.
"""

import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from threadpoolctl import threadpool_limits

import quartic
from benchmarks import report
from quartic._arrays import pack, pack_rank_one, packed_dim
from quartic.datasets.tensors import random_orthonormal

SLACK = 1e-9  # rounding of a correlation


def outer(V, w=None):
    """``sum_j w_j v_j^(x4)`` of rows ``V``, packed."""
    B = pack_rank_one(V)
    return (B * (np.ones(len(V)) if w is None else w)) @ B.T


def matrices(M):
    """``sum_j M_j (x) M_j`` of symmetric matrices ``(k, d, d)``, packed."""
    P = pack((M + np.swapaxes(M, 1, 2)) / 2)  # (N, k)
    return P @ P.T


def pair_symmetric(rng, d, draw):
    """A random matrix on packed vectors, entries by ``draw``."""
    N = packed_dim(d)
    E = draw((N, N))
    return E + E.T


KINDS = {
    "dense": lambda A, d, rng: pair_symmetric(rng, d, rng.standard_normal),
    "heavy entries": lambda A, d, rng: pair_symmetric(rng, d, lambda shape: rng.standard_t(2, shape)),
    "few entries": lambda A, d, rng: pair_symmetric(rng, d, lambda s: rng.standard_normal(s) * (rng.random(s) < 0.02)),
    "one other component": lambda A, d, rng: outer(unit(rng.standard_normal((1, d)))),
    "minus one other component": lambda A, d, rng: -outer(unit(rng.standard_normal((1, d)))),
    "beside a component": lambda A, d, rng: outer(unit(A[:1] + 0.5 * unit(rng.standard_normal((1, d))))),
    "part of a component": lambda A, d, rng: -outer(A[:1]),
    "sums and differences": lambda A, d, rng: outer(unit(A[:-1] + rng.choice([-1, 1], (len(A) - 1, 1)) * A[1:])),
    "products of pairs": lambda A, d, rng: matrices(A[:-1, :, None] * A[1:, None, :]),
    "all directions alike": lambda A, d, rng: matrices(np.eye(d)[None]) + 2 * np.eye(packed_dim(d)),
    "many weak components": lambda A, d, rng: outer(unit(rng.standard_normal((4 * d, d))), rng.standard_normal(4 * d)),
}
KINDS_OF_COMPONENTS = ("orthonormal", "general")


def unit(V):
    """Unit rows; a single zero row, where there is one component only, is replaced by a coordinate."""
    norms = np.linalg.norm(V, axis=1, keepdims=True)
    return V / np.where(norms > 0, norms, 1.0)


def planted(kind, error, seed):
    """Components, weights and a packed tensor, with the norm of its error."""
    rng = np.random.default_rng([seed, list(KINDS).index(error), KINDS_OF_COMPONENTS.index(kind)])
    d = int(rng.choice([4, 6, 8, 12]))
    n = int(rng.integers(2, d + 1))
    A = random_orthonormal(d, n, rng) if kind == "orthonormal" else unit(rng.standard_normal((n, d)))
    w = rng.uniform(1, 3, n)
    if kind == "general":
        w = w * rng.choice([-1, 1], n)
    E = KINDS[error](A, d, rng)
    eps = float(rng.choice([0.01, 0.03, 0.1, 0.2, 0.33]))
    norm = np.max(np.abs(np.linalg.eigvalsh(E)))
    E = E * (eps / norm if norm > 0 else 0.0)
    return A, outer(A, w) + E, eps if norm > 0 else 0.0


def one(job):
    """One decomposition: certified, wrong, and whether the status hides an estimate."""
    kind, error, seed, true_eps, given = job
    A, T, eps = planted(kind, error, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", quartic.DecompositionWarning)
        found = quartic.decompose(
            quartic.PackedTensor(T), len(A) if given else None, max(eps, 1e-12) if true_eps else None, random_state=seed
        )
    U, certificates = np.asarray(found.components), np.asarray(found.certificates)
    truth = np.max((U @ A.T) ** 2, axis=1, initial=0.0)
    sure = certificates > 0.5
    wrong = int(np.sum(sure & (certificates > truth + SLACK)))
    hidden = bool(wrong and found.status.code == "complete" and "estimate" not in found.status.message)
    return {
        "components": kind, "error": error, "seed": seed, "true_eps": true_eps, "given": given, "eps": eps,
        "planted": len(A), "certified": int(np.sum(sure)), "wrong": wrong, "hidden": hidden,
        "status": found.status.code,
    }  # fmt: skip


def main(argv=None):
    parser = report.options(__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default 2)")
    parser.add_argument("--seeds", type=int, help="seeds of each kind (default 40)")
    parser.add_argument("--first", type=int, default=0, help="first seed (default 0)")
    args = parser.parse_args(argv)
    seeds = range(args.first, args.first + (args.seeds or (1 if args.quick else 40)))
    jobs = [
        (kind, error, seed, true_eps, bool(seed % 2))
        for true_eps in (True, False)
        for kind in KINDS_OF_COMPONENTS
        for error in KINDS
        for seed in seeds
    ]
    with ProcessPoolExecutor(args.jobs, initializer=threadpool_limits, initargs=(1,)) as pool:
        rows = list(pool.map(one, jobs, chunksize=4))
    bars = report.Bars("tensors", args)
    lines = []
    for true_eps in (True, False):
        for kind in KINDS_OF_COMPONENTS:
            mine = [row for row in rows if row["true_eps"] == true_eps and row["components"] == kind]
            sums = [sum(row[key] for row in mine) for key in ("planted", "certified", "wrong", "hidden")]
            lines.append([kind, "true" if true_eps else "estimated", len(mine), *sums])
    print(report.table(["components", "eps", "tensors", "planted", "certified", "wrong", "hidden"], lines))
    for row in rows:
        if row["wrong"]:
            print(f"wrong: {row}")
    sure = [row for row in rows if row["true_eps"]]
    certified, wrong = (sum(row[key] for row in sure) for key in ("certified", "wrong"))
    bars.judge("true eps: no wrong certificate", wrong == 0, f"{wrong} of {certified}")
    bars.judge("true eps: 3,000 certificates", certified >= 3000, str(certified), full_size=True)
    other = [row for row in rows if not row["true_eps"]]
    certified, wrong, hidden = (sum(row[key] for row in other) for key in ("certified", "wrong", "hidden"))
    bars.judge(
        "estimated eps: no status hides a wrong one", hidden == 0, f"{wrong} wrong of {certified}, {hidden} hidden"
    )
    return bars.close(summary=lines, wrong=[row for row in rows if row["wrong"]])


if __name__ == "__main__":
    raise SystemExit(main())
