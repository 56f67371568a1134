"""What the commands share: exit codes, the parser, checks of outputs, progress, and one way to speak."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn, TextIO

import numpy as np

from quartic.result import DecompositionWarning, Status

OK, BAD, UNPROVED, INTERRUPTED, BROKEN_PIPE = 0, 2, 3, 130, 141

OUT_OF_MEMORY = "out of memory; use float32, or a machine with more memory"

EXIT_CODES = """\
exit codes:
  0    everything that was asked for is found and certified
  2    bad usage or bad input; one line on standard error says what and how to mend it
  3    there is a result, printed and saved as asked, but not everything is found and certified:
       a warning on standard error says what is missing and what to try
  130  interrupted; no partial file is left
"""

MOST = 8  # names of features that a line lists; arbitrary
PAGES = (".html", ".htm")

DONE_CODES = """\
exit codes:
  0    done
  2    bad usage or bad input; one line on standard error says what and how to mend it
  130  interrupted; no partial file is left
"""

Show = Callable[[str, int], None]


class CommandError(Exception):
    """Bad input, said in one line that names the file or the option and the remedy."""


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line, and whose help keeps its line breaks."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """Raise what :func:`quartic.cli.main` prints."""
        raise CommandError(f"{message}; see {self.prog} --help")


def add_common(command: argparse.ArgumentParser) -> None:
    """What every command that computes something takes."""
    command.add_argument(
        "--seed", type=seed, default=0, metavar="S", help="of the random numbers; one seed, one answer (default: 0)"
    )
    command.add_argument("--json", action="store_true", help="print one JSON object, for machines")


def whole(text: str) -> int:
    """An argument that is a whole number."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number, got {text!r}") from None


def seed(text: str) -> int:
    """An argument that is a whole number of at least 0."""
    value = whole(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"must be at least 0, got {value}")
    return value


def number(text: str) -> float:
    """An argument that is a number."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, got {text!r}") from None


def check_output(
    option: str, path: str | None, *others: str | None, formats: Sequence[str] = (), create: bool = False
) -> None:
    """Refuse an output that could not be written, before the work starts and without leaving a file.

    Parameters
    ----------
    option : str
        Names the output in the message.
    path : str or None
    *others : str or None
        Files of the same command, which the output must not replace.
    formats : sequence of str
        Suffixes that the file may have; any when empty.
    create : bool
        Whether a missing folder will be made.
    """
    if path is None:
        return
    if not path or (os.path.exists(path) and not os.path.isfile(path)):
        # A device would be replaced by a file, not written to.
        raise CommandError(f"{option} {path!r}: is a directory or a device; give the name of a file")
    if any(other is not None and os.path.realpath(other) == os.path.realpath(path) for other in others):
        raise CommandError(f"{option} {path}: would replace another file of this command; give another name")
    folder = os.path.dirname(path) or "."
    while create and folder and not os.path.lexists(folder):
        folder = os.path.dirname(folder) or "."
    if not os.path.exists(folder):
        raise CommandError(f"{option} {path}: there is no folder {folder}; make it first")
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise CommandError(
            f"{option} {path}: cannot write in {folder} ({why(error)}); give a folder you may write in"
        ) from None
    if formats and os.path.splitext(path)[1].lower() not in formats:
        raise CommandError(f"{option} {path}: unknown format; use {' or '.join(', '.join(formats).rsplit(', ', 1))}")


@contextlib.contextmanager
def writing(option: str, path: str) -> Iterator[None]:
    """What goes wrong with an output file, as an error of the command."""
    try:
        yield
    except OSError as error:
        raise CommandError(f"{option} {path}: cannot be written ({why(error)}); give another place") from None


@contextlib.contextmanager
def bad_input(path: str, **options: str) -> Iterator[None]:
    """What the library says about its arguments, in the words of the command line.

    Parameters
    ----------
    path : str
        File that is to blame, unless the message begins with one of ``options``.
    **options : str
        Option for each argument of the library that comes from the command line.
    """
    try:
        yield
    except MemoryError as error:
        raise CommandError(f"{path}: {str(error) or OUT_OF_MEMORY}") from None
    except ValueError as error:
        name, _, rest = str(error).partition(" ")
        where = f"{options[name]} " if name in options else f"{path}: {name} "
        raise CommandError(f"{where}{rest}") from None


@contextlib.contextmanager
def progress(stages: dict[str, str], said: list[str] | None = None) -> Iterator[Show | None]:
    """A callback that rewrites one line of a terminal, cleared at the end; none where nobody watches.

    Parameters
    ----------
    stages : dict
        Each stage in words, with ``{}`` for what is counted in it.
    said : list of str, optional
        Warnings are added to it.
    """
    width = 0

    def show(stage: str, done: int) -> None:
        nonlocal width
        line = f"quartic: {stages.get(stage, stage + ' {}').format(done)}"
        print(f"\r{line:<{width}}", end="", file=sys.stderr, flush=True)
        width = len(line)

    def clear() -> None:
        nonlocal width
        if width:
            print(f"\r{'':<{width}}\r", end="", file=sys.stderr, flush=True)
            width = 0

    def one_line(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        clear()
        complain("warning", str(message))
        if said is not None:
            said.append(str(message))

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DecompositionWarning)  # the verdict says the same in one line
            warnings.showwarning = one_line
            yield show if sys.stderr.isatty() else None
    finally:
        clear()


def add_report(command: argparse.ArgumentParser) -> None:
    """The option of a page about the result."""
    command.add_argument(
        "--report",
        metavar="PAGE.html",
        help="write a page about the result: figures, a table, settings and times; it loads nothing",
    )


def verdict(status: Status) -> int:
    """The exit code, and a warning where not everything is there and certified."""
    if status.ok:
        return OK
    seen = sys.stdout.isatty() and sys.stderr.isatty()  # the status is on the same screen
    complain("warning", "not everything is found and certified: see above" if seen else str(status))
    return UNPROVED


def to_json(found: Any) -> str:
    """One line of JSON; what is not a number (NaN or infinite) becomes null."""
    return json.dumps(_plain(found), allow_nan=False)


def _plain(value: Any) -> Any:
    """Arrays and dictionaries as plain numbers, lists and strings."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def say(text: str) -> None:
    """Print the result, now: what is wrong with standard output has to show before the exit code is chosen."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        print(text.encode(encoding, "backslashreplace").decode(encoding), flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        silence_stdout()
        raise CommandError(f"standard output: cannot be written ({why(error)}); send it elsewhere") from None


def complain(kind: str, message: str) -> None:
    """One line on standard error."""
    print(f"quartic: {kind}: {' '.join(message.splitlines())}", file=sys.stderr, flush=True)


def why(error: Exception) -> str:
    """The reason of a failure, without the path, which the message names already."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__


def silence_stdout() -> None:
    """Let what is left in the buffer go nowhere, so that the interpreter does not complain about it at its end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
