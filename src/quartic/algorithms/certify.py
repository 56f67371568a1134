r"""The certificate: a lower bound on the squared correlation with the nearest component, and what it rests on.

Assumption.  ``T = S + E`` on Sym2, ``S = sum_i w_i a_i^(x4)`` with orthonormal ``a_i``, any weights ``w_i != 0``, and
``||E|| <= eps``.  Nothing else: not the rank, not the size of the weights, not how a candidate was found.

Let ``u`` be a unit vector and ``t_i = <u, a_i>^2``, so ``sum_i t_i <= 1``; let ``theta`` be the angle between
``uu'`` and the span of the ``a_i a_i'``.  Then ``G := cos^2(theta) = sum_i t_i^2``.

*From the energy to the correlation.*  ``G <= max_i t_i sum_i t_i <= max_i t_i``; and if ``G >= 1/2``, then the
largest is at least 1/2 and ``G <= t^2 + (1 - t)^2``, so

    max_i t_i >= (1 + sqrt(2 G - 1)) / 2  if  G >= 1/2,  and  max_i t_i >= G  otherwise.

*The span bound.*  Let ``V`` be orthonormal with ``T V = V diag(lam) + R``, ``c = V' uu'``, ``F = ||c||^2 =
||Proj_L(uu')||^2``, and let ``Pi`` project to the complement of the span of the ``a_i a_i'``.  Since ``Pi S = 0``,
``Pi V diag(lam) = Pi (E V - R)``, so ``y = V c / ||c||`` leaves the true span by at most

    sin(angle(y, span)) <= (eps ||c / lam|| + ||R (c / lam)||) / ||c||,

and ``theta <= arccos(sqrt(F)) + arcsin(that)``, by the triangle inequality for angles.  (With all of ``lam`` at
least ``1 - eps`` and no residual, this is sharper than ``(sqrt(F) - eps / (1 - eps))^2``: for ``F = 1`` and
``eps = 0.3`` it gives 0.90, or 0.95 for ``lam = 1``, instead of 0.33.)

*The residual bound.*  It needs no span.  With ``v = <T, u^(x4)>`` and ``r = ||T(uu') - v uu'||``, ``v uu' = S(uu')
+ E(uu') - (T(uu') - v uu')`` and ``Pi S = 0`` give ``sin(theta) <= (eps + r) / |v|``.

The certificate is the better of the two.  *Certified* means that it exceeds 1/2: then the candidate is nearer
to one component than to all others together, and candidates that are more than 45 degrees apart cannot share it.
"""

from __future__ import annotations

import math

import numpy as np

from quartic._arrays import Array, array_namespace, pack_rank_one, to_numpy
from quartic.algorithms.postprocess import Evaluation
from quartic.algorithms.truncate import Spectrum

CERTIFIED = 0.5  # the one definition of *certified*: a certificate above this


def is_certified(certificates: np.ndarray) -> np.ndarray:
    """Mask of the certified components, ``(n,)``."""
    return np.asarray(certificates) > CERTIFIED


def correlation_from_energy(G: np.ndarray) -> np.ndarray:
    """The largest ``t`` is at least this, given ``sum_i t_i^2 = G`` and ``sum_i t_i <= 1`` with ``t_i >= 0``."""
    return np.where(G >= 0.5, (1 + np.sqrt(np.maximum(2 * G - 1, 0.0))) / 2, G)


def span_bound(F: np.ndarray, leak: np.ndarray) -> np.ndarray:
    """Lower bound on ``G`` from ``F`` and the sine ``leak`` of the angle at which ``L`` leaves the true span."""
    angle = np.arccos(np.sqrt(np.clip(F, 0.0, 1.0))) + np.arcsin(np.clip(leak, 0.0, 1.0))
    return np.where(leak < 1, np.cos(np.minimum(angle, math.pi / 2)) ** 2, 0.0)


def residual_bound(values: np.ndarray, squares: np.ndarray, eps: float) -> np.ndarray:
    """Lower bound on ``G`` from ``<T, u^(x4)>`` and ``||T(uu')||^2``."""
    # ||T(uu') - v uu'||^2 = ||T(uu')||^2 - v^2
    r = np.sqrt(np.maximum(squares - values**2, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        sine = np.where(values != 0, (eps + r) / np.abs(values), np.inf)
    return np.maximum(1 - sine**2, 0.0)


def span_fit(spectrum: Spectrum, rank: int, eps: float, B: Array) -> tuple[np.ndarray, np.ndarray]:
    """``F`` and the ``leak`` of :func:`span_bound` for the rows of ``B``, on the first ``rank`` Ritz vectors."""
    xp = array_namespace(B)
    V = spectrum.vectors[:, :rank]
    c = to_numpy(xp.astype(xp.matrix_transpose(V) @ pack_rank_one(B), xp.float64))  # (rank, m)
    F = np.sum(c * c, axis=0)
    lam = spectrum.values[:rank, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = np.where(c != 0, c / lam, 0.0)
        noise = eps * np.linalg.norm(scaled, axis=0)
        solver = np.sqrt(np.maximum(np.sum(scaled * (spectrum.gram[:rank, :rank] @ scaled), axis=0), 0.0))
        leak = np.where(F > 0, (noise + solver) / np.sqrt(F), 1.0)
    return F, leak


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
        G = np.maximum(G, span_bound(*span_fit(*span, eps, B)))
    if evaluation is not None:
        values, squares = (np.asarray(to_numpy(x), dtype=np.float64) for x in (evaluation.values, evaluation.squares))
        G = np.maximum(G, residual_bound(values, squares, eps))
    return correlation_from_energy(G)
