"""Figures that tell whether samples are what section 5 assumes; ``quartic.diagnosis`` says what they mean.

Scores are statistics over the standard deviation that they have under a symmetry of the assumption: for samples that
are the same in all directions, that are as likely with the other sign, or that come in another order.  Those of pairs
of rows, ``sum_st K(z_s, z_t)``, see every moment of one degree at once.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from quartic._arrays import squared_norms
from quartic.algorithms.together import correlations_of_pairs, groups, least_correlation

OUTSIDE = 0.1  # of the range of a feature: a value that is further outside of it is no state of rest; arbitrary
EPOCHS = 8  # stretches of rows that are compared; arbitrary
ORDERED, HINT = (1024, 2048), 3.0  # rows whose order is looked at; more only where the first score hints at something
CHANGED = (6.0, 10.0)  # standard deviations; sums of few squares have longer tails than a Gaussian
STEPS, SHRUNK = 20, 0.01  # of Tyler's iteration; a part of the identity, since sparse samples may have no limit


def uniformity(Z: np.ndarray) -> float:
    """Score of the hypothesis that samples ``Z (k, r)`` are the same in all directions, up to a linear map.

    Their directions, in the coordinates of Tyler's scatter matrix, are then uniform on the sphere however heavy the
    tails are, and ``sum_st P(<u_s, u_t>)`` is zero but for chance, where ``P`` is the zonal harmonic of degree 4.
    """
    Z = Z[squared_norms(Z) > 0]
    k, r = Z.shape
    if k < 2 or r < 2:
        return np.inf  # one direction alone has nothing to differ from
    for _ in range(STEPS):
        U = Z / np.sqrt(squared_norms(Z))[:, None]
        C = (1 - SHRUNK) * r / k * U.T @ U + SHRUNK * np.eye(r)
        Z = np.linalg.solve(np.linalg.cholesky(C), Z.T).T  # C is the identity in the coordinates that are sought
    U = Z / np.sqrt(squared_norms(Z))[:, None]

    def harmonic(T: np.ndarray) -> np.ndarray:
        T *= T
        out = T - 6 / (r + 4)
        out *= T
        out += 3 / ((r + 2) * (r + 4))
        return out

    return _score_of_pairs(U, harmonic)


def _score_of_pairs(U: np.ndarray, kernel: Callable[[np.ndarray], np.ndarray], size: int = 256) -> float:
    """``sum K / sqrt(2 sum K^2)`` over pairs of different rows of ``U (k, r)``, where ``K = kernel(<u_s, u_t>)``."""
    total, squares = 0.0, 0.0
    for first in range(0, U.shape[0], size):
        K = kernel(U[first : first + size] @ U.T)
        mine = np.arange(K.shape[0])
        K[mine, first + mine] = 0.0
        total += float(np.sum(K))
        squares += float(np.vdot(K, K))
    return total / np.sqrt(2 * squares) if squares > 0 else 0.0


def changes(Z: np.ndarray) -> float:
    """Score of the hypothesis that the order of the rows ``Z (k, r)`` means nothing.

    Pairs of rows in the same of :data:`EPOCHS` stretches are compared with all pairs: by means, covariances,
    and the fourth moments of their directions.
    """
    k = Z.shape[0]
    if k < 2 * EPOCHS:
        return 0.0
    squares = squared_norms(Z)
    U = Z / np.sqrt(np.where(squares > 0, squares, 1.0))[:, None]
    V = Z / np.sqrt(squares + (np.mean(squares) or 1.0))[:, None]  # no longer than 1: none outweighs the others
    epoch = np.eye(EPOCHS)[np.arange(k) * EPOCHS // k]
    epoch -= np.mean(epoch, axis=0)
    # Pairs are weighted by W = epoch epoch', without its diagonal.
    weight = float(np.sum((epoch.T @ epoch) ** 2) - np.sum(squared_norms(epoch) ** 2)) / k**2
    scores = []
    for A, degree in ((V, 1), (V, 2), (U, 4)):
        K = A @ A.T
        for _ in range(degree // 2):
            K *= K
        np.fill_diagonal(K, 0.0)
        mean = np.sum(K, axis=1) / (k - 1)
        K -= (mean - np.mean(mean))[:, None]
        K -= mean
        np.fill_diagonal(K, 0.0)
        spread = np.sqrt(2 * weight * np.vdot(K, K))
        scores.append(float(np.sum(epoch * (K @ epoch)) / spread) if spread > 0 else 0.0)
    return max(scores)


def drift(Z: np.ndarray) -> float:
    """The score of :func:`changes` for some rows of ``Z (k, r)``, in their order."""
    score = changes(spaced(Z, ORDERED[0]))
    return changes(spaced(Z, ORDERED[1])) if score > HINT else score


def skewness(S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Third moments of signals ``S (k, n)`` of variance 1, and their scores under random signs."""
    cubes = S**3
    error = np.sqrt(np.sum(cubes**2, axis=0))
    total = np.sum(cubes, axis=0)
    return total / S.shape[0], np.divide(total, error, out=np.zeros_like(total), where=error > 0)


