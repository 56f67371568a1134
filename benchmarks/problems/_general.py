"""Tensors with components in general position: not orthogonal, and more of them than dimensions if need be."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse.linalg import eigsh

from benchmarks.problems._dense import DenseProblem, dense
from quartic import PackedTensor
from quartic._arrays import pack_rank_one
from quartic.datasets import ERRORS


@dataclass(frozen=True)
class GeneralProblem:
    """A tensor with random unit components of weight 1, as :func:`general_tensor` makes it.

    Attributes
    ----------
    d, n : int
        Dimension and number of components.
    share : float
        Spectral norm of the error, as a share of the smallest eigenvalue of the span.
    """

    kind: ClassVar[str] = "dense"
    d: int
    n: int
    share: float

    @property
    def needs(self) -> set[str]:
        """What a solver must take."""
        return {"dense", "overcomplete"} if self.n > self.d else {"dense"}

    @property
    def name(self) -> str:
        """All that it is, in words."""
        return f"general d={self.d} n={self.n} share={self.share:g}"

    def as_dict(self) -> dict[str, Any]:
        """For the rows of the results."""
        return {"problem": self.name, **asdict(self)}

    def small(self) -> DenseProblem:
        """One of its kind that takes no time."""
        return DenseProblem(4, 2, 0.0, "identity")

    def given(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """What a solver is given, the array ``(d, d, d, d)``, and the components ``(n, d)``."""
        tensor, A = general_tensor(self.d, self.n, self.share, seed)
        return dense(tensor), A


def general_tensor(d: int, n: int, share: float, seed: int) -> tuple[PackedTensor, np.ndarray]:
    """A tensor with random unit components of weight 1 and a Gaussian error, packed, and its components ``(n, d)``.

    The spectral norm of the error is ``share`` of the smallest eigenvalue of the span of the components, which is that
    of the Gram matrix ``<a_i, a_j>^2``.
    """
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d))
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    B = pack_rank_one(A)
    T = B @ B.T
    if share:
        E = ERRORS["gaussian"](A, rng)
        start = rng.standard_normal(E.shape[0])  # eigsh would draw it from global state
        norm = abs(float(eigsh(E, k=1, which="LM", tol=1e-6, v0=start, return_eigenvectors=False)[0]))
        T += E * (share * float(np.linalg.eigvalsh((A @ A.T) ** 2)[0]) / norm)
    return PackedTensor(T), A
