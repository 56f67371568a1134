"""Planted problems: tensors whose components are known, with errors made to mislead."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from quartic._arrays import check_random_state, pack, pack_rank_one, packed_dim, unpack

__all__ = ["ERRORS", "PlantedTensor", "planted_tensor", "random_orthonormal"]


@dataclass(frozen=True)
class PlantedTensor:
    """``tensor = sum_i weights_i components_i^(x4) + error``.

    Attributes
    ----------
    components : ndarray of shape (n, d)
        Orthonormal rows.
    weights : ndarray of shape (n,)
    error : ndarray of shape (N, N)
        The error packed on Sym2, of spectral norm eps; ``N = d (d + 1) / 2``.
    packed : ndarray of shape (N, N)
        The tensor packed on Sym2.
    tensor : ndarray of shape (d, d, d, d)

    Examples
    --------
    >>> import numpy as np, quartic
    >>> planted = quartic.datasets.planted_tensor(6, 4, 0.1, random_state=0)
    >>> signal = np.einsum("n,ni,nj,nk,nl->ijkl", planted.weights, *[planted.components] * 4)
    >>> error = (planted.tensor - signal).reshape(36, 36)
    >>> round(float(np.linalg.norm(error, 2)), 12)
    0.1
    """

    components: np.ndarray
    weights: np.ndarray
    error: np.ndarray
    packed: np.ndarray

    @property
    def tensor(self) -> np.ndarray:
        """The full array, unpacked on demand."""
        d = self.components.shape[1]
        half = unpack(self.packed).reshape(self.packed.shape[0], d * d)
        return unpack(half).reshape(d, d, d, d)


def random_orthonormal(d: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """``n`` orthonormal rows of length ``d``, uniformly distributed.

    Parameters
    ----------
    d, n : int
        With ``n`` at most ``d``.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (n, d)

    Examples
    --------
    >>> import numpy as np, quartic
    >>> A = quartic.datasets.random_orthonormal(6, 4, np.random.default_rng(0))
    >>> A.shape, bool(np.allclose(A @ A.T, np.eye(4)))
    ((4, 6), True)
    """
    Q, R = np.linalg.qr(rng.standard_normal((d, n)))
    return (Q * np.where(np.diagonal(R) < 0, -1.0, 1.0)).T


def planted_tensor(
    d: int,
    n: int,
    eps: float,
    error: str = "gaussian",
    weights: Any = None,
    random_state: Any = None,
) -> PlantedTensor:
    """A tensor with orthonormal components and an error of spectral norm ``eps``.

    Parameters
    ----------
    d, n : int
        Dimension and number of components, ``1 <= n <= d``.
    eps : float
        Spectral norm of the error on the square flattening.
    error : str, default="gaussian"
        Family of the error, one of :data:`ERRORS`:

        - ``gaussian``: Gaussian, pair-symmetric;
        - ``gaussian-symmetric``: Gaussian, symmetric under all permutations of the modes;
        - ``low-rank``: ``n`` random matrices with random signs;
        - ``identity``: ``eps`` times the identity of Sym2;
        - ``covariance``: the direction ``vec(I) vec(I)'``;
        - ``cancel``: minus ``eps`` times a tenth of the components (at least one);
        - ``basis``: a competing orthonormal basis, ``sum_j b_j^(x4)``;
        - ``trap``: projectors onto Sym2 of four orthogonal subspaces, plus a spurious orthonormal basis
          inside each: power iteration is drawn into a subspace and then to its basis.
    weights : array-like of shape (n,), optional
        Positive weights; ones when not given.
    random_state : None, int or numpy.random.Generator

    Returns
    -------
    PlantedTensor

    Examples
    --------
    >>> import numpy as np, quartic
    >>> p = quartic.datasets.planted_tensor(6, 4, 0.1, error="trap", random_state=0)
    >>> p.tensor.shape, round(float(abs(np.linalg.eigvalsh(p.error)).max()), 12)
    ((6, 6, 6, 6), 0.1)
    """
    d, n = operator.index(d), operator.index(n)
    if not 1 <= n <= d:
        raise ValueError(f"n must lie between 1 and d = {d}; got {n}.")
    if not 0 <= eps < np.inf:
        raise ValueError(f"eps must be finite and not negative; got {eps}.")
    if error not in ERRORS:
        raise ValueError(f"error must be one of {', '.join(ERRORS)}; got {error!r}.")
    w = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    if w.shape != (n,):
        raise ValueError(f"weights must have shape ({n},); got {w.shape}.")
    if not np.all((w > 0) & np.isfinite(w)):
        raise ValueError("weights must be positive and finite.")
    rng = check_random_state(random_state)
    A = random_orthonormal(d, n, rng)
    E = ERRORS[error](A, rng)
    norm = float(np.max(np.abs(np.linalg.eigvalsh(E)))) if eps else 1.0
    E *= eps / norm
    B = pack_rank_one(A)
    return PlantedTensor(A, w, E, (B * w) @ B.T + E)


def _gaussian(A: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    N = packed_dim(A.shape[1])
    G = rng.standard_normal((N, N))
    return G + G.T


def _gaussian_symmetric(A: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    d = A.shape[1]
    G = unpack(unpack(_gaussian(A, rng)).reshape(-1, d * d)).reshape(d, d, d, d)
    # A pair-symmetric tensor becomes fully symmetric by averaging over the three pairings of its modes.
    G = G + G.transpose(0, 2, 1, 3) + G.transpose(0, 3, 2, 1)
    return pack(np.ascontiguousarray(pack(G.reshape(d * d, d, d)).reshape(-1, d, d)))


def _low_rank(A: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    N, n = packed_dim(A.shape[1]), A.shape[0]
    U = np.linalg.qr(rng.standard_normal((N, min(n, N))))[0]
    return (U * rng.choice([-1.0, 1.0], U.shape[1])) @ U.T


def _identity(A: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.eye(packed_dim(A.shape[1]))


def _covariance(A: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    one = pack(np.eye(A.shape[1])[None])
    return one @ one.T


def _cancel(A: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    B = pack_rank_one(A[: max(1, A.shape[0] // 10)])
    return -B @ B.T


def _basis(A: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    d = A.shape[1]
    B = pack_rank_one(random_orthonormal(d, d, rng))
    return B @ B.T


def _trap(A: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    d = A.shape[1]
    E = np.zeros((packed_dim(d), packed_dim(d)))
    for V in np.array_split(random_orthonormal(d, d, rng), min(4, d)):
        i, j = np.triu_indices(V.shape[0])
        # The products of basis vectors, symmetrised, are an orthogonal basis of Sym2 of the subspace.
        S = pack(V[i][:, :, None] * V[j][:, None, :])
        S /= np.linalg.norm(S, axis=0)
        B = pack_rank_one(random_orthonormal(V.shape[0], V.shape[0], rng) @ V)
        E += S @ S.T + B @ B.T
    return E


ERRORS: dict[str, Callable[[np.ndarray, np.random.Generator], np.ndarray]] = {
    "gaussian": _gaussian,
    "gaussian-symmetric": _gaussian_symmetric,
    "low-rank": _low_rank,
    "identity": _identity,
    "covariance": _covariance,
    "cancel": _cancel,
    "basis": _basis,
    "trap": _trap,
}
"""Families of errors: a function of the components and a generator, before scaling to the norm asked for."""
