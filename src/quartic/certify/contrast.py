r"""What a frame of axes leaves odd: the statistics of a contrast, with their standard errors.

Let ``s_i`` be the signals of orthonormal axes, ``psi`` an odd score, ``v_i`` their variances, ``C`` their covariance.

    kurtosis     k_i   = E[psi(s_i) s_i] - E[psi'(s_i)] v_i            0 for a Gaussian signal
    offset       o_ij  = E[psi(s_i) s_j] - E[psi'(s_i)] C_ij           0 for right axes
    stiffness    S_ij  = k_i - E[psi'(s_i) (s_j^2 - v_j)]              -d o_ij / d(angle) when i turns towards j
    coupling     k_i - S_ij                                            0 for independent signals, k_i on a sphere
    dependence   c_ij  = E[phi(s_i) (s_j^2 - v_j)],  phi = psi(s)/s    0 for independent signals
    remainder    E[phi(s_i) s_j s_k] - E[phi(s_i)] C_jk, j != k        0 for right axes; only its energy, on its own

For ``psi = s^3`` these are the fourth cumulants, ``kappa_iiii``, ``kappa_iiij``, ``kappa_i - 3 c_ij``, ``c_ij`` and
``kappa_iijk``, and ``T(u_i u_i')`` is made of them.  *Right axes* are those of independent sources, whatever their
laws, or of sources whose signs are independent given their magnitudes: then ``o`` and the remainder vanish for every
odd ``psi``.  In a plane in which the law is the same in all directions ``o`` vanishes at every angle, and so does
``S``, for every ``psi``.  So ``o_ij / S_ij`` is the angle by which axis ``i`` is off towards ``j``, to first order, and
a plane in which ``S`` may be zero has no axes.

``psi = tanh`` has a bounded influence and errs far less for most laws; the cube sees what is far from the bulk.
Standard errors are those of the influence of a sample, with the covariance and the mean as they are estimated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from quartic._arrays import pack_rank_one, packed_dim

Score = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]  # psi, its derivative, and psi(y) / y

FAR = 1e-5  # about the rate of false alarms of one plane: so far out errors of few units are matched
SILENT = float(np.finfo(np.float32).eps)  # a variance, under weights, that is none but for rounding
BLOCK = 1 << 22  # numbers of packed features at a time


def cube(y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``y^3``."""
    square = y * y
    return square * y, 3 * square, square


