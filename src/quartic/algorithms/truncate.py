"""Algorithm 4.1: from an error of small spectral norm to one of small Frobenius norm.

    Input: a tensor T, an error parameter eps.
    1. Reshape T to the square matrix T_{12,34}.
    2. T^{>eps} := (T - eps Id)_+.

Lemma 4.2: if ``||E|| <= eps`` then ``||T^{>eps} - S||_F <= 2 eps sqrt(2 n)``.

At most ``n`` eigenvalues survive, so only they are computed, by a block Krylov iteration on the packed
operator: a *sweep* is one application to a block of about ``n`` vectors, and a handful of sweeps gives the
constant accuracy that everything later needs.  Since it is the Frobenius norm of the error that counts from here
on, the iteration stops by the root mean square of the residuals, not by the largest.

=========  =====================================================================
symbol     meaning
=========  =====================================================================
``Q``      orthonormal basis ``(N, m)`` of the Krylov space
``H``      ``Q' T Q``, the operator projected to it, in float64
``W``      the part of ``T Q_last`` outside the span of ``Q``
``S``      eigenvectors of ``H``; Ritz vectors are ``Q S``
``C``      ``W`` times the last rows of ``S``: the residual ``T V - V diag(lam)``
=========  =====================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from quartic._arrays import (
    Array,
    array_namespace,
    descending,
    floor_of,
    from_numpy,
    orthonormalise,
    standard_normal,
    to_numpy,
)
from quartic.tensors.base import FourTensor
from quartic.tensors.factored import FactoredTensor

OVERSAMPLING = 8  # vectors beyond the rank, as in randomized range finders; measured: 16 saves no sweep
TOLERANCE = 0.1  # root mean square residual over the smallest kept eigenvalue; measured: F within 0.02 of its limit
EARLIEST = 3  # sweep, before which nothing has been seen to converge but what is exact
ONE_PASS = 6  # sweeps in which one pass of orthogonalisation is enough: each multiplies the loss by 5 at most
NEARLY_INSIDE = 1e-3  # part of T Q_last outside the Krylov space, below which it is orthogonalised twice
NORM_WIDTH = (
    4  # vectors that look for the norm together; measured: one alone stops at a smaller eigenvalue in 1 run of 12
)
NORM_TOLERANCE = 0.05  # an eigenvalue lies this close to the norm that is reported; a Ritz value is closer still
BASIS_BLOCKS, BASIS_LEAST = 12, 64  # blocks, and vectors, held before a restart: 6 n d^2 numbers, small beside N^2
MAX_SWEEPS = 60  # reached only where no gap separates kept from dropped eigenvalues


@dataclass(frozen=True)
class Spectrum:
    """Leading Ritz pairs of a tensor, the largest eigenvalue first.

    Attributes
    ----------
    values : ndarray of shape (m,)
        All Ritz values of the Krylov space, descending, in float64 on the host.
    vectors : array of shape (N, k)
        Ritz vectors of the first ``k`` of them, packed and orthonormal.
    residuals : ndarray of shape (k,)
        ``||T v - lam v||`` of each.
    gram : ndarray of shape (k, k)
        ``R' R`` for the residual block ``R = T V - V diag(lam)``.
    sweeps : int
        Applications of the operator to a block.
    converged : bool
        Whether the residuals that were asked for are small.
    """

    values: np.ndarray
    vectors: Array
    residuals: np.ndarray
    gram: np.ndarray
    sweeps: int
    converged: bool

    def outside(self, rank: int) -> float:
        """Largest magnitude of an eigenvalue beyond the first ``rank``: no rank-``rank`` model errs by less (Weyl)."""
        rest = self.values[rank:]
        return float(np.max(np.abs(rest))) if rest.size else 0.0

    def head(self, rank: int) -> FactoredTensor:
        """The span of the first ``rank`` Ritz vectors, with their Ritz values as weights."""
        lam = from_numpy(self.values[:rank], self.vectors, self.vectors.dtype)
        return FactoredTensor(lam, self.vectors[:, :rank])


def leading_spectrum(
    T: FourTensor,
    width: int,
    *,
    rng: np.random.Generator,
    wanted: Callable[[np.ndarray], int],
    tolerance: float = TOLERANCE,
    by_magnitude: bool = False,
    most: int | None = None,
    callback: Callable[[int], None] | None = None,
) -> Spectrum:
    """Leading eigenpairs of ``T`` on Sym2 by block Krylov iteration with thick restarts.

    Parameters
    ----------
    T : FourTensor
    width : int
        Vectors in a block, and Ritz vectors that are returned.
    rng : numpy.random.Generator
        Draws the first block.
    wanted : callable
        From the current Ritz values (leading first), how many of them must have converged.
    tolerance : float
        Bound on the root mean square of their residuals, relative to the smallest wanted Ritz value.
    by_magnitude : bool
        Whether the largest magnitudes lead, instead of the largest values.
    most : int, optional
        Sweeps after which it stops in any case.
    callback : callable, optional
        Called with the number of sweeps so far after each of them.
    """
    xp = array_namespace(T.like)
    most = MAX_SWEEPS if most is None else most
    width = min(width, T.pair_dim)
    block = orthonormalise(standard_normal(rng, (T.pair_dim, width), T.like))
    Q, H, previous, scale = block[:, :0], np.zeros((0, 0)), 0, 0.0
    for sweep in range(1, most + 1):
        Q = xp.concat((Q, block), axis=1)
        W = T.apply(block)
        # T couples a block to itself and to its two neighbours only; the rest of Q' W is rounding.
        local = Q[:, max(Q.shape[1] - previous - block.shape[1], 0) :]
        coupling = xp.matrix_transpose(local) @ W
        W = W - local @ coupling
        C, outer = (to_numpy(xp.astype(X, xp.float64)) for X in (coupling, xp.matrix_transpose(W) @ W))
        H, previous = _bordered(H, C), block.shape[1]
        scale = max(scale, math.sqrt(float(np.max(np.sum(C * C, axis=0) + np.diagonal(outer)))))  # a column of T Q_last
        if callback is not None:
            callback(sweep)
        full = Q.shape[1] + block.shape[1] > max(BASIS_BLOCKS * width, BASIS_LEAST)
        # Below the root of the precision a block is dropped: nothing is left to iterate on.
        least = max(tolerance, math.sqrt(floor_of(Q.dtype, xp)))
        exact = np.mean(np.diagonal(outer)) <= (least * scale) ** 2
        # Before the third sweep nothing converges but what is exact: no Ritz problem, unless its answer is needed.
        if sweep >= EARLIEST or exact or full or sweep == most:
            ritz = _ritz(H, outer, width, by_magnitude)
            n = min(wanted(ritz.values), ritz.residuals.shape[0])
            enough = max(tolerance * abs(ritz.values[n - 1]), math.sqrt(floor_of(Q.dtype, xp)) * scale)
            converged = math.sqrt(float(np.mean(ritz.residuals[:n] ** 2))) <= enough
            if converged or Q.shape[1] == T.pair_dim or sweep == most:
                break
        block = orthonormalise(W, floor=math.sqrt(floor_of(Q.dtype, xp)) * scale)
        if sweep > ONE_PASS or float(np.linalg.eigvalsh(outer)[0]) < (NEARLY_INSIDE * scale) ** 2:
            # Rounding grows with the sweeps, and where a block lies nearly inside the Krylov space.  Once more, then;
            # what halves was nothing else.
            block = orthonormalise(block - Q @ (xp.matrix_transpose(Q) @ block), floor=0.5)
        if full:
            Q, H, previous = Q @ from_numpy(ritz.vectors, Q, Q.dtype), np.diag(ritz.values[:width]), width
    V = Q @ from_numpy(ritz.vectors, Q, Q.dtype)
    return Spectrum(ritz.values, V, ritz.residuals, ritz.gram, sweep, converged)


def full_spectrum(T: FourTensor) -> Spectrum:
    """All eigenpairs, the largest magnitude first: where most are wanted a dense solver is faster."""
    xp = array_namespace(T.like)
    values, vectors = xp.linalg.eigh(xp.astype(T.to_packed(), xp.float64))
    order = descending(xp.abs(values))
    N = T.pair_dim
    vectors = xp.astype(xp.take(vectors, order, axis=1), T.like.dtype)
    return Spectrum(to_numpy(xp.take(values, order)), vectors, np.zeros(N), np.zeros((N, N)), 1, True)


@dataclass(frozen=True)
class _Ritz:
    """Ritz values, leading vectors in the basis ``Q``, and what is known of their residual block ``R = W S_last``."""

    values: np.ndarray  # (m,)
    vectors: np.ndarray  # (m, k)
    gram: np.ndarray  # (k, k): R' R

    @property
    def residuals(self) -> np.ndarray:
        return np.sqrt(np.maximum(np.diagonal(self.gram), 0.0))


def _ritz(H: np.ndarray, outer: np.ndarray, width: int, by_magnitude: bool) -> _Ritz:
    """The Rayleigh-Ritz problem, in float64; ``outer`` is ``W' W``."""
    values, S = np.linalg.eigh(H)
    order = np.argsort(-np.abs(values) if by_magnitude else -values, kind="stable")
    S = S[:, order[:width]]
    last = S[H.shape[0] - outer.shape[0] :]  # the rows that belong to the last block
    return _Ritz(values[order], S, last.T @ outer @ last)


