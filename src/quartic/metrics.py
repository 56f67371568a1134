"""Comparing sets of components, up to their order and signs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from quartic._arrays import to_numpy

__all__ = ["Match", "match"]


@dataclass(frozen=True)
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


def _unit_rows(X: np.ndarray) -> np.ndarray:
    peak = np.max(np.abs(X), axis=1, keepdims=True, initial=0.0)
    X = X / np.where(peak > 0, peak, 1.0)  # first to magnitude 1, so that no square over- or underflows
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(norms > 0, norms, 1.0)