def tanh(y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``tanh``."""
    psi = np.tanh(y)
    near = np.abs(y) < 1e-4  # where the quotient is 1 to rounding
    return psi, 1 - psi * psi, np.where(near, 1.0, psi / np.where(near, 1.0, y))


@cache
def gaussian_error(score: Score) -> float:
    """Standard deviation of the influence of a standard Gaussian sample on the kurtosis: ``sqrt(24)`` for the cube."""
    y, w = np.polynomial.hermite_e.hermegauss(100)
    w = w / np.sum(w)
    psi, slope, _ = score(y)
    influence = psi * y - (w @ slope) * y * y - slope
    return float(np.sqrt(w @ influence**2 - (w @ influence) ** 2))


@dataclass(frozen=True)
class Figure:
    """Estimates and their standard errors, of one shape."""

    value: np.ndarray
    error: np.ndarray

    def __and__(self, other: Figure) -> Figure:
        """The mean of two independent ones."""
        return Figure((self.value + other.value) / 2, np.hypot(self.error, other.error) / 2)

    def in_errors(self) -> np.ndarray:
        """Magnitudes, in standard errors."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.value == 0, 0.0, np.abs(self.value) / self.error)

    def surely_beyond(self, size: np.ndarray | float, errors: float) -> np.ndarray:
        """Where the magnitude exceeds ``size`` by so many standard errors."""
        return np.abs(self.value) - errors * self.error > size

    def surely_within(self, size: np.ndarray | float, errors: float) -> np.ndarray:
        """Where the magnitude is below ``size`` by so many standard errors."""
        return np.abs(self.value) + errors * self.error <= size


@dataclass(frozen=True)
class Contrast:
    """The figures of one score, for ``r`` axes.

    Attributes
    ----------
    kurtosis, shape : Figure of shape (r,)
        ``k_i``, and in units of the signal's own spread.
    gaussian : ndarray of shape (r,)
        The standard error of ``k_i`` if the signal is Gaussian.
    offset, stiffness, coupling, dependence : Figure of shape (r, r)
        Row ``i`` measured with the weights of axis ``i``.
    harmonics : tuple of two Figures of shape (r, r)
        ``S_ij + S_ji`` and ``S_ij - S_ji``: for the cube the fourth and the second harmonic of the kurtosis in a plane.
    skewness : Figure of shape (r, r)
        ``E[s_i^2 s_j]``; on the diagonal ``E[s_i^3]``.
    """

    kurtosis: Figure
    shape: Figure
    gaussian: np.ndarray
    offset: Figure
    stiffness: Figure
    coupling: Figure
    harmonics: tuple[Figure, Figure]
    dependence: Figure
    skewness: Figure

    @property
    def sharpness(self) -> np.ndarray:
        """Kurtosis in the errors that it has if the signal is Gaussian, ``(r,)``."""
        return Figure(self.kurtosis.value, np.minimum(self.kurtosis.error, self.gaussian)).in_errors()

    def sharp(self, errors: float) -> np.ndarray:
        """Which signals are not Gaussian: kurtosis beyond so many of these errors."""
        return np.asarray(self.sharpness > errors)

    def __and__(self, other: Contrast) -> Contrast:
        """From two independent parts of the samples."""
        names = [f.name for f in fields(self) if f.name not in ("harmonics", "gaussian")]
        both: dict[str, Any] = {name: getattr(self, name) & getattr(other, name) for name in names}
        both["harmonics"] = tuple(a & b for a, b in zip(self.harmonics, other.harmonics, strict=True))
        both["gaussian"] = np.hypot(self.gaussian, other.gaussian) / 2
        return Contrast(**both)


def measure(S: np.ndarray, W: np.ndarray, score: Score, units: np.ndarray | None = None) -> Contrast:
    """The figures of signals ``S (m, r)``.

    Parameters
    ----------
    S : ndarray of shape (m, r)
    W : ndarray of shape (m, r) or (m, 1)
        Weights of the samples, of each axis or of all; columns sum to 1.
    score : callable
    units : ndarray of shape (m,), optional
        The unit of each sample, where not each is one: standard errors are those of sums over units.
    """
    squares = S * S
    V = W.T @ squares  # (r or 1, r): variances under the weights of each axis
    own = V[0] if W.shape[1] == 1 else np.diagonal(V).copy()
    spread = np.sqrt(np.where(own > SILENT, own, 1.0))
    psi, slope, phi = score(S / spread)
    slope, phi = slope / spread, phi / spread
    W2 = W * W
    errors = _Rows() if units is None else _Units(units)

    def mean(X: np.ndarray) -> np.ndarray:
        return _mean(X, W)

    def against_squares(X: np.ndarray, variance: np.ndarray) -> Figure:
        """``E[x_i (s_j^2 - v_j)]`` for centred ``x (m, r)``."""
        # Of rare events none may have been seen yet: one more sample, in which both are active.
        unseen = np.sum(W2, axis=0)[:, None] * _when_active(X, W)[:, None] * _when_active(squares - own, W)
        return Figure((W * X).T @ squares, np.sqrt(np.maximum(variance, 0.0) + unseen**2))

    steep = mean(slope)
    k = mean(psi * S) - steep * own
    K = psi * S - steep * squares - slope * own  # influence of a sample on k
    K = K - mean(K)
    k_error = np.sqrt(errors.of(W * K))
    H = psi - steep * S - mean(psi)
    offset = Figure(
        (W * psi).T @ S - steep[:, None] * ((W * S).T @ S), np.sqrt(np.maximum(errors.of_products(W * H, S), 0.0))
    )
    D = slope - steep
    of_softer, variance, covariance = errors.of_stiffness(W * K, W * D, squares, V)
    softer = against_squares(D, of_softer)
    S_ij = k[:, None] - softer.value
    variance = np.maximum(variance + softer.error**2 - np.maximum(of_softer, 0.0), 0.0)
    harmonics = (
        Figure(S_ij + S_ij.T, np.sqrt(np.maximum(variance + variance.T + 2 * covariance, 0.0))),
        Figure(S_ij - S_ij.T, np.sqrt(np.maximum(variance + variance.T - 2 * covariance, 0.0))),
    )
    P = phi - mean(phi)
    skew = (W * squares).T @ S
    cubes = squares * S - 3 * own * S - np.diagonal(skew)
    skew_error = np.sqrt(np.maximum(errors.of_products(W * (squares - own), S), 0.0))
    lone = np.sum(W2, axis=0) * _when_active(cubes, W)  # one more sample in which it is active, as above
    np.fill_diagonal(skew_error, np.sqrt(errors.of(W * cubes) + lone**2))
    gaussian = spread * (gaussian_error(score) * np.sqrt(np.sum(W2, axis=0)))
    return Contrast(
        kurtosis=Figure(k, k_error),
        shape=Figure(k / spread, k_error / spread),
        gaussian=gaussian if units is None else k_error,  # the other one counts on independent rows
        offset=offset,
        stiffness=Figure(S_ij, np.sqrt(variance)),
        coupling=softer,
        harmonics=harmonics,
        dependence=against_squares(P, errors.of_squares(W * P, squares, V)),
        skewness=Figure(skew, skew_error),
    )


class _Rows:
    """Variances of weighted sums, the rows being independent: sums of squares, by products of matrices."""

    def of(self, X: np.ndarray) -> np.ndarray:
        """Of the columns of ``X (m, r)``."""
        return np.asarray(np.sum(X * X, axis=0))

    def of_products(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Of ``sum x_i y_j``."""
        return np.asarray((X * X).T @ (Y * Y))

    def of_squares(self, X: np.ndarray, squares: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Of ``sum x_i (s_j^2 - v_j)``."""
        Y = X * X
        return np.asarray(Y.T @ (squares * squares) - 2 * V * (Y.T @ squares) + V * V * np.sum(Y, axis=0)[:, None])

    def of_stiffness(
        self, K: np.ndarray, X: np.ndarray, squares: np.ndarray, V: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of ``sum x_i q_j``, with ``q = s^2 - v``; of ``y_ij = sum k_i - x_i q_j``; and of it with ``y_ji``."""
        Y = K * X
        shared = Y.T @ squares - V * np.sum(Y, axis=0)[:, None]
        alone = self.of_squares(X, squares, V)
        q = squares - (V[0] if V.shape[0] == 1 else np.diagonal(V))
        crossed = (K * q).T @ X
        covariance = K.T @ K - crossed - crossed.T + (X * q).T @ (X * q)
        return alone, self.of(K)[:, None] - 2 * shared + alone, covariance


class _Units:
    """The same of sums over units, which are independent, and within which rows need not be.

    Of few units errors follow Student's law: they are larger by the ratio of its quantile to that of Gauss' law.
    """

    def __init__(self, units: np.ndarray) -> None:
        self.order = np.argsort(units, kind="stable")
        starts = np.flatnonzero(np.diff(units[self.order], prepend=-1))
        self.ranges = list(zip(starts, np.append(starts[1:], units.shape[0]), strict=True))
        few = max(len(self.ranges) - 1, 1)
        self.inflation = (few + 1) / few * (student.isf(FAR, few) / norm.isf(FAR)) ** 2

    def of(self, X: np.ndarray) -> np.ndarray:
        X = X[self.order]
        return np.asarray(self.inflation * sum(np.sum(X[a:b], axis=0) ** 2 for a, b in self.ranges))

    def of_products(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        X, Y = X[self.order], Y[self.order]
        return np.asarray(self.inflation * sum((X[a:b].T @ Y[a:b]) ** 2 for a, b in self.ranges))

    def of_squares(self, X: np.ndarray, squares: np.ndarray, V: np.ndarray) -> np.ndarray:
        return self.of_stiffness(np.zeros_like(X), X, squares, V)[0]

    def of_stiffness(
        self, K: np.ndarray, X: np.ndarray, squares: np.ndarray, V: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        K, X, squares = K[self.order], X[self.order], squares[self.order]
        r = X.shape[1]
        alone, together, covariance = (np.zeros((r, r)) for _ in range(3))
        for a, b in self.ranges:
            x = X[a:b].T @ squares[a:b] - V * np.sum(X[a:b], axis=0)[:, None]
            y = np.sum(K[a:b], axis=0)[:, None] - x
            alone += x * x
            together += y * y
            covariance += y * y.T
        return self.inflation * alone, self.inflation * together, self.inflation * covariance


def remainder(S: np.ndarray, W: np.ndarray, score: Score, some: np.ndarray) -> Figure:
    """Energy of the entries ``j != k``, both other than ``i``, for ``some (n,)`` of the axes; it costs most of all.

    The error is what noise adds to it on average.
    """
    squares, own = S * S, S[:, some]
    W = W if W.shape[1] == 1 else W[:, some]
    spread = np.sqrt(_mean(own * own, W))
    _, _, phi = score(own / np.where(spread > 0, spread, 1.0))
    P = phi / np.where(spread > 0, spread, 1.0)
    P = P - _mean(P, W)
    beside = np.sum(squares, axis=1, keepdims=True) - own * own
    # sum of s_j^2 s_k^2, j != k != i
    pairs = beside * beside - (np.sum(squares * squares, axis=1, keepdims=True) - own**4)
    return Figure(_energy(S, W * P, some), _mean(W * P * P * np.maximum(pairs, 0.0), W))


def offsets(S: np.ndarray, W: np.ndarray, score: Score) -> tuple[np.ndarray, np.ndarray]:
    """Offset and stiffness ``(r, r)`` alone, without errors: what a Newton step needs; see :func:`measure`."""
    squares = S * S
    own = _mean(squares, W)
    spread = np.sqrt(np.where(own > 0, own, 1.0))
    psi, slope, _ = score(S / spread)
    slope = slope / spread
    steep = _mean(slope, W)
    k = _mean(psi * S, W) - steep * own
    offset = (W * psi).T @ S - steep[:, None] * ((W * S).T @ S)
    return offset, k[:, None] - (W * (slope - steep)).T @ squares


def _when_active(X: np.ndarray, W: np.ndarray) -> np.ndarray:
    """``E x^2 / E |x|`` of the columns of ``X (m, r)``: the size of a variable that is mostly small, when it is not."""
    first = _mean(np.abs(X), W)
    return np.asarray(_mean(X * X, W) / np.where(first > 0, first, 1.0))


def _mean(X: np.ndarray, W: np.ndarray) -> np.ndarray:
    """Of the columns of ``X (m, r)``, under weights of all or of each."""
    return np.asarray(W[:, 0] @ X if W.shape[1] == 1 else np.einsum("ij,ij->j", W, X))


def _energy(S: np.ndarray, X: np.ndarray, some: np.ndarray) -> np.ndarray:
    """``sum_(j != k, both != i) (sum_s x_i s_j s_k)^2`` for ``X (m, n)`` of ``some`` axes: a product with features."""
    m, r = S.shape
    total = np.zeros((packed_dim(r), X.shape[1]))
    size = max(1, BLOCK // packed_dim(r))
    for first in range(0, m, size):
        rows = slice(first, first + size)
        total += pack_rank_one(S[rows]) @ X[rows]
    with_own = (X * S[:, some]).T @ S
    with_own[np.arange(some.shape[0]), some] = 0.0
    # Packing is an isometry: the whole of each matrix, without its diagonal and its row and column i.
    whole = np.sum(total * total, axis=0) - np.sum((X.T @ (S * S)) ** 2, axis=1)
    return np.maximum(whole - 2 * np.sum(with_own * with_own, axis=1), 0.0)
