"""``quartic transform MODEL FILE``: the codes of samples under a model that ``quartic learn`` saved."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import numpy as np

from quartic._files import atomic, readable
from quartic.cli.common import EXIT_CODES, OK, CommandError, bad_input, check_output, progress, say, why, writing
from quartic.cli.files import open_samples
from quartic.cli.learn import Model, add_samples
from quartic.estimators import SpectralDictionaryLearning, SpectralICA

KINDS: dict[str, type[Model]] = {kind.__name__: kind for kind in (SpectralDictionaryLearning, SpectralICA)}
ROWS = 1000  # that are turned to text at a time; arbitrary


def add(commands: Any) -> None:
    """The command's arguments."""
    command = commands.add_parser(
        "transform",
        help="compute the codes of samples under a learned model",
        description="Compute the codes (sources, for a model of --ica) of samples, one row for each sample, whatever\n"
        "the certificates of the model say: with exact zeros where the model was learned from exactly sparse data.",
        epilog="examples:\n"
        "  quartic transform model.npz samples.npy --out codes.npy\n"
        "  quartic transform model.npz samples.csv > codes.csv\n\n" + EXIT_CODES,
    )
    command.add_argument("model", metavar="MODEL", help="a file that quartic learn --out saved")
    add_samples(command)
    command.add_argument(
        "--out",
        metavar="CODES",
        help="save the codes in this file, .npy, .npz or .csv (text on standard output when not given)",
    )
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Load, transform, write."""
    check_output("--out", arguments.out, arguments.model, arguments.file)
    suffix = ".csv" if arguments.out is None else os.path.splitext(arguments.out)[1].lower()
    if suffix not in WRITERS:
        raise CommandError(f"--out {arguments.out}: unknown format; use .npy, .npz or .csv")
    model = load_model(arguments.model)
    with bad_input(arguments.file):
        X = open_samples(arguments.file, arguments.key)
        if X.shape[1] != model.n_features_in_:
            raise CommandError(
                f"{arguments.file}: has {X.shape[1]} columns, and {arguments.model} was learned from "
                f"{model.n_features_in_}; give samples of the same features"
            )
        with progress({}):
            codes = model.transform(X)
    if arguments.out is None:
        for lines in _texts(codes):
            say(lines)
    else:
        with writing("--out", arguments.out), atomic(arguments.out) as out:
            WRITERS[suffix](out, codes)
    return OK


def load_model(path: str) -> Model:
    """The model in a file, of whichever kind it is."""
    try:
        with open(path, "rb") as file, readable(path):
            kind = str(np.load(file, allow_pickle=False)["kind"])
    except OSError as error:
        raise CommandError(f"{path}: cannot be read ({why(error)}); check the path and its permissions") from None
    except ValueError:
        raise CommandError(f"{path}: is not a model, or is damaged; save one with quartic learn --out") from None
    if kind not in KINDS:
        raise CommandError(f"{path}: holds a {kind}, not a model; save one with quartic learn --out")
    with bad_input(path):
        return KINDS[kind].load(path)


def _texts(codes: np.ndarray) -> Iterator[str]:
    """Lines of numbers separated by commas, many at a time, the shortest that read back as they were."""
    for start in range(0, codes.shape[0], ROWS):
        yield "\n".join(",".join(map(str, row)) for row in codes[start : start + ROWS])


def _write_csv(out: BinaryIO, codes: np.ndarray) -> None:
    for lines in _texts(codes):
        out.write(f"{lines}\n".encode())


WRITERS: dict[str, Callable[[BinaryIO, np.ndarray], None]] = {
    ".npy": lambda out, codes: np.save(out, codes),
    ".npz": lambda out, codes: np.savez(out, codes=codes),
    ".csv": _write_csv,
}