def neighbours(S: np.ndarray, index: np.ndarray) -> tuple[float, int]:
    """Largest correlation of a signal ``S (k, n)``, or its square, with the row after it, and the pairs it is from."""
    pairs = np.flatnonzero(np.diff(index) == 1)
    if pairs.shape[0] < 2:
        return 0.0, 0
    largest = 0.0
    for X in (S, S * S):
        X = X - np.mean(X, axis=0)
        scale = np.mean(X * X, axis=0)
        found = np.mean(X[pairs] * X[pairs + 1], axis=0)
        largest = max(largest, float(np.max(np.abs(found[scale > 0] / scale[scale > 0]), initial=0.0)))
    return largest, pairs.shape[0]


def tied(S: np.ndarray) -> tuple[float, float, int]:
    """How far signals ``S (k, n)`` occur together: correlation of energies, tau, and the number of groups.

    Both are means over all pairs of the group where they are largest, the smaller of two halves: these do not depend on
    chance as the largest pair does, and little on the axes.  Groups of two are not counted: noise can make them.
    """
    squares = S * S
    parts = [squares[h::2].T @ squares[h::2] / squares[h::2].shape[0] for h in (0, 1)]
    R = correlations_of_pairs((parts[0] + parts[1]) / 2)
    found = [g for g in groups(R, least_correlation(S.shape[0])) if g.shape[0] > 2]
    halves = [correlations_of_pairs(X) for X in parts]
    correlation = max((min(_off_diagonal(R, g) for R in halves) for g in found), default=0.0)
    taus = [min(_off_diagonal(X, g) / float(np.mean(np.diagonal(X)[g])) for X in parts) for g in found]
    return correlation, max(taus, default=0.0), len(found)


def _off_diagonal(X: np.ndarray, group: np.ndarray) -> float:
    """Mean of ``X (n, n)`` over the pairs of a group."""
    inside, size = X[np.ix_(group, group)], group.shape[0]
    return float((np.sum(inside) - np.trace(inside)) / (size * (size - 1)))


def spaced(Z: np.ndarray, most: int) -> np.ndarray:
    """At most so many rows, from all over."""
    return Z if Z.shape[0] <= most else Z[np.linspace(0, Z.shape[0] - 1, most).astype(np.intp)]


def often(Y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Of each column of ``Y (k, d)`` the value that is there most often, and how often, but for a state of rest.

    Then how often the third most frequent one is (a signal may be clipped at both ends), and how many there are.
    """
    k = Y.shape[0]
    S = np.sort(Y, axis=0)
    last = np.concatenate([S[1:] != S[:-1], np.ones((1, Y.shape[1]), dtype=bool)])  # of equal values
    place = np.arange(1, k + 1)[:, None]
    before = np.concatenate([np.zeros((1, Y.shape[1]), dtype=np.intp), np.where(last, place, 0)[:-1]])
    counts = last & (S[k // 2] != S) & (_rest(Y) != S)
    times = np.where(counts, place - np.maximum.accumulate(before, axis=0), 0)
    peak = np.argmax(times, axis=0)
    column = np.arange(Y.shape[1])
    third = np.partition(times, -3, axis=0)[-3] if k > 2 else np.zeros(Y.shape[1], dtype=np.intp)
    return S[peak, column], times[peak, column], third, np.sum(last, axis=0)


def _rest(Y: np.ndarray) -> np.ndarray:
    """The most frequent row of ``Y (k, d)``, where no atom is active; the median is the same for symmetric samples.

    A row far outside of all others is none, but a code for what is missing.
    """
    _, first, times = np.unique(Y, axis=0, return_index=True, return_counts=True)
    rest = Y[first[np.argmax(times)]]
    others = Y[np.any(rest != Y, axis=1)]
    if np.max(times) == 1 or others.shape[0] == 0:
        return np.full(Y.shape[1], np.nan)
    low, high = np.min(others, axis=0), np.max(others, axis=0)
    margin = OUTSIDE * (high - low)
    return np.where(np.all((rest >= low - margin) & (rest <= high + margin)), rest, np.nan)
