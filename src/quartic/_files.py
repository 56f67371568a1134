"""Files that are written all at once or not at all, and read without executing anything in them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO


@contextmanager
def atomic(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file that appears under ``path`` when the block ends well, and leaves no trace when it does not."""
    path = os.fspath(path)
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path) or ".", suffix=".part")
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
