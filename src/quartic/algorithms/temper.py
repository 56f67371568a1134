"""Beyond the paper: weights that fall with the norm of a sample, so that those with few active atoms count more.

Lemma.  Let ``z = sum_i x_i a_i`` with orthonormal ``a_i`` and coefficients whose signs are independent given their
magnitudes.  Then the distribution of ``x`` reweighted by any function ``w(||z||)`` is again of that kind: all odd
moments vanish.  So it is for weights that are any function of the magnitudes ``|x_i|``, such as the norm of the part of
``z`` in the span of some of the atoms.

Proof.  ``||z||^2 = sum_i x_i^2`` is a function of the magnitudes alone, so the weighted distribution has the density
of the magnitudes changed, and the signs are independent and uniform given the magnitudes as before.

So the span of the ``a_i (x) a_i`` is still an invariant subspace of the weighted moment, and whatever is found there
is found.  Samples of large norm, in which many atoms are active at once, are what makes the empirical moment noisy and
its pair terms large: with half of the effective sample size the span is known as well as from several times as many
samples.

*Global* weights fall with the norm of the whole sample.  Where that is a sum over many groups of atoms, one weight for
all is blunt: *local* weights fall with the norm of the part in the span of one group, and leave out the samples in
which the group is silent.  Which atoms belong together is seen in any orthogonal solution, right or wrong, by the
correlations of its squared signals: it has the right subspaces where it has the wrong axes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

SHARE = 0.5  # effective sample size that is kept; measured: 0.3 to 0.7 do alike, 0.15 loses everything on small samples
STRONGEST = 8.0  # times 1 / ||z||^2 of a typical sample: the largest beta that is tried
CARRYING = 0.1  # of the mean square: samples of less norm have no active atom, and carry no moment
STEPS = 60  # of bisection, to the last bit
ACTIVE, LARGE = 0.1, 0.95  # of this quantile of the squared norms: below it a group of atoms is silent
LADDER = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)  # shares of the effective sample size that are tried in a group
TOGETHER = 0.1  # correlation of squared signals, on average, from which on atoms form a group
DEVIATION = 5.0  # times m^(-1/2): a correlation that m samples may show by chance
HEAVY = 1.0  # excess kurtosis of a signal that counts as sparse
IN_PLANE = 0.25  # of the 99% quantile of the squared norms in a plane: below it both signals are silent
CHUNK_ENTRIES = 1 << 22  # numbers in an array of samples by pairs
COOLING = 8.0  # over the square of a large signal: the beta of the weights for a pair; two at once count 1/3000 of one


def effective(weights: np.ndarray) -> float:
    """Effective sample size ``(sum w)^2 / sum w^2``."""
    total = float(np.sum(weights))
    return total * total / float(np.sum(weights * weights)) if total > 0 else 0.0


@dataclass(frozen=True)
class Tempering:
    """Weights ``exp(-beta (||z||^2 - least))``, and 1 below ``least``."""

    beta: float
    least: float

    def weights(self, squares: np.ndarray) -> np.ndarray:
        """Weights of samples with the squared norms ``squares (m,)``."""
        return np.exp(-self.beta * np.maximum(squares - self.least, 0.0))


def tempering(squares: np.ndarray, share: float = SHARE) -> Tempering:
    """The weights that keep a ``share`` of the effective sample size, among the samples that carry a moment.

    ``squares (m,)`` are the ``||z||^2`` of a part of the samples.
    """
    carrying = squares[squares > CARRYING * np.mean(squares)] if squares.size else squares
    if carrying.size == 0:
        return Tempering(0.0, 0.0)
    least = float(np.min(carrying))
    low, high = 0.0, STRONGEST / float(np.median(carrying))
    if share >= 1 or effective(Tempering(high, least).weights(carrying)) >= share * carrying.size:
        return Tempering(high if share < 1 else 0.0, least)
    for _ in range(STEPS):
        middle = (low + high) / 2
        if effective(Tempering(middle, least).weights(carrying)) > share * carrying.size:
            low = middle
        else:
            high = middle
    return Tempering(low, least)


def active(squares: np.ndarray) -> np.ndarray:
    """Mask of the samples in which a group of atoms is not silent, by the squared norms ``(m,)`` of its part."""
    return squares > ACTIVE * np.quantile(squares, LARGE) if squares.size else np.zeros(0, dtype=bool)


def ladder(squares: np.ndarray) -> Iterator[Tempering]:
    """Temperings of active samples, the strongest first, each other than the one before."""
    last = None
    for share in LADDER:
        temper = tempering(squares, share)
        if last is None or temper.beta < last.beta:
            yield temper
        last = temper


def cooled(S: np.ndarray) -> np.ndarray:
    """Factors ``exp(-beta_i s_i^2) (m, n)`` of signals ``S (m, n)``, one ``beta_i`` a signal.

    The product of two is a weight that falls with the norm in the plane of two atoms.
    """
    size = np.quantile(S * S, 0.99, axis=0)  # about the square of an active signal
    return np.exp(-(COOLING / np.where(size > 0, size, 1.0)).astype(S.dtype) * S * S)


def energy_correlations(S: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Correlations of the squared signals ``S (m, n)``, ``(n, n)`` with a zero diagonal."""
    squares = (S * S).astype(np.float64)
    squares -= weights @ squares / np.sum(weights)
    covariance = (squares * weights[:, None]).T @ squares
    spread = np.sqrt(np.diagonal(covariance))
    scale = spread[:, None] * spread
    out = np.divide(covariance, scale, out=np.zeros_like(covariance), where=scale > 0)
    np.fill_diagonal(out, 0.0)
    return out


