"""Data sets on disk as Dask arrays: read in chunks that fit into a given memory, while others are computed on.

==================================  ===============================================================
a path                              chunks
==================================  ===============================================================
``.npy``                            ranges of rows, read and not mapped: pages that are mapped count as memory
folder of ``.npy``                  the same in each file, in the order of their names
``.zarr``                           multiples of its own chunks of rows
``.h5``, ``.hdf5``                  multiples of its own chunks of rows, one reader at a time
``.parquet``, or folder of these    its row groups, columns in their order
==================================  ===============================================================
"""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from quartic._arrays import available_memory
from quartic.evidence.groups import labels_of

LARGEST = 1 << 27  # bytes of a chunk: more do not read faster
COPIES = 4  # chunks for each thread that are there at a time: one read ahead, one worked on, and parts of both
PART = 0.25  # of the memory that is free, where nothing else is said

Read = Callable[[int, int], np.ndarray]  # rows from the first index to the second


def open_samples(
    path: str | os.PathLike[str],
    *,
    key: str | None = None,
    memory: int | str | None = None,
    columns: Sequence[str] | None = None,
) -> Any:
    """A data set on disk as a Dask array ``(m, d)``, of which nothing is read yet.

    Parameters
    ----------
    path : str or path
        A ``.npy``, Zarr, HDF5 or Parquet data set with samples as rows, or a folder of ``.npy`` or Parquet files.
    key : str, optional
        Which array of a Zarr group or an HDF5 file, if it holds more than one.
    memory : int or str, optional
        Bytes that chunks may take, such as ``"1GB"``; a quarter of what is free when not given.
    columns : sequence of str, optional
        Names of the features, of Parquet; all columns when not given.

    Returns
    -------
    dask.array.Array

    Examples
    --------
    >>> import os, tempfile, numpy as np, quartic
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(os.path.join(folder, "samples.npy"), np.zeros((1000, 8)))
    ...     X = quartic.open_samples(os.path.join(folder, "samples.npy"), memory="1MB")
    ...     X.shape, float(X.sum().compute())
    ((1000, 8), 0.0)
    """
    path = _existing(path)
    most = _chunk_bytes(memory)
    files = _tables(path)
    if files:
        first, names = _from_parquet(files[0], most, None if columns is None else list(columns))
        others = [_from_parquet(file, most, names)[0] for file in files[1:]]
        return _whole(path, _stacked([first, *others], path) if others else first)
    if columns is not None:
        raise ValueError(f"{path}: columns must be None where they have no names; those of Parquet have.")
    if path.suffix == ".zarr" or (path / "zarr.json").exists() or (path / ".zarray").exists():
        return _from_zarr(path, key, most)
    if path.is_dir():
        files = sorted(path.iterdir())
        arrays = [file for file in files if file.suffix == ".npy"]
        if arrays:
            return _whole(path, _stacked([_from_npy(file, most) for file in arrays], path))
        raise ValueError(f"{path}: holds no .npy and no .parquet files; give a folder of these, or a Zarr data set.")
    if path.suffix in (".h5", ".hdf5"):
        return _from_hdf5(path, key, most)
    if path.suffix == ".npy":
        if key is not None:
            raise ValueError(f"{path}: key must be None for a .npy file, which holds one array; got {key!r}.")
        return _whole(path, _from_npy(path, most))
    if path.suffix in (".csv", ".npz"):
        raise ValueError(
            f"{path}: is not read in chunks; read it with NumPy or pandas, or save it as .npy, Zarr or Parquet."
        )
    raise ValueError(f"{path}: must be .npy, .zarr, .h5, .hdf5 or .parquet, or a folder; found {path.suffix!r}.")


def feature_names(path: str | os.PathLike[str]) -> list[str] | None:
    """The names of the columns that :func:`open_samples` reads, where files have names: Parquet, or a folder of it."""
    files = _tables(_existing(path))
    if not files:
        return None
    import pyarrow.parquet as pq

    return _columns(pq.read_schema(files[0]))


