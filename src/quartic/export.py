"""A fitted model for other programs: the linear unmixing as safetensors, read from any language and without pickle."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

import quartic
from quartic._files import atomic
from quartic.learned import Learned


def linear_parts(unmixing: np.ndarray, mixing: np.ndarray, mean: np.ndarray) -> dict[str, np.ndarray]:
    """``codes = (X - mean) @ unmixing.T`` and ``X = codes @ mixing.T + mean``, as ``Linear`` layers hold them.

    ``bias`` is ``-unmixing @ mean``: the codes are ``X @ weight.T + bias`` with ``weight = unmixing``.
    """
    parts = {"weight": unmixing, "bias": -unmixing @ mean, "mixing": mixing, "mean": mean}
    return {name: np.ascontiguousarray(part, dtype=np.float64) for name, part in parts.items()}


def save_safetensors(
    kind: str, learned: Learned, model: tuple[np.ndarray, np.ndarray, np.ndarray], path: str | os.PathLike[str]
) -> None:
    """Write the linear parts of a model, with its certificates, all at once or not at all."""
    try:
        from safetensors.numpy import save
    except ImportError as error:
        raise ImportError("to_safetensors needs safetensors: pip install safetensors") from error
    if learned.overcomplete:
        n, r = learned.components.shape[0], learned.frame.dim
        raise ValueError(
            f"{n} atoms in {r} dimensions have codes that are not linear in the samples: there is no unmixing matrix "
            "to export; use save, and transform."
        )
    arrays: dict[str, Any] = {**linear_parts(*model), "certificates": learned.certificates}
    about = {"kind": kind, "quartic": quartic.__version__, "status": json.dumps(vars(learned.status))}
    content = save(arrays, metadata=about)
    with atomic(path) as out:
        out.write(content)
