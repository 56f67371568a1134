"""Real data beside the peers: time, contrast, and what others have published.

Data sets of ``benchmarks/real.py``, whitened in their leading principal components.  FastICA with its own stopping rule
and at most 300 steps, the best of three starts by contrast; Picard with its defaults.  The contrast of signals is the
sum of squares of ``E log cosh s - E log cosh g``: what FastICA maximises.  Times are medians over the seeds, of
processor time.

Bars: at most twice FastICA's time on each; a contrast no lower than 0.995 of FastICA's best; of the published modules
of E. coli at least as many matched (a correlation of gene weights above 0.7) as by the best of FastICA.  Shown: how
many are certified, and how many return in both halves (stability above 0.9).
"""

import statistics
import time
import warnings

import numpy as np
from sklearn.decomposition import FastICA

import quartic
from benchmarks import real, report
from quartic.algorithms.refine import contrast
from quartic.metrics import match

STARTS = 3
MATCHED = 0.7  # correlation of gene weights
STABLE = 0.9
SLOWER, LESS = 2.0, 0.995


def timed(call):
    """What it returns, and the processor time it takes."""
    warnings.simplefilter("ignore")
    start = time.process_time()
    return call(), time.process_time() - start


def matched(recording, signals):
    """How many of the published signals are among these; None where there are none."""
    if recording.published is None:
        return None
    mine, theirs = (X - np.mean(X, axis=0) for X in (signals, recording.published))
    return int(np.sum(match(theirs.T, mine.T).squared > MATCHED**2))


def unit(S):
    """Signals of variance 1 about their mean."""
    return (S - np.mean(S, axis=0)) / np.std(S, axis=0)


def fastica(Z, seed):
    model = FastICA(Z.shape[1], whiten="unit-variance", whiten_solver="eigh", max_iter=300, random_state=seed)
    return unit(model.fit_transform(Z))


def picard(Z, seed):
    from picard import picard as solve

    return unit(solve(Z.T, whiten=True, random_state=seed)[2].T)


def row_of(recording, seeds):
    """The figures of one data set."""
    Z = recording.samples
    row = {"name": recording.name, "m": Z.shape[0], "n": Z.shape[1]}
    peers = {"fastica": [fastica, STARTS], "picard": [picard, 1]}
    for name, (solve, starts) in peers.items():
        runs = [timed(lambda solve=solve, seed=seed: solve(Z, seed)) for seed in range(starts)]
        row[f"{name}_seconds"] = statistics.median(seconds for _, seconds in runs)
        row[f"{name}_contrast"] = max(contrast(S) for S, _ in runs)
        row[f"{name}_matched"] = max((matched(recording, S) for S, _ in runs), key=lambda count: count or 0)
    seconds = []
    for seed in range(seeds):
        model, took = timed(lambda seed=seed: quartic.SpectralICA(Z.shape[1], random_state=seed).fit(Z))
        seconds.append(took)
        S = unit(model.transform(Z))
        row["contrast"] = min(row.get("contrast", np.inf), contrast(S))
        row["matched"] = matched(recording, S)
    row |= {"seconds": statistics.median(seconds), "certified": int(np.sum(model.certified_))}
    row |= {"stable": int(np.sum(model.stability_ > STABLE)), "status": model.status_.code}
    row |= {"sources": model.n_components_, "refinement": model.report_.refinement}
    return row | {"plan": [str(attempt) for attempt in model.report_.plan]}


def main(argv=None):
    parser = report.options(__doc__)
    parser.add_argument("--only", choices=real.RECORDINGS, action="append", help="data sets (default all)")
    parser.add_argument("--seeds", type=int, default=3, help="fits of each (default 3)")
    args = parser.parse_args(argv)
    bars = report.Bars("real_data", args)
    chosen = args.only or (["digits"] if args.quick else list(real.RECORDINGS))
    rows = []
    for name in chosen:
        row = row_of(real.RECORDINGS[name](), 1 if args.quick else args.seeds)
        rows.append(row)
        print(row["name"], *row["plan"], row["refinement"], sep="\n  ", flush=True)
    headers = ["data", "m", "n", "seconds", "fastica", "picard", "contrast", "fastica", "picard", "certified", "stable"]
    keys = ["name", "m", "n", "seconds", "fastica_seconds", "picard_seconds", "contrast", "fastica_contrast"]
    keys += ["picard_contrast", "certified", "stable", "status", "matched", "fastica_matched"]
    print("\n" + report.table([*headers, "status", "modules", "fastica"], [[row[key] for key in keys] for row in rows]))
    for row in rows:
        ratio = row["seconds"] / row["fastica_seconds"]
        bars.judge(f"{row['name']}: at most twice FastICA's time", ratio <= SLOWER, f"{ratio:.1f}", full_size=True)
        share = row["contrast"] / row["fastica_contrast"]
        bars.judge(f"{row['name']}: contrast", share >= LESS and row["sources"] == row["n"],
                   f"{share:.4f} of FastICA's, {row['sources']} of {row['n']} sources")  # fmt: skip
        if row["matched"] is not None:
            bars.judge(f"{row['name']}: modules", row["matched"] >= row["fastica_matched"],
                       f"{row['matched']}, FastICA {row['fastica_matched']}")  # fmt: skip
    return bars.close(rows=rows)


if __name__ == "__main__":
    raise SystemExit(main())
