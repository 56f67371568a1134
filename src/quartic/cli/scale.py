"""What commands on large data share: where samples are read from, who computes, and how far it has come."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np

from quartic.cli.common import CommandError, check_output, whole
from quartic.cli.files import check_finite
from quartic.cli.files import open_samples as open_file
from quartic.cli.text import STDIN, TEXT, Table, check_column
from quartic.sources import feature_names, open_labels, open_samples, parsed_bytes

LARGE = (".zarr", ".h5", ".hdf5", ".parquet")
DATA = (
    "a .npy, .npz, .csv or .txt file, - for text on standard input, a Zarr, HDF5 or Parquet data set, or a folder of "
    ".npy or .parquet files,"
)


def add_scale(command: argparse.ArgumentParser) -> None:
    """Options for data that do not fit into memory, or onto one machine."""
    group = command.add_argument_group("data larger than memory, or than one machine")
    who = group.add_mutually_exclusive_group()
    who.add_argument("--scheduler", metavar="ADDRESS", help="compute on this Dask cluster, such as tcp://host:8786")
    who.add_argument("--workers", type=whole, metavar="N", help="compute in so many processes (default: in threads)")
    group.add_argument("--memory", metavar="SIZE", help="what chunks may take, such as 4GB (default: a quarter of all)")
    group.add_argument(
        "--checkpoint", metavar="FILE", help="write what is summed to FILE, and go on from it if it is there"
    )
    group.add_argument(
        "--skip-unreadable", action="store_true", help="leave out chunks that can not be read, and say which"
    )


def add_groups(command: argparse._ActionsContainer) -> None:
    """The option for samples that are not independent of each other."""
    command.add_argument(
        "--groups",
        metavar="COLUMN",
        help="name of the column that says what each sample belongs to (subject, session, image): numbers or text, "
        "no feature; samples of one group may depend on each other",
    )


def has_options(arguments: argparse.Namespace) -> bool:
    """Whether one of the options of :func:`add_scale` is there."""
    asked = (arguments.scheduler, arguments.workers, arguments.memory, arguments.checkpoint)
    return arguments.skip_unreadable or any(option is not None for option in asked)


def opened(
    path: str,
    key: str | None,
    *,
    finite: bool = True,
    chunks: bool = False,
    memory: str | None = None,
    groups: str | None = None,
) -> Table:
    """Samples in whatever format, for every command that reads some.

    Parameters
    ----------
    path : str
    key : str or None
        Name of an array, in a file that holds more than one.
    finite : bool
        Whether to refuse values that are missing or not finite, in what is read at once.
    chunks : bool
        Whether to read in chunks, as a Dask array, what need not be.
    memory : str, optional
        What chunks may take.
    groups : str, optional
        Name of the column of groups.

    Returns
    -------
    Table
    """
    suffix = os.path.splitext(path)[1].lower()
    if not (chunks or os.path.isdir(path) or suffix in LARGE):
        return open_file(path, key, finite=finite, groups=groups)
    if path == STDIN or suffix in (".npz", *TEXT):
        raise CommandError(f"{path}: is read as a whole; save it as .npy or Zarr to read it in chunks")
    try:
        if memory is not None:
            parsed_bytes(memory)
        if importlib.util.find_spec("dask") is None:
            needed = "'dask[array,dataframe]' distributed zarr h5py pyarrow"
            raise CommandError(f"{path}: is read with Dask, which is not there; pip install {needed}")
        names = feature_names(path)
        if groups is None:
            return Table(open_samples(path, key=key, memory=memory), names)
        check_column(path, names, groups)
        names = [name for name in names or [] if name != groups]
        X = open_samples(path, key=key, memory=memory, columns=names)
        return Table(X, names, groups=open_labels(path, groups))
    except (OSError, ValueError) as error:
        said = str(error).replace(f"{path}: key must", f"{path}: --key must")
        raise CommandError(f"--{said}" if said.startswith("memory ") else said) from None


@contextlib.contextmanager
def samples(arguments: argparse.Namespace) -> Iterator[Table]:
    """The samples of a command: an array, or a ``Collection`` on the scheduler that was asked for."""
    path = arguments.file
    options = {"memory": arguments.memory, "groups": arguments.groups}
    table = opened(path, arguments.key, chunks=has_options(arguments), **options)
    if isinstance(table.X, np.ndarray):
        yield table
        return
    from quartic.distributed import Collection

    check_output("--checkpoint", arguments.checkpoint, path)
    if arguments.workers is not None and arguments.workers < 1:
        raise CommandError(f"--workers must be at least 1; got {arguments.workers}")
    errors = "skip" if arguments.skip_unreadable else "raise"
    with _client(arguments), rate() as show, bad_chunks(path, table):
        data = Collection(table.X, groups=table.groups, checkpoint=arguments.checkpoint, errors=errors, callback=show)
        yield table._replace(X=data, groups=None)


@contextlib.contextmanager
def bad_chunks(path: str, table: Table) -> Iterator[None]:
    """What goes wrong only once samples are read, with the place where it did."""
    try:
        yield
    except RuntimeError as error:  # a chunk that can not be read
        raise CommandError(f"{path}: {error}") from None
    except ValueError as error:
        if "NaN or infinite" in str(error):  # somewhere in a chunk: where is worth a look
            check_finite(path, table.X, table.names)
        raise


@contextlib.contextmanager
def _client(arguments: argparse.Namespace) -> Iterator[None]:
    """The scheduler that was asked for; threads of this process when none was."""
    if arguments.scheduler is None and arguments.workers is None:
        yield
        return
    import distributed

    try:
        if arguments.scheduler is not None:
            client = distributed.Client(arguments.scheduler, timeout=10)
        else:
            cluster = distributed.LocalCluster(
                n_workers=arguments.workers, threads_per_worker=1, dashboard_address=None
            )
            client = distributed.Client(cluster)
    except (OSError, ValueError) as error:
        raise CommandError(f"--scheduler {arguments.scheduler}: can not be reached ({error}); is it running?") from None
    try:
        yield
    finally:
        client.close()
        if arguments.scheduler is None:
            cluster.close()


@contextlib.contextmanager
def rate() -> Iterator[Callable[[int, int, int], None] | None]:
    """A callback that shows rows a second, and what is left of a pass, in a line of a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    began: dict[int, float] = {}
    width = 0

    def show(number: int, done: int, total: int) -> None:
        nonlocal width
        began.setdefault(number, time.monotonic())
        took = time.monotonic() - began[number]
        line = f"quartic: pass {number + 1}, {done:,} of {total:,} rows"
        if took > 0:
            line += f", {done / took:,.0f} a second, {took * (total - done) / max(done, 1):.0f} s left"
        print(f"\r{line:<{width}}", end="", file=sys.stderr, flush=True)
        width = len(line)

    try:
        yield show
    finally:
        if width:
            print(f"\r{'':<{width}}\r", end="", file=sys.stderr, flush=True)
