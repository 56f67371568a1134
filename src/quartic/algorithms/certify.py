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
from collections.abc import Sequence

import numpy as np

from quartic._arrays import Array, array_namespace, floor_of, from_numpy, pack_rank_one, to_numpy
from quartic.algorithms.postprocess import Evaluation, evaluate
from quartic.algorithms.truncate import Spectrum
from quartic.tensors.factored import FactoredTensor

REGULARISATIONS = (0.0, 1.0, 2.0)  # mu over eps: each proves something, and the best counts; measured, more add little
DETERMINED = 0.5  # part of a mixed product in the span, from which on two axes count as undetermined; 0 for atoms
TILT = 0.2  # radians: empirically whitened atoms are orthogonal to sampling error; other rank-ones tilt by 0.34 or more
SMALLEST = 1e-6  # radians: a cosine says no more about an angle
FIRST_ORDER = 2.0  # times what an error does to a component to first order; measured, adversarial ones do up to 4 times
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


def tilt_error(B: np.ndarray, weights: np.ndarray) -> float:
    """Spectral norm of ``sum_i w_i (b_i^(x4) - q_i^(x4))``: ``q_i`` are orthonormal, next to unit rows ``B (m, d)``.

    So much more than ``B`` an orthonormal model leaves of a tensor, at most.  The larger a weight, the closer its
    ``q_i``: they maximise ``sum_i w_i^2 <b_i, q_i>``.
    """
    both = np.concatenate((B, nearest_orthonormal(B, weights**2)))
    # P W P' has the eigenvalues of R W R', for P = Q R; and R'R is the Gram matrix of the columns of P.
    values, vectors = np.linalg.eigh((both @ both.T) ** 2)
    R = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    return float(np.max(np.abs(np.linalg.eigvalsh((R * np.concatenate((weights, -weights))) @ R.T)), initial=0.0))


def span_sine(eps: float, values: np.ndarray, rank: int) -> float:
    """Bound on the sine of the angle between the ``a_i a_i'``, of any components, and the first ``rank`` eigenvectors.

    With ``S = sum_i w_i a_i^(x4)`` of that rank, ``Q`` a basis of its range and ``P`` the projection to the
    eigenvectors that are dropped: ``(P Q) S_Q - T_P (P Q) = -P E Q``.  The spectrum of ``S_Q`` is at least ``|lam_n| -
    eps`` in magnitude (Weyl), that of ``T_P`` at most ``|lam_(n+1)|``; so (Davis and Kahan) ``||P Q||`` is at most
    ``eps`` over the difference.
    """
    magnitude = np.abs(values)
    beyond = float(np.max(magnitude[rank:], initial=0.0))
    gap = float(magnitude[rank - 1]) - eps - beyond
    return min(1.0, eps / gap) if gap > 0 else 1.0


def own_sine(eps: float, values: np.ndarray, c: np.ndarray) -> np.ndarray:
    """An estimate of the same for each component alone, from the coordinates ``c (rank, m)`` of candidates near them.

    With ``Y = S^(-1) aa'``, ``P aa' = P S Y = T_P P Y - P E Y``, which is at most ``(eps + |lam_(n+1)| sine) ||Y||``
    long.  And ``D U' Y = U' T Y = c + U' E Y``, so ``cos ||Y|| <= ||U' Y|| <= ||c / lam|| + eps / |lam_n| ||Y||``,
    which bounds ``||Y||`` by ``||c / lam||`` times a factor.  That is large where a bad error can turn the weakest
    eigenvector far, and for most it is near 1: it counts up to :data:`FIRST_ORDER`.  So this is no bound where ``eps``
    is large.
    """
    rank = c.shape[0]
    sine = span_sine(eps, values, rank)
    if sine >= 1:
        return np.ones(c.shape[1])
    room = np.sqrt(1 - sine**2) - eps / abs(float(values[rank - 1]))
    factor = min(FIRST_ORDER, 1 / room) if room > 0 else FIRST_ORDER
    beyond = float(np.max(np.abs(values[rank:]), initial=0.0))
    return np.minimum(sine, factor * (eps + beyond * sine) * np.linalg.norm(c / values[:rank, None], axis=0))


