"""Streams and merges: the same answer as one fit.

Bar: given the frame, ``partial_fit`` over 50 batches in random order, and 8 accumulators merged in random order, give
the components of one ``fit`` without refinement to 1e-8.  d = n = 24, m = 20,000, blocks with tau 0.25, five seeds.
"""

import warnings

import numpy as np

import quartic
from benchmarks import report
from benchmarks.problems import SamplesProblem
from quartic.dictionary import learn_from_moment

BATCHES, PARTS, CLOSE = 50, 8, 1e-8


def difference(A, B):
    """Largest difference of an entry; components come in canonical order and sign."""
    return float(np.max(np.abs(A - B))) if A.shape == B.shape else np.inf


def measure(problem, seed):
    Y, A = problem.given(seed)
    rng = np.random.default_rng(seed)
    frame = quartic.Covariance().update(Y[: len(Y) // 10]).frame(problem.n)  # of a part, as a stream would have it
    once = quartic.SpectralDictionaryLearning(problem.n, refine=False, frame=frame).fit(Y).components_

    model = quartic.SpectralDictionaryLearning(problem.n, frame=frame)
    for rows in rng.permutation(np.array_split(np.arange(len(Y)), BATCHES)):
        model.partial_fit(Y[rows])
    parts = [quartic.FourthMoment(frame).update(Y[rows]) for rows in np.array_split(np.arange(len(Y)), PARTS)]
    order = rng.permutation(PARTS)
    merged = parts[order[0]]
    for k in order[1:]:
        merged = merged.merge(parts[k])
    both = learn_from_moment(merged, problem.n, rng=np.random.default_rng(0))
    found = float(np.mean(quartic.metrics.match(A, once).squared >= 0.99))
    return {
        "seed": seed,
        "partial_fit": difference(once, model.components_),
        "merged": difference(once, both.components),
        "found": found,
    }


def main(argv=None):
    parser = report.options(__doc__)
    parser.add_argument("--seeds", type=int, help="seeds (default 5)")
    args = parser.parse_args(argv)
    bars = report.Bars("streaming", args)
    warnings.simplefilter("ignore")  # the first batches certify nothing
    n, m = (5, 3000) if args.quick else (24, 20000)
    problem = SamplesProblem(m, n, supports="blocks", cooccurrence=0.25)
    rows = [measure(problem, seed) for seed in range(args.seeds or (1 if args.quick else 5))]
    print("largest difference of an entry of a component from one fit without refinement\n")
    print(report.table(list(rows[0]), [list(row.values()) for row in rows]))
    for key, words in (
        ("partial_fit", f"partial_fit over {BATCHES} batches"),
        ("merged", f"{PARTS} accumulators merged"),
    ):
        worst = max(row[key] for row in rows)
        bars.judge(f"{words}: components equal to {CLOSE:g}", worst <= CLOSE, f"{worst:.1e}")
    return bars.close(rows=rows)


if __name__ == "__main__":
    raise SystemExit(main())
