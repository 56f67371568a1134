"""``decompose``: from a tensor to certified components."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from quartic._arrays import (
    Array,
    array_namespace,
    check_random_state,
    floor_of,
    from_numpy,
    in_own_precision,
    standard_normal,
    to_numpy,
)
from quartic._progress import Progress, Stages
from quartic._words import counted, warn
from quartic.algorithms.certify import SMALLEST, certificates, contradicted, is_certified, tilt_error, two_behind_one
from quartic.algorithms.postprocess import Evaluation, accepted, evaluate, improve
from quartic.algorithms.recover import distinct, recover
from quartic.algorithms.select import DROP, Selection, drops, lowest_drop, rank_above, rank_by_certificate
from quartic.algorithms.subspace_power import SAME
from quartic.algorithms.truncate import OVERSAMPLING, Spectrum, leading_spectrum, spectral_norm
from quartic.general import can_count, general, left_beside
from quartic.general import certificates as general_certificates
from quartic.result import Decomposition, DecompositionWarning, Status, canonical_order, positive
from quartic.tensors.base import FourTensor
from quartic.tensors.combine import deflate
from quartic.tensors.cp import is_cp, packed_cp
from quartic.tensors.packed import as_four_tensor, check_dense

UNEXPLAINED = 5.0  # times the least error of any model of the rank: more hints at components that are not orthogonal
TILTED = 0.5  # of the error: more than it does to orthonormal components, a third at most; measured
TOO_MUCH = 1.5  # times an eps that was given: what is left of the tensor, if the components that were found are all
LARGE = 2000  # packed dimension, from which on sweeps may be rounded: they gain by it, and `_rounding` exceeds it
FINEST = 0.01  # part of the tensor's magnitude: the least eps that is compared with rounded eigenvalues
ASYMMETRIC = 0.1  # part of the norm: more is no rounding or noise, but another tensor; arbitrary
NOT_ORTHOGONAL = ("nothing", "incomplete", "uncertified", "no-gap")  # what components that are not orthogonal look like


@in_own_precision
def decompose(
    T: Any,
    rank: int | None = None,
    eps: float | None = None,
    *,
    find: int | None = None,
    known: Any = None,
    random_state: Any = 0,
    callback: Progress | None = None,
) -> Decomposition:
    """Decompose ``T = sum_i w_i a_i^(x4) + E`` with an error of bounded spectral norm.

    The ``a_i`` may be orthonormal (Schramm and Steurer's algorithm) or in general position, with weights of either sign
    and more of them than dimensions (beyond the paper): the latter where ``rank`` says so, or where the certificates of
    the former fail and those of the latter do not.

    Parameters
    ----------
    T : array of shape (d, d, d, d) or (d*d, d*d), FourTensor, or CPTensor
        Of any array library that follows the array-API standard, or a memory-mapped file, read in slabs; or TensorLy's
        ``CPTensor``, which is not expanded.  What is not pair-symmetric in it is projected away.
    rank : int, optional
        Number of components; above ``d`` they can not be orthogonal.  Chosen by certificate when not given.
    eps : float, optional
        Bound on the spectral norm of ``E`` as a ``d^2 x d^2`` matrix, in the units of ``T``; weights should be at
        least three times as large.  Estimated when not given.
    find : int, optional
        Stop when so many components, besides the known ones, are certified: ``find=1`` is Theorem 1.1.  The
        measured ``eps`` of the result then holds what was not looked for.
    known : array of shape (m, d), optional
        Components that are known already.  They are deflated first, and counted in ``rank`` and in the result.
    random_state : int, numpy.random.Generator or None, default=0
        Two calls with the same whole number give the same answer; None draws another one in each call.
    callback : callable, optional
        Called as ``callback(stage, done)`` while it works: sweeps or components so far, by stage.

    Returns
    -------
    Decomposition

    Notes
    -----
    Memory: a quarter of a dense ``T`` (its packed form), and some ten blocks of ``n`` packed vectors.

    Examples
    --------
    >>> import quartic
    >>> planted = quartic.datasets.planted_tensor(d=12, n=5, eps=0.1, random_state=0)
    >>> result = quartic.decompose(planted.tensor, random_state=0)
    >>> result.rank, result.status.code
    (5, 'complete')
    >>> quartic.metrics.match(planted.components, result.components).found(0.999)
    5
    """
    rng = check_random_state(random_state)
    T = packed_cp(T) if is_cp(T) else T
    d = T.dim if isinstance(T, FourTensor) else check_dense(T)[1]
    rank, find = _check_counts(rank, find, d)
    known_rows = _check_known(known, d, rank)
    _check_eps(eps)
    stages = Stages(callback)
    with stages("pack") as progress:
        tensor = as_four_tensor(T, progress)
        unit = abs(tensor.unit) or 1.0
        work = tensor.scaled(1.0 / unit)
        magnitude = _magnitude(work, rng)
        work = work.scaled(1.0 / magnitude)  # near 1, where no square over- or underflows

    def in_units(x: Any) -> Any:
        """From the magnitude worked on to the units of ``T``; one factor at a time, for their product may overflow."""
        return x * magnitude * unit

    known_unit = from_numpy(known_rows, tensor.like, tensor.like.dtype)
    bound = None if eps is None else float(eps) / unit / magnitude
    found = None
    if (rank is None or rank <= d) and _may_be_orthogonal(known_rows):
        found = _orthogonal(work, rank, bound, find, known_unit, rng, stages, in_units)
    if found is None or (found.suspicious(_rounding(work)) and (rank is not None or can_count(work))):
        other = _general(work, rank, bound, find, known_unit, rng, stages, in_units)
        before = 0 if found is None else found.sweeps
        best = other if found is None or other.beats(found, bound) else found
        found = replace(best, sweeps=before + other.sweeps)
    asymmetry = getattr(tensor, "asymmetry", 0.0)
    if asymmetry > ASYMMETRIC and not found.status.ok:
        found = replace(found, status=_of_asymmetric(found.status, asymmetry))
    if found.status.code in ("incomplete", "nothing"):
        warn(str(found.status), DecompositionWarning)
    return Decomposition(
        components=from_numpy(found.components, tensor.like, tensor.like.dtype),
        weights=from_numpy(in_units(found.weights), tensor.like, tensor.like.dtype),
        certificates=from_numpy(found.bounds, tensor.like),
        eps=in_units(found.eps),
        eps_assumed=in_units(found.assumed),
        rank=found.rank,
        reason=found.reason,
        status=found.status,
        spectrum=in_units(found.spectrum),
        known=known_rows.shape[0],
        asymmetry=asymmetry,
        orthogonal=found.orthogonal,
        sweeps=found.sweeps,
        timings=stages.seconds,
    )


@dataclass(frozen=True)
class _Found:
    """What a path through the algorithms found, in the magnitude worked on; see ``Decomposition``.

    ``sought``: all components were looked for.  ``doubtful``: some are missing then, or not as orthogonal as they say.
    """

    components: np.ndarray
    weights: np.ndarray
    bounds: np.ndarray
    eps: float
    assumed: float
    rank: int
    reason: str
    convincing: bool
    sought: bool
    doubtful: bool
    status: Status
    spectrum: np.ndarray
    outside: float
    sweeps: int
    orthogonal: bool = True

    def suspicious(self, rounding: float) -> bool:
        """Whether the components may not be orthogonal: doubtful, not certified, or leaving more than they should.

        That is more than any model of their number must, or more than a third of a weight, which a rank should exceed.
        """
        least = min(UNEXPLAINED * self.outside, float(np.min(self.weights, initial=np.inf)) / 3)
        left = self.eps > max(least, rounding * abs(self.spectrum[0]))
        return self.doubtful or self.status.code in NOT_ORTHOGONAL or (left and self.sought)

    def beats(self, other: _Found, bound: float | None) -> bool:
        """Whether it proves more; or as little, if it leaves far less of the tensor, and its rank is no guess.

        Or, where an eps was given, if it alone leaves no more than that: what the other proves rests on another model.
        """
        if bound is not None and self.eps <= TOO_MUCH * bound < other.eps and other.sought:
            return True
        mine, theirs = (int(np.sum(is_certified(f.bounds))) for f in (self, other))
        return mine > theirs or (mine == theirs and self.convincing and 2 * self.eps < other.eps)


def _orthogonal(
    work: FourTensor,
    rank: int | None,
    bound: float | None,
    find: int | None,
    B: Array,
    rng: np.random.Generator,
    stages: Stages,
    in_units: Callable[[Any], Any],
) -> _Found | None:
    """Section 4 of the paper: orthonormal components, besides known ones ``B (m, d)``; None where eps leaves none."""
    m = B.shape[0]
    rest = None if rank is None else rank - m  # components that are still to be found, at most

    with stages("truncate") as progress:
        evaluation = evaluate(work, B)
        given = _weights(evaluation, B)
        spectrum = _truncate(deflate(work, given, B), rest, bound, rng, progress)
    if bound is not None and bound >= max(float(spectrum.values[0]), float(np.max(given, initial=0.0))):
        return None
    with stages("recover") as progress:
        choice = _choose(spectrum, rest, m, bound, rng, progress)
        n = m + choice.rank
    # The span of a deflated tensor says nothing about T itself.
    span = (spectrum, choice.rank) if m == 0 else None
    assumed = spectrum.outside(choice.rank) if bound is None else bound

    goal = n if find is None else min(m + find, n)

    def certified(B: Array, evaluation: Evaluation) -> np.ndarray:
        return is_certified(certificates(assumed, B, span, evaluation))

    B, evaluation, sweeps, sought = _recover_all(
        work, B, evaluation, spectrum, choice, goal, bound, certified, rng, stages
    )
    weights, measured = _measured(work, B, rng, stages)
    # What the components do not explain counts as error, also inside the span; unless they were not looked for.  An eps
    # that was given counts instead, unless some are missing and those that are there leave far more.
    missing = sought and B.shape[0] < n
    told = bound is None or (missing and measured > TOO_MUCH * bound)
    if told and sought:
        assumed = max(assumed, measured)
    with stages("certify"):
        bounds = certificates(assumed, B, span, evaluation)
        tilted = contradicted(B, bounds, 0.0)
        if told:
            tilt = tilt_error(np.asarray(to_numpy(B), dtype=np.float64), weights)
            rounding = max(_rounding(work), SMALLEST) * np.max(np.abs(weights), initial=0.0)
            tilted |= tilt > max(TILTED * measured, rounding)
            if np.any(tilted) or missing:
                # They are not orthonormal, or not all there are: what orthonormal ones next to them leave.
                assumed = max(assumed, measured + tilt)
                bounds = certificates(assumed, B, span, evaluation)
        else:
            bounds = np.where(tilted, 0.0, bounds)

    sweeps += spectrum.sweeps + bool(m)
    counts, errors = (m, goal, n), (measured, assumed, bound)
    found = _presented(B, weights, bounds, counts, errors, spectrum, choice, sweeps, in_units, bool(np.any(tilted)))
    return replace(found, sought=sought, doubtful=bool(np.any(tilted)) or missing)


def _general(
    work: FourTensor,
    rank: int | None,
    bound: float | None,
    find: int | None,
    known: Array,
    rng: np.random.Generator,
    stages: Stages,
    in_units: Callable[[Any], Any],
) -> _Found:
    """Beyond the paper: components in general position, besides the known ones."""
    m = known.shape[0]
    result = general(work, rank, bound, known, rng, stages)
    spectrum, choice = result.spectrum, result.choice
    _check_eps_size(bound, abs(float(spectrum.values[0])), in_units)
    weights, measured = _measured(work, result.components, rng, stages)
    assumed = max(spectrum.outside(choice.rank), measured) if bound is None else bound
    with stages("certify"):
        # What the components do not explain counts as error, also inside the span; and where they leave far more than
        # the error that was given, they prove nothing by it.
        left = measured if measured > TOO_MUCH * assumed else assumed
        again = general_certificates(spectrum.head(choice.rank), result.components, spectrum.values, left)
        bounds = np.where(is_certified(result.bounds), np.minimum(result.bounds, again), 0.0)
        if rank is None and bound is not None:  # an error that is estimated hides nothing, by that estimate
            beside = left_beside(spectrum, np.asarray(to_numpy(result.components), dtype=np.float64), weights)
            bounds[m:] = two_behind_one(bounds, weights, beside + left)[m:]
    n = choice.rank
    counts, errors = (m, n if find is None else min(m + find, n), n), (measured, assumed, bound)
    found = _presented(result.components, weights, bounds, counts, errors, spectrum, choice, spectrum.sweeps, in_units)
    return replace(found, orthogonal=False)


def _presented(
    B: Array,
    weights: np.ndarray,
    bounds: np.ndarray,
    counts: tuple[int, int, int],
    errors: tuple[float, float, float | None],
    spectrum: Spectrum,
    choice: Selection,
    sweeps: int,
    in_units: Callable[[Any], Any],
    tilted: bool = False,
) -> _Found:
    """In canonical order, with a status.

    ``counts`` are those of known, wanted and all components, ``errors`` what is measured, assumed and was given.
    """
    m, goal, n = counts
    order = _canonical_order(B, weights, bounds, m, goal)
    outside = spectrum.outside(choice.rank)
    rounding = _rounding(spectrum.head(0)) * abs(float(spectrum.values[0]))
    seen = outside if outside > rounding else 0.0
    left = errors[0] if errors[2] is not None and errors[0] > TOO_MUCH * max(errors[2], seen, rounding) else 0.0
    left = left if B.shape[0] >= n else 0.0
    further = _further(spectrum, choice)
    status = _status(bounds[order], n, goal, choice, errors[2], max(seen, left), in_units, tilted, further)
    return _Found(
        components=positive(to_numpy(B))[order, :],
        weights=weights[order],
        bounds=bounds[order],
        eps=errors[0],
        assumed=errors[1],
        rank=n,
        reason=choice.reason,
        convincing=choice.convincing,
        sought=True,
        doubtful=False,
        status=status,
        spectrum=spectrum.values,
        outside=outside,
        sweeps=sweeps,
    )


def _further(spectrum: Spectrum, choice: Selection) -> tuple[int, float] | None:
    """Where a rank was given: a larger one at which the spectrum drops more, and by what factor."""
    if choice.reason != "given":
        return None
    values = spectrum.values
    ratio = drops(values, values.shape[0] - 1, _rounding(spectrum.head(0)) * abs(values[0]))
    k = int(np.argmax(ratio)) + 1 if ratio.size else 0
    return (k, float(ratio[k - 1])) if k > choice.rank and ratio[k - 1] >= DROP else None


def _measured(work: FourTensor, B: Array, rng: np.random.Generator, stages: Stages) -> tuple[np.ndarray, float]:
    """Least-squares weights of the components, and the spectral norm of what they leave."""
    with stages("measure") as progress:
        # Of the vectors as they are: `improve` values them to first order only.
        weights = _weights(evaluate(work, B), B)
        return weights, spectral_norm(deflate(work, weights, B), rng, progress)


def _check_eps_size(bound: float | None, largest: float, in_units: Callable[[Any], Any]) -> None:
    if bound is not None and bound >= largest:
        raise ValueError(
            f"eps must lie below the largest eigenvalue of T, {in_units(largest):.4g}; got {in_units(bound):.4g}: "
            "nothing would be left."
        )


def _truncate(
    T: FourTensor, rank: int | None, eps: float | None, rng: np.random.Generator, progress: Callable[[int], None]
) -> Spectrum:
    """Algorithm 4.1: the span for a rank, for an eps, or down to the lowest clear drop of the spectrum."""
    most = T.dim if rank is None else max(rank, 1)

    def wanted(values: np.ndarray) -> int:
        if rank is not None:
            return most
        if eps is not None:
            return max(1, min(most, int(np.count_nonzero(values > max(eps, _rounding(T) * abs(values[0]))))))
        return lowest_drop(values, most, _rounding(T) * abs(values[0]))

    # Rounded to TF32 where it gains something, and no eigenvalue is compared with an eps that is finer than that.
    rough = T.pair_dim >= LARGE and (eps is None or eps >= FINEST)
    return leading_spectrum(T, most + OVERSAMPLING, rng=rng, wanted=wanted, rough=rough, callback=progress)


def _rounding(T: FourTensor) -> float:
    """Eigenvalues below this, relative to the largest, are rounding; measured on exact tensors, times eight."""
    return 64 * floor_of(T.like.dtype, array_namespace(T.like)) * math.sqrt(T.pair_dim)


def _choose(
    spectrum: Spectrum,
    rank: int | None,
    m: int,
    eps: float | None,
    rng: np.random.Generator,
    progress: Callable[[int], None],
) -> Selection:
    """How many components besides ``m`` known ones: as asked for, as lie above eps, or as certificates say."""
    if rank is not None:
        return Selection(rank, "given", None, True)
    span = spectrum.head(0)
    most = span.dim - m
    floor = _rounding(span) * abs(spectrum.values[0])
    if eps is not None:
        return rank_above(spectrum.values, max(eps, floor), most)
    if most == 0:
        return Selection(0, "every dimension holds a known component", None, True)
    return rank_by_certificate(
        spectrum,
        most,
        floor,
        lambda k: recover(spectrum.head(k).flattened(), rng, callback=progress),
        least=0 if m else 1,
    )


def _recover_all(
    T: FourTensor,
    B: Array,
    evaluation: Evaluation,
    spectrum: Spectrum,
    choice: Selection,
    goal: int,
    eps: float | None,
    certified: Callable[[Array, Evaluation], np.ndarray],
    rng: np.random.Generator,
    stages: Stages,
) -> tuple[Array, Evaluation, int, bool]:
    """Algorithm 4.11 on the tensor itself: until all components are there, or ``goal`` certified where fewer will do.

    Returns them, their evaluation, the sweeps it took, and whether all were looked for.
    """
    n = B.shape[0] + choice.rank
    sweeps = 0
    fresh = choice.components
    if goal < n and fresh is None:
        # Theorem 1.1: a few components, certified, without the others.
        with stages("recover") as progress:
            some = recover(spectrum.head(choice.rank).flattened(), rng, find=goal - B.shape[0], callback=progress)
        with stages("postprocess"):
            both, theirs = _extended(T, B, evaluation, some, eps)
            sweeps += 1
        if int(np.sum(certified(both, theirs)[B.shape[0] :])) >= goal - B.shape[0]:
            return both, theirs, sweeps, False
    if fresh is None:
        with stages("recover") as progress:
            fresh = recover(spectrum.head(choice.rank).flattened(), rng, callback=progress)
    while True:
        before = B.shape[0]
        with stages("postprocess"):
            B, evaluation = _extended(T, B, evaluation, fresh, eps)
            sweeps += 1
        if B.shape[0] == before or B.shape[0] >= n:
            return B, evaluation, sweeps, True
        # Steps (b) to (e), then (a) again with a new truncation of what is left.
        with stages("truncate") as progress:
            left = _truncate(deflate(T, _weights(evaluation, B), B), n - B.shape[0], None, rng, progress)
            sweeps += left.sweeps
        with stages("recover") as progress:
            fresh = recover(left.head(n - B.shape[0]).flattened(), rng, callback=progress)


def _extended(
    T: FourTensor, B: Array, evaluation: Evaluation, fresh: Array, eps: float | None
) -> tuple[Array, Evaluation]:
    """``B`` with what Algorithm 4.8 makes of fresh candidates on the clean tensor: one sweep.

    What fails the acceptance test, or turns out to be known, goes.
    """
    xp = array_namespace(B)
    fresh, theirs = improve(T, fresh)
    rows = distinct(fresh, theirs.scores, accepted(theirs, eps), B)
    return xp.concat((B, xp.take(fresh, rows, axis=0)), axis=0), evaluation.join(theirs.take(rows))


def _weights(evaluation: Evaluation, B: Array) -> np.ndarray:
    """Least-squares weights: the normal equations have the Gram matrix ``<b_i, b_j>^4``."""
    xp = array_namespace(B)
    C, values = xp.astype(B, xp.float64), xp.astype(evaluation.values, xp.float64)
    return to_numpy(xp.linalg.solve((C @ xp.matrix_transpose(C)) ** 4, values))


def _canonical_order(B: Array, weights: np.ndarray, bounds: np.ndarray, m: int, goal: int) -> np.ndarray:
    """The ``m`` known and the best others by certificate, ``goal`` in all; largest weight first, ties by entries."""
    kept = np.concatenate((np.arange(m), m + np.argsort(-bounds[m:], kind="stable")))[:goal]
    return kept[canonical_order(positive(to_numpy(B))[kept], weights[kept])]


def _status(
    bounds: np.ndarray,
    n: int,
    goal: int,
    choice: Selection,
    eps: float | None,
    outside: float,
    in_units: Callable[[float], float],
    tilted: bool,
    more: tuple[int, float] | None,
) -> Status:
    found, certified = bounds.shape[0], int(np.sum(is_certified(bounds)))
    if found == 0:
        return Status(
            "nothing",
            f"no component found at rank {n} ({choice.reason}).",
            "T may hold no orthogonal components, or an error larger than they are"
            + (", or more components than the rank." if choice.reason == "given" else "."),
        )
    some = f"{counted(found, 'component')} found"
    if certified < goal and eps is None and more is not None:
        k, factor = more
        return Status(
            "incomplete" if found < goal else "uncertified",
            f"{found} of {counted(goal, 'component')} found, {certified} certified; the spectrum shows {k}: eigenvalue "
            f"{k} is {factor:.3g} times as large as any beyond it.",
            f"Components that were not asked for count as error: give no rank, and they are counted, up to {k}; to "
            "have only some of them, use find.",
        )
    if found < goal:
        return Status(
            "incomplete",
            f"{found} of {counted(goal, 'component')} found, {certified} certified.",
            "The others are no rank-one parts of T"
            + (": try a smaller rank, or none." if eps is None else ", or eps is too small: try without it."),
        )
    if eps is not None and outside > 1.01 * eps:
        return Status(
            "contradiction",
            f"eps = {in_units(eps):.3g} was given, but no {n} components fit T to better than {in_units(outside):.3g}; "
            f"{certified} of {found} certified under an assumption that does not hold.",
            "Leave eps out, or give a larger one.",
        )
    if eps is not None and tilted:
        return Status(
            "contradiction",
            f"eps = {in_units(eps):.3g} was given, but {found} components were found that are not orthogonal to within "
            f"such an error; {certified} certified.",
            "Leave eps out, or give a larger one.",
        )
    if not choice.convincing:
        return Status(
            "no-gap",
            f"{some}, {certified} certified; {choice.reason}.",
            "Give the rank if you know it." if choice.reason != "given" else "",
        )
    if certified < found:
        return Status(
            "uncertified",
            f"{some}, as many as asked for or expected, {certified} certified.",
            "The error is too large against the weights to prove the others; a smaller eps, if you know one, may.",
        )
    return Status(
        "complete",
        f"{some} and certified, {'as many as there seem to be' if found == n else 'as asked'}."
        + (" The certificates rest on an estimate of the error." if eps is None else ""),
    )


def _of_asymmetric(status: Status, asymmetry: float) -> Status:
    """The same, where most of what was given may not be what was meant."""
    message = f"{status.message} T is not symmetric: {asymmetry:.0%} of its norm was projected away."
    remedy = "Check that it is the tensor that was meant; other factors in each mode are found by TensorLy's parafac."
    return replace(status, message=message, remedy=remedy)


def _magnitude(T: FourTensor, rng: np.random.Generator) -> float:
    """A power of two near the largest entry of ``T`` times a Gaussian vector."""
    xp = array_namespace(T.like)
    largest = float(xp.max(xp.abs(T.apply(standard_normal(rng, (T.pair_dim, 1), T.like)))))
    if not math.isfinite(largest):
        raise ValueError("T is not finite, or too large to be multiplied: check its entries, or divide it by a number.")
    if largest == 0:
        raise ValueError("T is the zero tensor: there is nothing to decompose.")
    return 2.0 ** min(max(math.frexp(largest)[1], -1000), 1000)


def _may_be_orthogonal(rows: np.ndarray) -> bool:
    """Whether unit rows ``(m, d)`` may stand for orthogonal components: at most ``d``, and 45 degrees apart."""
    overlaps = (rows @ rows.T) ** 2 - np.eye(rows.shape[0])
    return rows.shape[0] <= rows.shape[1] and float(np.max(overlaps, initial=0.0)) <= 0.5


def _check_counts(rank: int | None, find: int | None, d: int) -> tuple[int | None, int | None]:
    N = d * (d + 1) // 2
    checked = []
    for name, value in (("rank", rank), ("find", find)):
        if value is not None:
            if isinstance(value, bool):
                raise ValueError(f"{name} must be a whole number or None; got {value}.")
            try:
                value = operator.index(value)
            except TypeError:
                raise ValueError(f"{name} must be a whole number or None; got {value!r}.") from None
            if value < 1:
                raise ValueError(f"{name} must be at least 1; got {value}.")
            if value > N:
                reach = f"so many squares of vectors of dimension {d} can be linearly independent"
                raise ValueError(f"{name} must be at most {N}; got {value}: {reach}.")
        checked.append(value)
    rank, find = checked
    if rank is not None and find is not None and find > rank:
        raise ValueError(f"find must be at most rank = {rank}; got {find}.")
    return rank, find


def _check_eps(eps: float | None) -> None:
    if eps is None:
        return
    if isinstance(eps, bool | str) or not hasattr(eps, "__float__"):
        raise ValueError(f"eps must be a number or None; got {eps!r}.")
    if not (float(eps) >= 0 and math.isfinite(eps)):
        raise ValueError(f"eps must be finite and not negative; got {eps}.")


def _check_known(known: Any, d: int, rank: int | None) -> np.ndarray:
    """Known components as unit rows, ``(m, d)``; no rows when there are none."""
    if known is None:
        return np.zeros((0, d))
    try:
        rows = np.asarray(to_numpy(known))
        numeric = rows.dtype.kind in "biuf"
    except ValueError:
        rows, numeric = np.empty(0), False
    if not numeric or rows.ndim != 2 or rows.shape[1] != d:
        raise ValueError(
            f"known must hold real components as rows, shape (m, {d}); got shape {rows.shape}, dtype {rows.dtype}."
        )
    rows = rows.astype(np.float64)
    peaks = np.max(np.abs(rows), axis=1, keepdims=True, initial=0.0)
    if not np.all(np.isfinite(peaks)) or not np.all(peaks > 0):
        raise ValueError("known must hold finite rows that are not zero.")
    rows = rows / peaks  # first to magnitude 1, so that no square over- or underflows
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    if rank is not None and rows.shape[0] > rank:
        raise ValueError(f"known holds {rows.shape[0]} components, more than rank = {rank}.")
    rows = rows / norms
    overlaps = np.abs(rows @ rows.T) - np.eye(rows.shape[0])
    if np.max(overlaps, initial=0.0) ** 2 > SAME:
        i, j = np.unravel_index(int(np.argmax(overlaps)), overlaps.shape)
        degrees = math.degrees(math.acos(math.sqrt(SAME)))
        raise ValueError(
            f"known holds one component twice: rows {i} and {j} are less than {degrees:.0f} degrees apart."
        )
    return rows
