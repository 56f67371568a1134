"""Lemma 5.3: from independent columns to orthonormal ones.

If ``y = A x + c`` with uncorrelated ``x_i``, the covariance is ``A D A'``, and any ``F`` with ``F' (A D A') F = Id``
turns the columns of ``A D^(1/2)`` into orthonormal ones.  Everything here is float64: the error of the empirical
whitener enters multiplied by the condition number (Lemma 5.3), and rounding with it.

Features may come in very different units, so numerical rank is a matter of the *correlation* matrix; a subspace of
smaller dimension is cut from the covariance itself, as in principal component analysis.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

GAP = 2.0  # least ratio of eigenvalues at which directions count as noise: arbitrary, far beyond the spread of a floor
LEAST = 4  # directions of a floor; measured: two eigenvalues of a Gaussian dictionary are that equal in 5% of draws
MANY = 16  # times the dimension: samples from which on a floor is looked for; its edges are then within a factor of 3
SLACK = 1.5  # allowance on the spread of a noise floor, which is known for Gaussian noise and many samples only


@dataclass(frozen=True)
class Whitening:
    """The maps of a whitening.

    Attributes
    ----------
    forward : ndarray of shape (d, r)
        ``z = (y - mean) @ forward`` has the identity for its covariance.
    backward : ndarray of shape (r, d)
        The way back: ``backward @ forward = Id``, and ``forward @ backward`` projects to the span that is kept.
    spectrum : ndarray of shape (d,)
        Eigenvalues of the covariance, descending.
    reason : str
        How the dimension ``r`` was chosen.
    """

    forward: np.ndarray
    backward: np.ndarray
    spectrum: np.ndarray
    reason: str


def whiten(
    C: np.ndarray, count: float, dim: int | None = None, rounding: float = np.finfo(np.float64).eps
) -> Whitening:
    """Whiten a covariance ``C (d, d)`` that was estimated from ``count`` samples.

    Parameters
    ----------
    C : ndarray of shape (d, d)
        Covariance, float64.
    count : float
        Samples it comes from; decides how far a noise floor may spread.
    dim : int, optional
        Dimension to keep.  When not given: all that is not rounding, or what stands above a floor of equal eigenvalues.
    rounding : float
        Machine precision of the samples.
    """
    d = C.shape[0]
    spread = np.sqrt(np.maximum(np.diagonal(C), 0.0))
    unit = np.where(spread > 0, spread, 1.0)
    values, V = np.linalg.eigh(C / unit / unit[:, None])
    # Samples rounded to `rounding` leave eigenvalues of its square; the eigensolver its own precision times d.
    least = max(8 * d * np.finfo(np.float64).eps, (8 * rounding) ** 2) * max(values[-1], 0.0)
    rank = min(int(np.count_nonzero(values > least)), d)
    spectrum, P = (x[..., ::-1] for x in np.linalg.eigh(C))  # of the covariance itself, descending
    kept, reason = rank, f"{rank} of {d} directions vary" if rank < d else "every direction varies"
    if dim is not None and dim < rank:
        kept, reason = dim, "given"
    elif dim is None and (above := above_floor(spectrum[:rank], count)) < rank:
        kept = above
        reason = f"{above} eigenvalues of the covariance stand above a floor of {rank - above} equal ones"
    if kept < rank:
        root = np.sqrt(spectrum[:kept])
        return Whitening(P[:, :kept] / root, (P[:, :kept] * root).T, spectrum, reason)
    root, V = np.sqrt(values[d - rank :]), V[:, d - rank :]
    return Whitening(V / root / unit[:, None], (V * root).T * unit, spectrum, reason)


def above_floor(values: np.ndarray, count: float) -> int:
    """How many of the descending eigenvalues stand clearly above a floor of equal ones; all, where there is no floor.

    Isotropic noise of ``q`` directions in ``count`` samples has eigenvalues within the edges ``(1 +- sqrt(q /
    count))^2`` of Marchenko and Pastur.  A floor is a tail that narrow, of at least :data:`LEAST` values, below a drop
    by :data:`GAP`; with few samples every tail would do, and none is looked for.
    """
    r = values.shape[0]
    if count < MANY * r:
        return r
    for k in range(1, r - LEAST + 1):
        edge = np.sqrt((r - k) / count)
        if values[k - 1] > GAP * values[k] and values[k] <= SLACK * ((1 + edge) / (1 - edge)) ** 2 * values[-1]:
            return k
    return r
