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

Everything runs in the library and on the device of the samples; ``n x n`` matrices are float64 there.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from quartic._arrays import (
    Array,
    array_namespace,
    clip,
    device,
    from_numpy,
    gram_of_each,
    median,
    on_host,
    pack_rank_one,
    quantile,
    to_numpy,
    unpack,
)
from quartic.algorithms.recover import polar
from quartic.tensors.samples import rows_in_a_chunk

Chunk = tuple[int, Array, Array]  # of samples: their half, centred rows (m, d) and weights (m,)
Score = Callable[[Array], tuple[Array, Array]]  # from signals, their score and its derivative
Direction = Callable[[Array, Array], Array]  # from the means of cross and slope

QUANTILES = (0.5, 0.75, 0.9, 0.97, 0.995)  # of |s|, where the score bends; from the bulk to the tail, arbitrary
LONGEST = 0.5  # spectral norm of a Newton step: beyond it the expansion says nothing
# Bytes that a cache holds.  Where malloc's thresholds are fixed, as they are on Dask's workers, it maps memory afresh
# from 128 KB on, and to clear the pages takes longer than to compute on them: blocks stay below.
BLOCK, LEAST = 1 << (16 if "MALLOC_TRIM_THRESHOLD_" in os.environ else 19), 64  # and rows, at least
SETTLED = 0.1  # a pass that moves less than this part of the standard error is the last
NEGLIGIBLE = 1e-6  # and so is one that moves less than this: exact solutions have no standard error
MULTIPLE = 3.0  # of the root mean square of inactive signals, as a threshold: what a Gaussian exceeds once in 370
FIRST, LARGE = 0.25, 0.99  # of this quantile of |s|, about the size of an active signal: the threshold to begin with
EVEN = 0.25  # of the threshold's square: a third is left of a signal that is spread evenly below, of sparse ones less
IMPROVED = 3  # round from which on that is so: rows that are far off at first leave more; measured (tests/test_sparse)
STEEPEST, SLOWEST = 8.0, 2.0  # a threshold falls by a factor between these in a round, so that leaks stay below it
DETERMINED = 4  # times n: samples that a row must be orthogonal to; n are so by accident
NEAR = 0.9  # squared correlation with the start of a row that stayed; the sum of two has about half with each of them
SILENT = 1e-6  # part of the largest signal, below which there is none, in exactly sparse data
LOG_COSH, LOG_COSH_SPREAD = 0.374567207, 0.435623  # mean and standard deviation of log cosh of a standard Gaussian
SEPARATED = 8  # samples that tell two atoms apart; measured: rows orthogonal by accident have 1 or 2, rarely 4


@dataclass(frozen=True)
class Statistics:
    """Sums over the samples of each half, whose means are all that a step needs.

    Attributes
    ----------
    cross : array of shape (2, n, n)
        Of ``psi_i(s_i) s_j``.
    slope : array of shape (2, n)
        Of ``psi_i'(s_i)``.
    weight : array of shape (2,)
    """

    cross: Array
    slope: Array
    weight: Array

    @property
    def both(self) -> bool:
        """Whether both halves have samples."""
        return bool(array_namespace(self.weight).all(self.weight > 0))

    def of(self, half: int | None) -> tuple[Array, Array]:
        """Means of ``cross`` and ``slope`` over one half, or over all samples."""
        xp = array_namespace(self.cross)
        safe = xp.where(self.weight > 0, self.weight, xp.ones_like(self.weight))
        cross, slope = self.cross / safe[:, None, None], self.slope / safe[:, None]
        if half is not None:
            return cross[half, ...], slope[half, ...]
        share = self.weight / xp.sum(self.weight)
        return xp.tensordot(share, cross, axes=1), share @ slope


Signals = tuple[Array, Score]  # an unmixing matrix (d, n), and the score that they are measured by
# One pass over samples, wherever they are: the statistics of one kind of signals, or of several at once.
Pass = Callable[..., list[Statistics]]


