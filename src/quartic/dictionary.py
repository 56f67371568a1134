"""From samples to certified atoms: all of section 5, in the order in which the data flow.

    samples -> (trim) -> covariance -> frame -> fourth cumulant -> span -> atoms -> certificates -> refinement

Pure functions; ``estimators`` validates, calls and stores.  Samples stay in their library and on their device, and so
does all work on them; what is as small as a dictionary lies on the host, in float64.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import numpy as np

from quartic._arrays import (
    Array,
    from_numpy,
    in_own_precision,
    packed_dim,
    to_numpy,
)
from quartic._progress import Progress, Stages
from quartic._words import warn
from quartic.algorithms.certify import is_certified, stability
from quartic.algorithms.recover import polar
from quartic.algorithms.refine import pair_moments, sines
from quartic.algorithms.together import correlations_of_pairs, groups, least_correlation, tau_of_pairs
from quartic.algorithms.truncate import full_spectrum, spectral_norm
from quartic.certify import Candidates, Reason, Spans, barred, certify
from quartic.evidence.lost import Loss
from quartic.evidence.parts import Evidence
from quartic.frame import Frame, inverse_root
from quartic.halves import half_of, row_hash
from quartic.learn.attempts import Plan, Proposer
from quartic.learn.causes import status_of
from quartic.learn.plan import (
    Spectral,
    counted,
    first_look,
    is_noise,
    proposer_of,
    spectral_stage,
    top_and_window,
)
from quartic.learned import Learned, LearningReport
from quartic.moments import Covariance, FourthMoment
from quartic.overcomplete import (
    COUNTING,
    EXACT,
    MEASURED,
    SHARES,
    Ladder,
    Overcomplete,
    Tempered,
    code_moments,
    fitted_weights,
    looks_overcomplete,
    overcomplete_stage,
    pooled,
    refine_codes,
)
from quartic.propose.fixed_point import complete
from quartic.propose.span import Search
from quartic.refinement import ROUNDING, Refined, half_estimates, pinned, refined_from, rounding_floor
from quartic.result import DecompositionWarning, Status, canonical_order, signs
from quartic.samples import Held, Samples, looks_gaussian
from quartic.tensors.base import FourTensor
from quartic.tensors.combine import deflate
from quartic.views import ImplicitMoment, Rewhitened

NO_SAMPLES = "none: moments alone, no samples were kept"
INSIDE = 1e-9  # sine of what rounding leaves of a known atom outside of the directions in which samples vary
MOST_ROWS = 20_000  # samples that tell whether what is left out is noise, and which atoms occur together; arbitrary
DIRECTIONS = 16  # at most, in which it is seen whether what is left out is noise
KNOWN = 0.999  # cosine of an atom and a known one that it is, as far as the samples vary in its direction
FINEST = 1e-6  # tolerance of sparse codes: squared residuals are known to rounding
DEFAULT_TOLERANCE = 0.1  # of sparse codes, where no samples say better


@in_own_precision
def learn(
    Y: Array | Samples,
    n_components: int | None = None,
    *,
    frame: Frame | None = None,
    sample_weight: np.ndarray | None = None,
    known: np.ndarray | None = None,
    refine: bool = True,
    form: str = "auto",
    temperature: float | None = None,
    groups: np.ndarray | None = None,
    ordered: bool = True,
    gross: bool = True,
    rng: np.random.Generator,
    callback: Progress | None = None,
) -> Learned:
    """Learn a dictionary from samples ``(m, d)``, float32 or float64; see ``SpectralDictionaryLearning``."""
    stages = Stages(callback)
    with stages("trim"):
        data = (
            Y if isinstance(Y, Samples) else Held.trimmed_from(Y, sample_weight, groups, ordered=ordered, gross=gross)
        )
    with stages("covariance"):
        covariance = data.covariance()
        if frame is None:
            frame = frame_for(data, covariance, n_components, rng)
        elif refine:
            root = inverse_root(frame.forward.T @ covariance.covariance @ frame.forward)
            frame = frame.completed(covariance.mean, root)
    if not refine:
        with stages("moment"):
            moment = data.fourth_moment(frame)
        return learn_from_moment(
            moment, n_components, known=known, ordered=data.ordered, rng=rng, stages=stages, trimmed=data.trimmed
        )

    n = check_count(n_components, frame)
    given = known_rows(known, frame, n)
    with stages("evidence"):
        evidence = Evidence.of(data, frame)
    plan = Plan()
    ladder = Ladder(data, frame, stages, COUNTING if n_components is None else SHARES, temperature)
    if n > frame.dim:
        more = overcomplete_stage(ladder, n_components, given, rng)
        assert more is not None  # with a number there always are some
        plan.made(Proposer.BEYOND, *more.figures)
        found = assemble_overcomplete(data, frame, more, given, evidence, rng, stages, data.trimmed)
        return told(found, frame, evidence, plan)
    spectral = first_look(data, frame, given, evidence, rng, stages, plan)
    # Spans and local tempering find what a fixed point does not where atoms occur together; elsewhere it needs fewer
    # samples than they do, and what it leaves unproven they do not prove.
    together = bool(np.any(spectral.proof.tangled))
    hopeless = barred(evidence) in (Reason.SERIAL, Reason.LOST)
    if n_components is None and not (explained(spectral) or hopeless) and looks_overcomplete(ladder, rng):
        plan.starts()
        more = overcomplete_stage(ladder, None, given, rng)
        if more is not None:
            plan.made(Proposer.BEYOND, *more.figures)
        if more is not None and more.certified > frame.dim and not more.has_rival:
            # More atoms than dimensions, only if so many are certified, and nothing simpler explains the samples.
            if together:
                simpler = spectral_stage(
                    data, frame, given, form, evidence, spectral, rng, stages, plan, temperature, glance=True
                )
                spectral = spectral.better(simpler)
            if not explained(spectral):
                found = assemble_overcomplete(data, frame, more, given, evidence, rng, stages, data.trimmed)
                return told(found, frame, evidence, plan)
    done = spectral.settled or spectral.proof.rest_is_gaussian or hopeless or not together
    if not done or temperature is not None or form != "auto":
        other = spectral_stage(data, frame, given, form, evidence, spectral, rng, stages, plan, temperature)
        # Of as many that are certified those beside them count: a fixed point has the axes that local methods prefer.
        as_many = other.proof.count >= spectral.proof.count > 0
        forced = temperature is not None or form != "auto"
        spectral = other if forced or as_many else spectral.better(other)
    if n_components is None:
        spectral = counted(spectral, given)
    wanted = n_components
    with stages("refine") as progress:
        start = to_numpy(polar(from_numpy(spectral.axes, data.like)))  # (n, r), orthonormal rows
        inside = frame.narrowed(start.T)
        rounded = Loss.ROUNDED in evidence.lost.kinds
        refined = refined_from(data, covariance, inside, spectral, start, rng, progress, rounded=rounded)
        refined = refined if not len(given) else pinned(refined, given @ start.T)
        # A correlation of energies errs far more than one of Gaussians: more samples than the search had, if there are.
        rows = spectral.rows if spectral.rows.shape[0] >= MOST_ROWS else data.about(MOST_ROWS)
        pairs = pair_moments(data.part(rows, frame.mean), from_numpy(inside.forward @ refined.W.T, data.like))
    U = refined.atoms @ start  # in the coordinates of the search
    learned = assemble(inside, refined, U, spectral, pairs, known, rng, stages, data.rows, data.trimmed)
    return told(best_of(learned, wanted, known), frame, evidence, plan)


@in_own_precision
def learn_from_moment(
    moment: FourthMoment,
    n_components: int | None = None,
    *,
    known: np.ndarray | None = None,
    ordered: bool = True,
    rng: np.random.Generator,
    stages: Stages | None = None,
    trimmed: int = 0,
) -> Learned:
    """Learn a dictionary from moments alone: the spectral stage, without refinement."""
    stages = Stages(None) if stages is None else stages
    white = Rewhitened(moment)
    frame = white.frame
    n = check_count(n_components, frame)
    given = known_rows(known, frame, n)
    evidence = white.evidence(ordered=ordered)
    plan = Plan()
    if n > frame.dim:
        with stages("search") as progress:
            white = Rewhitened(moment.to_numpy())  # few dimensions: the host will do
            plain = Tempered(white, full_spectrum(white.cumulant()), 0.0, moment.count)
            more = pooled([plain], n, given, rng, given[:0], progress=progress).if_most()
        plan.made(Proposer.BEYOND, *more.figures)
        found = assemble_overcomplete(None, frame, more, given, evidence, rng, stages, trimmed)
        return told(found, frame, evidence, plan)
    with stages("search") as progress:
        searches = list(top_and_window(white, frame.dim, given, rng, progress, halves=True, tight=True))
    halves = tuple(complete(B, frame.dim) for B, _ in searches[0].halves)

    def tried(found: Search) -> Spectral:
        axes = complete(found.atoms, frame.dim)
        with stages("certify"):
            proof = certify(Candidates(axes), evidence)
        plan.made(proposer_of(found), moment.count, 0.0, proof.count, frame.dim)
        return Spectral(
            axes, halves, proof, white, found.spectrum, np.arange(0), moment.count, "all that were accumulated",
            "accumulated", window=found.window, sweeps=found.sweeps,
        )  # fmt: skip

    spectral = reduce(Spectral.better, map(tried, searches))
    spectral = spectral if n_components is not None else counted(spectral, given)
    start = spectral.axes
    inside = frame.narrowed(start.T)
    W = np.eye(spectral.rank)
    refined = Refined(W, half_estimates(spectral.halves, start), NO_SAMPLES, 0)
    refined = refined if not len(given) else pinned(refined, given @ start.T)
    U = refined.atoms @ start
    pairs = cumulant_pairs(white.cumulant(), U)
    learned = assemble(inside, refined, U, spectral, pairs, known, rng, stages, moment.count, trimmed)
    return told(best_of(learned, n_components, known), frame, evidence, plan)


def explained(spectral: Spectral) -> bool:
    """Whether half of the axes are certified, or those that are not may be Gaussian."""
    return 2 * spectral.proof.count >= spectral.rank or spectral.proof.rest_is_gaussian


def frame_for(data: Samples, covariance: Covariance, n: int | None, rng: np.random.Generator) -> Frame:
    """The ``n`` directions of largest variance, or those above a floor of noise; all, if what is left out is no noise.

    Where atoms lie partly outside of the directions that are kept, there are more atoms than directions: what looks
    like one of them there need not be any.
    """
    d = data.like.shape[1]
    frame = covariance.frame(None if n is None or n > d else n)
    whole = frame if n == d else covariance.frame(d)
    if frame.dim == whole.dim:
        return frame
    beside = np.linalg.qr(whole.backward @ frame.forward, mode="complete")[0][:, frame.dim :]  # (r, r - n)
    rows = data.about(MOST_ROWS)
    w = data.weight(rows)
    Z = to_numpy(data.whitened(rows, whole))
    moment = ImplicitMoment(Z.astype(np.float32), half_of(row_hash(data.keys(rows))), w)
    q = beside.shape[1]
    some = np.linalg.qr(beside @ rng.standard_normal((q, min(q, DIRECTIONS))))[0]
    # The first sees many weak signals; the second those that are in part what is kept, also where a kurtosis vanishes.
    if looks_gaussian(Z @ beside, w) and is_noise(moment, some.T):
        return frame
    return replace(whole, reason=f"all {whole.dim}, for what the first {frame.dim} leave out is not Gaussian")


def best_of(learned: Learned, n: int | None, known: np.ndarray | None) -> Learned:
    """The ``n`` known, certified and largest atoms, where more were looked for."""
    total = learned.components.shape[0]
    if n is None or n >= total:
        return learned
    given = np.zeros((0, learned.components.shape[1])) if known is None else known
    is_known = np.max(np.abs(learned.components @ given.T), axis=1, initial=0.0) > KNOWN
    certified = is_certified(learned.certificates)
    rows = np.sort(np.lexsort((-learned.spread, ~certified, ~is_known))[:n])
    place = {int(row): i for i, row in enumerate(rows)}
    groups = [[place[i] for i in group if i in place] for group in learned.report.groups]
    doubts = [doubt and doubt.moved(place) for doubt in (learned.doubts[i] for i in rows)]
    reason = f"given; {total} were looked for, {int(np.sum(certified))} certified, and these are the largest"
    report = replace(learned.report, rank_reason=reason, groups=[group for group in groups if len(group) > 1])
    arrays = ("components", "unmixing", "spread", "thresholds", "certificates", "uncertainty", "stability", "kurtosis")
    axes = polar(learned.components[rows] @ learned.frame.forward)
    return replace(
        learned,
        **{name: getattr(learned, name)[rows] for name in arrays},
        correlations=learned.correlations[np.ix_(rows, rows)],
        doubts=tuple(doubts),
        bases=tuple(learned.bases[i] for i in rows),
        frame=learned.frame.narrowed(axes.T),
        report=report,
    )


def told(learned: Learned, frame: Frame, evidence: Evidence, plan: Plan) -> Learned:
    """With its status, from the evidence in the coordinates of a frame, and the plan that led to it."""
    U = learned.components @ frame.forward
    U = U / np.maximum(np.linalg.norm(U, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    rows, features, trimmed = learned.report.samples, learned.components.shape[1], learned.report.trimmed
    status = status_of(
        U, learned.certificates, learned.doubts, learned.stability, evidence,
        rows=rows, features=features, dim=frame.rank, trimmed=trimmed,
    )  # fmt: skip
    # Of halves that depend on each other it tells nothing that atoms return.
    stable = learned.stability if evidence.units.enough else np.zeros_like(learned.stability)
    report = replace(learned.report, units=str(evidence.units), plan=tuple(plan.attempts))
    return replace(learned, status=status, stability=stable, report=report)


def check_count(n_components: int | None, frame: Frame) -> int:
    """How many atoms to look for: as asked, at most as many as squares of them can be linearly independent."""
    N = packed_dim(frame.dim)
    if n_components is not None and n_components > N:
        raise ValueError(
            f"n_components must be at most {N}: so many squares of atoms can be linearly independent in the "
            f"{frame.dim} dimensions in which the samples vary ({frame.reason}); got {n_components}."
        )
    return frame.dim if n_components is None else n_components


def known_rows(known: np.ndarray | None, frame: Frame, n: int) -> np.ndarray:
    """Known atoms ``(m, d)`` in whitened coordinates, unit rows."""
    if known is None:
        return np.zeros((0, frame.dim))
    if known.shape[0] > n:
        raise ValueError(
            f"known_components holds {known.shape[0]} atoms, more than the {n} that are looked for: raise n_components."
        )
    rows = known @ frame.forward
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    outside = np.linalg.norm(known - rows @ frame.backward, axis=1) > 0.5 * np.linalg.norm(known, axis=1)
    if np.any(outside) or not np.all(norms > 0):
        raise ValueError("known_components holds atoms outside of the span of the samples: remove them.")
    rows = rows / norms
    if rows.shape[0] <= frame.dim and np.linalg.svd(rows, compute_uv=False)[-1] < 1e-6:
        raise ValueError("known_components holds atoms that depend linearly on each other: remove some.")
    return rows


def assemble(
    frame: Frame,
    refined: Refined,
    U: np.ndarray,
    spectral: Spectral,
    pairs: np.ndarray,
    known: np.ndarray | None,
    rng: np.random.Generator,
    stages: Stages,
    samples: int,
    trimmed: int,
) -> Learned:
    """The result in the coordinates of the data, canonical.

    ``U`` are the atoms in the coordinates of the search, ``pairs (n, n)`` the ``E s_i^2 s_j^2`` of their signals.
    """
    moment = spectral.moment
    with stages("measure"):
        _, eps = residual_norm(moment.cumulant(), U, rng, rough=True)
        proof = spectral.proof.about(U)
        stable = stability(U, spectral.halves)
    W = refined.W
    atoms = np.linalg.inv(W).T @ frame.backward  # (n, d): what a signal of variance 1 adds to the data
    spread = np.linalg.norm(atoms, axis=1)
    sign = signs(atoms)
    components = atoms / spread[:, None] * sign[:, None]
    unmixing = (W @ frame.forward.T) * (spread * sign)[:, None]
    mean = frame.mean if refined.offset is None else frame.mean - refined.offset @ atoms
    thresholds = np.zeros_like(spread) if refined.thresholds is None else refined.thresholds * spread
    uncertainty = uncertainties(refined, frame)
    if known is not None:
        # As they are, but for what lies outside of the directions in which the samples vary.
        lost = sines(components[: known.shape[0]], known)
        uncertainty[: known.shape[0]] = np.where(lost > INSIDE, lost, 0.0)
    order = canonical_order(components, spread)
    pairs = pairs[np.ix_(order, order)]
    correlations = correlations_of_pairs(pairs)
    weight = float(moment.effective.sum())
    report = LearningReport(
        samples=samples,
        trimmed=trimmed,
        dim=spectral.axes.shape[1],
        frame_reason=frame.reason,
        rank_reason=spectral.rank_reason,
        subsample=spectral.samples,
        subsample_reason=spectral.reason,
        form=spectral.form,
        temperature=float(spectral.temperature),
        effective=weight,
        local=int(np.sum(proof.certified & proof.tangled)),
        tau=tau_of_pairs(pairs),
        groups=[g.tolist() for g in groups(correlations, least_correlation(weight)) if g.size > 1],
        window=spectral.window,
        spectrum=spectral.spectrum,
        kept=spectral.rank,
        sweeps=spectral.sweeps,
        refinement=refined.story,
        passes=refined.passes,
        timings=stages.seconds,
    )
    proof = proof.at(order)
    return Learned(
        components=components[order],
        unmixing=unmixing[order],
        mean=mean,
        spread=spread[order],
        thresholds=thresholds[order],
        certificates=proof.bounds,
        doubts=proof.doubts,
        bases=proof.bases,
        uncertainty=uncertainty[order],
        stability=stable[order],
        kurtosis=np.diagonal(pairs) - 3,
        correlations=correlations,
        eps=eps,
        frame=frame,
        report=report,
    )


def assemble_overcomplete(
    data: Samples | None,
    frame: Frame,
    found: Overcomplete,
    known: np.ndarray,
    evidence: Evidence,
    rng: np.random.Generator,
    stages: Stages,
    trimmed: int,
) -> Learned:
    """The same for more atoms than dimensions; without samples ``data`` there is no refinement."""
    U, m = found.found.atoms, known.shape[0]
    offset, tolerance, story, passes, exact = np.zeros(frame.dim), DEFAULT_TOLERANCE, NO_SAMPLES, 0, False
    with stages("refine") as progress:
        if data is not None:
            floor = max(ROUNDING * rounding_floor(data, frame), 1e-13)
            fitted, better = refine_codes(data, frame, U, floor, progress)
            story = f"sparse codes of {fitted.explained:.0%} of the samples, residual {fitted.residual:.0e}"
            tolerance, passes = max(fitted.tolerance, FINEST), fitted.rounds
            if better:
                U, offset, exact = np.concatenate((known, fitted.atoms[m:])), fitted.offset, fitted.residual <= EXACT
            else:
                story = "none: sparse codes do not explain the samples better"
    with stages("measure"):
        T = found.best.given.moment.cumulant()
        _, eps = residual_norm(T, U, rng)
        # A guess that refinement brought near to a certified atom is not another one.
        bounds = np.where(is_certified(found.found.bounds), found.found.prove(U), 0.0)
        proof = certify(Candidates(U, spans=Spans(bounds, fitted_weights(T, U)[1])), evidence)
        if data is None:
            spread, pairs = np.ones(U.shape[0]), cumulant_pairs(T, U)
        else:
            rows = data.about(MEASURED)
            spread, pairs = code_moments(to_numpy(data.whitened(rows, frame)) - offset, U, tolerance)
    atoms = U @ frame.backward  # (n, d): what a code of 1 adds to the data
    length = np.linalg.norm(atoms, axis=1)
    sign = signs(atoms)
    components = atoms / length[:, None] * sign[:, None]
    spread = spread * length
    halves = np.nan_to_num(sines(*found.halves) / 2, nan=1.0)
    uncertainty = np.full(U.shape[0], fitted.residual) if exact else halves
    uncertainty[:m] = 0.0
    order = canonical_order(components, spread)
    pairs = pairs[np.ix_(order, order)]
    correlations = correlations_of_pairs(pairs)
    weight = float(found.best.given.moment.effective.sum())
    proof = proof.at(order)
    certificates = np.where(order < m, 1.0, proof.bounds)  # known atoms are not in question
    doubts = tuple(None if i < m else doubt for i, doubt in zip(order, proof.doubts, strict=True))
    report = LearningReport(
        samples=found.best.given.samples if data is None else data.rows,
        trimmed=trimmed,
        dim=frame.dim,
        frame_reason=frame.reason,
        rank_reason=found.rank_reason,
        subsample=found.best.given.samples,
        subsample_reason=found.reason,
        form="accumulated",
        temperature=float(found.best.given.beta),
        effective=weight,
        local=0,
        tau=tau_of_pairs(pairs),
        groups=[g.tolist() for g in groups(correlations, least_correlation(weight)) if g.size > 1],
        window=(0, 0),
        spectrum=found.best.given.spectrum.values,
        kept=U.shape[0],
        sweeps=0,
        refinement=story,
        passes=passes,
        timings=stages.seconds,
    )
    return Learned(
        components=components[order],
        unmixing=np.linalg.pinv(components[order]).T,
        mean=frame.mean + offset @ frame.backward,
        spread=spread[order],
        thresholds=np.zeros(U.shape[0]),
        certificates=certificates,
        uncertainty=uncertainty[order],
        stability=stability(U, found.halves)[order],
        kurtosis=np.diagonal(pairs) - 3,
        correlations=correlations,
        eps=eps,
        frame=frame,
        report=report,
        tolerance=tolerance,
        doubts=doubts,
        bases=proof.bases,
    )


def cumulant_pairs(T: FourTensor, U: np.ndarray) -> np.ndarray:
    """``E s_i^2 s_j^2`` of the signals of unit rows ``U (n, r)``, from the cumulant of whitened samples."""
    inner = U @ U.T
    return values_on_squares(T, U) + 1 + 2 * inner**2


def values_on_squares(T: FourTensor, U: np.ndarray) -> np.ndarray:
    """``<T, u_i u_i' (x) u_j u_j'>`` for rows ``U (n, r)``, on the host: ``(n, n)``."""
    return np.asarray(to_numpy(T.on_squares(from_numpy(U, T.like, T.like.dtype))), dtype=np.float64)


def residual_norm(
    T: FourTensor, U: np.ndarray, rng: np.random.Generator, *, rough: bool = False
) -> tuple[np.ndarray, float]:
    """``<T, u^(x4)>`` for the rows of ``U``, and the norm of what least-squares weights for them leave of ``T``.

    Where ``T`` has a sampling error, products may be ``rough``.
    """
    values, weights = fitted_weights(T, U)
    return values, spectral_norm(deflate(T, weights, from_numpy(U, T.like, T.like.dtype)), rng, rough=rough)


def uncertainties(refined: Refined, frame: Frame) -> np.ndarray:
    """Estimated sine of the angle of each atom to the truth, in the coordinates of the data."""
    if refined.residual is not None:
        return np.array(refined.residual)
    if len(refined.halves) < 2:
        return np.ones(frame.dim)
    pair = [A @ frame.backward for A in refined.halves]
    return sines(*(A / np.linalg.norm(A, axis=1, keepdims=True) for A in pair)) / 2


def warn_of(status: Status) -> None:
    """Say so to the caller where the result is not proven."""
    if not status.ok:
        warn(str(status), DecompositionWarning)
