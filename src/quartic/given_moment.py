"""Problem 5.2: the dictionary from a fourth moment that is given, without samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from quartic._arrays import check_random_state, from_numpy, in_own_precision, to_numpy
from quartic._progress import Progress, Stages
from quartic.algorithms.certify import DETERMINED, invariant_certificates, is_certified, pair_energy
from quartic.algorithms.clean import clean as clean_moment
from quartic.algorithms.postprocess import evaluate
from quartic.algorithms.recover import recover
from quartic.algorithms.select import TRIALS, Selection, drops
from quartic.algorithms.truncate import OVERSAMPLING, Spectrum, leading_spectrum
from quartic.algorithms.whiten import whiten
from quartic.certify.moments import has_rival
from quartic.dictionary import residual_norm, values_on_squares, warn_of
from quartic.propose.span import LIKELY
from quartic.result import Decomposition, Status, canonical_order, positive
from quartic.tensors.combine import Congruence
from quartic.tensors.factored import FactoredTensor
from quartic.tensors.packed import as_four_tensor

FLAT = 1e-3  # relative: eigenvalues that differ by less lie in one cluster, and rounding is below it


@in_own_precision
def dictionary_from_moment(
    T: Any,
    rank: int | None = None,
    eps: float = 0.0,
    *,
    covariance: Any = None,
    clean: float | None = None,
    random_state: Any = 0,
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
        Bound on the spectral norm of ``E``, in the units of the (whitened) moment; the certificates rest on it.  Atoms
        of one weight are certified only if they are independent: otherwise other axes fit the moment as well.
    covariance : array of shape (d, d), optional
        ``E[y y']``, without noise.  The atoms need not be orthogonal then (Lemma 5.3); without, they are taken to be
        orthonormal.
    clean : float, optional
        Clean the moment by Algorithm 5.4 with this truncation first: in Theorem 5.5, three times the largest pair
        moment.  When not given, the leading eigenvectors get equal weights instead, which is exact as long as their
        span is that of the ``a_i (x) a_i``.
    random_state : int, numpy.random.Generator or None, default=0
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
    >>> data = quartic.datasets.nice_samples(10, 6, dictionary="orthonormal")
    >>> T = quartic.datasets.population_moment(data.components, data.moments)
    >>> result = quartic.dictionary_from_moment(quartic.PackedTensor(T), random_state=0)
    >>> result.rank, quartic.metrics.match(data.components, result.components).found(1 - 1e-9)
    (6, 6)
    """
    rng = check_random_state(random_state)
    for name, value in (("eps", eps), ("clean", 0.0 if clean is None else clean)):
        number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not (number and 0 <= value < np.inf):
            raise ValueError(f"{name} must be a number, finite and not negative; got {value!r}.")
    stages = Stages(callback)
    with stages("pack") as progress:
        tensor = as_four_tensor(T, progress)
        like, d = tensor.like, tensor.dim
        backward = np.eye(d)
        if covariance is not None:
            white = whiten(_checked_covariance(covariance, d), np.inf, d)  # all: a cut might mix atoms
            backward = white.backward
            tensor = Congruence(tensor, from_numpy(white.forward.T, like, like.dtype))
    if rank is not None and not (hasattr(rank, "__index__") and 1 <= rank <= tensor.dim):
        raise ValueError(f"rank must be a whole number between 1 and {tensor.dim}, or None; got {rank!r}.")
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
        rival = has_rival(values_on_squares(tensor, U), eps, white=covariance is not None)
        bounds = np.where(rival, 0.0, bounds)
    rows = U @ backward
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    order = canonical_order(rows, weights)
    bounds = bounds[order]
    status = moment_status(bounds, choice, int(np.sum(rival)))
    warn_of(status)
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


def moment_status(bounds: np.ndarray, choice: Selection, rivals: int) -> Status:
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
    if rivals:
        return Status(
            "uncertified",
            f"{found} atoms found, {certified} certified: for {rivals}, other axes in a plane fit as well.",
            "A moment alone does not tell which: fit an estimator to samples; or give the covariance, if they are "
            "independent.",
        )
    if certified < found:
        return Status(
            "uncertified",
            f"{found} atoms found, {certified} certified.",
            "The error is too large against the gap of the spectrum to prove the others.",
        )
    return Status("complete", f"{found} atoms found and certified.")
