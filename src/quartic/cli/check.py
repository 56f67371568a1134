"""``quartic check DATA``: whether samples in a file are what the method assumes, before a fit or under a model."""

from __future__ import annotations

import argparse
import os
from typing import Any

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
from quartic.cli.files import open_samples as open_file
from quartic.cli.scale import DATA, LARGE, require_dask
from quartic.cli.transform import load_model
from quartic.diagnosis import diagnose
from quartic.sources import open_samples

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
    add_common(command)
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Look, and say."""
    if arguments.components is not None and arguments.components < 1:
        raise CommandError(f"--components must be at least 1; got {arguments.components}")
    learned = None if arguments.model is None else load_model(arguments.model).learned_
    with bad_input(arguments.file), progress({}):
        X = samples(arguments.file, arguments.key)
        if learned is not None and X.shape[1] != learned.components.shape[1]:
            raise CommandError(
                f"{arguments.file}: has {X.shape[1]} columns, and {arguments.model} was learned from "
                f"{learned.components.shape[1]}; give samples of the same features"
            )
        try:
            found = diagnose(X, n_components=arguments.components, learned=learned, random_state=arguments.seed)
        except RuntimeError as error:  # a chunk that can not be read
            raise CommandError(f"{arguments.file}: {error}") from None
    say(to_json(found.as_dict()) if arguments.json else found.summary())
    if found.ok:
        return OK
    complain("warning", found.verdict)
    return UNPROVED


def samples(path: str, key: str | None) -> Any:
    """The samples: an array, which may hold what is not finite, or a Dask array."""
    if not (os.path.isdir(path) or os.path.splitext(path)[1].lower() in LARGE):
        return open_file(path, key, finite=False)
    require_dask(path)
    try:
        return open_samples(path, key=key)
    except (OSError, ValueError) as error:
        raise CommandError(str(error)) from None
