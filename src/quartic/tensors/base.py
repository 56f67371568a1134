"""The interface of every tensor form: a symmetric operator on Sym2(R^d).

A 4-tensor ``T`` enters the paper through its square flattening ``T_{12,34}``, a ``d^2 x d^2`` matrix.  Its
projection to pair-symmetric tensors (average over 1<->2, 3<->4 and the transpose) fixes ``a^(x4)``, never
increases the spectral norm of an error, and acts on Sym2 alone: an ``N x N`` operator, a quarter of the
memory and of the arithmetic.  A form has to know one thing, how to apply that operator to a packed block.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from quartic._arrays import Array, array_namespace, device, pack_rank_one, packed_dim, unpack


class FourTensor(ABC):
    """A pair-symmetric 4-tensor, known by its action on Sym2.

    Attributes
    ----------
    dim : int
        ``d``, the length of each mode.
    like : array
        Any array of the library, dtype and device in which the form computes.
    unit : float
        A power of two that the form keeps apart from its numbers; 1 for most.

    Examples
    --------
    A form is a class with ``dim``, ``like`` and ``apply``; everything that takes tensors takes it.

    >>> import numpy as np, quartic
    >>> class Identity(quartic.FourTensor):
    ...     dim, like = 3, np.empty(0)
    ...     def apply(self, X):
    ...         return X
    >>> Identity().to_packed().shape, Identity().to_dense().shape
    ((6, 6), (3, 3, 3, 3))
    """

    dim: int
    like: Array
    unit: float = 1.0

    @abstractmethod
    def apply(self, X: Array) -> Array:
        """Apply the operator to a packed block.

        Parameters
        ----------
        X : array of shape (N, k), dtype of ``like``
            Packed symmetric matrices, one per column.

        Returns
        -------
        array of shape (N, k), dtype of ``like``
            Products are accumulated in that dtype; whoever needs more casts before.

        Examples
        --------
        >>> import numpy as np, quartic
        >>> planted = quartic.datasets.planted_tensor(4, 2, 0.1, random_state=0)
        >>> T = quartic.PackedTensor.from_dense(planted.tensor)
        >>> X = np.eye(T.pair_dim)[:, :3]  # three symmetric matrices, packed
        >>> T.apply(X).shape, bool(np.allclose(T.apply(X), planted.packed @ X))
        ((10, 3), True)
        """

    def on_squares(self, B: Array) -> Array:
        """``<T, b_i b_i' (x) b_j b_j'>`` for all pairs of vectors; ``<T, b_i^(x4)>`` on the diagonal.

        Parameters
        ----------
        B : array of shape (k, d), dtype of ``like``
            Vectors as rows, of any length.

        Returns
        -------
        array of shape (k, k), dtype of ``like``
            By one application, where a form knows no cheaper way: samples do.

        Examples
        --------
        >>> import numpy as np, quartic
        >>> T = quartic.FactoredTensor.from_components(np.array([3.0, 2.0]), np.eye(4)[:2])
        >>> T.on_squares(np.eye(4)[:3]).tolist()
        [[3.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 0.0]]
        """
        X = pack_rank_one(B)
        return array_namespace(X).matrix_transpose(X) @ self.apply(X)

    @property
    def pair_dim(self) -> int:
        """``N = d (d + 1) / 2``, the size of the packed operator."""
        return packed_dim(self.dim)

    def scaled(self, factor: float) -> FourTensor:
        """The tensor times a number, without a copy of its data.

        Parameters
        ----------
        factor : float

        Returns
        -------
        FourTensor

        Examples
        --------
        >>> import numpy as np, quartic
        >>> Y = np.random.default_rng(0).laplace(size=(1000, 3))
        >>> T = quartic.FourthMoment(quartic.Covariance().update(Y).frame()).update(Y).cumulant()
        >>> bool(np.allclose(T.scaled(-2.0).to_packed(), -2.0 * T.to_packed()))
        True
        """
        from quartic.tensors.combine import Sum

        return Sum([(factor, self)])

    def to_packed(self) -> Array:
        """The packed matrix ``(N, N)``.

        Examples
        --------
        >>> import numpy as np, quartic
        >>> T = quartic.FactoredTensor.from_components(np.ones(3), np.eye(3))  # sum_i e_i^(x4)
        >>> T.to_packed().shape, float(T.to_packed().trace())
        ((6, 6), 3.0)
        """
        xp = array_namespace(self.like)
        return self.apply(xp.eye(self.pair_dim, dtype=self.like.dtype, device=device(self.like)))

    def to_dense(self) -> Array:
        """The full array ``(d, d, d, d)``; for small ``d`` only, it holds ``d^4`` numbers.

        Examples
        --------
        >>> import numpy as np, quartic
        >>> b = np.array([1.0, 2.0, 3.0])
        >>> T = quartic.FactoredTensor.from_components(np.ones(1), b[None, :]).to_dense()
        >>> T.shape, float(T[0, 1, 2, 2].round(12))  # b_0 b_1 b_2 b_2
        ((3, 3, 3, 3), 18.0)
        """
        xp = array_namespace(self.like)
        d, N = self.dim, self.pair_dim
        half = xp.reshape(unpack(self.to_packed()), (N, d * d))  # modes 1, 2 unpacked
        full = unpack(half)  # (d*d, d, d)
        return xp.reshape(full, (d, d, d, d))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(dim={self.dim}, dtype={_dtype_name(self.like)})"


def _dtype_name(like: Any) -> str:
    return str(like.dtype).rsplit(".", maxsplit=1)[-1]
