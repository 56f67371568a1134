"""More components than dimensions.

Bar: random unit components of weight 1, a Gaussian error on Sym2 of norm 0.3 times the smallest eigenvalue of their
span, (d, n) = (20, 100), (30, 150) and (40, 300), ten seeds: every component at squared correlation 0.999, exactly n
certified, none of them wrongly, and the rank found by itself; the same with the rank given.  At (40, 300) at most 400
times the time of one application of the truncated tensor, factored, to n packed matrices; medians.

Applications are timed before and after each decomposition, and the ratio is that of each repeat.
"""

import statistics
import time
import warnings

import numpy as np

import quartic
from benchmarks import report
from benchmarks.certified import wrong
from benchmarks.must_show.sweeps import seconds_of
from benchmarks.problems import general_tensor
from quartic.algorithms.truncate import full_spectrum
from quartic.metrics import match

SIZES = ((20, 100), (30, 150), (40, 300))
SHARE = 0.3  # of the smallest eigenvalue of the span: the norm of the error
FOUND = 0.999
BAR = 400.0
MODES = ("none", "given")  # the rank


def measure(d, n, seeds):
    """Figures of one size, over the seeds, with the rank given and without."""
    row = {"d": d, "n": n, "seeds": seeds}
    for mode in MODES:
        row[mode] = {"ranks": [], "found": [], "worst": [], "certified": [], "wrong": 0, "least_certificate": []}
    for seed in range(seeds):
        tensor, A = general_tensor(d, n, SHARE, seed)
        for mode in MODES:
            result = quartic.decompose(tensor, n if mode == "given" else None, random_state=seed)
            pairs = match(A, result.components)
            figures = row[mode]
            figures["ranks"].append(result.rank)
            figures["found"].append(pairs.found(FOUND))
            figures["worst"].append(float(np.min(pairs.squared)) if pairs.squared.size == n else 0.0)
            figures["certified"].append(int(np.sum(result.certified)))
            figures["wrong"] += wrong(result.certificates, pairs.table)
            figures["least_certificate"].append(float(np.min(result.certificates, initial=1.0)))
        print(f"d = {d}, n = {n}, seed {seed}: " + ", ".join(said(row[mode], mode) for mode in MODES), flush=True)
    return row


def said(figures, mode):
    """The last seed in a few words."""
    rank, found, certified = (figures[name][-1] for name in ("ranks", "found", "certified"))
    return f"rank {mode}: {rank}, {found} found, {certified} certified"


def timed(d, n, repeats):
    """Medians of the time in applications of the factored tensor, with the rank given and without."""
    tensor, _ = general_tensor(d, n, SHARE, 0)
    factored = full_spectrum(tensor).head(n)
    block = np.random.default_rng(0).standard_normal((tensor.pair_dim, n))
    row = {"d": d, "n": n, "repeats": repeats}
    for mode in MODES:
        one, seconds, ratios = [], [], []
        for repeat in range(repeats):
            times = seconds_of(lambda: factored.apply(block))
            start = time.perf_counter()
            quartic.decompose(tensor, n if mode == "given" else None, random_state=repeat)
            seconds.append(time.perf_counter() - start)
            times += seconds_of(lambda: factored.apply(block))
            one.append(statistics.median(times))
            ratios.append(seconds[-1] / one[-1])
        medians = (statistics.median(values) for values in (one, seconds, ratios))
        row[mode] = dict(zip(("apply_s", "seconds", "ratio"), medians, strict=True)) | {"ratios": ratios}
    return row


def main(argv=None):
    parser = report.options(__doc__)
    parser.add_argument("--seeds", type=int, help="seeds a size (default 10)")
    parser.add_argument("--repeats", type=int, help="decompositions that are timed (default 5)")
    parser.add_argument("--dimension", type=int, choices=[d for d, _ in SIZES], help="this size only")
    args = parser.parse_args(argv)
    bars = report.Bars("overcomplete", args)
    warnings.simplefilter("ignore", quartic.DecompositionWarning)  # what is lost shows in the table
    sizes = ((20, 100),) if args.quick else [size for size in SIZES if args.dimension in (None, size[0])]
    seeds, repeats = (args.seeds or 2, args.repeats or 1) if args.quick else (args.seeds or 10, args.repeats or 5)
    rows = [measure(d, n, seeds) for d, n in sizes]
    times = timed(*sizes[-1], repeats)
    lines = []
    for row in rows:
        for mode in MODES:
            r = row[mode]
            ranks = " ".join(map(str, sorted(set(r["ranks"]))))
            figures = [min(r["found"]), f"{min(r['worst']):.5f}", min(r["certified"]), max(r["certified"]), r["wrong"]]
            lines.append([row["d"], row["n"], mode, ranks, *figures, min(r["least_certificate"])])
    print(f"\nextremes over {seeds} seeds\n")
    headers = ["d", "n", "rank", "ranks", "found", "worst", "certified", "to", "wrong", "cert min"]
    print(report.table(headers, lines))
    for mode in MODES:
        for row in rows:
            n, r = row["n"], row[mode]
            right = sum(found == n for found in r["found"])
            name = f"(d, n) = ({row['d']}, {n}), rank {mode}"
            bars.judge(f"{name}: all at {FOUND:g}", right == seeds, f"{right} of {seeds} seeds")
            sure = sum(k == n for k in r["certified"])
            bars.judge(f"{name}: {n} certified", sure == seeds, f"{sure} of {seeds} seeds")
            bars.judge(f"{name}: no wrong certificate", r["wrong"] == 0, f"{r['wrong']}")
            if mode == "none":
                counted = sum(k == n for k in r["ranks"])
                bars.judge(f"{name}: the rank right", counted == seeds, f"{counted} of {seeds} seeds")
    for mode in MODES if args.dimension in (None, SIZES[-1][0]) else ():
        ratio, seconds, one = (times[mode][name] for name in ("ratio", "seconds", "apply_s"))
        bars.judge(
            f"(d, n) = ({times['d']}, {times['n']}), rank {mode}: at most {BAR:g} applications",
            ratio <= BAR,
            f"{ratio:.0f}: {seconds:.3g} s, one application {1e3 * one:.3g} ms",
            full_size=True,
        )
    return bars.close(rows=rows, times=times, seeds=seeds)


if __name__ == "__main__":
    raise SystemExit(main())
