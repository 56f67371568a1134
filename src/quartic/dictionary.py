"""From samples to certified atoms: all of section 5, in the order in which the data flow.

    samples -> (trim) -> covariance -> frame -> fourth cumulant -> span -> atoms -> certificates -> refinement

Pure functions on NumPy arrays; ``estimators`` validates, calls and stores.
"""

from __future__ import annotations

import warnings

import numpy as np

from quartic._arrays import to_numpy
from quartic._progress import Progress, Stages
from quartic.algorithms.certify import is_certified
from quartic.algorithms.postprocess import evaluate
from quartic.algorithms.refine import sines
from quartic.algorithms.truncate import spectral_norm
from quartic.learned import Learned, LearningReport
from quartic.moments import Covariance, FourthMoment, Frame, Rewhitened, inverse_root
from quartic.refinement import Refined, half_estimates, pinned, refined_from
from quartic.result import DecompositionWarning, Status
from quartic.samples import Samples, trim
from quartic.spectral import Spectral, complete, counted, spectral_stage, top_or_window
from quartic.tensors.base import FourTensor
from quartic.tensors.combine import deflate


def learn(
    Y: np.ndarray,
    n_components: int | None = None,
    *,
    frame: Frame | None = None,
    sample_weight: np.ndarray | None = None,
    known: np.ndarray | None = None,
    refine: bool = True,
    form: str = "auto",
    rng: np.random.Generator,
    callback: Progress | None = None,
) -> Learned:
    """Learn a dictionary from samples ``Y (m, d)``, float32 or float64; see ``SpectralDictionaryLearning``."""
    stages = Stages(callback)
    with stages("trim"):
        weights, trimmed = trim(Y, sample_weight)
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
    spectral = spectral_stage(data, frame, n, given, form, rng, stages)
    spectral = spectral if n_components is not None else counted(spectral, given, rng)
    found = spectral.found
    n = spectral.rank
    with stages("refine") as progress:
        start = complete(found.atoms, n, frame.dim, rng)  # (n, r), orthonormal rows
        inside = frame.narrowed(start.T)
        refined = refined_from(data, covariance, inside, spectral, rng, progress)
        refined = refined if not len(given) else pinned(refined, given @ start.T)
    U = refined.atoms @ start  # in the coordinates of the search
    return assemble(inside, refined, U, spectral, known, rng, stages, Y.shape[0], trimmed)


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
        found = top_or_window(white, n, given, rng, progress)
    rows = moment.rows
    spectral = Spectral(found, white, np.arange(0), n, "given", rows, "all that were accumulated", "accumulated")
    spectral = spectral if n_components is not None else counted(spectral, given, rng)
    found = spectral.found
    start = complete(found.atoms, spectral.rank, frame.dim, rng)
    inside = frame.narrowed(start.T)
    W = np.eye(spectral.rank)
    refined = Refined(W, half_estimates(found, start), "none: moments alone, no samples were kept", 0)
    refined = refined if not len(given) else pinned(refined, given @ start.T)
    return assemble(inside, refined, refined.atoms @ start, spectral, known, rng, stages, moment.rows, trimmed)


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
    return rows / norms


def assemble(
    frame: Frame,
    refined: Refined,
    U: np.ndarray,
    spectral: Spectral,
    known: np.ndarray | None,
    rng: np.random.Generator,
    stages: Stages,
    samples: int,
    trimmed: int,
) -> Learned:
    """The result in the coordinates of the data, canonical; ``U`` are the atoms in those of the search."""
    found, moment = spectral.found, spectral.moment
    with stages("measure"):
        T = moment.cumulant()
        values, eps = residual_norm(T, U, rng)
        certificates = found.certify(U)
    W = refined.W
    atoms = np.linalg.inv(W).T @ frame.backward  # (n, d): what a signal of variance 1 adds to the data
    spread = np.linalg.norm(atoms, axis=1)
    peak = atoms[np.arange(atoms.shape[0]), np.argmax(np.abs(atoms), axis=1)]
    sign = np.where(peak < 0, -1.0, 1.0)
    components = atoms / spread[:, None] * sign[:, None]
    unmixing = (W @ frame.forward.T) * (spread * sign)[:, None]
    mean = frame.mean if refined.offset is None else frame.mean - refined.offset @ atoms
    thresholds = np.zeros_like(spread) if refined.thresholds is None else refined.thresholds * spread
    uncertainty = uncertainties(refined, frame)
    if known is not None:
        uncertainty[: known.shape[0]] = 0.0
    rounded = np.round(spread / np.max(spread), 9)
    order = np.lexsort((*np.round(components, 6).T[::-1], -rounded))
    report = LearningReport(
        samples=samples,
        trimmed=trimmed,
        dim=found.atoms.shape[1],
        frame_reason=frame.reason,
        rank_reason=spectral.rank_reason,
        subsample=spectral.samples,
        subsample_reason=spectral.reason,
        form=spectral.form,
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
        kurtosis=values[order],
        eps=eps,
        frame=frame,
        status=status,
        report=report,
    )


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
    note = f" {trimmed} samples were left out, for each outweighed all others together." if trimmed else ""
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
