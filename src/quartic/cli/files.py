"""Files that commands read: whatever is wrong with one is said in a line that names the place and the remedy."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from quartic._arrays import CHUNK
from quartic._files import readable
from quartic.cli import text
from quartic.cli.common import CommandError, why
from quartic.cli.text import INPUT, STDIN, TEXT, Table

NPY, ZIP = b"\x93NUMPY", b"PK"
SAMPLES = "a .npy, .npz or .csv file"
TENSOR, SAVED = "write the tensor with numpy.save", "write the samples with numpy.save"
OTHERS = {  # formats that are not read, and what to do about them
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "a spreadsheet; export it as .csv"),
    **dict.fromkeys((".gz", ".bz2", ".xz", ".zst"), "compressed; unpack it first"),
    **dict.fromkeys((".pkl", ".pickle", ".joblib"), f"a pickle, which is never loaded; {SAVED}"),
    ".mat": f"a file of MATLAB; read it with scipy.io.loadmat, and {SAVED}",
}


def open_tensor(path: str, key: str | None = None) -> np.ndarray:
    """The array in a ``.npy`` file as a memory map, or one of an ``.npz`` file."""
    wanted = "a .npy or .npz file"
    if path == STDIN:
        raise CommandError(f"{INPUT}: tensors are not read from it; give {wanted}")
    magic = _first_bytes(path, wanted, TENSOR)
    _check_key(path, key, magic)
    if magic.startswith(ZIP):
        return _from_archive(path, key, TENSOR)
    if magic != NPY:
        raise CommandError(f"{path}: is not {wanted} (pickles are never loaded); {TENSOR}")
    return _map(path, TENSOR)


def open_samples(path: str, key: str | None = None, *, finite: bool = True, groups: str | None = None) -> Table:
    """Samples as rows, real numbers ``(m, d)``: a memory map of a ``.npy`` file, or read from another.

    Parameters
    ----------
    path : str
        ``.npy``, ``.npz`` or text; the first two are known by their contents.  ``-`` is text on standard input.
    key : str, optional
        Name of the array in an ``.npz`` file that holds more than one.
    finite : bool
        Whether to refuse values that are missing or not finite.
    groups : str, optional
        Name of a column of labels, in text.
    """
    suffix = os.path.splitext(path)[1].lower()
    if path == STDIN:
        path, magic = INPUT, b""
    else:
        magic = _first_bytes(path, SAMPLES, text.RIGHT if suffix in TEXT else SAVED)
    if suffix in OTHERS and magic != NPY:
        raise CommandError(f"{path}: is {OTHERS[suffix]}")
    _check_key(path, key, magic)
    if path == INPUT:
        table = text.read_input(finite=finite, groups=groups)
    elif suffix in TEXT and magic != NPY:
        table = text.read(path, finite=finite, groups=groups)
    elif magic == NPY:
        table = Table(_map(path, SAVED))
    elif magic.startswith(ZIP):
        table = Table(_from_archive(path, key, SAVED))
    else:
        raise CommandError(
            f"{path}: is not {SAMPLES}, nor text of a name that ends in {', '.join(TEXT)}; "
            f"give text such a name, or {SAVED}"
        )
    if groups is not None and table.groups is None:
        text.check_column(path, None, groups)
    _check_samples(path, table.X)
    if finite:
        check_finite(path, table.X, table.names)
    return table


def blocks(X: Any) -> Iterator[np.ndarray]:
    """The rows of an array or a Dask array, some at a time."""
    if isinstance(X, np.ndarray):
        for start in range(0, X.shape[0], CHUNK):
            yield X[start : start + CHUNK]
    else:
        for k in range(X.numblocks[0]):
            yield np.asarray(X.blocks[k])


def check_finite(path: str, X: Any, names: Sequence[str] | None = None) -> None:
    """Refuse what no moment can be taken of."""
    start = 0
    for rows in blocks(X):
        good = np.isfinite(rows)
        if not np.all(good):
            i, j = (int(x) for x in np.argwhere(~good)[0])
            name = "" if names is None else f" (column {names[j]})"
            raise CommandError(
                f"{path}: is not finite: X[{start + i}, {j}]{name} is {rows[i, j]}; remove or replace that sample"
            )
        start += rows.shape[0]


def _check_key(path: str, key: str | None, magic: bytes) -> None:
    if key is not None and not magic.startswith(ZIP):
        raise CommandError(f"--key {key}: {path} is not an .npz archive; leave the option out")


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


def _from_archive(path: str, key: str | None, mend: str) -> np.ndarray:
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
        raise CommandError(f"{path}: {what}; {mend} again") from None
    if not names:
        raise CommandError(f"{path}: holds no arrays; {mend}")
    found = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    if key is None:
        raise CommandError(f"{path}: holds {len(names)} arrays, {found}; say which one with --key NAME")
    raise CommandError(f"--key {key}: {path} holds no such array, but {found}; give one of these names")


def _check_samples(path: str, X: np.ndarray) -> None:
    """Refuse what no command can use."""
    if X.dtype.kind not in "fiub":
        raise CommandError(f"{path}: must hold real numbers, got dtype {X.dtype}; convert the samples first")
    if X.ndim != 2 or 0 in X.shape:
        raise CommandError(f"{path}: must have samples as rows, shape (m, d); got shape {X.shape}")
