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
    device,
    floor_of,
    from_numpy,
    on_host,
    orthonormalise,
    reduced_precision,
    standard_normal,
    to_numpy,
    write,
)
from quartic.tensors.base import FourTensor
from quartic.tensors.factored import FactoredTensor

OVERSAMPLING = 8  # vectors beyond the rank, as in randomized range finders; measured: 16 saves no sweep
TOLERANCE = 0.1  # root mean square residual over the smallest kept eigenvalue; measured: F within 0.02 of its limit
EARLIEST = 3  # sweep, before which nothing has been seen to converge but what is exact
EARLIEST_ON_DEVICE = 5  # the same where a Ritz problem takes longer than a sweep, as on a GPU
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
    rough: bool = False,
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
    rough : bool
        Whether sweeps may be rounded where a device gains by it (see ``quartic.full_precision``).
    callback : callable, optional
        Called with the number of sweeps so far after each of them.
    """
    xp = array_namespace(T.like)
    most = MAX_SWEEPS if most is None else most
    earliest = EARLIEST if on_host(T.like) else EARLIEST_ON_DEVICE
    width = min(width, T.pair_dim)
    block = orthonormalise(standard_normal(rng, (T.pair_dim, width), T.like))
    Q, previous, scale = block[:, :0], 0, 0.0
    H = xp.astype(Q[:0, :], xp.float64)
    for sweep in range(1, most + 1):
        Q = xp.concat((Q, block), axis=1)
        with reduced_precision(rough):
            W = T.apply(block)
        # T couples a block to itself and to its two neighbours only; the rest of Q' W is rounding.
        local = Q[:, max(Q.shape[1] - previous - block.shape[1], 0) :]
        coupling = xp.matrix_transpose(local) @ W
        W = W - local @ coupling
        C, outer = (xp.astype(X, xp.float64) for X in (coupling, xp.matrix_transpose(W) @ W))
        H, previous = _bordered(H, C), block.shape[1]
        lengths = xp.linalg.diagonal(outer)
        scale = max(scale, math.sqrt(float(xp.max(xp.sum(C * C, axis=0) + lengths))))  # a column of T Q_last
        if callback is not None:
            callback(sweep)
        full = Q.shape[1] + block.shape[1] > max(BASIS_BLOCKS * width, BASIS_LEAST)
        # Below the root of the precision a block is dropped: nothing is left to iterate on.
        least = max(tolerance, math.sqrt(floor_of(Q.dtype, xp)))
        exact = float(xp.mean(lengths)) <= (least * scale) ** 2
        # Before the third sweep nothing converges but what is exact: no Ritz problem, unless its answer is needed.
        if sweep >= earliest or exact or full or sweep == most:
            ritz = _ritz(H, outer, width, by_magnitude)
            n = min(wanted(ritz.values), ritz.residuals.shape[0])
            enough = max(tolerance * abs(ritz.values[n - 1]), math.sqrt(floor_of(Q.dtype, xp)) * scale)
            converged = math.sqrt(float(np.mean(ritz.residuals[:n] ** 2))) <= enough
            if converged or Q.shape[1] == T.pair_dim or sweep == most:
                break
        shape = xp.linalg.eigh(outer)
        block = orthonormalise(W, math.sqrt(floor_of(Q.dtype, xp)) * scale, shape)
        if sweep > ONE_PASS or float(shape[0][0]) < (NEARLY_INSIDE * scale) ** 2:
            # Rounding grows with the sweeps, and where a block lies nearly inside the Krylov space.  Once more, then;
            # what halves was nothing else.
            block = orthonormalise(block - Q @ (xp.matrix_transpose(Q) @ block), floor=0.5)
        if full:
            Q, previous = Q @ xp.astype(ritz.vectors, Q.dtype), width
            H = from_numpy(np.diag(ritz.values[:width]), H)
    V = Q @ xp.astype(ritz.vectors, Q.dtype)
    return Spectrum(ritz.values, V, ritz.residuals, to_numpy(ritz.gram), sweep, converged)


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
    vectors: Array  # (m, k)
    gram: Array  # (k, k): R' R
    residuals: np.ndarray  # (k,)


def _ritz(H: Array, outer: Array, width: int, by_magnitude: bool) -> _Ritz:
    """The Rayleigh-Ritz problem, in float64 where the operator lives; ``outer`` is ``W' W``."""
    xp = array_namespace(H)
    on_device, S = xp.linalg.eigh(H)
    values = to_numpy(on_device)
    order = np.argsort(-np.abs(values) if by_magnitude else -values, kind="stable")
    S = xp.take(S, from_numpy(order[:width], S), axis=1)
    last = S[H.shape[0] - outer.shape[0] :, :]  # the rows that belong to the last block
    gram = xp.matrix_transpose(last) @ outer @ last
    return _Ritz(values[order], S, gram, np.sqrt(np.maximum(to_numpy(xp.linalg.diagonal(gram)), 0.0)))


def spectral_norm(
    T: FourTensor, rng: np.random.Generator, callback: Callable[[int], None] | None = None, *, rough: bool = False
) -> float:
    """The spectral norm of ``T`` on Sym2, from below: the largest Ritz value of a Lanczos run, mostly within 2%.

    From random vectors only: one that is near an eigenvector of a smaller eigenvalue would stop the run there.
    """
    lanczos = leading_spectrum(
        T,
        NORM_WIDTH,
        rng=rng,
        wanted=lambda values: 1,
        tolerance=NORM_TOLERANCE,
        by_magnitude=True,
        rough=rough,
        callback=callback,
    )
    return float(abs(lanczos.values[0]))


def truncate(spectrum: Spectrum, eps: float) -> FactoredTensor:
    """Step 2: ``(T - eps Id)_+`` from the leading eigenpairs, those above ``eps`` among them."""
    n = int(np.count_nonzero(spectrum.values[: spectrum.residuals.shape[0]] > eps))
    kept = spectrum.head(n)
    return FactoredTensor(kept.lam - eps, kept.U)


def _bordered(H: Array, coupling: Array) -> Array:
    """``H`` with the rows and columns of a new block; ``coupling`` holds ``Q' T Q_last`` for the last rows of ``Q``."""
    xp = array_namespace(H)
    near, k = coupling.shape
    m = H.shape[0] + k
    out = xp.zeros((m, m), dtype=H.dtype, device=device(H))
    out = write(out, (slice(0, m - k), slice(0, m - k)), H)
    out = write(out, (slice(m - near, m), slice(m - k, m)), coupling)
    out = write(out, (slice(m - k, m), slice(m - near, m)), xp.matrix_transpose(coupling))
    own = coupling[near - k :, :]
    return write(out, (slice(m - k, m), slice(m - k, m)), (own + xp.matrix_transpose(own)) / 2)