def cap_certificates(F: np.ndarray, second: np.ndarray, sine: np.ndarray) -> np.ndarray:
    """Certificates of maxima of ``F`` on a span, for components that need not be orthogonal; ``(m,)``.

    Parameters
    ----------
    F, second : ndarray of shape (m,)
        At a unit vector ``u``: the value, and the largest of ``4 sum_k (u' U_k v)^2 + 2 sum_k (u' U_k u)(v' U_k v)``
        over unit ``v`` beside it; see ``subspace_power.derivatives``.
    sine : ndarray of shape (m,)
        Bound on the sine of the angle between the squares of the components and the span.

    Notes
    -----
    A component has ``F >= 1 - sine^2``.  At an angle of ``t`` from a maximum, ``F`` is at most ``F(u) - (2 F(u) -
    second) t^2``, to second order; half of that curvature is counted on, to leave room for the third.  A component that
    belongs to this maximum lies nearer than the angle at which the two meet: the certificate is its squared cosine.

    What remains to assume, for the bound of orthogonal components has no like in general (``F = c' G^(-1) c`` with
    ``c_i = <u, a_i>^2`` and the Gram matrix ``G`` of the squares, which may be near 1 far from all ``a_i`` if ``G`` is
    nearly singular): that the components are as many as dimensions of the span (where that is not known see
    :func:`two_behind_one`); that every one belongs to one of the maxima that were found, which the search makes likely
    and does not prove; and that no two belong to the same.  Then each maximum has its component.
    """
    room = F - 1 + sine**2
    return np.where((room >= 0) & (sine < 1), np.cos(cap_angle(room, F, second)) ** 2, 0.0)


