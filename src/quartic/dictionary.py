"""From samples to certified atoms: all of section 5, in the order in which the data flow.

    samples -> (trim) -> covariance -> frame -> fourth cumulant -> span -> atoms -> certificates -> refinement

Pure functions on NumPy arrays; ``estimators`` validates, calls and stores.
"""

from __future__ import annotations

import operator
import warnings
from typing import Any

import numpy as np

from quartic._arrays import check_random_state, from_numpy, pack_rank_one, to_numpy
from quartic._progress import Progress, Stages
from quartic.algorithms.certify import DETERMINED, invariant_certificates, is_certified, pair_energy
from quartic.algorithms.clean import clean as clean_moment
from quartic.algorithms.postprocess import evaluate
from quartic.algorithms.recover import recover
from quartic.algorithms.refine import pair_moments, sines
from quartic.algorithms.select import TRIALS, Selection, drops
from quartic.algorithms.together import correlations_of_pairs, groups, least_correlation, tau_of_pairs
from quartic.algorithms.truncate import OVERSAMPLING, Spectrum, leading_spectrum, spectral_norm
from quartic.algorithms.whiten import whiten
from quartic.learned import Learned, LearningReport
from quartic.moments import Covariance, FourthMoment, Frame, Rewhitened, inverse_root
from quartic.refinement import Refined, half_estimates, pinned, refined_from
from quartic.result import Decomposition, DecompositionWarning, Status, canonical_order, positive, signs
from quartic.samples import Samples, trim
from quartic.search import LIKELY
from quartic.spectral import Spectral, complete, counted, spectral_stage, top_or_window
from quartic.tensors.base import FourTensor
from quartic.tensors.combine import Congruence, deflate
from quartic.tensors.factored import FactoredTensor
from quartic.tensors.packed import as_four_tensor

FLAT = 1e-3  # relative: eigenvalues that differ by less lie in one cluster, and rounding is below it


def learn(
    Y: np.ndarray,
    n_components: int | None = None,
    *,
    frame: Frame | None = None,
    sample_weight: np.ndarray | None = None,
    known: np.ndarray | None = None,
    refine: bool = True,
    form: str = "auto",
    temperature: float | None = None,
    rng: np.random.Generator,
    callback: Progress | None = None,
) -> Learned:
    """Learn a dictionary from samples ``Y (m, d)``, float32 or float64; see ``SpectralDictionaryLearning``."""
    stages = Stages(callback)
    with stages("trim"):
        weights, trimmed = trim(Y, sample_weight)
        if weights is not None:
            weights = weights / np.mean(weights[weights > 0])  # so that their scale is nowhere seen
    with stages("covariance"):
        covariance = Covariance().update(Y, weights)
        if frame is None:
            frame = covariance.frame(n_components)
        elif refine:
            root = inverse_root(frame.forward.T @ covariance.covariance @ frame.forward)
            frame = frame.completed(covariance.mean, root)
    if not refine:
        with stages("moment"):
            moment = FourthMoment(frame).update(Y, weights)
        return learn_from_moment(moment, n_components, known=known, rng=rng, stages=stages, trimmed=trimmed)

    n = check_count(n_components, frame)
    given = known_rows(known, frame, n)
    data = Samples(Y, weights, frame.mean)
    spectral = spectral_stage(data, frame, n, given, form, rng, stages, temperature)
    spectral = spectral if n_components is not None else counted(spectral, given, rng)
    found = spectral.found
    n = spectral.rank
    with stages("refine") as progress:
        start = complete(found.atoms, n, frame.dim, rng)  # (n, r), orthonormal rows
        inside = frame.narrowed(start.T)
        refined = refined_from(data, covariance, inside, spectral, start, rng, progress)
        refined = refined if not len(given) else pinned(refined, given @ start.T)
        pairs = pair_moments(data.part(spectral.rows), inside.forward @ refined.W.T)
    U = refined.atoms @ start  # in the coordinates of the search
    return assemble(inside, refined, U, spectral, pairs, known, rng, stages, Y.shape[0], trimmed)