def open_labels(path: str | os.PathLike[str], column: str) -> Any:
    """A column of Parquet as a Dask array ``(m,)`` of whatever it holds, in the order of :func:`open_samples`."""
    import dask
    import dask.array as da
    import pyarrow.parquet as pq

    def read(file: Path, group: int) -> np.ndarray:
        table = pq.ParquetFile(file).read_row_group(group, columns=[column])
        return labels_of(table.column(column).to_pylist())

    parts = []
    for file in _tables(_existing(path)):
        meta = pq.read_metadata(file)
        if column not in meta.schema.to_arrow_schema().names:
            raise ValueError(f"{file}: has no column {column!r}, as the files before it have.")
        for k in range(meta.num_row_groups):
            part = dask.delayed(read, pure=False)(file, k)
            parts.append(da.from_delayed(part, (meta.row_group(k).num_rows,), object))
    return da.concatenate(parts) if parts else da.zeros(0, dtype=object)


def _existing(path: str | os.PathLike[str]) -> Path:
    """The path of something that is there."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file or folder; check the path.")
    return path


def _tables(path: Path) -> list[Path]:
    """The Parquet files of a data set; none where it is something else."""
    if not path.is_dir():
        return [path] if path.suffix == ".parquet" else []
    if any((path / name).exists() for name in ("zarr.json", ".zarray")) or any(path.glob("*.npy")):
        return []
    return sorted(path.glob("*.parquet"))


def parsed_bytes(text: int | str) -> int:
    """Bytes from a number, or from text such as ``"4GB"`` or ``"500 MiB"``."""
    if isinstance(text, int) and not isinstance(text, bool) and text > 0:
        return text
    found = re.fullmatch(r"\s*([0-9.]+)\s*([kmgt]?)(i?)b?\s*", str(text).lower())
    try:
        number = float(found[1]) if found else math.nan
    except ValueError:
        number = math.nan
    if not number > 0 or found is None:
        raise ValueError(f"memory must be a number of bytes, or text such as '4GB'; got {text!r}.")
    return int(number * (1024 if found[3] else 1000) ** " kmgt".index(found[2] or " "))


def _chunk_bytes(memory: int | str | None) -> int:
    """How large a chunk may be, for so many threads."""
    if memory is None:
        memory = int(PART * (available_memory() or LARGEST * COPIES))
    return max(1, min(LARGEST, parsed_bytes(memory) // (COPIES * (os.cpu_count() or 1))))


def _from_npy(path: Path, most: int) -> Any:
    """Ranges of rows of a ``.npy`` file."""
    mapped = np.load(path, mmap_mode="r", allow_pickle=False)
    m, d, dtype = *_checked(path, mapped.shape, mapped.dtype), mapped.dtype
    offset, plain = mapped.offset, mapped.flags.c_contiguous

    def read(first: int, last: int) -> np.ndarray:
        if not plain:  # columns lie together: only a map reads rows
            return np.array(np.load(path, mmap_mode="r", allow_pickle=False)[first:last])
        where = offset + first * d * dtype.itemsize
        rows = np.fromfile(path, dtype=dtype, count=(last - first) * d, offset=where)
        if rows.size < (last - first) * d:
            raise OSError(f"{path}: the file ends before row {last}")
        return rows.reshape(last - first, d)

    return _lazy(read, (m, d), dtype, _rows(path, most, d, dtype))


def _from_zarr(path: Path, key: str | None, most: int) -> Any:
    """Multiples of the chunks of a Zarr array."""
    import zarr

    group = zarr.open(path, mode="r")
    array = (
        group
        if hasattr(group, "chunks")
        else group[_one(path, key, [name for name, x in group.arrays() if x.ndim == 2])]
    )
    m, d = _checked(path, array.shape, array.dtype)
    rows = _rows(path, most, d, array.dtype, array.chunks[0])
    return _whole(path, _lazy(lambda a, b: array[a:b], (m, d), array.dtype, rows))


def _from_hdf5(path: Path, key: str | None, most: int) -> Any:
    """Multiples of the chunks of an HDF5 data set."""
    import h5py

    with h5py.File(path, "r") as file:
        names: list[str] = []
        file.visititems(lambda name, x: names.append(name) if isinstance(x, h5py.Dataset) and x.ndim == 2 else None)
        name = _one(path, key, names)
        data = file[name]
        (m, d), dtype = _checked(path, data.shape, data.dtype), data.dtype
        own = 1 if data.chunks is None else data.chunks[0]

    def read(first: int, last: int) -> np.ndarray:
        with h5py.File(path, "r") as file:
            return file[name][first:last]

    return _whole(path, _lazy(read, (m, d), dtype, _rows(path, most, d, dtype, own)))


def _from_parquet(path: Path, most: int, names: list[str] | None = None) -> Any:
    """The row groups of a Parquet file, small ones together; columns by their names, without those of an index."""
    import dask
    import dask.array as da
    import pyarrow.parquet as pq

    meta = pq.read_metadata(path)
    schema = meta.schema.to_arrow_schema()
    names = _columns(schema) if names is None else names
    missing = [name for name in names if name not in schema.names]
    if missing:
        raise ValueError(f"{path}: has no column {missing[0]!r}, as the files before it have.")
    for name in names:
        kind = np.dtype(schema.field(name).type.to_pandas_dtype()).kind
        if kind not in "biuf":
            raise ValueError(f"{path}: column {name!r} must hold real numbers; found {schema.field(name).type}.")
    d, sizes = len(names), [meta.row_group(k).num_rows for k in range(meta.num_row_groups)]
    _warn_if_large(path, max(sizes, default=0) * d * 8, most, "row groups")

    def read(groups: list[int]) -> np.ndarray:
        table = pq.ParquetFile(path).read_row_groups(groups, columns=names).select(names)
        return np.column_stack([column.to_numpy() for column in table.columns]).astype(np.float64)

    parts, groups = [], []
    for k in range(len(sizes)):
        groups.append(k)
        rows = sum(sizes[i] for i in groups)
        if k + 1 == len(sizes) or (rows + sizes[k + 1]) * d * 8 > most:
            block = dask.delayed(read, pure=False)(groups)
            parts.append(da.from_delayed(block, (rows, d), np.float64))
            groups = []
    return da.concatenate(parts) if parts else da.zeros((0, d)), names


def _columns(schema: Any) -> list[str]:
    """The names of the columns of a Parquet file, without those of the index of a data frame."""
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    return [name for name in schema.names if name not in index]


def _stacked(parts: list[Any], path: Path) -> Any:
    """Files below each other."""
    import dask.array as da

    widths = {part.shape[1] for part in parts}
    if len(widths) > 1:
        raise ValueError(f"{path}: the files must have the same number of columns; found {sorted(widths)}.")
    return da.concatenate(parts)


def _lazy(read: Read, shape: tuple[int, int], dtype: np.dtype[Any], rows: int) -> Any:
    """Ranges of ``rows`` rows, each read when it is asked for."""
    import dask
    import dask.array as da

    m, d = shape
    starts = range(0, m, rows)
    blocks = [
        da.from_delayed(dask.delayed(read, pure=False)(a, min(a + rows, m)), (min(a + rows, m) - a, d), dtype)
        for a in starts
    ]
    return da.concatenate(blocks)


def _rows(path: Path, most: int, d: int, dtype: np.dtype[Any], own: int = 1) -> int:
    """Rows of a chunk: a multiple of the ``own`` chunks of the file."""
    _warn_if_large(path, own * d * dtype.itemsize, most, "chunks")
    rows = max(1, most // (d * dtype.itemsize))
    return max(own, rows // own * own)


def _warn_if_large(path: Path, size: int, most: int, what: str) -> None:
    """Of pieces that are read as a whole."""
    if size > most:
        warnings.warn(
            f"{path}: its {what} take {size / 1e6:.0f} MB, more than the {most / 1e6:.0f} MB that memory allows: "
            f"write it with smaller {what}, or allow more memory.",
            RuntimeWarning,
            stacklevel=4,
        )


def _whole(path: Path, X: Any) -> Any:
    """A data set, if it has samples to learn from."""
    if X.shape[0] < 2:
        raise ValueError(f"{path}: must hold at least two samples as rows; found {X.shape[0]}.")
    return X


def _one(path: Path, key: str | None, names: list[str]) -> str:
    """The array that is meant."""
    if key is None and len(names) == 1:
        return names[0]
    if key in names:
        return key
    found = ", ".join(sorted(names)) or "none"
    got = "none was given" if key is None else f"got {key!r}"
    raise ValueError(f"{path}: key must be the name of one of its arrays with two dimensions ({found}); {got}.")


def _checked(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[int, int]:
    """The shape, if it is that of samples."""
    if len(shape) != 2 or shape[1] < 1 or np.dtype(dtype).kind not in "biuf":
        raise ValueError(
            f"{path}: must hold real samples as rows, shape (m, d); found {dtype} of shape {tuple(shape)}."
        )
    return int(shape[0]), int(shape[1])
