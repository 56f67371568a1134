"""Comparing sets of components, and unmixing with mixing matrices, up to order, sign and length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from quartic._arrays import to_numpy
from quartic._words import counted

__all__ = ["Match", "amari_distance", "match"]


@dataclass(frozen=True, repr=False)
class Match:
    """A one-to-one matching of the rows of two sets of components.

    Attributes
    ----------
    rows, columns : ndarray of shape (m,)
        Row ``rows[k]`` of the first set is matched with row ``columns[k]`` of the second; ``rows`` ascends and
        ``m`` is the size of the smaller set.
    squared : ndarray of shape (m,)
        Squared correlation of each matched pair.
    signs : ndarray of shape (m,)
        Sign of the correlation of each matched pair.
    table : ndarray of shape (n_a, n_b)
        Squared correlation of every pair.

    Examples
    --------
    >>> import quartic
    >>> m = quartic.metrics.match([[1.0, 0.0], [0.0, 2.0]], [[0.0, -1.0], [3.0, 4.0], [1.0, 0.0]])
    >>> m.columns.tolist(), m.signs.tolist(), m.table.shape
    ([2, 0], [1.0, -1.0], (2, 3))
    """

    rows: np.ndarray
    columns: np.ndarray
    squared: np.ndarray
    signs: np.ndarray
    table: np.ndarray

    def __repr__(self) -> str:
        pairs = counted(self.rows.shape[0], "pair")
        worst = f", squared correlations from {np.min(self.squared):.4f} on" if self.rows.shape[0] else ""
        return f"<Match: {pairs}{worst}, {self.found()} found>"

    def found(self, threshold: float = 0.99) -> int:
        """How many components of the first set have a partner of their own.

        Parameters
        ----------
        threshold : float, default=0.99
            Squared correlation from which on two components count as the same.

        Returns
        -------
        int

        Examples
        --------
        >>> import quartic
        >>> m = quartic.metrics.match([[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 3.0]])
        >>> m.found(), m.found(0.8)  # the squared correlations are 1 and 0.9
        (1, 2)
        """
        return int(np.sum(self.squared >= threshold))


def match(A: Any, B: Any) -> Match:
    """Match the rows of ``A`` and ``B`` so that the sum of squared correlations is largest.

    Parameters
    ----------
    A, B : array-like of shape (n_a, d) and (n_b, d)
        Components as rows; their lengths and signs do not matter, and a zero row matches nothing.

    Returns
    -------
    Match

    Examples
    --------
    >>> import numpy as np, quartic
    >>> A = np.eye(3)
    >>> m = quartic.metrics.match(A, -A[[2, 0, 1]])
    >>> m.columns.tolist(), m.found()
    ([1, 2, 0], 3)
    """
    A, B = (np.asarray(to_numpy(X), dtype=np.float64) for X in (A, B))
    for name, X in (("A", A), ("B", B)):
        if X.ndim != 2:
            raise ValueError(f"{name} must have components as rows, shape (n, d); got shape {X.shape}.")
        if not np.all(np.isfinite(X)):
            raise ValueError(f"{name} holds values that are not finite: remove those components.")
    if A.shape[1] != B.shape[1]:
        raise ValueError(f"A and B must have components of one length; got {A.shape[1]} and {B.shape[1]}.")
    correlation = _unit_rows(A) @ _unit_rows(B).T
    table = np.minimum(correlation**2, 1.0)
    rows, columns = linear_sum_assignment(table, maximize=True)
    return Match(rows, columns, table[rows, columns], np.sign(correlation[rows, columns]), table)


def amari_distance(W: Any, A: Any) -> float:
    """How far an unmixing matrix is from the inverse of a mixing matrix: 0 up to order, sign and length, 1 at most.

    Parameters
    ----------
    W : array-like of shape (n, d)
        Unmixing matrix: a source in each row, such as ``components_`` of :class:`quartic.SpectralICA`.
    A : array-like of shape (d, n)
        True mixing matrix: a source in each column.

    Returns
    -------
    float
        With ``P = |W A|``, the mean over the rows of ``(sum_j P_ij / max_j P_ij - 1) / (n - 1)`` and the same of the
        columns, averaged: what all other sources leave in one, relative to it.

    Notes
    -----
    The index of Amari, Cichocki and Yang, *A new learning algorithm for blind signal separation* (1996), divided by its
    largest value ``2 n (n - 1)``.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[2.0, 1.0], [1.0, 1.0]])
    >>> amari_distance(-3 * np.linalg.inv(A)[::-1], A) < 1e-12
    True
    >>> amari_distance([[1.0, 1.0], [1.0, -1.0]], np.eye(2))
    1.0
    """
    W, A = (_finite(name, X) for name, X in (("W", W), ("A", A)))
    n = W.shape[0]
    if n == 0 or A.shape != W.shape[::-1]:
        raise ValueError(f"W (n, d) and A (d, n) must fit, with n at least 1; got shapes {W.shape} and {A.shape}.")
    P = np.abs(_unit_rows(W) @ _unit_rows(A.T).T)  # lengths of sources do not matter, nor may they overflow
    rows, columns = np.max(P, axis=1), np.max(P, axis=0)
    if not (np.all(rows > 0) and np.all(columns > 0)):
        raise ValueError("W A has a row or a column of zeros: W gives a source without signal, or loses one.")
    over = np.sum(P / rows[:, None]) + np.sum(P / columns) - 2 * n
    return float(over / (2 * n * (n - 1))) if n > 1 else 0.0


def _finite(name: str, X: Any) -> np.ndarray:
    """A matrix in float64 on the host."""
    X = np.asarray(to_numpy(X), dtype=np.float64)
    if X.ndim != 2 or not np.all(np.isfinite(X)):
        raise ValueError(f"{name} must be a matrix of finite numbers; got shape {X.shape}.")
    return X


def _unit_rows(X: np.ndarray) -> np.ndarray:
    peak = np.max(np.abs(X), axis=1, keepdims=True, initial=0.0)
    X = X / np.where(peak > 0, peak, 1.0)  # first to magnitude 1, so that no square over- or underflows
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(norms > 0, norms, 1.0)
