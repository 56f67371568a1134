"""Which atoms belong together, and whether the axes of two that do are the right ones.

Which atoms occur together is seen in any orthogonal solution, right or wrong, by the correlations of its squared
signals: it has the right subspaces where it has the wrong axes.  Which axes in the plane of two are right is seen where
the norm in that plane is small, for there at most one of the two atoms is active.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from quartic._arrays import Array, array_namespace, from_numpy, quantile, to_numpy

TOGETHER = 0.1  # correlation of squared signals, on average, from which on atoms form a group
DEVIATION = 5.0  # times m^(-1/2): a correlation that m samples may show by chance
HEAVY = 1.0  # excess kurtosis of a signal that counts as sparse
IN_PLANE = 0.125  # of the 99% quantile of its square: below it a signal is silent; turned by 45 degrees, half is left
COOLING = 8.0  # over the square of a large signal: the beta of the weights for a pair; two at once count 1/3000 of one


def cooled(S: Array) -> Array:
    """Factors ``exp(-beta_i s_i^2) (m, n)`` of signals ``S (m, n)``, one ``beta_i`` a signal.

    The product of two is a weight that falls with the norm in the plane of two atoms.
    """
    xp = array_namespace(S)
    size = quantile(S * S, 0.99)  # about the square of an active signal
    return xp.exp(-xp.astype(COOLING / xp.where(size > 0, size, xp.ones_like(size)), S.dtype) * S * S)


def energy_correlations(S: Array, weights: np.ndarray) -> np.ndarray:
    """Correlations of the squared signals ``S (m, n)``, ``(n, n)`` with a zero diagonal."""
    xp = array_namespace(S)
    squares, w = xp.astype(S * S, xp.float64), from_numpy(weights, S)
    squares -= w @ squares / float(np.sum(weights))
    covariance = to_numpy(xp.matrix_transpose(squares * w[:, None]) @ squares)
    spread = np.sqrt(np.diagonal(covariance))
    scale = spread[:, None] * spread
    out = np.divide(covariance, scale, out=np.zeros_like(covariance), where=scale > 0)
    np.fill_diagonal(out, 0.0)
    return out


def _at_small_norms(S: Array, weights: np.ndarray, power: int = 1) -> Callable[[int, int], np.ndarray]:
    """The function of ``a, b`` that gives the sums of ``w^power s_i^(2a) s_j^(2b)`` for all pairs, ``(n, n)``.

    The weight ``w`` falls with the norm in the plane of the pair (see :func:`cooled`), and leaves out the samples in
    which both are silent.  It is a product of factors, one a signal, so that all pairs are two matrix products.
    """
    xp = array_namespace(S)
    squares = xp.astype(S * S, xp.float64)
    E = xp.astype(cooled(S), xp.float64) ** power
    silent = xp.astype(squares < IN_PLANE * quantile(squares, 0.99), xp.float64)
    w = from_numpy(weights**power, S)

    def total(a: int, b: int) -> np.ndarray:
        left, right = w[:, None] * E * squares**a, E * squares**b
        both = xp.matrix_transpose(left * silent) @ (right * silent)
        return to_numpy(xp.matrix_transpose(left) @ right - both)

    return total


def _symmetric(X: np.ndarray) -> np.ndarray:
    return X + X.T


def overlaps(S: Array, weights: np.ndarray) -> np.ndarray:
    """How far two signals of ``S (m, n)`` are active together where their norm is small, ``(n, n)``, zero diagonal.

    ``2 E[w s_i^2 s_j^2] / E[w (s_i^4 + s_j^4)]`` where ``w`` falls with the norm in their plane; from the 1/3 of a
    Gaussian pair, 0, to 1 for a pair that is the same two atoms turned by 45 degrees.  Two atoms are rarely both active
    where the norm is small: theirs is negative.
    """
    total = _at_small_norms(S, weights)
    fourth = _symmetric(total(2, 0))
    out = np.divide(2 * total(1, 1), fourth, out=np.full_like(fourth, 1 / 3), where=fourth > 0)
    np.fill_diagonal(out, 1 / 3)
    return 1.5 * (out - 1 / 3)


def contrasts(S: Array, weights: np.ndarray, share: float = 0.0) -> np.ndarray:
    """``E[w (c (s_i^4 + s_j^4) - 6 s_i^2 s_j^2)]`` in standard errors, for all pairs of ``S (m, n)``: ``(n, n)``.

    With ``c = 1``, a pair that is turned by 45 degrees has the opposite contrast: a negative one says that other axes
    are the sparse ones.  With ``c = 1 - share``, it says that the contrast is less than that share of the largest
    possible: so it is for mixtures of three and more atoms.
    """
    c = 1 - share
    total, squared = _at_small_norms(S, weights), _at_small_norms(S, weights, 2)
    value = c * _symmetric(total(2, 0)) - 6 * total(1, 1)
    # (c (a^2 + b^2) - 6 a b)^2, term by term, with a = s_i^2 and b = s_j^2.
    variance = c * c * _symmetric(squared(4, 0)) - 12 * c * _symmetric(squared(3, 1))
    variance += (2 * c * c + 36) * squared(2, 2)
    error = np.sqrt(np.maximum(variance, 0.0))
    return np.divide(value, error, out=np.zeros_like(value), where=error > 0)


def correlations_of_pairs(X: np.ndarray) -> np.ndarray:
    """The same from moments ``X_ij = E s_i^2 s_j^2`` of signals of variance 1, ``(n, n)``."""
    spread = np.sqrt(np.maximum(np.diagonal(X) - 1, 0.0))
    scale = spread[:, None] * spread
    out = np.divide(X - 1, scale, out=np.zeros_like(X), where=scale > 0)
    np.fill_diagonal(out, 0.0)
    return out


def tau_of_pairs(X: np.ndarray) -> float:
    """The tau of a distribution with moments ``X_ij = E s_i^2 s_j^2``: the largest ``X_ij / sqrt(X_ii X_jj)``."""
    own = np.diagonal(X)  # of a few samples a moment may come out negative
    scale = np.where(own > 0, 1 / np.sqrt(np.where(own > 0, own, 1.0)), 0.0)
    return float(np.max((X * scale * scale[:, None])[~np.eye(X.shape[0], dtype=bool)], initial=0.0))


def together(S: Array, weights: np.ndarray) -> np.ndarray:
    """How far pairs of signals ``S (m, n)`` belong together, ``(n, n)``: by their energies, or at small norms.

    The latter counts for sparse signals only: others overlap always.
    """
    sparse = heavy(S, weights)
    return np.maximum(energy_correlations(S, weights), np.where(sparse & sparse[:, None], overlaps(S, weights), 0.0))


def heavy(S: Array, weights: np.ndarray) -> np.ndarray:
    """Which of the signals ``S (m, n)`` have tails heavier than Gaussian, as sparse ones do."""
    return kurtosis(S, weights) > 3 + HEAVY


def kurtosis(S: Array, weights: np.ndarray) -> np.ndarray:
    """``E s^4 / (E s^2)^2`` of the signals ``S (m, n)``."""
    xp = array_namespace(S)
    squares, w = xp.astype(S * S, xp.float64), from_numpy(weights, S)
    second, fourth = to_numpy(w @ squares), to_numpy(w @ squares**2)
    return fourth * np.sum(weights) / np.where(second > 0, second, 1.0) ** 2


def least_correlation(samples: float) -> float:
    """The correlation from which on atoms belong together, for so many effective samples."""
    return max(TOGETHER, DEVIATION / np.sqrt(max(samples, 1.0)))


def groups(R: np.ndarray, least: float) -> list[np.ndarray]:
    """Atoms that belong together by their energy correlations ``R (n, n)``: average linkage, down to ``least``."""
    n = R.shape[0]
    if n < 2:
        return [np.arange(n)]
    distance = 1 - np.clip((R + R.T) / 2, 0.0, 1.0)
    np.fill_diagonal(distance, 0.0)
    label = fcluster(linkage(squareform(distance, checks=False), "average"), 1 - least, "distance")
    return [np.flatnonzero(label == k) for k in np.unique(label)]