def learn_from_moment(
    moment: FourthMoment,
    n_components: int | None = None,
    *,
    known: np.ndarray | None = None,
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
    with stages("search") as progress:
        found = top_or_window(white, n, given, rng, progress, tight=True)
    rows = moment.count
    spectral = Spectral(found, white, np.arange(0), n, "given", rows, "all that were accumulated", "accumulated")
    spectral = spectral if n_components is not None else counted(spectral, given, rng)
    found = spectral.found
    start = complete(found.atoms, spectral.rank, frame.dim, rng)
    inside = frame.narrowed(start.T)
    W = np.eye(spectral.rank)
    refined = Refined(W, half_estimates(found, start), "none: moments alone, no samples were kept", 0)
    refined = refined if not len(given) else pinned(refined, given @ start.T)
    U = refined.atoms @ start
    pairs = cumulant_pairs(white.cumulant(), U)
    return assemble(inside, refined, U, spectral, pairs, known, rng, stages, moment.count, trimmed)


def dictionary_from_moment(
    T: Any,
    rank: int | None = None,
    eps: float = 0.0,
    *,
    covariance: Any = None,
    clean: float | None = None,
    random_state: Any = None,
    callback: Progress | None = None,
) -> Decomposition:
    """Problem 5.2: the dictionary from a given fourth moment ``T = E[(Ax)^(x4)] + E``.

    Parameters
    ----------
    T : array of shape (d, d, d, d) or (d*d, d*d), or FourTensor
        Fourth moment of samples ``y = A x``, for coefficients whose odd moments vanish.
    rank : int, optional
        Number of atoms.  When not given, the largest cut of the spectrum that is full of rank-one matrices.
    eps : float, default=0.0
        Bound on the spectral norm of ``E``, in the units of the (whitened) moment; the certificates rest on it.
    covariance : array of shape (d, d), optional
        ``E[y y']``.  The atoms need not be orthogonal then (Lemma 5.3); without, they are taken to be orthonormal.
    clean : float, optional
        Clean the moment by Algorithm 5.4 with this truncation first: in Theorem 5.5, three times the largest pair
        moment.  When not given, the leading eigenvectors get equal weights instead, which is exact as long as their
        span is that of the ``a_i (x) a_i``.
    random_state : None, int or numpy.random.Generator
    callback : callable, optional
        Called as ``callback(stage, done)`` while it works.

    Returns
    -------
    Decomposition
        Atoms as unit rows, in the library of ``T``; ``weights`` are the ``E[x_i^4]`` (over ``E[x_i^2]^2`` with a
        covariance), ``eps`` what ``sum_i w_i a_i^(x4)`` leaves of the moment, pair terms included.

    Examples
    --------
    >>> import quartic
    >>> data = quartic.datasets.nice_samples(10, 6, supports="blocks", group=3, dictionary="orthonormal")
    >>> T = quartic.datasets.population_moment(data.components, data.moments)
    >>> result = quartic.dictionary_from_moment(quartic.PackedTensor(T), random_state=0)
    >>> result.rank, quartic.metrics.match(data.components, result.components).found(1 - 1e-9)
    (6, 6)
    """
    rng = check_random_state(random_state)
    for name, value in (("eps", eps), ("clean", 0.0 if clean is None else clean)):
        if not (isinstance(value, int | float | np.floating) and 0 <= value < np.inf):
            raise ValueError(f"{name} must be a number, finite and not negative; got {value!r}.")
    stages = Stages(callback)
    with stages("pack") as progress:
        tensor = as_four_tensor(T, progress)
        like, d = tensor.like, tensor.dim
        backward = np.eye(d)
        if covariance is not None:
            white = whiten(_checked_covariance(covariance, d), np.inf, rank)
            backward = white.backward
            tensor = Congruence(tensor, from_numpy(white.forward.T, like, like.dtype))
    if rank is not None and not 1 <= operator.index(rank) <= tensor.dim:
        raise ValueError(f"rank must lie between 1 and {tensor.dim}; got {rank}.")
    with stages("truncate") as progress:
        most = tensor.dim if rank is None else rank
        spectrum = leading_spectrum(
            tensor, most + OVERSAMPLING, rng=rng, wanted=lambda values: most, tolerance=1e-3, callback=progress
        )
    if not spectrum.values[0] > eps:
        raise ValueError(f"eps must lie below the largest eigenvalue of T, {spectrum.values[0]:.4g}; got {eps:.4g}.")
    with stages("recover") as progress:
        if clean is not None:
            L = clean_moment(tensor, clean, rng)
            choice = Selection(min(most, L.rank), "given" if rank else "what Algorithm 5.4 keeps", None, True)
            span = FactoredTensor(L.lam[: choice.rank], L.U[:, : choice.rank])
            atoms = recover(span.flattened(), rng, callback=progress)
        else:
            choice = full_cut(spectrum, most, rng) if rank is None else Selection(most, "given", None, True)
            atoms = recover(spectrum.head(choice.rank).flattened(), rng, callback=progress)
    with stages("certify"):
        bounds = invariant_certificates(eps, atoms, spectrum, choice.rank)
        U = np.asarray(to_numpy(atoms), dtype=np.float64)
        weights, residual = residual_norm(tensor, U, rng)
    rows = U @ backward
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    order = canonical_order(rows, weights)
    bounds = bounds[order]
    status = moment_status(bounds, choice)
    warn(status)
    return Decomposition(
        components=from_numpy(positive(rows)[order], like, like.dtype),
        weights=from_numpy(weights[order], like, like.dtype),
        certificates=from_numpy(bounds, like),
        eps=residual,
        eps_assumed=float(eps),
        rank=choice.rank,
        reason=choice.reason,
        status=status,
        spectrum=spectrum.values,
        asymmetry=getattr(tensor, "asymmetry", 0.0),
        sweeps=spectrum.sweeps,
        timings=stages.seconds,
    )


def _checked_covariance(covariance: Any, d: int) -> np.ndarray:
    C = np.asarray(to_numpy(covariance), dtype=np.float64)
    if C.shape != (d, d) or not np.all(np.isfinite(C)):
        raise ValueError(f"covariance must be finite, of shape ({d}, {d}); got shape {C.shape}.")
    C = (C + C.T) / 2
    if float(np.linalg.eigvalsh(C)[-1]) <= 0:
        raise ValueError("covariance must have a positive eigenvalue.")
    return C


def full_cut(spectrum: Spectrum, most: int, rng: np.random.Generator) -> Selection:
    """The largest cut below which the spectrum drops, and whose span is full of rank-one matrices."""
    ratio = drops(spectrum.values, most, FLAT * float(spectrum.values[0]))
    for k in sorted((int(k) + 1 for k in np.nonzero(ratio > 1 + FLAT)[0]), reverse=True)[:TRIALS]:
        span = spectrum.head(k).flattened()
        B = recover(span, rng)
        full = int(np.sum((to_numpy(evaluate(span, B).values) > LIKELY) & (pair_energy(span, B) < DETERMINED)))
        if full == k:
            return Selection(k, f"a span of {k} dimensions is full of rank-one matrices", B, True)
    return Selection(most, "no cut of the spectrum is full of rank-one matrices: as many as dimensions", None, False)


def moment_status(bounds: np.ndarray, choice: Selection) -> Status:
    """What happened, in words."""
    found, certified = bounds.shape[0], int(np.sum(is_certified(bounds)))
    if found == 0:
        return Status("nothing", f"no atom found ({choice.reason}).", "Try without clean, or with a smaller one.")
    if found < choice.rank or not choice.convincing:
        return Status(
            "incomplete",
            f"{found} of {choice.rank} atoms found, {certified} certified; {choice.reason}.",
            "Pair terms may exceed the span of the atoms: weights on the samples (fit an estimator) reach further.",
        )
    if certified < found:
        return Status(
            "uncertified",
            f"{found} atoms found, {certified} certified.",
            "The error is too large against the gap of the spectrum to prove the others.",
        )
    return Status("complete", f"{found} atoms found and certified.")


def check_count(n_components: int | None, frame: Frame) -> int:
    """How many atoms to look for: as asked, at most as many as the samples have dimensions."""
    if n_components is not None and n_components > frame.dim:
        raise ValueError(
            f"n_components must be at most {frame.dim}, the dimension in which the samples vary ({frame.reason}); "
            f"got {n_components}."
        )
    return frame.dim if n_components is None else n_components


def known_rows(known: np.ndarray | None, frame: Frame, n: int) -> np.ndarray:
    """Known atoms ``(m, d)`` in whitened coordinates, unit rows."""
    if known is None:
        return np.zeros((0, frame.dim))
    if known.shape[0] > n:
        raise ValueError(f"known_components holds {known.shape[0]} atoms, more than the {n} that are looked for.")
    rows = known @ frame.forward
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    outside = np.linalg.norm(known - rows @ frame.backward, axis=1) > 0.5 * np.linalg.norm(known, axis=1)
    if np.any(outside) or not np.all(norms > 0):
        raise ValueError("known_components holds atoms outside of the span of the samples: remove them.")
    rows = rows / norms
    if np.linalg.svd(rows, compute_uv=False)[-1] < 1e-6:
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
    found, moment = spectral.found, spectral.moment
    with stages("measure"):
        T = moment.cumulant()
        _, eps = residual_norm(T, U, rng)
        certificates = found.certify(U)
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
        uncertainty[: known.shape[0]] = 0.0
    order = canonical_order(components, spread)
    pairs = pairs[np.ix_(order, order)]
    weight = float(moment.effective.sum())
    report = LearningReport(
        samples=samples,
        trimmed=trimmed,
        dim=found.atoms.shape[1],
        frame_reason=frame.reason,
        rank_reason=spectral.rank_reason,
        subsample=spectral.samples,
        subsample_reason=spectral.reason,
        form=spectral.form,
        temperature=float(spectral.temperature),
        effective=weight,
        local=0 if found.local is None else found.local.atoms.shape[0],
        tau=tau_of_pairs(pairs),
        groups=[g.tolist() for g in groups(correlations_of_pairs(pairs), least_correlation(weight)) if g.size > 1],
        window=found.window,
        spectrum=found.spectrum,
        sweeps=found.sweeps,
        refinement=refined.story,
        passes=refined.passes,
        timings=stages.seconds,
    )
    status = status_of(certificates, trimmed)
    return Learned(
        components=components[order],
        unmixing=unmixing[order],
        mean=mean,
        spread=spread[order],
        thresholds=thresholds[order],
        certificates=certificates[order],
        uncertainty=uncertainty[order],
        kurtosis=np.diagonal(pairs) - 3,
        eps=eps,
        frame=frame,
        status=status,
        report=report,
    )


def cumulant_pairs(T: FourTensor, U: np.ndarray) -> np.ndarray:
    """``E s_i^2 s_j^2`` of the signals of unit rows ``U (n, r)``, from the cumulant of whitened samples."""
    B = pack_rank_one(U.astype(T.like.dtype))
    inner = U @ U.T
    return np.asarray(to_numpy(B.T @ T.apply(B)), dtype=np.float64) + 1 + 2 * inner**2


def residual_norm(T: FourTensor, U: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """``<T, u^(x4)>`` for the rows of ``U``, and the norm of what least-squares weights for them leave of ``T``."""
    B = U.astype(T.like.dtype)
    values = np.asarray(to_numpy(evaluate(T, B).values), dtype=np.float64)
    weights = np.linalg.lstsq((U @ U.T) ** 4, values, rcond=None)[0]
    return values, spectral_norm(deflate(T, weights, B), rng)


def uncertainties(refined: Refined, frame: Frame) -> np.ndarray:
    """Estimated sine of the angle of each atom to the truth, in the coordinates of the data."""
    if refined.residual is not None:
        return np.array(refined.residual)
    if len(refined.halves) < 2:
        return np.ones(frame.dim)
    pair = [A @ frame.backward for A in refined.halves]
    return sines(*(A / np.linalg.norm(A, axis=1, keepdims=True) for A in pair)) / 2


def status_of(certificates: np.ndarray, trimmed: int) -> Status:
    """What happened, in words."""
    n, certified = certificates.shape[0], int(np.sum(is_certified(certificates)))
    note = f" {trimmed} samples were left out, far longer than all others." if trimmed else ""
    if certified == n:
        return Status("complete", f"{n} atoms found and certified.{note}")
    if 2 * certified < n:
        return Status(
            "few-samples",
            f"{certified} of {n} atoms certified: there are too few samples for the spectral stage, or no structure "
            f"that it sees, and the result is the best of several local optima.{note}",
            "More samples, or fewer components.",
        )
    return Status(
        "uncertified",
        f"{n} atoms found, {certified} certified.{note}",
        "More samples would certify the others; or the data have fewer components.",
    )


def warn(status: Status) -> None:
    """Say so where the result is not proven."""
    if not status.ok:
        warnings.warn(str(status), DecompositionWarning, stacklevel=3)