def statistics(chunks: Iterable[Chunk], *wanted: Signals) -> list[Statistics]:
    """One pass over the samples: for each of the ``wanted`` signals ``rows @ unmixing``, their sums under a score."""
    xp = array_namespace(wanted[0][0])
    sums = [_Sums(unmixing) for unmixing, _ in wanted]
    for h, rows, w in _blocks(chunks, max(unmixing.shape[1] for unmixing, _ in wanted)):
        w = xp.astype(w, rows.dtype)
        for mine, (unmixing, score) in zip(sums, wanted, strict=True):
            S = rows @ xp.astype(unmixing, rows.dtype)
            psi, derivative = score(S)
            mine.cross[h] = mine.cross[h] + xp.matrix_transpose(psi * w[:, None]) @ S
            mine.slope[h] = mine.slope[h] + w @ derivative
            mine.weight[h] = mine.weight[h] + xp.sum(w, dtype=xp.float64)
    return [Statistics(*(xp.stack(x) for x in (mine.cross, mine.slope, mine.weight))) for mine in sums]


def _blocks(chunks: Iterable[Chunk], n: int) -> Iterator[Chunk]:
    """The chunks, on the host cut so that ``n`` signals of a block take no more than ``BLOCK`` bytes."""
    for h, rows, w in chunks:
        m = rows.shape[0]
        eps = float(array_namespace(rows).finfo(rows.dtype).eps)
        size = max(LEAST, BLOCK // (n * (4 if eps > 1e-10 else 8))) if on_host(rows) else max(m, 1)
        for first in range(0, m, size):
            last = min(first + size, m)
            yield h, rows[first:last, :], w[first:last]


class _Sums:
    """The sums of :class:`Statistics`, one for each half, as they grow."""

    def __init__(self, unmixing: Array) -> None:
        xp, n = array_namespace(unmixing), unmixing.shape[1]
        self.cross, self.slope, self.weight = (
            [xp.zeros(shape, dtype=xp.float64, device=device(unmixing))] * 2 for shape in ((n, n), (n,), ())
        )


def tanh_score(S: Array) -> tuple[Array, Array]:
    """``tanh`` and its derivative."""
    psi = array_namespace(S).tanh(S)
    return psi, 1 - psi * psi


@dataclass(frozen=True)
class ClippedScore:
    """``psi_i(s) = sum_k c_ki clip(s, -t_ki, t_ki)``: odd, bounded, and cheap.

    Attributes
    ----------
    knots, coefficients : array of shape (k, n)
    """

    knots: Array
    coefficients: Array

    def __call__(self, S: Array) -> tuple[Array, Array]:
        """The score and its derivative for signals ``(m, n)``."""
        xp = array_namespace(S)
        psi, slope = xp.zeros_like(S), xp.zeros_like(S)
        size = xp.abs(S)
        knots, coefficients = (xp.astype(x, S.dtype) for x in (self.knots, self.coefficients))
        for k in range(knots.shape[0]):
            t, c = knots[k, :], coefficients[k, :]
            part, inside = xp.minimum(size, t), xp.astype(size < t, S.dtype)
            part *= c  # in place, here and below: it is memory, not arithmetic, that takes the time
            inside *= c
            psi += part
            slope += inside
        psi *= xp.sign(S)
        return psi, slope

    @classmethod
    def fit(cls, S: Array) -> ClippedScore:
        """The closest such score to that of the signals ``S (m, n)``: minimise ``E[psi^2] - 2 E[psi']``."""
        xp = array_namespace(S)
        m = S.shape[0]
        size = xp.sort(xp.abs(S), axis=0)
        places = [min(int(q * m), m - 1) for q in QUANTILES]
        # Between two signals, and a little above where both are the same: or rounding would decide on which side it is.
        t = xp.stack([xp.astype(size[place, :] + size[max(place - 1, 0), :], xp.float64) / 2 for place in places])
        t = t * (1 + 100 * float(xp.finfo(S.dtype).eps))
        # Of signals that are mostly 0.
        t = xp.maximum(t, 1e-3 * xp.sqrt(xp.sum(size * size, axis=0, dtype=xp.float64) / m))
        S = xp.astype(S, xp.float64)
        G = xp.stack([clip(S, -t[k, :], t[k, :]) for k in range(len(QUANTILES))])  # (k, m, n)
        gram = gram_of_each(G) / m
        size = xp.abs(S)
        slope = xp.stack(
            [xp.mean(xp.astype(size < t[k, :], xp.float64), axis=0) for k in range(len(QUANTILES))], axis=1
        )  # (n, k)
        scale = xp.linalg.trace(gram)[:, None, None]
        gram = gram + 1e-6 * scale * _eye(len(QUANTILES), gram)  # knots may coincide
        return cls(t, xp.matrix_transpose(xp.linalg.solve(gram, slope[:, :, None])[:, :, 0]))


def _eye(n: int, like: Array) -> Array:
    return array_namespace(like).eye(n, dtype=like.dtype, device=device(like))


def orthogonal_step(W: Array, cross: Array, slope: Array) -> Array:
    """Stage 1, from ``E[tanh(s_i) s_j]`` and ``E[tanh'(s_i)]``: another orthogonal ``W (n, n)``."""
    xp = array_namespace(W)
    # E[psi(s) z'] = cross W, for orthogonal W.  The factor may be negative: signs do not matter, continuity does.
    step = polar((cross - _eye(W.shape[0], W) * slope) @ W)
    return xp.where(xp.sum(step * W, axis=1)[:, None] < 0, -step, step)


def orthogonal_direction(cross: Array, slope: Array) -> Array:
    """The skew-symmetric ``D`` of a Newton step ``W <- (Id - D) W`` in the orthogonal group."""
    xp = array_namespace(cross)
    curvature = slope - xp.linalg.diagonal(cross)
    size = xp.abs(curvature)[:, None] + xp.abs(curvature)[None, :]
    signed = xp.sign(curvature)[:, None] * cross  # a signal with less than Gaussian tails wants the other extremum
    return (signed - xp.matrix_transpose(signed)) / xp.maximum(size, 1e-3 * median(size))


def free_direction(cross: Array, slope: Array) -> Array:
    """The ``D`` of a Newton step ``W <- (Id - D) W`` without constraint, for signals of variance 1; zero diagonal.

    For independent signals the Hessian couples ``D_ij`` and ``D_ji`` only: ``slope_i D_ij + D_ji = cross_ij``.
    """
    xp = array_namespace(cross)
    determinant = xp.clip(slope[:, None] * slope[None, :] - 1, min=1e-2)  # 0 for two Gaussian signals
    D = (cross * slope[None, :] - xp.matrix_transpose(cross)) / determinant
    return xp.where(_eye(D.shape[0], D) > 0, xp.zeros_like(D), D)


def free_step(W: Array, D: Array) -> Array:
    """``(Id - D) W`` with rows of norm 1, not too far from ``W``."""
    xp = array_namespace(W)
    # The spectral norm is at most that of Frobenius, which is cheap and mostly small enough.
    short = float(xp.linalg.matrix_norm(D)) <= LONGEST
    part = 1.0 if short else min(1.0, LONGEST / max(float(xp.linalg.matrix_norm(D, ord=2)), LONGEST))
    return unit_rows(W - part * (D @ W))


def unit_rows(W: Array) -> Array:
    """The rows of ``W``, of norm 1."""
    return W / array_namespace(W).linalg.vector_norm(W, axis=1, keepdims=True)


def atoms_of(W: Array) -> Array:
    """The atoms in whitened coordinates, unit rows ``(n, n)``: rows of the inverse transpose."""
    xp = array_namespace(W)
    return unit_rows(xp.matrix_transpose(xp.linalg.inv(W)))


def sines(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Sine of the angle between rows of ``A`` and of ``B``; unit rows of either sign."""
    inner = np.sum(A * B, axis=1, keepdims=True)
    return np.linalg.norm(A - inner * B, axis=1)


def half_atoms(W: np.ndarray, directions: list[np.ndarray]) -> list[np.ndarray]:
    """The atoms to which a Newton step ``(Id - D) W`` on each half of the samples would lead."""
    return [atoms_of(W - D @ W) for D in directions]


def from_gaussian(S: Array) -> np.ndarray:
    """How far each of the signals ``(m, n)`` of variance 1 is from a Gaussian one: ``E log cosh s - E log cosh g``."""
    xp = array_namespace(S)
    size = xp.abs(S)
    values = size + xp.log1p(xp.exp(-2 * size)) - math.log(2)
    mean = xp.sum(values, axis=0, dtype=xp.float64) / S.shape[0]
    return to_numpy(mean) - LOG_COSH


def contrast(S: Array) -> float:
    """How far signals ``(m, n)`` of variance 1 are from Gaussian ones, all together: the sum of squares."""
    return float(np.sum(from_gaussian(S) ** 2))


def pair_moments(chunks: Iterable[Chunk], unmixing: Array) -> np.ndarray:
    """``E s_i^2 s_j^2 / (E s_i^2 E s_j^2)`` of the signals ``rows @ unmixing (d, n)``; the kurtosis on the diagonal."""
    xp = array_namespace(unmixing)
    second, fourth, total = (xp.zeros((), dtype=xp.float64, device=device(unmixing)) for _ in range(3))
    for _, rows, w in chunks:
        squares = xp.astype(rows @ xp.astype(unmixing, rows.dtype), xp.float64) ** 2
        second = second + w @ squares
        fourth = fourth + xp.matrix_transpose(squares * w[:, None]) @ squares
        total = total + xp.sum(w)
    return to_numpy(fourth * total / (second[:, None] * second))


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

    def exact(self, floor: float, least: float = 0.0) -> bool:
        """Whether inactive codes vanish to ``floor``, are many, at ``least`` so many, and tell atoms from each other.

        And no row is a sum: the difference of two signals of one size vanishes exactly wherever they have one sign.
        """
        many = (self.inactive >= max(DETERMINED * self.W.shape[0], least)) & (self.separated >= SEPARATED)
        return bool(np.all((self.residual <= floor) & many & ~self.sums))


def sparse(Z: Array, W: np.ndarray, floor: float = 1e-12, most: int = 50) -> Sparse:
    """Stage 3 on whitened float64 samples ``Z (m, n)``, from ``W (n, n)``, until residuals reach ``floor`` or halt."""
    xp = array_namespace(Z)
    m, n = Z.shape
    Z = xp.concat((Z, xp.ones_like(Z[:, :1])), axis=1)  # the last coordinate finds the offset
    start = from_numpy(W, Z)
    none = xp.zeros_like(start[:, :1])
    V = xp.concat((unit_rows(start), none), axis=1)
    t, settled = _threshold(Z, V), xp.zeros_like(V)
    size = rows_in_a_chunk(n + 1, Z)
    identity = _eye(n + 1, Z)
    rounds = 0
    while rounds < most:
        rounds += 1
        inside, pairs, leaks, left = (xp.zeros((), dtype=Z.dtype, device=device(Z)) for _ in range(4))
        for first in range(0, m, size):
            rows = Z[first : min(first + size, m), :]
            S = rows @ xp.matrix_transpose(V)
            inactive = xp.astype(xp.abs(S) < t, Z.dtype)
            active = xp.matrix_transpose(1 - inactive)
            inside = inside + pack_rank_one(rows) @ inactive  # sum of zz' over the samples in which atom i is inactive
            pairs = pairs + active @ inactive  # samples in which j is active and i is not,
            small = inactive * S * S
            leaks = leaks + active @ small  # and what they leave of signal i
            left = left + xp.sum(small, axis=0)
        # Atoms that come together are told apart where one comes alone: the worst of these means is the residual.
        residual = xp.sqrt(xp.max(leaks / xp.clip(pairs, min=1.0), axis=0))
        inactive_samples = inside[-1, :]  # sums of the square of the last coordinate, which is 1
        separated = xp.min(xp.where(identity[:n, :n] > 0, xp.full_like(pairs, math.inf), pairs), axis=0)
        if rounds >= IMPROVED and float(median(left - EVEN * t * t * inactive_samples)) > 0:
            break  # no mass at zero
        # argmin w' R w with a' w = 1 is R^(-1) a; R is singular at the solution, to rounding.
        R = unpack(inside) / m
        R += (1e-15 * xp.linalg.trace(R)[:, None, None] + float(xp.finfo(Z.dtype).smallest_normal)) * identity
        A = xp.concat((_dual(V[:, :n]), none), axis=1)
        scale = xp.max(xp.abs(R), axis=(1, 2), keepdims=True)
        V = xp.linalg.solve(R / scale, A[:, :, None])[:, :, 0]
        V = V / xp.linalg.vector_norm(V[:, :n], axis=1, keepdims=True)
        if bool(xp.any((separated < SEPARATED) | (inactive_samples < DETERMINED * n))):
            break
        if bool(xp.all(residual <= floor)):
            if float(xp.max(xp.abs(V - settled))) <= math.sqrt(floor):
                break
            # Once more from a high threshold.  The truth comes back to itself; a row may also have converged to a sum
            # of two, where these are often active together and cancel, as signs do: it is small there, and leaves.
            t, settled = _threshold(Z, V), V
        else:
            t = xp.minimum(xp.maximum(MULTIPLE * residual, t / STEEPEST), t / SLOWEST)
    rows, residuals, inactives, apart = (to_numpy(x) for x in (V, residual, inactive_samples, separated))
    far = np.sum(rows[:, :n] * W, axis=1) ** 2 < NEAR * np.sum(W * W, axis=1)
    exact = bool(np.any(far)) and bool(np.all(residuals <= floor))
    sums = far & (_sums(to_numpy(Z @ xp.matrix_transpose(V)), far) if exact else False)
    return Sparse(rows[:, :n], rows[:, n], residuals, inactives, apart, sums, rounds)


def _dual(V: Array) -> Array:
    """Rows ``a_i`` with ``<a_i, v_j> = [i = j]`` for the rows of ``V (n, n)``, if these are independent."""
    xp = array_namespace(V)
    gram = xp.matrix_transpose(V) @ V
    small = float(xp.finfo(V.dtype).eps) * float(V.shape[0])
    return xp.matrix_transpose(xp.linalg.solve(gram + small * _eye(V.shape[0], V), xp.matrix_transpose(V)))


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


def _threshold(Z: Array, V: Array) -> Array:
    """The first threshold of each signal ``Z @ V.T``: a part of an active one."""
    xp = array_namespace(Z)
    return FIRST * quantile(xp.abs(Z @ xp.matrix_transpose(V)), LARGE)


@dataclass(frozen=True)
class Iteration:
    """Where an estimate begins, and how it goes on.

    Attributes
    ----------
    W : array of shape (n, n)
    score : callable
        By which its signals are measured.
    direction : callable
        From the means of ``cross`` and ``slope`` to the ``D`` of a Newton step ``(Id - D) W``.
    step : callable
        From ``W`` and these means to the next ``W``.
    """

    W: Array
    score: Score
    direction: Direction
    step: Callable[[Array, Array, Array], Array]

    def moved(self, means: Statistics) -> Iteration:
        """One step on."""
        return replace(self, W=self.step(self.W, *means.of(None)))


def orthogonal(W: Array) -> Iteration:
    """Stage 1 from ``W (n, n)``."""
    return Iteration(W, tanh_score, orthogonal_direction, orthogonal_step)


def free(W: Array, score: ClippedScore) -> Iteration:
    """Stage 2 from ``W (n, n)`` with a score that was fitted before."""

    def step(W: Array, cross: Array, slope: Array) -> Array:
        return free_step(W, free_direction(cross, slope))

    return Iteration(unit_rows(W), score, free_direction, step)


def iterated(measure: Pass, forward: Array, most: int, *starts: Iteration) -> tuple[list[Array], list[Statistics], int]:
    """Steps of one estimate, or of several at once, a pass each, until they are small against standard errors.

    ``forward (d, n)`` whitens the rows that ``measure`` passes over.  Returns where each arrived, the statistics of the
    last pass, and the number of passes.
    """
    xp = array_namespace(forward)
    now = list(starts)
    done, settled = 0, False
    while done < most and not settled:
        done += 1
        means = measure(*((forward @ xp.matrix_transpose(one.W), one.score) for one in now))
        last, now = now, [one.moved(mine) for one, mine in zip(now, means, strict=True)]
        settled = all(
            float(xp.sqrt(xp.mean((b.W - a.W) ** 2))) <= max(SETTLED * _standard_error(mine, b.direction), NEGLIGIBLE)
            for a, b, mine in zip(last, now, means, strict=True)
        )
    return [one.W for one in now], means, done


def _standard_error(means: Statistics, direction: Direction) -> float:
    """Of an entry of ``W``, from the Newton steps on two halves of the samples; a guess, where there is one half."""
    xp = array_namespace(means.cross)
    if not means.both:
        return 1 / math.sqrt(float(xp.sum(means.weight)))
    return math.sqrt(float(xp.mean((direction(*means.of(0)) - direction(*means.of(1))) ** 2))) / 2
