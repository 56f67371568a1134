"""Tables of numbers as text: NumPy reads them, which is fast; what it cannot read is found, named, given a remedy."""

from __future__ import annotations

import csv
import io
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple, TextIO

import numpy as np

from quartic.cli.common import CommandError, why
from quartic.evidence.groups import listed

STDIN, INPUT = "-", "standard input"  # as an argument, and in messages
TEXT = (".csv", ".tsv", ".txt")
RIGHT = "samples are rows, numbers separated by commas, semicolons, tabs or blanks, with or without one header line"
SEPARATORS = ("\t", ";", ",")  # before a comma, which may be that of decimals or of a name
INDEX = ("", "Unnamed: 0")  # what pandas calls a column of row numbers, at the first and the second time
MISSING = ("", "na", "n/a", "nan", "null", "none", "?")  # in small letters
FILL = "a value is missing: fill it in, or leave out that line or column (quartic check counts such lines)"
ROWS = 1000  # that are turned to text at a time; arbitrary


class Table(NamedTuple):
    """Samples as rows, an array or a Dask array; names of their features, if known; what was made of a first line.

    ``groups`` are the labels in a column that is no feature, where one was asked for.
    """

    X: Any
    names: list[str] | None = None
    header: str | None = None
    groups: Any = None


class _Head(NamedTuple):
    """How a text begins: lines before the first sample, separator, columns, whether the first is an index, names."""

    skip: int
    separator: str | None
    width: int
    indexed: bool
    names: list[str] | None
    header: str

    def column(self, path: str, name: str | None) -> int | None:
        """The place of the column of that name, in a line."""
        return None if name is None else check_column(path, self.names, name) + self.indexed


class _Labels(NamedTuple):
    """What a column holds that is no feature; none where there is no such column."""

    column: int | None
    found: list[str]

    def keep(self, field: str) -> float:
        """Of one line, which stands as a number among the others."""
        self.found.append(field.strip())
        return 0.0

    @property
    def whole(self) -> bool:
        """Whether none is missing."""
        return not any(label.lower() in MISSING for label in set(self.found))


def check_column(path: str, names: list[str] | None, name: str) -> int:
    """The place of a column among the names of all; refused where there is none."""
    if not names:
        raise CommandError(
            f"--groups {name}: {path} has no names of columns; give text with a header, or Parquet, whose columns have"
        )
    if name not in names:
        raise CommandError(f"--groups {name}: {path} has no such column, but {listed(names)}; give one of these names")
    if len(names) == 1:
        raise CommandError(f"--groups {name}: {path} has no other column; give samples with features")
    return names.index(name)


