"""Files that commands read: whatever is wrong with one is said in a line that names the place and the remedy."""

from __future__ import annotations

import csv
import os
import stat
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from quartic._arrays import CHUNK
from quartic._files import readable
from quartic.cli.common import CommandError, why

NPY, ZIP = b"\x93NUMPY", b"PK"
SAMPLES = "a .npy, .npz or .csv file"
RIGHT = "samples are rows, numbers separated by commas, with or without one header line"


def open_tensor(path: str) -> np.ndarray:
    """The array in a ``.npy`` file as a memory map; whatever is wrong with the file is said before it is read."""
    mend = "write the tensor with numpy.save"
    magic = _first_bytes(path, "a .npy file", mend)
    if magic.startswith(ZIP):
        raise CommandError(f"{path}: is an .npz archive, not a single array; {mend}")
    if magic != NPY:
        raise CommandError(f"{path}: is not a .npy file (pickles are never loaded); {mend}")
    return _map(path, mend)


def open_samples(path: str, key: str | None = None, *, finite: bool = True) -> np.ndarray:
    """Samples as rows, real numbers ``(m, d)``: a memory map of a ``.npy`` file, or read from another.

    Parameters
    ----------
    path : str
        ``.npy``, ``.npz`` or ``.csv``; the first two are known by their contents.
    key : str, optional
        Name of the array in an ``.npz`` file that holds more than one.
    finite : bool
        Whether to refuse values that are not finite; in a ``.csv`` file they always are.
    """
    magic = _first_bytes(path, SAMPLES, "write the samples with numpy.save")
    if key is not None and not magic.startswith(ZIP):
        raise CommandError(f"--key {key}: {path} is not an .npz archive; leave the option out")
    if magic == NPY:
        X = _map(path, "write the samples with numpy.save")
    elif magic.startswith(ZIP):
        X = _from_archive(path, key)
    elif os.path.splitext(path)[1].lower() == ".csv":
        X = _from_csv(path)
    else:
        raise CommandError(f"{path}: is not {SAMPLES} (pickles are never loaded); write the samples with numpy.save")
    _check_samples(path, X)
    if finite:
        _check_finite(path, X)
    return X


def _first_bytes(path: str, wanted: str, mend: str) -> bytes:
    """How a file begins, if it is one and can be read."""
    try:
        kind = os.stat(path).st_mode
        if stat.S_ISDIR(kind):
            raise CommandError(f"{path}: is a directory; give {wanted}")
        if not stat.S_ISREG(kind):
            raise CommandError(f"{path}: is not a regular file and cannot be memory-mapped; give {wanted}")
        with open(path, "rb") as file:
            magic = file.read(len(NPY))
    except FileNotFoundError:
        raise CommandError(f"{path}: no such file; check the path") from None
    except (OSError, ValueError) as error:
        raise CommandError(f"{path}: cannot be read ({why(error)}); check the path and its permissions") from None
    if not magic:
        raise CommandError(f"{path}: the file is empty; {mend}")
    return magic


def _map(path: str, mend: str) -> np.ndarray:
    """A ``.npy`` file as a memory map."""
    try:
        X: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # a damaged header can make the parser raise nearly anything
        raise CommandError(f"{path}: {_damage(path) or why(error)}; {mend} again") from None
    return X


def _damage(path: str) -> str | None:
    """What is wrong with a ``.npy`` file that cannot be mapped, or None where its header does not say."""
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    try:
        with open(path, "rb") as file:
            version = np.lib.format.read_magic(file)
            if version not in readers:
                return None
            shape, _, dtype = readers[version](file)
            held = os.fstat(file.fileno()).st_size - file.tell()
    except Exception:
        return "its .npy header is damaged or truncated"
    if dtype.hasobject:
        return "holds pickled Python objects, which are never loaded; convert it with numpy.asarray(T, dtype=float)"
    expected = int(np.prod(shape, dtype=object)) * dtype.itemsize
    if held < expected:
        return f"the file is truncated, {held} of {expected} bytes of data are there"
    return None