def two_behind_one(bounds: np.ndarray, weights: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """Certificates ``(m,)`` of components in general position, where their number was found and not given.

    Two components of weights ``w/2``, at angles ``+-t`` from ``u``, have the eigenvalues ``w (1 - sin(2t)^2 / 2)`` and
    ``w sin(2t)^2 / 2``: if one up to ``hidden (m,)`` may be missing, the two may stand behind one maximum, and so far
    is the nearer of them from it.  Unequal weights are less bad: the heavier one is nearer.
    """
    sine = np.sqrt(np.minimum(2 * hidden / np.maximum(np.abs(weights), np.finfo(float).tiny), 1.0))
    angle = np.arccos(np.sqrt(bounds)) + np.arcsin(sine) / 2
    return np.where(bounds > 0, np.cos(np.minimum(angle, math.pi / 2)) ** 2, 0.0)


def cap_angle(room: np.ndarray, F: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The angle, at most a right one, at which ``F`` has fallen by ``room``, with half of the curvature at the top."""
    curvature = 2 * F - second
    fallen = 2 * np.maximum(room, 0.0) / np.where(curvature > 0, curvature, 1.0)
    return np.where(curvature > 0, np.sqrt(np.minimum(fallen, (math.pi / 2) ** 2)), math.pi / 2)


def invariant_certificates(eps: float, B: Array, spectrum: Spectrum, rank: int) -> np.ndarray:
    """Certificates for a fourth moment, whose span of the ``a_i a_i'`` is an invariant subspace and not all of it.

    Assumption: the exact moment has the span of the ``a_i a_i'`` for its ``rank`` leading eigenvectors (pair terms
    live outside of it), and the error a norm of at most ``eps``.  Then (Davis and Kahan) the sine of the angle
    between the two spans is at most ``(eps + ||R||) / (lam - mu)``: ``lam`` is the smallest kept Ritz value, ``R``
    the residual of the eigensolver, and ``mu`` bounds what the exact moment has outside: ``eps`` more than the
    largest Ritz value beyond.
    """
    if rank == 0:
        return np.zeros(B.shape[0])
    F = np.sum(coordinates(spectrum, rank, B) ** 2, axis=0)
    solver = math.sqrt(max(0.0, float(np.linalg.eigvalsh(spectrum.gram[:rank, :rank])[-1])))
    beyond = np.max(spectrum.values[rank:], initial=0.0)
    gap = float(spectrum.values[rank - 1] - beyond) - eps
    leak = (eps + solver) / gap if gap > 0 else 1.0
    rounding = 2 * math.sqrt(floor_of(B.dtype, array_namespace(B)))
    return correlation_from_energy(np.maximum(angle_bound(F, np.full(F.shape, leak)) - rounding, 0.0))


def split_certificates(U: Array, halves: Sequence[tuple[Array, FactoredTensor]]) -> np.ndarray:
    """Certificates from two disjoint halves of the samples, for the unit rows of ``U (m, r)``.

    Parameters
    ----------
    U : array of shape (m, r)
        Atoms in whitened coordinates, however they were found.
    halves : two pairs of (array of shape (k, r), FactoredTensor)
        What was found from each half alone, and the span ``L`` it was found in.

    Notes
    -----
    Assumption: the signs of the coefficients are independent given their magnitudes, so that the span of the ``a_i
    a_i'`` is an invariant subspace of the expected moment; and the eigenvectors that were kept are its own: their
    eigenvalues exceed the pair terms (``tau < 1/3`` for equal blocks, under the weights that were used) or lie in the
    window that was chosen.  Then ``L`` is an estimate of that span, with independent errors in the two halves.
    Without the second part nothing can be said from fourth moments: beyond ``tau = 1/3`` a block of two atoms has
    the same fourth moment as the two turned by 45 degrees with another ``tau`` below it.

    Let ``u`` be found in one half.  Its distance from the span ``L`` of the *other* is made of its own distance from
    the true span and of the error of ``L``, which are independent: so ``F(u) = ||Proj_L(uu')||^2`` estimates
    ``cos^2(theta)`` of the module's docstring from below.  From ``u`` to an atom that was found otherwise the angle
    is added.  The smaller of the two bounds counts, one for each half.

    Where a span holds not only ``uu'`` and ``vv'`` but also ``uv' + vu'``, every rotation of ``u`` and ``v`` has
    ``F`` near 1, and the axes are not determined: nothing is certified there.  Nor are atoms certified that
    contradict each other.
    """
    bounds = half_bounds(U, halves)
    return np.where(contradicted(U, bounds, TILT), 0.0, bounds)


def half_bounds(U: Array, halves: Sequence[tuple[Array, FactoredTensor]]) -> np.ndarray:
    """The bounds of :func:`split_certificates`, each atom by itself."""
    best = np.ones(U.shape[0])
    rows = np.asarray(to_numpy(U), dtype=np.float64)
    for (found, own), (_, other) in (halves, halves[::-1]):
        if found.shape[0] == 0:
            return np.zeros(U.shape[0])
        B = from_numpy(found, other.like, other.like.dtype)
        F = np.asarray(to_numpy(evaluate(other, B).values), dtype=np.float64)
        free = np.maximum(pair_energy(own, B), pair_energy(other, B)) < DETERMINED
        F = np.where(free, np.clip(F, 0.0, 1.0), 0.0)
        to_truth = np.arccos(np.sqrt(correlation_from_energy(F)))  # (k,)
        cosine = np.abs(rows @ np.asarray(to_numpy(found), dtype=np.float64).T)  # (m, k)
        angle = np.min(np.arccos(np.clip(cosine, 0.0, 1.0)) + to_truth, axis=1)
        best = np.minimum(best, np.cos(np.minimum(angle, math.pi / 2)) ** 2)
    return best


def stability(U: np.ndarray, halves: Sequence[np.ndarray]) -> np.ndarray:
    """Whether each half of the samples alone gives the unit rows of ``U (m, r)`` again; ``(m,)``.

    The squared cosine of the angle to the nearest of what that half gave, rows ``(k, r)`` that may hold NaN; the
    smaller one of the two halves counts, and 0 without halves.  Unlike a certificate it assumes no model, and proves
    nothing.
    """
    nearest = [np.max(np.nan_to_num(U @ B.T) ** 2, axis=1, initial=0.0) for B in halves]
    return np.minimum(np.min(nearest, axis=0), 1.0) if nearest else np.zeros(U.shape[0])


def contradicted(U: Array, bounds: np.ndarray, slack: float) -> np.ndarray:
    """Which of the unit rows ``U (m, r)`` are not as close to orthonormal vectors as ``bounds (m,)`` say they are.

    All at once: of three in a plane any two may be near two axes.  Next to those that claim to be certified,
    orthonormal vectors are looked for, deviating in proportion to the angles claimed; for two rows none fit better.
    ``slack`` radians between any two are allowed: components may be orthogonal to these only.
    """
    certified = is_certified(bounds)
    rows = np.asarray(to_numpy(U), dtype=np.float64)[certified]
    angles = np.maximum(np.arccos(np.sqrt(bounds[certified])) + slack / 2, SMALLEST)
    cosines = np.sum(rows * nearest_orthonormal(rows, 1 / angles), axis=1)
    wrong = np.zeros(bounds.shape, dtype=bool)
    wrong[certified] = np.arccos(np.clip(cosines, -1.0, 1.0)) > angles
    return wrong


def nearest_orthonormal(B: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Orthonormal ``q_i`` next to the rows ``b_i`` of ``B (m, d)``: the largest ``sum_i weights_i <b_i, q_i>``.

    Where ``m > d`` there are none, and they are shorter.  Rows may depend on each other, and weights lie far apart:
    hence no ``recover.polar``, whose Gram matrix has half of the digits.
    """
    left, _, right = np.linalg.svd(weights[:, None] * B, full_matrices=False)
    return np.asarray(left @ right)


def pair_energy(L: FactoredTensor, B: Array) -> np.ndarray:
    """The largest part in ``L`` of a mixed product ``(b_i b_j' + b_j b_i') / sqrt(2)``, for each row ``b_i (r,)``."""
    k = B.shape[0]
    if k < 2:
        return np.zeros(k)
    # Proj_L of a symmetric product is a matrix element: <U_l, sym(b_i b_j')> = b_i' U_l b_j.
    xp = array_namespace(B)
    elements = B @ L.matrices @ xp.matrix_transpose(B)  # (rank, k, k)
    energy = 2 * np.asarray(to_numpy(xp.sum(elements * elements, axis=0)), dtype=np.float64)
    np.fill_diagonal(energy, 0.0)
    return np.max(energy, axis=1)