def spectral_norm(T: FourTensor, rng: np.random.Generator, callback: Callable[[int], None] | None = None) -> float:
    """The spectral norm of ``T`` on Sym2, from below: the largest Ritz value of a Lanczos run, mostly within 2%.

    From random vectors only: one that is near an eigenvector of a smaller eigenvalue would stop the run there.
    """
    lanczos = leading_spectrum(
        T, NORM_WIDTH, rng=rng, wanted=lambda values: 1, tolerance=NORM_TOLERANCE, by_magnitude=True, callback=callback
    )
    return float(abs(lanczos.values[0]))


def truncate(spectrum: Spectrum, eps: float) -> FactoredTensor:
    """Step 2: ``(T - eps Id)_+`` from the leading eigenpairs, those above ``eps`` among them."""
    n = int(np.count_nonzero(spectrum.values[: spectrum.residuals.shape[0]] > eps))
    kept = spectrum.head(n)
    return FactoredTensor(kept.lam - eps, kept.U)


def _bordered(H: np.ndarray, coupling: np.ndarray) -> np.ndarray:
    """``H`` with the rows and columns of a new block; ``coupling`` holds ``Q' T Q_last`` for the last rows of ``Q``."""
    near, k = coupling.shape
    m = H.shape[0] + k
    out = np.zeros((m, m))
    out[: m - k, : m - k] = H
    out[m - near :, m - k :] = coupling
    out[m - k :, m - near :] = coupling.T
    out[m - k :, m - k :] = (coupling[near - k :] + coupling[near - k :].T) / 2
    return out
