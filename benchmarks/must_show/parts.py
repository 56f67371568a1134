"""Which part of what is found beyond tau = 1/3 is due to the window, to global weights and to local ones.

Shown: the share of the atoms found by the spectral stage alone (squared correlation 0.9 in whitened coordinates, no
refinement) from the top of the spectrum of plain moments, from a window of it, from the top under global weights of two
strengths, from a window under them, and from local weights: blocks of 3, 5 and 10, Pr[j | i] of 0.4 to 0.8, orthonormal
dictionaries with and without noise at 10 dB, d = n = 40, m = 40,000.  Bar: local weights find every atom.
"""

import numpy as np

from benchmarks import report
from benchmarks.problems import SamplesProblem
from quartic.algorithms.temper import tempering
from quartic.evidence import Evidence
from quartic.evidence.units import dealt
from quartic.halves import half_of, row_hash
from quartic.metrics import match
from quartic.moments import Covariance
from quartic.propose.span import Certified, search, search_window
from quartic.propose.untangle import untangle
from quartic.views import ImplicitMoment

FOUND = 0.9
SHARES = {"plain": 1.0, "ESS 0.5": 0.5, "ESS 0.1": 0.1}


def measure(problem, seed):
    """One row: the share found by each part."""
    Y, A = problem.given(seed)
    frame = Covariance().update(Y).frame(problem.n)
    Z = frame.whiten(Y, np.float32)
    n, half = problem.n, half_of(row_hash(np.arange(Z.shape[0])))
    squares = np.einsum("ij,ij->i", Z, Z, dtype=np.float64)
    nobody, found = np.zeros((0, n)), {}
    for name, share in SHARES.items():
        moment = ImplicitMoment(Z, half, tempering(squares, share).weights(squares))
        found[name] = search(moment, n, nobody, np.random.default_rng(seed)).atoms
        window = search_window(moment, n, nobody, np.random.default_rng(seed))
        found[f"{name}, window"] = nobody if window is None else window.atoms
    cloud = Evidence(Z.astype(np.float64), dealt(half), np.ones(Z.shape[0]), Z.shape[0])
    found["local"] = untangle(cloud, Certified(nobody, np.zeros(0)), np.random.default_rng(seed)).atoms
    truth = A @ frame.forward
    shares = {name: match(truth, U).found(FOUND) / n if U.shape[0] else 0.0 for name, U in found.items()}
    return {"group": problem.group, "cooccurrence": problem.cooccurrence, "snr": problem.snr, "seed": seed, **shares}


def main(argv=None):
    parser = report.options(__doc__)
    parser.add_argument("--seeds", type=int, default=2, help="seeds a problem (default 2)")
    args = parser.parse_args(argv)
    bars = report.Bars("parts", args)
    m, n, sizes, chances, seeds = (40_000, 40, (3, 5, 10), (0.4, 0.5, 0.6, 0.8), args.seeds)
    if args.quick:
        m, n, sizes, chances, seeds = (12_000, 12, (3,), (0.6,), 1)
    chosen = [
        SamplesProblem(m, n, supports="blocks", group=group, cooccurrence=c, dictionary="orthonormal", snr=snr)
        for group in sizes
        for c in chances
        for snr in (None, 10.0)
    ]
    rows, lines = [], []
    for problem in chosen:
        mine = [measure(problem, seed) for seed in range(seeds)]
        rows += mine
        names = [name for name in mine[0] if name not in ("group", "cooccurrence", "snr", "seed")]
        means = [float(np.mean([row[name] for row in mine])) for name in names]
        lines.append([problem.group, problem.cooccurrence, problem.snr, *means])
    print(f"share found, means over {seeds} seeds\n")
    print(report.table(["block", "Pr[j|i]", "dB", *names], lines))
    complete = sum(row["local"] == 1 for row in rows)
    bars.judge("local weights find every atom", complete == len(rows), f"{complete} of {len(rows)} runs")
    return bars.close(rows=rows)


if __name__ == "__main__":
    raise SystemExit(main())
