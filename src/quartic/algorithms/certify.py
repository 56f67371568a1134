r"""The certificate: a lower bound on the squared correlation with the nearest component, and what it rests on.

Assumption.  ``T = S + E`` on Sym2, ``S = sum_i w_i a_i^(x4)`` with orthonormal ``a_i``, any weights ``w_i != 0``, and
``||E|| <= eps``.  Nothing else: not the rank, not the size of the weights, not how a candidate was found.

Let ``u`` be a unit vector and ``t_i = <u, a_i>^2``, so ``sum_i t_i <= 1``; let ``theta`` be the angle between
``uu'`` and the span of the ``a_i a_i'``.  Then ``G := cos^2(theta) = sum_i t_i^2``.

*From the energy to the correlation.*  ``G <= max_i t_i sum_i t_i <= max_i t_i``; and if ``G >= 1/2``, then the
largest is at least 1/2 and ``G <= t^2 + (1 - t)^2``, so

    max_i t_i >= (1 + sqrt(2 G - 1)) / 2  if  G >= 1/2,  and  max_i t_i >= G  otherwise.

*The angle bound.*  Let ``Pi`` project to the complement of the span of the ``a_i a_i'``.  Since ``Pi S = 0``, for any
``X`` in Sym2 ``Pi T X = Pi E X``: what ``T`` makes of ``X`` leaves the true span by an angle of sine at most
``eps ||X|| / ||T X||``.  By the triangle inequality for angles,

    theta <= angle(uu', T X) + arcsin(eps ||X|| / ||T X||)    for every X,

so every ``X`` proves something, and the best of them counts.  Two kinds are tried:

- ``X = u_0 u_0'`` for the vector that Algorithm 4.8 improved to ``u``, from its one sweep of the tensor itself: the
  *residual bound*.
- ``X = V x`` in the span of Ritz vectors, ``T V = V diag(lam) + R``: the *span bound*.  It takes ``y = V (lam x)`` for
  ``T X``, and adds ``||R x||`` to the numerator of the sine.  For ``x = c / lam`` with ``c = V' uu'``, ``y`` is the
  projection of ``uu'`` to the span, and ``cos^2 angle(uu', y) = ||c||^2 = F``; ``x = lam c / (lam^2 + mu^2)``, the
  regularised solution of ``T X = uu'``, trades some of that angle for a smaller ``||X||``, which is better for large
  ``eps``.

For ``F = 1``, ``lam = 1`` and ``eps = 0.3`` this proves a squared correlation of 0.95.

*Certified* means that the certificate exceeds 1/2: the candidate is nearer to one component than to all others
together.  Two candidates with certificates above ``cos^2(22.5 degrees) = 0.854`` that are more than 45 degrees apart
belong to different components; below that only orthogonal ones must.
"""

from __future__ import annotations

import math

import numpy as np

from quartic._arrays import Array, array_namespace, floor_of, pack_rank_one, to_numpy
from quartic.algorithms.postprocess import Evaluation
from quartic.algorithms.truncate import Spectrum

REGULARISATIONS = (0.0, 1.0, 2.0)  # mu over eps: each proves something, and the best counts; measured, more add little
CERTIFIED = 0.5  # the one definition of *certified*: a certificate above this


def is_certified(certificates: np.ndarray) -> np.ndarray:
    """Mask of the certified components, ``(n,)``."""
    return np.asarray(certificates) > CERTIFIED


def correlation_from_energy(G: np.ndarray) -> np.ndarray:
    """The largest ``t`` is at least this, given ``sum_i t_i^2 = G`` and ``sum_i t_i <= 1`` with ``t_i >= 0``."""
    return np.where(G >= 0.5, (1 + np.sqrt(np.maximum(2 * G - 1, 0.0))) / 2, G)


def angle_bound(cos2: np.ndarray, leak: np.ndarray) -> np.ndarray:
    """Lower bound on ``G`` from ``cos^2 angle(uu', y)``, for ``y`` at a sine of at most ``leak`` from the true span."""
    angle = np.arccos(np.sqrt(np.clip(cos2, 0.0, 1.0))) + np.arcsin(np.clip(leak, 0.0, 1.0))
    return np.where(leak < 1, np.cos(np.minimum(angle, math.pi / 2)) ** 2, 0.0)


def residual_bound(scores: np.ndarray, lengths: np.ndarray, eps: float) -> np.ndarray:
    """Lower bound on ``G`` from ``cos^2 angle(uu', T X)`` and ``||T X||``, for an ``X`` of norm 1."""
    safe = np.where(lengths > 0, lengths, 1.0)
    return np.where(lengths > 0, angle_bound(scores, eps / safe), 0.0)


def span_bound(spectrum: Spectrum, eps: float, c: np.ndarray, mu: float = 0.0) -> np.ndarray:
    """Lower bound on ``G`` from the coordinates ``c (rank, m)`` of each ``uu'`` in the first ``rank`` Ritz vectors."""
    rank = c.shape[0]
    lam = spectrum.values[:rank, None]
    power = lam**2 + mu**2
    x = np.where(power > 0, lam * c, 0.0) / np.where(power > 0, power, 1.0)
    y = lam * x
    length = np.linalg.norm(y, axis=0)
    safe = np.where(length > 0, length, 1.0)
    solver = np.sqrt(np.maximum(np.sum(x * (spectrum.gram[:rank, :rank] @ x), axis=0), 0.0))  # ||R x||
    leak = (eps * np.linalg.norm(x, axis=0) + solver) / safe
    return np.where(length > 0, angle_bound((np.sum(c * y, axis=0) / safe) ** 2, leak), 0.0)


def coordinates(spectrum: Spectrum, rank: int, B: Array) -> np.ndarray:
    """``V' bb'`` for the rows of ``B (m, d)`` and the first ``rank`` Ritz vectors, ``(rank, m)`` on the host."""
    xp = array_namespace(B)
    return to_numpy(xp.astype(xp.matrix_transpose(spectrum.vectors[:, :rank]) @ pack_rank_one(B), xp.float64))


def certificates(
    eps: float,
    B: Array,
    span: tuple[Spectrum, int] | None = None,
    evaluation: Evaluation | None = None,
) -> np.ndarray:
    """Lower bounds on ``max_i <b, a_i>^2`` for the rows of ``B (m, d)``, in float64 on the host.

    Parameters
    ----------
    eps : float
        Bound on the spectral norm of the error that is assumed.
    B : array of shape (m, d)
        Unit rows.
    span : (Spectrum, int), optional
        Of the tensor itself, and how many of its Ritz vectors span ``L``; gives the span bound.
    evaluation : Evaluation, optional
        Of ``B`` on the tensor itself; gives the residual bound.
    """
    G = np.zeros(B.shape[0])
    if span is not None:
        c = coordinates(*span, B)
        for factor in REGULARISATIONS:
            G = np.maximum(G, span_bound(span[0], eps, c, factor * eps))
    if evaluation is not None:
        scores, lengths = (np.asarray(to_numpy(x), dtype=np.float64) for x in (evaluation.scores, evaluation.lengths))
        G = np.maximum(G, residual_bound(scores, lengths, eps))
    # Near 1, an angle is known to the root of the precision only: round down.
    rounding = 2 * math.sqrt(floor_of(B.dtype, array_namespace(B)))
    return correlation_from_energy(np.maximum(G - rounding, 0.0))