def _from_archive(path: str, key: str | None) -> np.ndarray:
    """The one array of an ``.npz`` file, or the one that ``key`` names."""
    try:
        with open(path, "rb") as file, readable(path):
            data = np.load(file, allow_pickle=False)
            names = data.files
            if key is None and len(names) == 1:
                key = names[0]
            if key in names:
                return np.asarray(data[key])
    except ValueError as error:
        pickled = "pickle" in str(error.__cause__)
        what = "holds pickled Python objects, which are never loaded" if pickled else "is damaged, or no .npz archive"
        raise CommandError(f"{path}: {what}; write the samples with numpy.savez again") from None
    if not names:
        raise CommandError(f"{path}: holds no arrays; write the samples with numpy.savez")
    found = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    if key is None:
        raise CommandError(f"{path}: holds {len(names)} arrays, {found}; say which one with --key NAME")
    raise CommandError(f"--key {key}: {path} holds no such array, but {found}; give one of these names")


def _from_csv(path: str) -> np.ndarray:
    """The numbers of a ``.csv`` file; a first line without any number is a header."""
    reason = "cannot be read as numbers"
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            _, first = next(_lines(file), (0, []))
            if any(map(_is_number, first)):
                file.seek(0)
            elif any(not field.strip() for field in first):
                raise ValueError("its header lacks a name")  # pandas writes a column of row numbers like this
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # that there is nothing to read is a warning of NumPy
                X = np.loadtxt(file, delimiter=",", comments=None, quotechar='"', ndmin=2)
        if X.shape[1] == len(first) and np.all(np.isfinite(X)):
            return X
    except UnicodeDecodeError:
        raise CommandError(f"{path}: is not a text in UTF-8; {RIGHT}") from None
    except OSError as error:
        raise CommandError(f"{path}: cannot be read ({why(error)}); check the path and its permissions") from None
    except (ValueError, UserWarning) as error:
        reason = why(error)
    raise CommandError(f"{path}: {_fault(path) or reason}; {RIGHT}")


def _fault(path: str) -> str | None:
    """The first thing that is wrong in a ``.csv`` file that NumPy cannot read, and where; None if all looks well."""
    width, header = 0, False
    with open(path, encoding="utf-8-sig", newline="") as file:
        for number, fields in _lines(file):
            header = not width and not any(map(_is_number, fields))
            for column, field in enumerate(fields, 1):
                where = f"line {number}, column {column}"
                if not field.strip():
                    return f"{where} is empty"
                if not header and not _is_number(field):
                    return f"{where}: {field.strip()[:40]!r} is not a number"
                if not header and not np.isfinite(float(field)):
                    return f"{where}: {field.strip()} is not finite"
            if width and len(fields) != width:
                return f"line {number} has {len(fields)} columns, the lines before have {width}"
            width = len(fields)
    return "holds no samples" if header or not width else None


def _lines(file: Any) -> Iterator[tuple[int, list[str]]]:
    """Lines that are not blank: their numbers, from 1 on, and their fields."""
    # By readline: a file that is iterated over has read ahead, and cannot be handed on from there.
    for number, line in enumerate(iter(file.readline, ""), 1):
        if line.strip("\r\n"):
            yield number, _fields(line)


def _fields(line: str) -> list[str]:
    try:
        return next(csv.reader([line], strict=True))
    except csv.Error:  # quotes that do not match
        return line.split(",")


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _check_samples(path: str, X: np.ndarray) -> None:
    """Refuse what no command can use."""
    if X.dtype.kind not in "fiub":
        raise CommandError(f"{path}: must hold real numbers, got dtype {X.dtype}; convert the samples first")
    if X.ndim != 2 or 0 in X.shape:
        raise CommandError(f"{path}: must have samples as rows, shape (m, d); got shape {X.shape}")


def _check_finite(path: str, X: np.ndarray) -> None:
    """Refuse what no moment can be taken of."""
    for start in range(0, X.shape[0], CHUNK):
        good = np.isfinite(X[start : start + CHUNK])
        if not np.all(good):
            i, j = (int(x) for x in np.argwhere(~good)[0])
            value = X[start + i, j]
            raise CommandError(f"{path}: is not finite: X[{start + i}, {j}] is {value}; remove or replace that sample")
