"""Run experiments: all of them, or those that are named.

Each prints its tables; a full run keeps its data and its figure, and writes ``docs/experiments.md`` anew from all that
is kept.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from benchmarks import report
from experiments import experiment, figures, page


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(experiment.names())}; default all")
    parser.add_argument("--quick", action="store_true", help="tiny versions; kept only with --out")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time, of one thread each (default 2)")
    parser.add_argument("--out", type=Path, help="folder for data and figures instead of the project's own")
    parser.add_argument("--resume", action="store_true", help="leave out what is kept of the same source")
    parser.add_argument(
        "--draw", action="store_true", help="measure nothing: tables, figures and page from what is kept"
    )
    args = parser.parse_args(argv)
    for name in args.names:
        if name not in experiment.names():
            parser.error(f"{name}: there are {', '.join(experiment.names())}")
    if args.draw and args.quick:
        parser.error("--draw is for what a full run kept; leave out --quick")
    keeps = args.out is not None or not args.quick
    data_folder, figure_folder = args.out or experiment.RESULTS, args.out or figures.FOLDER
    for name in args.names or experiment.names():
        module, before = experiment.load(name), experiment.kept(name, data_folder)
        print(f"\n=== {name}: {module.TITLE}\n\n{experiment.claim(module)}\n", flush=True)
        if args.draw and before is None:
            print("nothing is kept of it")
            continue
        if not args.draw and not (args.resume and before is not None and before["source"] == experiment.source(name)):
            start = time.perf_counter()
            data = report.plain(module.measure(experiment.Run(args.quick, args.jobs)))
            seconds = time.perf_counter() - start
            if keeps:
                experiment.keep(name, data, data_folder, seconds)
        else:
            data = before["data"]
        for table in module.tables(data):
            print(f"\n{table.title}\n\n{report.table(table.headers, table.rows)}")
        print()
        for v in module.verdicts(data):
            print(f"{v.verdict}: {v.claim}: {v.states}; measured {v.measured}")
        if keeps:
            figures.save(module.draw(data), figure_folder / f"{name}.png")
    if keeps and args.out is None:
        page.PAGE.write_text(page.markdown(), encoding="utf-8")
        print(f"\nwritten: {os.path.relpath(page.PAGE)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
