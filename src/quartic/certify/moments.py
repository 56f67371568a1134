"""Readings without samples: which atoms of a given fourth moment have no second reading.

A fourth moment can not tell two atoms of one weight from the same two turned by 45 degrees (``certify.readings``).
Without samples two things are left: weights that differ, and independence, if every cross cumulant is within a tenth of
the kurtoses.  Second moments are 1 in whitened coordinates; where they are not known they follow from the cross moments
of independent atoms, ``X_ij = m_i m_j``, of which three atoms determine all.
"""

from __future__ import annotations

import numpy as np

from quartic.certify.readings import TENTH

ALIKE = 0.01  # relative difference of two weights that count as one


def has_rival(X: np.ndarray, eps: float, *, white: bool) -> np.ndarray:
    """Mask ``(n,)`` of the atoms with a second reading in a plane with another.

    Parameters
    ----------
    X : ndarray of shape (n, n)
        ``E s_i^2 s_j^2`` of the signals of the atoms.
    eps : float
        Bound on the error of its entries.
    white : bool
        Whether the signals have variance 1; otherwise their variances are not known.
    """
    n = X.shape[0]
    other = ~np.eye(n, dtype=bool)
    diagonal = np.diagonal(X)
    size = np.maximum(np.abs(diagonal)[:, None], np.abs(diagonal))
    alike = np.abs(diagonal[:, None] - diagonal) <= 2 * eps + ALIKE * size
    m = np.ones(n) if white else second_moments(X)
    if m is None:
        return np.any(alike & other, axis=1)
    c = np.abs(X - np.outer(m, m))
    kurtosis = np.abs(diagonal - 3 * m * m)
    independent = c + eps <= TENTH * (np.minimum(kurtosis[:, None], kurtosis) - eps)
    return np.any(alike & other & ~independent, axis=1)


def second_moments(X: np.ndarray) -> np.ndarray | None:
    """``m (n,)`` with ``X_ij = m_i m_j`` off the diagonal, where all are independent; None for fewer than three."""
    n = X.shape[0]
    if n < 3 or np.any(X[~np.eye(n, dtype=bool)] <= 0):
        return None
    logs = np.log(np.where(np.eye(n, dtype=bool), 1.0, X))
    rows = np.sum(logs, axis=1)  # (n - 2) log m_i + sum_j log m_j
    total = np.sum(rows) / (2 * (n - 1))
    return np.exp((rows - total) / (n - 2))
