"""Beyond the paper: from a spectral start to full statistical accuracy, and to the exact dictionary of sparse data.

Whitened samples ``z``, an unmixing matrix ``W`` with rows ``w_i``, signals ``s = W z``.  The rows of ``W^(-T)`` are the
atoms.  Three stages, each from the result of the one before:

1. *Orthogonal* (``orthogonal``): the symmetric fixed point of FastICA with ``psi = tanh``, ``W <- polar(E[psi(s) z'] -
   diag(E[psi'(s)]) W)``.  Its accuracy is that of the empirical covariance, since ``W`` stays orthogonal.
2. *Free* (``free``): maximum likelihood without that constraint.  Newton steps on ``E[psi_i(s_i) s_j] = 0`` with the
   block-diagonal Hessian of independent signals (as in Pham and Garat, and Picard), and a score ``psi_i`` that is
   fitted to the signals: ``psi = sum_k c_k clip(s, -t_k, t_k)``, where ``c`` minimises ``E[psi^2] - 2 E[psi']``, the
   distance to the true score ``-p'/p``.  Signs that are independent given the magnitudes make the truth a solution,
   whatever the supports.
3. *Sparse* (``sparse``): row ``w_i`` is orthogonal to every sample in which atom ``i`` is not active.  So: take the
   samples with ``|s_i|`` below a threshold ``t_i``, let ``w_i`` minimise ``E[(w_i' z)^2; |s_i| < t_i]`` with ``a_i' w_i
   = 1``, set ``t_i`` to a few times the root of that minimum, repeat.  On exactly sparse data the minimum is zero at
   the truth; small active coefficients that pass for inactive ones add ``O(t^(3/2))`` to its root, so ``t`` falls
   by a large factor in each round, down to rounding; once more from above, and it has to come back to the same.  On
   other data it stops at their noise, and the stage is not used.

The least squares of stage 3 need ``E[z z'; |s_i| < t_i]`` for every ``i``: one product of packed features with a mask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from quartic._arrays import pack_rank_one, packed_dim, unpack
from quartic.algorithms.recover import polar
from quartic.tensors.samples import rows_in_a_chunk

# What a pass over the samples reads: (half, centred rows (m, d), weights (m,)), chunk by chunk.
Source = Callable[[], Iterable[tuple[int, np.ndarray, np.ndarray]]]

QUANTILES = (0.5, 0.75, 0.9, 0.97, 0.995)  # of |s|, where the score bends; from the bulk to the tail, arbitrary
LONGEST = 0.5  # spectral norm of a Newton step: beyond it the expansion says nothing
SETTLED = 0.1  # a pass that moves less than this part of the standard error is the last
NEGLIGIBLE = 1e-6  # and so is one that moves less than this: exact solutions have no standard error
MULTIPLE = 3.0  # of the root mean square of inactive signals, as a threshold: what a Gaussian exceeds once in 370
FIRST, LARGE = 0.25, 0.99  # of this quantile of |s|, about the size of an active signal: the threshold to begin with
STEEPEST, SLOWEST = 8.0, 2.0  # a threshold falls by a factor between these in a round, so that leaks stay below it
DETERMINED = 4  # times n: samples that a row must be orthogonal to; n are so by accident
NEAR = 0.9  # squared correlation with the start of a row that stayed; the sum of two has about half with each of them
SILENT = 1e-6  # part of the largest signal, below which there is none, in exactly sparse data
SEPARATED = 8  # samples that tell two atoms apart; measured: rows orthogonal by accident have 1 or 2, rarely 4


@dataclass(frozen=True)
class Statistics:
    """Means over the samples of each half: all that a step needs.

    Attributes
    ----------
    cross : ndarray of shape (2, n, n)
        ``E[psi_i(s_i) s_j]``.
    slope : ndarray of shape (2, n)
        ``E[psi_i'(s_i)]``.
    weight : ndarray of shape (2,)
    """

    cross: np.ndarray
    slope: np.ndarray
    weight: np.ndarray

    def of(self, half: int | None) -> tuple[np.ndarray, np.ndarray]:
        """``cross`` and ``slope`` of one half, or of all samples."""
        if half is not None:
            return self.cross[half], self.slope[half]
        share = self.weight / self.weight.sum()
        return np.tensordot(share, self.cross, 1), share @ self.slope


def statistics(
    source: Source, unmixing: np.ndarray, score: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
) -> Statistics:
    """One pass over the samples: signals ``rows @ unmixing (d, n)``, and their means under a score."""
    n = unmixing.shape[1]
    cross, slope, weight = np.zeros((2, n, n)), np.zeros((2, n)), np.zeros(2)
    for h, rows, w in source():
        S = rows @ unmixing.astype(rows.dtype)
        psi, derivative = score(S)
        w = w.astype(rows.dtype)
        cross[h] += (psi * w[:, None]).T @ S
        slope[h] += w @ derivative
        weight[h] += w.sum(dtype=np.float64)
    safe = np.where(weight > 0, weight, 1.0)
    return Statistics(cross / safe[:, None, None], slope / safe[:, None], weight)


def tanh_score(S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``tanh`` and its derivative."""
    psi = np.tanh(S)
    return psi, 1 - psi * psi


@dataclass(frozen=True)
class ClippedScore:
    """``psi_i(s) = sum_k c_ki clip(s, -t_ki, t_ki)``: odd, bounded, and cheap.

    Attributes
    ----------
    knots, coefficients : ndarray of shape (k, n)
    """

    knots: np.ndarray
    coefficients: np.ndarray

    def __call__(self, S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The score and its derivative for signals ``(m, n)``."""
        psi, slope = np.zeros_like(S), np.zeros_like(S)
        size = np.abs(S)
        for t, c in zip(self.knots.astype(S.dtype), self.coefficients.astype(S.dtype), strict=True):
            psi += c * np.clip(S, -t, t)
            slope += c * (size < t)
        return psi, slope

    @classmethod
    def fit(cls, S: np.ndarray) -> ClippedScore:
        """The closest such score to that of the signals ``S (m, n)``: minimise ``E[psi^2] - 2 E[psi']``."""
        size = np.sort(np.abs(S), axis=0)
        t = size[[min(int(q * S.shape[0]), S.shape[0] - 1) for q in QUANTILES]].astype(np.float64)
        t = np.maximum(
            t, 1e-3 * np.sqrt(np.mean(size * size, axis=0, dtype=np.float64))
        )  # of signals that are mostly 0
        G = np.stack([np.clip(S, -knot, knot) for knot in t])  # (k, m, n)
        gram = np.einsum("kmi,lmi->ikl", G, G) / S.shape[0]
        slope = np.stack([np.mean(np.abs(S) < knot, axis=0) for knot in t], axis=1)  # (n, k)
        scale = np.trace(gram, axis1=1, axis2=2)[:, None, None]
        gram += 1e-6 * scale * np.eye(len(QUANTILES))  # knots may coincide
        return cls(t, np.linalg.solve(gram, slope[:, :, None])[:, :, 0].T)


def orthogonal_step(W: np.ndarray, cross: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Stage 1, from ``E[tanh(s_i) s_j]`` and ``E[tanh'(s_i)]``: another orthogonal ``W (n, n)``."""
    # E[psi(s) z'] = cross W, for orthogonal W.  The factor may be negative: signs do not matter, continuity does.
    step = polar((cross - np.diag(slope)) @ W)
    return step * np.where(np.sum(step * W, axis=1) < 0, -1.0, 1.0)[:, None]


def orthogonal_direction(cross: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """The skew-symmetric ``D`` of a Newton step ``W <- (Id - D) W`` in the orthogonal group."""
    curvature = slope - np.diagonal(cross)
    size = np.abs(curvature)[:, None] + np.abs(curvature)[None, :]
    signed = np.sign(curvature)[:, None] * cross  # a signal with less than Gaussian tails wants the other extremum
    return (signed - signed.T) / np.maximum(size, 1e-3 * np.median(size))


def free_direction(cross: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """The ``D`` of a Newton step ``W <- (Id - D) W`` without constraint, for signals of variance 1; zero diagonal.

    For independent signals the Hessian couples ``D_ij`` and ``D_ji`` only: ``slope_i D_ij + D_ji = cross_ij``.
    """
    determinant = np.maximum(slope[:, None] * slope[None, :] - 1, 1e-2)  # 0 for two Gaussian signals
    D = (cross * slope[None, :] - cross.T) / determinant
    np.fill_diagonal(D, 0.0)
    return D


def free_step(W: np.ndarray, D: np.ndarray) -> np.ndarray:
    """``(Id - D) W`` with rows of norm 1, not too far from ``W``."""
    norm = float(np.linalg.norm(D, 2))
    W = W - min(1.0, LONGEST / max(norm, LONGEST)) * (D @ W)
    return W / np.linalg.norm(W, axis=1, keepdims=True)


def atoms_of(W: np.ndarray) -> np.ndarray:
    """The atoms in whitened coordinates, unit rows ``(n, n)``: rows of the inverse transpose."""
    A = np.linalg.inv(W).T
    return A / np.linalg.norm(A, axis=1, keepdims=True)


def sines(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Sine of the angle between rows of ``A`` and of ``B``; unit rows of either sign."""
    inner = np.sum(A * B, axis=1, keepdims=True)
    return np.linalg.norm(A - inner * B, axis=1)


def half_atoms(W: np.ndarray, directions: list[np.ndarray]) -> list[np.ndarray]:
    """The atoms to which a Newton step ``(Id - D) W`` on each half of the samples would lead."""
    return [atoms_of(W - D @ W) for D in directions]


def contrast(S: np.ndarray) -> float:
    """How far signals ``(m, n)`` of variance 1 are from Gaussian ones: ``sum_i (E log cosh s_i - E log cosh g)^2``."""
    size = np.abs(S)
    mean = np.mean(size + np.log1p(np.exp(-2 * size)) - np.log(2), axis=0, dtype=np.float64)
    return float(np.sum((mean - 0.374567207) ** 2))  # E log cosh of a standard Gaussian


def pair_moments(source: Source, unmixing: np.ndarray) -> np.ndarray:
    """``E s_i^2 s_j^2 / (E s_i^2 E s_j^2)`` of the signals ``rows @ unmixing (d, n)``; the kurtosis on the diagonal."""
    n = unmixing.shape[1]
    second, fourth, total = np.zeros(n), np.zeros((n, n)), 0.0
    for _, rows, w in source():
        squares = (rows @ unmixing.astype(rows.dtype)).astype(np.float64) ** 2
        second += w @ squares
        fourth += (squares * w[:, None]).T @ squares
        total += w.sum()
    return fourth * total / (second[:, None] * second)


@dataclass(frozen=True)
class Sparse:
    """What the sparse stage reached.

    Attributes
    ----------
    W : ndarray of shape (n, n)
        Unmixing matrix, rows of norm 1.
    offset : ndarray of shape (n,)
        Signals are ``W z + offset``: the mean of sparse samples is not the point that they are sparse about.
    residual : ndarray of shape (n,)
        Root mean square of a signal that counts as inactive, where another atom is active: the worst over those.
    inactive : ndarray of shape (n,)
        In how many samples it does.  Some ``n`` samples can be made inactive by a suitable ``w`` in any data.
    separated : ndarray of shape (n,)
        In how many samples, at least, any other atom is active and this one is not: what tells the two apart.
    sums : ndarray of shape (n,)
        Whether a row went far from its start, and is active in fewer samples without a multiple of another row.
    rounds : int
    """

    W: np.ndarray
    offset: np.ndarray
    residual: np.ndarray
    inactive: np.ndarray
    separated: np.ndarray
    sums: np.ndarray
    rounds: int

    def exact(self, floor: float) -> bool:
        """Whether inactive codes vanish to ``floor``, are many, and tell each atom apart from every other.

        And no row is a sum: the difference of two signals of one size vanishes exactly wherever they have one sign.
        """
        many = (self.inactive >= DETERMINED * self.W.shape[0]) & (self.separated >= SEPARATED)
        return bool(np.all((self.residual <= floor) & many & ~self.sums))


def sparse(Z: np.ndarray, W: np.ndarray, floor: float = 1e-12, most: int = 50) -> Sparse:
    """Stage 3 on whitened float64 samples ``Z (m, n)``, from ``W (n, n)``, until residuals reach ``floor`` or halt."""
    m, n = Z.shape
    Z = np.concatenate((Z, np.ones((m, 1))), axis=1)  # the last coordinate finds the offset
    V = np.concatenate((W / np.linalg.norm(W, axis=1, keepdims=True), np.zeros((n, 1))), axis=1)
    t, settled = _threshold(Z, V), np.zeros_like(V)
    size = rows_in_a_chunk(n + 1, Z.dtype)
    rounds = 0
    while rounds < most:
        rounds += 1
        inside, pairs, leaks = np.zeros((packed_dim(n + 1), n)), np.zeros((n, n)), np.zeros((n, n))
        for first in range(0, m, size):
            rows = Z[first : first + size]
            S = rows @ V.T
            inactive = (np.abs(S) < t).astype(np.float64)
            inside += pack_rank_one(rows) @ inactive  # sum of zz' over the samples in which atom i is inactive
            pairs += (1 - inactive).T @ inactive  # samples in which j is active and i is not,
            leaks += (1 - inactive).T @ (inactive * S * S)  # and what they leave of signal i
        # Atoms that come together are told apart where one comes alone: the worst of these means is the residual.
        residual = np.sqrt(np.max(leaks / np.maximum(pairs, 1.0), axis=0))
        # argmin w' R w with a' w = 1 is R^(-1) a; R is singular at the solution, to rounding.
        R = unpack(inside) / m
        R += (1e-15 * np.trace(R, axis1=1, axis2=2)[:, None, None] + np.finfo(np.float64).tiny) * np.eye(n + 1)
        A = np.concatenate((np.linalg.pinv(V[:, :n]).T, np.zeros((n, 1))), axis=1)
        scale = np.max(np.abs(R), axis=(1, 2), keepdims=True)
        V = np.linalg.solve(R / scale, A[:, :, None])[:, :, 0]
        V /= np.linalg.norm(V[:, :n], axis=1, keepdims=True)
        inactive_samples = inside[-1]  # sums of the square of the last coordinate, which is 1
        separated = np.min(np.where(np.eye(n) > 0, np.inf, pairs), axis=0)
        lost = (separated < SEPARATED) | (inactive_samples < DETERMINED * n)
        if np.any(lost):
            break
        if np.all(residual <= floor):
            if np.max(np.abs(V - settled)) <= np.sqrt(floor):
                break
            # Once more from a high threshold.  The truth comes back to itself; a row may also have converged to a sum
            # of two, where these are often active together and cancel, as signs do: it is small there, and leaves.
            t, settled = _threshold(Z, V), V
        else:
            t = np.clip(MULTIPLE * residual, t / STEEPEST, t / SLOWEST)
    far = np.sum(V[:, :n] * W, axis=1) ** 2 < NEAR * np.sum(W * W, axis=1)
    sums = far & (_sums(Z @ V.T, far) if np.all(residual <= floor) else False)
    return Sparse(V[:, :n], V[:, n], residual, inactive_samples, separated, sums, rounds)


def _sums(S: np.ndarray, far: np.ndarray) -> np.ndarray:
    """Which of the ``far`` signals of ``S (m, n)`` are active in fewer samples without a multiple of another.

    The multiple is the median ratio of the two.  Where coefficients are no signs, no ratio comes up twice.
    """
    active = np.abs(S) > SILENT * np.max(np.abs(S), axis=0)
    out = np.zeros(S.shape[1], dtype=bool)
    for i in np.flatnonzero(far):  # none, if the start was any good
        both = active & active[:, i : i + 1]
        both[:, i] = False
        ratio = np.where(both, S[:, i : i + 1] / np.where(active, S, 1.0), np.nan)
        some = np.any(both, axis=0)
        ratio, both, others = ratio[:, some], both[:, some], active[:, some]
        gone = np.abs(ratio - np.nanmedian(ratio, axis=0)) <= SILENT
        out[i] = np.any(np.sum(gone & both, axis=0) > np.sum(others & ~both, axis=0))
    return out


def _threshold(Z: np.ndarray, V: np.ndarray) -> np.ndarray:
    """The first threshold of each signal ``Z @ V.T``: a part of an active one."""
    return FIRST * np.quantile(np.abs(Z @ V.T), LARGE, axis=0)


def orthogonal(source: Source, forward: np.ndarray, W: np.ndarray, most: int) -> tuple[np.ndarray, Statistics, int]:
    """Stage 1 from ``W (n, n)``: passes until one moves little; the last statistics, and the number of passes.

    ``forward (d, n)`` whitens the rows of ``source``.
    """
    done = 0
    while done < most:
        done += 1
        means = statistics(source, forward @ W.T, tanh_score)
        step = orthogonal_step(W, *means.of(None))
        moved, W = np.sqrt(np.mean((step - W) ** 2)), step
        if moved <= max(SETTLED * _standard_error(means, orthogonal_direction), NEGLIGIBLE):
            break
    return W, means, done


def free(
    source: Source, forward: np.ndarray, W: np.ndarray, score: ClippedScore, most: int
) -> tuple[np.ndarray, Statistics, int]:
    """Stage 2 from ``W (n, n)`` with a score that was fitted before; as :func:`orthogonal`."""
    W = W / np.linalg.norm(W, axis=1, keepdims=True)
    done = 0
    while done < most:
        done += 1
        means = statistics(source, forward @ W.T, score)
        step = free_step(W, free_direction(*means.of(None)))
        moved, W = np.sqrt(np.mean((step - W) ** 2)), step
        if moved <= max(SETTLED * _standard_error(means, free_direction), NEGLIGIBLE):
            break
    return W, means, done


def _standard_error(means: Statistics, direction: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> float:
    """Of an entry of ``W``, from the Newton steps on two halves of the samples; a guess, where there is one half."""
    if not np.all(means.weight > 0):
        return float(1 / np.sqrt(means.weight.sum()))
    return float(np.sqrt(np.mean((direction(*means.of(0)) - direction(*means.of(1))) ** 2)) / 2)
