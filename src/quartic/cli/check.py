"""``quartic check DATA``: whether samples in a file are what the method assumes, before a fit or under a model."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from quartic.cli.common import (
    OK,
    UNPROVED,
    CommandError,
    add_common,
    bad_input,
    complain,
    progress,
    say,
    to_json,
    whole,
)
from quartic.cli.scale import DATA, bad_chunks, opened
from quartic.cli.text import spoken
from quartic.cli.transform import load_model, rows_for
from quartic.diagnosis import diagnose, transposed
from quartic.evidence.units import ROWS

EXIT_CODES = """\
exit codes:
  0    no assumption is broken
  2    bad usage or bad input; one line on standard error says what and how to mend it
  3    an assumption is broken: what was measured is printed, with a remedy
  130  interrupted
"""


def add(commands: Any) -> None:
    """The command's arguments."""
    command = commands.add_parser(
        "check",
        help="say whether samples are what the method assumes",
        description="Say in plain words whether samples are what quartic learn assumes: enough of them, something\n"
        "that is not Gaussian, symmetric coefficients, no outliers, ...  One pass is made over all samples, the rest\n"
        "is measured on some thousands.  With --model, also whether they are like those that it was learned from.",
        epilog="examples:\n"
        "  quartic check samples.npy\n"
        "  quartic check samples.csv --json | python3 -m json.tool\n"
        "  quartic check new.npy --model model.npz\n\n" + EXIT_CODES,
    )
    command.add_argument("file", metavar="DATA", help=f"{DATA} with samples as rows")
    command.add_argument("--key", metavar="NAME", help="which array, if the file holds more than one")
    command.add_argument("--model", metavar="MODEL.npz", help="a file that quartic learn --out saved")
    command.add_argument("--components", type=whole, metavar="N", help="number of atoms that is meant")
    command.add_argument(
        "--rows",
        choices=ROWS,
        default="auto",
        help="exchangeable: the order of samples means nothing (default: whether neighbours depend on each other is "
        "looked at)",
    )
    add_common(command)
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Look, and say."""
    if arguments.components is not None and arguments.components < 1:
        raise CommandError(f"--components must be at least 1; got {arguments.components}")
    model = None if arguments.model is None else load_model(arguments.model)
    learned = None if model is None else model.learned_
    given = spoken(arguments.file)
    with bad_input(given, n_components="--components"), progress({}):
        table = opened(arguments.file, arguments.key, finite=False)
        if isinstance(table.X, np.ndarray):
            for question in transposed(*table.X.shape):
                complain("warning", f"{given}: {question}")
        X = table.X if model is None else rows_for(model, table, arguments.model, given)
        names = table.names if model is None else getattr(model, "feature_names_in_", table.names)
        with bad_chunks(given, table):
            found = diagnose(
                X,
                n_components=arguments.components,
                learned=learned,
                feature_names=names,
                rows=arguments.rows,
                random_state=arguments.seed,
            )
    lines = [found.summary()] if table.header is None else [found.summary(), f"header    {table.header}"]
    say(to_json(found.as_dict()) if arguments.json else "\n".join(lines))
    if found.ok:
        return OK
    complain("warning", found.verdict)
    return UNPROVED