def read_input(*, finite: bool = True, groups: str | None = None) -> Table:
    """The numbers of a text on standard input; see :func:`read`."""
    data = sys.stdin.buffer.read()
    return _read(INPUT, lambda: io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig", newline=""), finite, groups)


def read(path: str, *, finite: bool = True, groups: str | None = None) -> Table:
    """The numbers of a text; a first line without any number, or as pandas numbers its columns, is a header.

    Parameters
    ----------
    path : str
    finite : bool
        Whether to refuse values that are missing or not finite; otherwise those that are missing are NaN.
    groups : str, optional
        Name of a column of labels, which may be text.
    """
    return _read(path, lambda: open(path, encoding="utf-8-sig", newline=""), finite, groups)


def _read(path: str, opened: Callable[[], TextIO], finite: bool, groups: str | None) -> Table:
    """The numbers of a text that can be opened more than once; ``path`` names it in messages."""
    reason, labels = "cannot be read as numbers", _Labels(None, [])
    try:
        with opened() as file:
            head = _head(file)
            labels = _Labels(head.column(path, groups), [])
            try:
                X = _numbers(file, head, labels)
            except ValueError:
                if finite:
                    raise
                labels.found.clear()
                X = _numbers(file, head, labels, _number_or_nan)
        if X.shape[1] == head.width and (not finite or np.all(np.isfinite(X))) and labels.whole:
            left = [j for j in range(head.indexed, head.width) if j != labels.column]
            names = head.names if head.names is None else [head.names[j - head.indexed] for j in left]
            X = X if len(left) == head.width else np.ascontiguousarray(X[:, left])
            return Table(X, names, head.header, labels.found if groups is not None else None)
    except UnicodeDecodeError:
        only = "; of other formats, give the name of a file" if path == INPUT else ""
        raise CommandError(f"{path}: is not a text in UTF-8{only}; {RIGHT}") from None
    except OSError as error:
        raise CommandError(f"{path}: cannot be read ({why(error)}); check the path and its permissions") from None
    except (ValueError, UserWarning) as error:
        reason = why(error)
    raise CommandError(f"{path}: {_fault(opened, finite, labels.column) or f'{reason}; {RIGHT}'}")


def spoken(path: str) -> str:
    """A file as messages call it."""
    return INPUT if path == STDIN else path


def numbered(features: int) -> list[str]:
    """Names of features that have none: no numbers, or a header would be read as a sample."""
    return [f"feature{j}" for j in range(features)]


def write(out: BinaryIO, names: Sequence[Any], blocks: Iterable[np.ndarray]) -> None:
    """A header and blocks of rows as lines of text."""
    for lines in lines_of(names, blocks):
        out.write(f"{lines}\n".encode())


def lines_of(names: Sequence[Any], blocks: Iterable[np.ndarray]) -> Iterator[str]:
    """A header, then numbers separated by commas, many lines at a time, the shortest that read back as they were."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    yield line.getvalue()
    for rows in blocks:
        for start in range(0, rows.shape[0], ROWS):
            yield "\n".join(",".join(map(str, row)) for row in rows[start : start + ROWS])


def _head(file: Any) -> _Head:
    """What the first line says that is neither blank nor a comment."""
    number, first = next(_lines(file), (0, ""))
    separator = _separator(first)
    fields = [field.strip() for field in _fields(first, separator)]
    index = len(fields) > 1 and fields[0] in INDEX
    names = fields[index:]
    note = "; column 1 is left out, as an index of rows" if index else ""
    if names == [str(i) for i in range(len(names))] and len(names) > 1:
        numbered = f"line {number} numbers the columns and is no sample" + note
        return _Head(number, separator, len(fields), index, None, numbered)
    if any(map(_is_number, names)):
        return _Head(number - 1, separator, len(fields), False, None, f"none, line {number} is a sample")
    if not all(names):
        raise ValueError(f"line {number}, column {names.index('') + 1 + index} is empty, in a header")
    return _Head(number, separator, len(fields), index, names, f"line {number} names the columns{note}")


def _numbers(file: Any, head: _Head, labels: _Labels, number: Any = None) -> np.ndarray:
    """All lines after the header, by NumPy; by ``number`` for each, which is slow, where it is given."""
    file.seek(0)
    for _ in range(head.skip):
        file.readline()
    converters = {} if number is None else dict.fromkeys(range(head.width), number)
    if head.indexed:
        converters[0] = lambda _: 0.0  # an index may be anything; left out of what is read, it would hide ragged lines
    if labels.column is not None:
        converters[labels.column] = labels.keep
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # that there is nothing to read is a warning of NumPy
        X: np.ndarray = np.loadtxt(
            file, delimiter=head.separator, comments=None, quotechar='"', ndmin=2, converters=converters or None
        )
    return X


def _fault(opened: Callable[[], TextIO], finite: bool, labels: int | None) -> str | None:
    """The first thing that is wrong in a text that NumPy cannot read, where, and the remedy; None if all looks well."""
    with opened() as file:
        try:
            head = _head(file)
        except ValueError as error:  # of the header
            return f"{error}; name all columns, or none"
        file.seek(0)
        names, samples = [""] * head.indexed + (head.names or []), False
        for number, line in _lines(file):
            fields = [field.strip() for field in _fields(line, head.separator)]
            if number <= head.skip or not fields:
                continue
            samples = True
            for column, field in enumerate(fields, 1):
                wrong = None if head.indexed and column == 1 else _wrong(field, finite, column - 1 == labels)
                if wrong is not None:
                    name = f" ({names[column - 1]})" if names[column - 1 : column] else ""
                    first = " (in a header there must be no numbers)" if number == head.skip + 1 and not names else ""
                    return f"line {number}, column {column}{name}{wrong}{first}"
            if len(fields) != head.width:
                return f"line {number} has {len(fields)} columns, the lines before have {head.width}; {RIGHT}"
    return None if samples else f"holds no samples; {RIGHT}"


def _wrong(field: str, finite: bool, label: bool) -> str | None:
    """What is wrong with a field, and the remedy; a ``label`` may be any text."""
    if field.lower() in MISSING:
        return (f": {field}; {FILL}" if field else f" is empty; {FILL}") if finite or label else None
    if label:
        return None
    if not _is_number(field):
        if _is_number(field.replace(",", ".", 1)):
            return f": {field!r} has a decimal comma; write numbers with points"
        return f": {field[:40]!r} is not a number; leave out columns and lines of text"
    if finite and not np.isfinite(float(field)):
        return f": {field} is not finite; replace it, or leave out that line or column"
    return None


def _lines(file: Any) -> Iterator[tuple[int, str]]:
    """Lines that are not blank, without comments at the beginning, and their numbers from 1 on."""
    # By readline: a file that is iterated over has read ahead, and cannot be handed on from there.
    begun = False
    for number, line in enumerate(iter(file.readline, ""), 1):
        begun = begun or not (line.startswith("#") or not line.strip())
        if begun and line.strip("\r\n"):
            yield number, line


def _separator(line: str) -> str | None:
    """What separates the fields of a line; None for blanks."""
    for separator in SEPARATORS:
        if separator in line and len(_fields(line, separator)) > 1:
            return separator
    return None if len(line.split()) > 1 else ","


def _fields(line: str, separator: str | None) -> list[str]:
    if separator is None:
        return line.split()
    try:
        return next(csv.reader([line], delimiter=separator, strict=True), [])
    except csv.Error:  # quotes that do not match, with this separator
        return line.split(separator) if separator == "," else [line]


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _number_or_nan(field: str) -> float:
    return np.nan if field.strip().lower() in MISSING else float(field)
