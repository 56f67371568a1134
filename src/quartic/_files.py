"""Files that are written all at once or not at all, and read without executing anything in them."""

from __future__ import annotations

import os
import tempfile
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

import numpy as np

FORMAT = 1  # version of the files that `save_arrays` writes


@contextmanager
def atomic(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file that appears under ``path`` when the block ends well, and leaves no trace when it does not."""
    path = os.fspath(path)
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"{path}: there is no folder {folder}; make it first.")
    handle, temporary = tempfile.mkstemp(dir=folder, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as out:
            yield out
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)  # mkstemp makes private files; a result is as readable as any other
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


@contextmanager
def readable(path: str | os.PathLike[str]) -> Iterator[None]:
    """Whatever is wrong with what is read inside is said as one error, which names the file."""
    try:
        yield
    except (
        zipfile.BadZipFile,
        tokenize.TokenError,
        SyntaxError,
        zlib.error,
        LookupError,
        OSError,
        EOFError,
        RuntimeError,
        TypeError,
        ValueError,
    ) as error:
        raise ValueError(f"{os.fspath(path)} is not a file saved by quartic, or is damaged.") from error


def check_suffix(path: str | os.PathLike[str], *suffixes: str) -> None:
    """Refuse a name that promises another format."""
    if os.path.splitext(os.fspath(path))[1].lower() not in ("", *suffixes):
        raise ValueError(f"path must end in {' or '.join(suffixes)}, which is what is written; got {os.fspath(path)}.")


def save_arrays(path: str | os.PathLike[str], kind: str, arrays: dict[str, np.ndarray]) -> None:
    """Write named arrays to a ``.npz`` file that says what it is."""
    with atomic(path) as out:
        np.savez(out, format=np.asarray(FORMAT), kind=np.asarray(kind), **arrays)  # type: ignore[arg-type]


def load_arrays(path: str | os.PathLike[str], kind: str) -> dict[str, np.ndarray]:
    """Read what :func:`save_arrays` wrote, if it is of that kind; nothing in the file is executed."""
    name = os.fspath(path)
    with open(path, "rb") as file, readable(path):
        data = np.load(file, allow_pickle=False)
        found, version = str(data["kind"]), int(data["format"])
        values = {key: data[key] for key in data.files}
    if found != kind:
        raise ValueError(f"{name} holds a {found}, not a {kind}: load it with {found}.load.")
    if version != FORMAT:
        raise ValueError(f"{name} has format {version}, this version of quartic reads {FORMAT}: save it again with it.")
    return values
