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

from quartic._arrays import Array, array_namespace, floor_of, from_numpy, orthonormalise, standard_normal, to_numpy
from quartic.tensors.base import FourTensor
from quartic.tensors.factored import FactoredTensor

OVERSAMPLING = 8  # vectors beyond the rank, as in randomized range finders; measured: 16 saves no sweep
TOLERANCE = 0.1  # root mean square residual over the smallest kept eigenvalue; measured: F within 0.02 of its limit
ONE_PASS = 6  # sweeps in which one pass of orthogonalisation is enough: each multiplies the loss by 5 at most
NEARLY_INSIDE = 1e-3  # part of T Q_last outside the Krylov space, below which it is orthogonalised twice
NORM_WIDTH = (
    4  # vectors that look for the norm together; measured: one alone stops at a smaller eigenvalue in 1 run of 12
)
NORM_TOLERANCE = 0.03  # an eigenvalue lies this close to the norm that is reported; a Ritz value is closer still
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
    callback : callable, optional
        Called with the number of sweeps so far after each of them.
    """
    xp = array_namespace(T.like)
    width = min(width, T.pair_dim)
    block = orthonormalise(standard_normal(rng, (T.pair_dim, width), T.like))
    Q, H = block[:, :0], np.zeros((0, 0))
    for sweep in range(1, MAX_SWEEPS + 1):
        Q = xp.concat((Q, block), axis=1)
        W = T.apply(block)
        coupling = xp.matrix_transpose(Q) @ W  # (m, k): the last columns of H
        W = W - Q @ coupling
        H = _bordered(H, to_numpy(xp.astype(coupling, xp.float64)))
        outer = to_numpy(xp.astype(xp.matrix_transpose(W) @ W, xp.float64))
        values, S = np.linalg.eigh(H)
        order = np.argsort(-np.abs(values) if by_magnitude else -values, kind="stable")
        values, S = values[order], S[:, order]
        # T V - V diag(lam) = W S_last, for the rows of S that belong to the last block
        last = S[H.shape[0] - block.shape[1] :, :width]
        residuals = np.sqrt(np.maximum(np.einsum("ik,ij,jk->k", last, outer, last, optimize=True), 0.0))
        if callback is not None:
            callback(sweep)
        scale = float(np.max(np.abs(values)))
        floor = math.sqrt(floor_of(Q.dtype, xp)) * scale
        n = min(wanted(values), residuals.shape[0])
        mean = math.sqrt(float(np.mean(residuals[:n] ** 2)))
        converged = bool(mean <= max(tolerance * abs(values[n - 1]), floor))
        if converged:
            break
        block = orthonormalise(W, floor=floor)
        if sweep > ONE_PASS or float(np.linalg.eigvalsh(outer)[0]) < (NEARLY_INSIDE * scale) ** 2:
            # Rounding grows with the sweeps, and where a block lies nearly inside the Krylov space.  Once more, then;
            # what halves was nothing else.
            block = orthonormalise(block - Q @ (xp.matrix_transpose(Q) @ block), floor=0.5)
        if block.shape[1] == 0:  # the Krylov space is invariant: the Ritz pairs are exact
            converged = True
            break
        if Q.shape[1] + block.shape[1] > max(BASIS_BLOCKS * width, BASIS_LEAST):
            Q, H = Q @ from_numpy(S[:, :width], Q, Q.dtype), np.diag(values[:width])
    V = Q @ from_numpy(S[:, :width], Q, Q.dtype)
    return Spectrum(values, V, residuals, last.T @ outer @ last, sweep, converged)


def spectral_norm(T: FourTensor, rng: np.random.Generator, callback: Callable[[int], None] | None = None) -> float:
    """The spectral norm of ``T`` on Sym2, from below: the largest Ritz value of a Lanczos run, mostly within 1%."""
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
    """``H`` with the rows and columns of a new block; ``coupling (m, k)`` is ``Q' T Q_last``."""
    m, k = coupling.shape
    out = np.zeros((m, m))
    out[: m - k, : m - k] = H
    out[:, m - k :] = coupling
    out[m - k :, :] = coupling.T
    out[m - k :, m - k :] = (coupling[m - k :] + coupling[m - k :].T) / 2
    return out
