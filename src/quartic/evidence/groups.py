"""Groups that rows are named to belong to: subjects, sessions, images, trials; as codes that are the same everywhere.

A code depends on what a label reads as, and on nothing else: not on the batch, the process or the machine, nor on
whether a file gives 7 as a number or as text.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from hashlib import blake2b
from numbers import Integral
from typing import Any

import numpy as np

from quartic._arrays import is_array_api_obj, to_numpy

MISSING = ("nan", "<NA>", "NaT")  # as NumPy and pandas write them
LISTED = 8  # columns that a message names; arbitrary


def codes_of(groups: Any, m: int | None = None, first: int = 0) -> np.ndarray:
    """64 bits for each of ``m`` labels, whole numbers or strings; messages count rows from ``first`` on."""
    labels = labels_of(groups)
    if labels.ndim != 1 or (m is not None and labels.shape[0] != m):
        wanted = "a label for each sample" if m is None else f"{m} labels, one for each sample"
        raise ValueError(f"groups must hold {wanted}; got shape {labels.shape}.")
    if labels.dtype.kind in "biufU":
        unique, code = np.unique(labels, return_inverse=True)
        names: list[Any] = unique.tolist()
    elif labels.dtype.kind == "O":
        seen: dict[Hashable, int] = {}
        try:
            code = np.array([seen.setdefault(label, len(seen)) for label in labels.tolist()], dtype=np.intp)
        except TypeError:  # of a label that is itself a list
            raise ValueError("groups must hold whole numbers or strings, one for each sample.") from None
        names = list(seen)
    else:
        raise ValueError(f"groups must hold whole numbers or strings; got dtype {labels.dtype}.")
    read = [_read(name) for name in names]
    if None in read:
        row = int(np.flatnonzero(np.isin(code, [k for k, name in enumerate(read) if name is None]))[0])
        raise ValueError(f"groups holds no label in row {first + row}: fill in what is missing, or drop these samples.")
    codes = [int.from_bytes(blake2b(str(name).encode(), digest_size=8).digest(), "little") for name in read]
    return np.array(codes, dtype=np.uint64)[code]


def split_off(X: Any, groups: Any) -> tuple[Any, Any]:
    """Samples and labels, where ``groups`` may be the name of a column of a dataframe, which is no feature then."""
    if not isinstance(groups, str):
        return X, groups
    if not hasattr(X, "columns"):
        raise ValueError(f"groups must be labels, there are no columns with names; got {groups!r}.")
    names = list(X.columns)
    if groups not in names:
        raise ValueError(f"groups must be labels, or the name of a column ({listed(names)}); got {groups!r}.")
    return X[[name for name in names if name != groups]], X[groups]


def listed(names: list[Any]) -> str:
    """The first names of some columns, and how many more there are."""
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(map(str, names[:LISTED])) + more


def labels_of(groups: Any) -> np.ndarray:
    """As an array of NumPy; of a list each label by itself, or NumPy would turn one that is missing into text."""
    if isinstance(groups, list | tuple):
        labels = np.empty(len(groups), dtype=object)
        labels[:] = groups
        return labels
    return np.asarray(to_numpy(groups) if is_array_api_obj(groups) else groups)


def _read(label: Any) -> str | None:
    """What a label reads as; None for one that is missing."""
    if isinstance(label, str):
        return label
    if label is None or str(label) in MISSING:
        return None
    if isinstance(label, float | np.floating) and math.isfinite(label) and label == int(label):
        return str(int(label))  # what tables make of whole numbers where one is missing
    if isinstance(label, Integral | np.bool_):
        return str(label)
    raise ValueError(f"groups must hold whole numbers or strings; got {label!r}.")
