"""Components in general position: not orthogonal, and more of them than dimensions if need be.

``T = sum_i w_i a_i^(x4) + E`` with any weights that are not zero, of either sign, as long as the ``a_i a_i'`` are
linearly independent and the error is small against the smallest eigenvalue of their span.  The span is that of the
eigenvalues of largest magnitude; the components are its rank-one elements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from quartic._arrays import Array, array_namespace, floor_of, pack_rank_one, take_rows, to_numpy
from quartic._progress import Stages
from quartic.algorithms.certify import cap_certificates, is_certified, own_sine
from quartic.algorithms.select import Selection, drops
from quartic.algorithms.subspace_power import derivatives, maxima
from quartic.algorithms.truncate import OVERSAMPLING, Spectrum, full_spectrum, leading_spectrum
from quartic.tensors.base import FourTensor
from quartic.tensors.factored import FactoredTensor

DENSE_PART = 4  # of the packed dimension: from N / 4 eigenvectors on a dense solver is faster; measured
DENSE_LIMIT = 2500  # N up to which the whole spectrum is looked at for the rank: some seconds
DROP, TRIALS = 1.5, 4  # least ratio of a proposed cut of the spectrum, and how many of the sharpest are tried
FULLEST = 0.9  # of N: the largest rank that is proposed; beyond, hardly a gap is left, and no maximum is isolated
ENTRIES = 1 << 22  # numbers that are held at a time
TIGHT = 1e-3  # root mean square residual of the eigenvectors over the smallest kept eigenvalue


@dataclass(frozen=True)
class General:
    """What was found in general position.

    Attributes
    ----------
    components : array of shape (m, d)
        Unit rows, known ones first.
    bounds : ndarray of shape (m,)
        Certificates; see ``certify.cap_certificates``.
    choice : Selection
    spectrum : Spectrum
    """

    components: Array
    bounds: np.ndarray
    choice: Selection
    spectrum: Spectrum


def can_count(T: FourTensor) -> bool:
    """Whether the rank can be found: the whole spectrum is needed for it."""
    return T.pair_dim <= DENSE_LIMIT


def general(
    T: FourTensor, rank: int | None, eps: float | None, known: Array, rng: np.random.Generator, stages: Stages
) -> General:
    """Components of ``T`` in general position.

    Parameters
    ----------
    T : FourTensor
    rank : int, optional
        Chosen by certificate when not given.
    eps : float, optional
        Bound on the spectral norm of the error; the largest eigenvalue that is left out when not given.
    known : array of shape (m, d)
        Unit rows that are among the components.
    rng : numpy.random.Generator
    stages : Stages
    """
    N = T.pair_dim
    with stages("truncate") as progress:
        if rank is None or DENSE_PART * (rank + OVERSAMPLING) > N:
            spectrum = full_spectrum(T)
        else:
            spectrum = leading_spectrum(
                T,
                rank + OVERSAMPLING,
                rng=rng,
                wanted=lambda values: rank,
                tolerance=TIGHT,
                by_magnitude=True,
                callback=progress,
            )
    with stages("recover") as progress:

        def found(k: int) -> tuple[Array, np.ndarray]:
            return _found(spectrum, k, eps, known, rng, progress)

        if rank is not None:
            B, bounds = found(rank)
            return General(B, bounds, Selection(rank, "given", None, True), spectrum)
        return _counted(spectrum, eps, known, found)


def _found(
    spectrum: Spectrum,
    k: int,
    eps: float | None,
    known: Array,
    rng: np.random.Generator,
    progress: Callable[[int], None],
) -> tuple[Array, np.ndarray]:
    """The best ``k`` maxima in the span of the first ``k`` eigenvectors, and their certificates."""
    L = spectrum.head(k)
    some = maxima(L, rng, known, callback=progress)
    bounds = certificates(L, some.vectors, spectrum.values, spectrum.outside(k) if eps is None else eps)
    if int(np.sum(is_certified(bounds))) > k:
        bounds = np.zeros_like(bounds)  # more than dimensions: the span is not that of components
    m = known.shape[0]
    order = np.concatenate((np.arange(m), m + np.lexsort((-to_numpy(some.values)[m:], -bounds[m:]))))[:k]
    return take_rows(some.vectors, order), bounds[order]


def certificates(L: FactoredTensor, B: Array, values: np.ndarray, eps: float) -> np.ndarray:
    """Certificates of the unit rows of ``B (m, d)``, maxima on a span; ``values`` are all known eigenvalues."""
    xp = array_namespace(B)
    if B.shape[0] == 0:
        return np.zeros(0)
    F, _, second = derivatives(L, B)
    steepest = xp.linalg.eigvalsh(second)[:, -1]
    c = xp.matrix_transpose(L.U) @ pack_rank_one(B)
    F, steepest, c = (np.asarray(to_numpy(x), dtype=np.float64) for x in (F, steepest, c))
    # F is known to rounding only: so much is added to the sine.
    rounding = 64 * floor_of(B.dtype, xp) * np.sqrt(L.pair_dim)
    return cap_certificates(F, steepest, np.sqrt(own_sine(eps, values, c) ** 2 + rounding))


def left_beside(spectrum: Spectrum, B: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """What the components ``B (m, d)`` leave of a tensor next to each of them, with the sign of its weight; ``(m,)``.

    The largest ``<R, X (x) X>`` over ``X = (uv' + vu')/sqrt(2)``, with ``R = T - sum_i w_i b_i^(x4)`` and unit ``v``
    beside ``u``: that is where a second component behind ``u`` would show.
    """
    T = spectrum.head(spectrum.values.shape[0])
    matrices, lam = (np.asarray(to_numpy(x), dtype=np.float64) for x in (T.matrices, T.lam))
    k, d = matrices.shape[:2]
    size = max(1, ENTRIES // (k * d))
    largest = [np.zeros(0)]
    for first in range(0, B.shape[0], size):
        rows, w = B[first : first + size], weights[first : first + size]
        V = np.reshape(matrices.reshape(k * d, d) @ rows.T, (k, d, -1)).transpose(2, 0, 1)  # U_k u
        M = (V * lam[:, None]).transpose(0, 2, 1) @ V - ((rows @ B.T) ** 2 * weights)[:, None, :] * B.T @ B
        P = np.eye(d) - rows[:, :, None] * rows[:, None, :]
        largest.append(np.linalg.eigvalsh(2 * np.sign(w)[:, None, None] * (P @ M @ P))[:, -1])
    return np.concatenate(largest)


def _counted(
    spectrum: Spectrum, eps: float | None, known: Array, found: Callable[[int], tuple[Array, np.ndarray]]
) -> General:
    """The largest proposed cut of the spectrum that is full of certified components."""
    m = known.shape[0]
    magnitude = np.abs(spectrum.values)
    most = int(FULLEST * magnitude.shape[0])
    floor = 64 * np.finfo(np.float64).eps * np.sqrt(magnitude.shape[0]) * magnitude[0]
    if eps is not None:
        above = max(1, min(most, int(np.count_nonzero(magnitude > max(eps * (1 + 1e-3), floor)))))
        proposals = [above]
    else:
        ratio = drops(magnitude, most, floor)
        sharpest = np.argsort(-ratio, kind="stable")[:TRIALS] + 1
        proposals = sorted((int(k) for k in sharpest if ratio[k - 1] >= DROP), reverse=True)
    best = General(known, np.zeros(m), Selection(m, "the spectrum has no clear gap", None, False), spectrum)
    for k in (k for k in proposals if k >= max(m, 1)):
        B, bounds = found(k)
        good = int(np.sum(is_certified(bounds)))
        figures = f"{good} of {k} dimensions of the span are certified components in general position"
        trial = General(B, bounds, Selection(k, figures, None, good == k), spectrum)
        if good == k:
            return trial
        if good > int(np.sum(is_certified(best.bounds))):
            best = trial
    return best
