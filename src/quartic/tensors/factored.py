"""The factored form ``sum_k lam_k U_k (x) U_k``: what is left after Algorithm 4.1, in ``n d^2`` numbers."""

from __future__ import annotations

from functools import cached_property

from quartic._arrays import Array, array_namespace, pack_rank_one, unpack, unpacked_dim
from quartic.tensors.base import FourTensor


class FactoredTensor(FourTensor):
    """A low-rank tensor on Sym2.

    Parameters
    ----------
    lam : array of shape (k,)
        Weights.
    U : array of shape (N, k)
        Packed symmetric matrices; orthonormal in the Frobenius product when they come from a truncation.

    Examples
    --------
    >>> import numpy as np, quartic
    >>> U = np.eye(6)[:, :2]
    >>> T = quartic.FactoredTensor(np.array([3.0, 2.0]), U)
    >>> T, T.rank, T.matrices.shape
    (FactoredTensor(dim=3, dtype=float64), 2, (2, 3, 3))
    """

    def __init__(self, lam: Array, U: Array) -> None:
        if lam.shape != (U.shape[1],):
            raise ValueError(f"lam must have one weight for each of the {U.shape[1]} columns of U; got {lam.shape}.")
        self.lam = lam
        self.U = U
        self.dim = unpacked_dim(U.shape[0])
        self.like = U

    @classmethod
    def from_components(cls, weights: Array, B: Array) -> FactoredTensor:
        """``sum_i w_i b_i^(x4)``.

        Parameters
        ----------
        weights : array of shape (n,)
        B : array of shape (n, d)
            The ``b_i`` as rows, of any length.

        Returns
        -------
        FactoredTensor

        Examples
        --------
        >>> import numpy as np, quartic
        >>> T = quartic.FactoredTensor.from_components(np.array([3.0, 2.0]), np.eye(4)[:2])
        >>> np.round(quartic.decompose(T, random_state=0).weights, 6).tolist()
        [3.0, 2.0]
        """
        return cls(weights, pack_rank_one(B))

    @property
    def rank(self) -> int:
        """Number of terms."""
        return int(self.U.shape[1])

    @cached_property
    def matrices(self) -> Array:
        """The ``U_k`` unpacked, ``(k, d, d)``."""
        return unpack(self.U)

    def apply(self, X: Array) -> Array:
        """``U diag(lam) U' X``: two products with a tall block.

        Parameters
        ----------
        X : array of shape (N, k), dtype of ``U``
            Packed symmetric matrices, one per column.

        Returns
        -------
        array of shape (N, k)

        Examples
        --------
        >>> import numpy as np, quartic
        >>> T = quartic.FactoredTensor(np.array([3.0, 2.0]), np.eye(6)[:, :2])
        >>> T.apply(np.ones((6, 1))).ravel().tolist()
        [3.0, 2.0, 0.0, 0.0, 0.0, 0.0]
        """
        # As (X' U diag(lam) U')': the result lies matrix by matrix, as unpacking wants it.
        xp = array_namespace(self.U)
        return xp.matrix_transpose((xp.matrix_transpose(X) @ self.U * self.lam) @ xp.matrix_transpose(self.U))

    def scaled(self, factor: float) -> FactoredTensor:
        """The tensor times a number: other weights for the same ``U``.

        Parameters
        ----------
        factor : float

        Returns
        -------
        FactoredTensor

        Examples
        --------
        >>> import numpy as np, quartic
        >>> quartic.FactoredTensor(np.array([3.0, 2.0]), np.eye(6)[:, :2]).scaled(-1.0).lam.tolist()
        [-3.0, -2.0]
        """
        return FactoredTensor(self.lam * factor, self.U)

    def flattened(self) -> FactoredTensor:
        """The same span with every weight 1: the projector ``sum_k U_k (x) U_k``.

        If the ``U_k`` span the ``a_i (x) a_i`` of orthonormal ``a_i``, this is ``sum_i a_i^(x4)`` exactly,
        whatever the weights were.

        Returns
        -------
        FactoredTensor

        Examples
        --------
        >>> import numpy as np, quartic
        >>> T = quartic.FactoredTensor.from_components(np.array([3.0, 2.0]), np.eye(4)[:2])
        >>> T.flattened().lam.tolist()
        [1.0, 1.0]
        """
        xp = array_namespace(self.U)
        return FactoredTensor(xp.ones_like(self.lam), self.U)
