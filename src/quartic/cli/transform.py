"""``quartic transform MODEL DATA``: the codes of samples under a model that ``quartic learn`` saved."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

from quartic._files import atomic, readable
from quartic.cli import text
from quartic.cli.common import (
    DONE_CODES,
    MOST,
    OK,
    CommandError,
    bad_input,
    check_output,
    complain,
    progress,
    say,
    why,
    writing,
)
from quartic.cli.files import blocks, check_finite
from quartic.cli.learn import Model
from quartic.cli.scale import DATA, opened
from quartic.cli.text import Table
from quartic.estimators import SpectralDictionaryLearning, SpectralICA

KINDS: dict[str, type[Model]] = {kind.__name__: kind for kind in (SpectralDictionaryLearning, SpectralICA)}


def add(commands: Any) -> None:
    """The command's arguments."""
    command = commands.add_parser(
        "transform",
        help="compute the codes of samples under a learned model",
        description="Compute the codes (sources, for a model of --ica) of samples, one row for each sample, whatever\n"
        "the certificates of the model say: with exact zeros where the model was learned from exactly sparse data.\n"
        "Where model and data have names of features, columns go by these.",
        epilog="examples:\n"
        "  quartic transform model.npz samples.npy --out codes.npy\n"
        "  quartic transform model.npz samples.csv > codes.csv\n\n" + DONE_CODES,
    )
    command.add_argument("model", metavar="MODEL", help="a file that quartic learn --out saved")
    command.add_argument("file", metavar="DATA", help=f"{DATA} with samples as rows")
    command.add_argument("--key", metavar="NAME", help="which array, if the file holds more than one")
    command.add_argument("--groups", metavar="COLUMN", help="name of a column that is no feature, as in quartic learn")
    command.add_argument(
        "--out",
        metavar="CODES",
        help="save the codes in this file, .npy, .npz or .csv (text on standard output when not given)",
    )
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Load, transform, write."""
    check_output("--out", arguments.out, arguments.model, arguments.file, formats=tuple(WRITERS))
    model = load_model(arguments.model)
    names = [f"{model._noun}{i}" for i in range(model.n_components_)]
    given = text.spoken(arguments.file)
    with bad_input(given):
        table = opened(arguments.file, arguments.key, groups=arguments.groups)
        X = rows_for(model, table, arguments.model, given)
        model.__dict__.pop("feature_names_in_", None)  # they are checked, and an array has none
        with progress({}):
            codes = model.transform(X)
        try:
            if arguments.out is None:
                for lines in text.lines_of(names, blocks(codes)):
                    say(lines)
            else:
                suffix = os.path.splitext(arguments.out)[1].lower()
                with writing("--out", arguments.out), atomic(arguments.out) as out:
                    WRITERS[suffix](out, codes, names)
        except ValueError:  # of a chunk, which is computed as it is written
            check_finite(given, X, table.names)
            raise
    return OK


def rows_for(model: Model, table: Table, source: str, path: str) -> Any:
    """The samples of a file with their columns as a model knows them; refused where they are others."""
    known = [str(name) for name in getattr(model, "feature_names_in_", ())]
    names, d = table.names or [], model.n_features_in_
    if known and names and known != names:
        if set(known) == set(names) and len(set(names)) == len(names) == d:
            complain("note", f"{path}: has its columns in another order than {source}; they are taken by their names")
            return table.X[:, [names.index(name) for name in known]]
        missing = [name for name in known if name not in names]
        more = [name for name in names if name not in known]
        what = f"no column {missing[0]!r}" if missing else f"a column {more[0]!r} more" if more else "a name twice"
        raise CommandError(
            f"{path}: has {what}, and {source} was learned from {', '.join(known[:MOST])}"
            f"{f' and {d - MOST} more' if d > MOST else ''}; give samples of the same features"
        )
    if table.X.shape[1] != d:
        raise CommandError(
            f"{path}: has {table.X.shape[1]} columns, and {source} was learned from {d}; "
            "give samples of the same features"
        )
    if known and not names:
        complain("warning", f"{path}: has no names of features; its columns are taken in the order of {source}")
    return table.X


def load_model(path: str) -> Model:
    """The model in a file, of whichever kind it is."""
    try:
        with open(path, "rb") as file, readable(path):
            kind = str(np.load(file, allow_pickle=False)["kind"])
    except FileNotFoundError:
        raise CommandError(f"{path}: no such file; check the path") from None
    except OSError as error:
        raise CommandError(f"{path}: cannot be read ({why(error)}); check the path and its permissions") from None
    except ValueError:
        raise CommandError(
            f"{path}: is not a model, or is damaged; save one with quartic learn --out model.npz"
        ) from None
    if kind not in KINDS:
        raise CommandError(f"{path}: holds a {kind}, not a model; save one with quartic learn --out model.npz")
    with bad_input(path):
        return KINDS[kind].load(path)


def _write_npy(out: BinaryIO, codes: Any, names: list[str]) -> None:
    """A block at a time: codes may be larger than memory."""
    header = {"descr": np.lib.format.dtype_to_descr(codes.dtype), "fortran_order": False, "shape": codes.shape}
    np.lib.format.write_array_header_1_0(out, header)
    for rows in blocks(codes):
        out.write(rows.astype(codes.dtype, order="C", copy=False).tobytes())


WRITERS: dict[str, Callable[[BinaryIO, Any, list[str]], None]] = {
    ".npy": _write_npy,
    ".npz": lambda out, codes, names: np.savez(out, codes=np.asarray(codes)),
    ".csv": lambda out, codes, names: text.write(out, names, blocks(codes)),
}
