"""How many components there can be.

Shown: the largest n at d = 10, 20 and 30 for which every one of n random unit components of weight 1 is found, at
squared correlation 0.999 in all of three seeds, the rank given: without an error, and with a Gaussian one of norm 0.1
and 0.3 times the smallest eigenvalue of the span.  N = d (d + 1) / 2 is the most there can be.  n goes up in steps of
N / 20, until two steps in a row fail after one that did not.  A full run draws the shares found, in docs/images.
Bar: without an error, at least half of N.
"""

import warnings
from pathlib import Path

import numpy as np

import quartic
from benchmarks import report
from benchmarks.problems import general_tensor
from quartic._arrays import packed_dim
from quartic.metrics import match

FIGURE = Path(__file__).parents[2] / "docs" / "images" / "overcomplete_limit.png"
DIMENSIONS = (10, 20, 30)
SHARES = (0.0, 0.1, 0.3)
STEPS = 20
FOUND = 0.999
LEAST = 0.5  # of N, without an error
PATIENCE = 2  # steps in a row that fail


def measure(d, share, seeds, steps):
    """One row: the shares of the components found at each n, and the largest n at which that is all, in each seed."""
    N = packed_dim(d)
    row = {"d": d, "N": N, "share": share, "largest": 0, "tried": []}
    failed = 0
    for step in range(1, steps):
        n = round(step * N / steps)
        found, certified = [], []
        for seed in range(seeds):
            tensor, A = general_tensor(d, n, share, seed)
            result = quartic.decompose(tensor, n, random_state=seed)
            found.append(match(A, result.components).found(FOUND) / n)
            certified.append(int(np.sum(result.certified)) / n)
        row["tried"].append({"n": n, "found": found, "certified": certified})
        print(f"d = {d}, error {share:g}, n = {n}: {min(found):.3f} found, {min(certified):.3f} certified", flush=True)
        failed = 0 if min(found) == 1 else failed + 1
        if failed == 0:
            row["largest"] = n
        elif row["largest"] and failed >= PATIENCE:
            break
    return row


def draw(rows, path):
    """The share of the components found in the worst seed, against n / N; one panel for each error."""
    from matplotlib.figure import Figure

    shares = list(dict.fromkeys(row["share"] for row in rows))
    figure = Figure(figsize=(7.5, 2.8), layout="constrained")
    panels = figure.subplots(1, len(shares), sharey=True, squeeze=False)[0]
    for ax, share in zip(panels, shares, strict=True):
        for row in (row for row in rows if row["share"] == share):
            part = [point["n"] / row["N"] for point in row["tried"]]
            ax.plot(part, [min(point["found"]) for point in row["tried"]], marker=".", label=f"d = {row['d']}")
        ax.set_title(f"error {share:g}" if share else "no error")
        ax.set_xlabel("n / N")
        ax.set_xlim(0, 1)
    panels[0].set_ylabel("found, worst seed")
    panels[0].legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    print(f"\ndrawn in {path}")


def main(argv=None):
    parser = report.options(__doc__)
    parser.add_argument("--seeds", type=int, help="seeds an n (default 3)")
    parser.add_argument("--dimension", type=int, choices=DIMENSIONS, help="this size only; nothing is drawn")
    parser.add_argument("--figure", type=Path, help="file for the figure (default of a full run: docs/images)")
    args = parser.parse_args(argv)
    bars = report.Bars("overcomplete_limit", args)
    warnings.simplefilter("ignore", quartic.DecompositionWarning)  # what is lost shows in the table
    dimensions, shares, steps, seeds = DIMENSIONS, SHARES, STEPS, args.seeds or 3
    if args.dimension:
        dimensions = (args.dimension,)
    if args.quick:
        dimensions, shares, steps, seeds = (8,), (0.0, 0.1), 6, args.seeds or 1
    rows = [measure(d, share, seeds, steps) for share in shares for d in dimensions]
    lines = [[row["d"], row["N"], row["share"], row["largest"], row["largest"] / row["N"]] for row in rows]
    print(f"\nthe largest n with every component at {FOUND:g} in {seeds} seeds\n")
    print(report.table(["d", "N", "error", "n", "n / N"], lines))
    for row in (row for row in rows if row["share"] == 0):
        bar = f"d = {row['d']}, no error: at least {LEAST:g} N = {row['N']}"
        bars.judge(bar, row["largest"] >= LEAST * row["N"], f"n = {row['largest']}")
    figure = args.figure or (None if args.quick or args.dimension else FIGURE)
    if figure is not None:
        draw(rows, figure)
    return bars.close(rows=rows, seeds=seeds)


if __name__ == "__main__":
    raise SystemExit(main())