def overlaps(S: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """How far two signals of ``S (m, n)`` are active together where their norm is small, ``(n, n)``, zero diagonal.

    ``2 E[w s_i^2 s_j^2] / E[w (s_i^4 + s_j^4)]`` under weights for the pair (see :func:`cooled`), over the samples in
    which not both are silent; from the 1/3 of a Gaussian pair, 0, to 1 for a pair that is the same two atoms turned by
    45 degrees.  Two atoms are rarely both active where the norm is small: theirs is negative.
    """
    squares = (S * S).astype(np.float64)
    E = cooled(S).astype(np.float64)
    silent = squares < IN_PLANE * np.quantile(squares, 0.99, axis=0)

    def total(a: int, b: int) -> np.ndarray:
        """Sums of ``w s_i^(2a) s_j^(2b)``, ``(n, n)``: all samples but those in which both are silent."""
        left, right = weights[:, None] * E * squares**a, E * squares**b
        return left.T @ right - (left * silent).T @ (right * silent)

    fourth = total(2, 0)
    fourth = fourth + fourth.T
    out = np.divide(2 * total(1, 1), fourth, out=np.full_like(fourth, 1 / 3), where=fourth > 0)
    np.fill_diagonal(out, 1 / 3)
    return 1.5 * (out - 1 / 3)


def correlations_of_pairs(X: np.ndarray) -> np.ndarray:
    """The same from moments ``X_ij = E s_i^2 s_j^2`` of signals of variance 1, ``(n, n)``."""
    spread = np.sqrt(np.maximum(np.diagonal(X) - 1, 0.0))
    scale = spread[:, None] * spread
    out = np.divide(X - 1, scale, out=np.zeros_like(X), where=scale > 0)
    np.fill_diagonal(out, 0.0)
    return out


def tau_of_pairs(X: np.ndarray) -> float:
    """The tau of a distribution with moments ``X_ij = E s_i^2 s_j^2``: the largest ``X_ij / sqrt(X_ii X_jj)``."""
    scale = 1 / np.sqrt(np.diagonal(X))
    return float(np.max((X * scale * scale[:, None])[~np.eye(X.shape[0], dtype=bool)], initial=0.0))


def together(S: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """How far pairs of signals ``S (m, n)`` belong together, ``(n, n)``: by their energies, or at small norms.

    The latter counts for sparse signals only: others overlap always.
    """
    sparse = heavy(S, weights)
    return np.maximum(energy_correlations(S, weights), np.where(sparse & sparse[:, None], overlaps(S, weights), 0.0))


def heavy(S: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Which of the signals ``S (m, n)`` have tails heavier than Gaussian, as sparse ones do."""
    return kurtosis(S, weights) > 3 + HEAVY


def kurtosis(S: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """``E s^4 / (E s^2)^2`` of the signals ``S (m, n)``."""
    squares = (S * S).astype(np.float64)
    second = weights @ squares
    return weights @ squares**2 * np.sum(weights) / np.where(second > 0, second, 1.0) ** 2


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


def plane_contrasts(S: np.ndarray, weights: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """``E[w (s_i^4 + s_j^4 - 6 s_i^2 s_j^2)]`` in standard errors, for each of the ``pairs (k, 2)`` of ``S (m, n)``.

    The weight ``w`` falls with the norm in the plane of the pair, and leaves out samples in which both are silent.
    Turned by 45 degrees, the pair has the opposite contrast: a negative one says that other axes are the sparse ones.
    """
    out = np.zeros(pairs.shape[0])
    squares = S.T.astype(np.float64) ** 2  # a signal is contiguous: quantiles are most of the work
    sizes = np.quantile(squares, 0.99, axis=1)
    size = max(1, CHUNK_ENTRIES // max(S.shape[0], 1))
    for first in range(0, pairs.shape[0], size):
        i, j = pairs[first : first + size].T
        a, b = squares[i], squares[j]  # (pairs, m)
        norm = a + b
        least = IN_PLANE * np.quantile(norm, 0.99, axis=1)
        large = np.maximum(np.maximum(np.minimum(sizes[i], sizes[j]), least), np.finfo(np.float64).tiny)
        excess = norm - least[:, None]
        w = np.where(excess > 0, np.exp(-COOLING * np.maximum(excess, 0.0) / large[:, None]), 0.0) * weights
        values = w * (norm * norm - 8 * a * b)
        error = np.sqrt(np.sum(values * values, axis=1))
        out[first : first + size] = np.divide(np.sum(values, axis=1), error, out=np.zeros_like(error), where=error > 0)
    return out
