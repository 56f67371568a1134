"""Problems for solvers that take a dense tensor."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse.linalg import eigsh

from quartic import PackedTensor
from quartic._arrays import pack_rank_one, unpack
from quartic.datasets import ERRORS, random_orthonormal


@dataclass(frozen=True)
class DenseProblem:
    """A planted tensor with orthonormal components of weight 1.

    Attributes
    ----------
    d, n : int
        Dimension and number of components.
    eps : float
        Spectral norm of the error.
    error : str
        Family of the error, a key of ``quartic.datasets.ERRORS``.
    """

    kind: ClassVar[str] = "dense"
    d: int
    n: int
    eps: float
    error: str

    @property
    def needs(self) -> set[str]:
        """What a solver must take."""
        return {"dense"}

    @property
    def name(self) -> str:
        """All that it is, in words."""
        return f"{self.error} d={self.d} n={self.n} eps={self.eps:g}"

    def as_dict(self) -> dict[str, Any]:
        """For the rows of the results."""
        return {"problem": self.name, **asdict(self)}

    def small(self) -> DenseProblem:
        """One of its kind that takes no time."""
        return DenseProblem(4, 2, 0.0, "identity")

    def given(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """What a solver is given, the array ``(d, d, d, d)``, and the components ``(n, d)``."""
        tensor, A = self.build(seed)
        return dense(tensor), A

    def build(self, seed: int) -> tuple[PackedTensor, np.ndarray]:
        """The tensor, packed, and its components ``(n, d)``.

        As ``quartic.datasets.planted_tensor``, with the norm of the error from Lanczos iteration (to 1e-3) instead
        of all its eigenvalues: seconds at d = 128, not minutes.
        """
        rng = np.random.default_rng(seed)
        A = random_orthonormal(self.d, self.n, rng)
        E = ERRORS[self.error](A, rng)
        if self.eps:
            start = rng.standard_normal(E.shape[0])  # eigsh would draw it from global state
            top = eigsh(E, k=1, which="LM", tol=1e-3, v0=start, return_eigenvectors=False)
            E *= self.eps / abs(float(top[0]))
        else:
            E *= 0.0
        B = pack_rank_one(A)
        E += B @ B.T
        return PackedTensor(E), A


def dense(tensor: PackedTensor) -> np.ndarray:
    """A packed tensor as an array ``(d, d, d, d)``."""
    d, N = tensor.dim, tensor.pair_dim
    return unpack(unpack(tensor.matrix).reshape(N, d * d)).reshape(d, d, d, d)
