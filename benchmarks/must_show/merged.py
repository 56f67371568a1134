"""A hundred files of moments, merged in random orders.

Bar: d = n = 24, m = 200,000, blocks with tau 0.25: 100 files of ``quartic moments``, merged by ``quartic merge``
in five random orders and learned from by ``quartic learn --from-moments``, give the components of one file of all
samples to 1e-10.
"""

import contextlib
import io
import tempfile
from pathlib import Path

import numpy as np

import quartic
from benchmarks import report
from benchmarks.problems import SamplesProblem
from quartic.cli import main as command

CLOSE = 1e-10


def quietly(*arguments):
    with contextlib.redirect_stdout(io.StringIO()):
        code = command([str(argument) for argument in arguments])
    assert code == 0, arguments


def learned(folder, name):
    quietly("learn", "--from-moments", folder / f"{name}.npz", "--out", folder / "model.npz")
    return quartic.SpectralDictionaryLearning.load(folder / "model.npz").components_


def main(argv=None):
    parser = report.options(__doc__)
    args = parser.parse_args(argv)
    bars = report.Bars("merged", args)
    n, m, files, orders = (6, 20_000, 10, 2) if args.quick else (24, 200_000, 100, 5)
    Y, _ = SamplesProblem(m, n, supports="blocks", cooccurrence=0.25, group=3, dictionary="orthonormal").given(0)
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parts = []
        for k, rows in enumerate(np.array_split(np.arange(m), files)):
            np.save(folder / f"{k}.npy", Y[rows])
            quietly("moments", folder / f"{k}.npy", "--out", folder / f"first{k}.npz")
            parts.append(folder / f"{k}.npy")
        quietly("merge", *(folder / f"first{k}.npz" for k in range(files)), "--frame", folder / "frame.npz")
        for k in range(files):
            arguments = ("--frame", folder / "frame.npz", "--first", k * (m // files), "--out", folder / f"part{k}.npz")
            quietly("moments", folder / f"{k}.npy", *arguments)
        np.save(folder / "all.npy", Y)
        quietly("moments", folder / "all.npy", "--frame", folder / "frame.npz", "--out", folder / "once.npz")
        once = learned(folder, "once")
        rows = []
        for order in range(orders):
            mine = [folder / f"part{k}.npz" for k in rng.permutation(files)]
            quietly("merge", *mine, "--out", folder / "all.npz")
            rows.append({"order": order, "off": float(np.max(np.abs(learned(folder, "all") - once)))})
    worst = max(row["off"] for row in rows)
    print(report.table(["order", "off"], [list(row.values()) for row in rows]))
    bars.judge(f"{files} files in {orders} orders: the components of one, to {CLOSE:g}", worst <= CLOSE, f"{worst:.1e}")
    return bars.close(rows=rows)


if __name__ == "__main__":
    raise SystemExit(main())
