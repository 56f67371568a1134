"""The spectral stage on samples: from a fourth cumulant to atoms in whitened coordinates.

The cumulant of a nice distribution is ``B X B'`` plus pair terms that live outside the span of ``B``, whose columns are
the ``a_i (x) a_i``.  So its leading eigenvectors span the columns of ``B``, with weights that do not matter (see
``FactoredTensor.flattened``), as long as ``lambda_min(X)`` exceeds the pair terms; otherwise a window of the spectrum
does.  This is a proposer: what it finds is proven elsewhere (``quartic.certify``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from quartic._arrays import from_numpy, no_rows, to_numpy
from quartic.algorithms.certify import (
    DETERMINED,
    TILT,
    contradicted,
    half_bounds,
    pair_energy,
)
from quartic.algorithms.postprocess import evaluate, postprocess
from quartic.algorithms.recover import deflate_span, polar, recover
from quartic.algorithms.select import windows
from quartic.algorithms.truncate import OVERSAMPLING, TOLERANCE, Spectrum, leading_spectrum
from quartic.tensors.base import FourTensor
from quartic.tensors.factored import FactoredTensor

TIGHT = 1e-11  # relative residual of a span that no random start should show in
SETTLING = 60  # passes of Algorithm 4.8 on a span; it converges linearly, the faster the better the span
SWEEPS = 8  # at most: a spectrum that takes more has no gap, and then more samples are wanted, not more sweeps
SIGNIFICANT = 4.0  # standard errors of the kurtosis of Gaussian samples
FEW = 4  # times r: effective samples of a half, below which it certifies nothing; r alone fit any span
TOP = (0, 0)  # the window that skips nothing
DENSE_LIMIT = 2500  # N up to which a window is looked for: all eigenvectors are needed, some seconds at 2,500
LIKELY = 0.8  # F on the own span of a candidate that a window is judged by, before the halves are asked


Half = tuple[np.ndarray, FactoredTensor]  # what one half of the samples gives: atoms, and the span they lie in
Plain = Callable[[], "Halved"]


class Halved(Protocol):
    """A fourth moment that knows two halves of its samples."""

    dim: int

    @property
    def effective(self) -> np.ndarray:
        """Effective sample size of each half, ``(2,)``."""

    def cumulant(self, half: int | None = None) -> FourTensor:
        """The cumulant of one half, or of all samples."""

    def covariance(self, half: int | None = None) -> np.ndarray:
        """The covariance of one half, or of all samples, ``(r, r)``."""


@dataclass(frozen=True)
class Certified:
    """Vectors with what is proven of them.

    Attributes
    ----------
    atoms : ndarray of shape (m, r)
        Unit rows.
    bounds : ndarray of shape (m,)
        Lower bounds on their squared correlation with an atom.
    """

    atoms: np.ndarray
    bounds: np.ndarray

    @property
    def axes(self) -> np.ndarray:
        """The nearest orthonormal rows."""
        return polar(self.atoms) if self.atoms.shape[0] else self.atoms

    def only(self, mask: np.ndarray) -> Certified:
        """Some of them."""
        return Certified(self.atoms[mask], self.bounds[mask])

    def and_also(self, other: Certified) -> Certified:
        """Both."""
        return Certified(np.concatenate((self.atoms, other.atoms)), np.concatenate((self.bounds, other.bounds)))

    def prove(self, U: np.ndarray) -> np.ndarray:
        """What they prove of other unit rows ``U (k, r)``: the angle to the nearest is added to its own."""
        if self.atoms.shape[0] == 0:
            return np.zeros(U.shape[0])
        angle = np.arccos(np.clip(np.abs(U @ self.atoms.T), 0.0, 1.0)) + np.arccos(np.sqrt(self.bounds))
        return np.cos(np.minimum(np.min(angle, axis=1), np.pi / 2)) ** 2


@dataclass(frozen=True)
class Search:
    """What the spectral stage found.

    Attributes
    ----------
    atoms : ndarray of shape (m, r)
        Unit rows in whitened coordinates, known ones first; ``m`` is at most what was asked for.
    halves : list of (ndarray, FactoredTensor)
        What each half of the samples gives alone, and its span; empty when it was not asked, or has too few.
    spectrum : ndarray
        Leading eigenvalues of the cumulant, the largest magnitude first.
    window : tuple of int
        ``(a, b)``: eigenvectors ``a`` to ``b - 1`` were skipped.
    sweeps : int
    moment : Halved
        What it was found in.
    """

    atoms: np.ndarray
    halves: list[Half]
    spectrum: np.ndarray
    window: tuple[int, int]
    sweeps: int
    moment: Halved

    @cached_property
    def likely(self) -> np.ndarray:
        """What the spans of the halves make of the atoms, ``(m,)``: for a proposer to judge by, and no proof."""
        if not self.halves:
            return np.zeros(self.atoms.shape[0])
        bounds = np.where(may_be_gaussian(self.moment, self.atoms), 0.0, half_bounds(self.atoms, self.halves))
        return np.where(contradicted(self.atoms, bounds, TILT), 0.0, bounds)


def may_be_gaussian(
    moment: Halved, U: np.ndarray, values: np.ndarray | None = None, plain: Plain | None = None
) -> np.ndarray:
    """Along which unit rows ``U (m, r)`` the kurtosis is no larger than its sampling error.

    The kurtosis of ``m`` Gaussians of variance ``c`` errs by ``c^2 sqrt(24 / m)``.  ``values`` holds that of each row,
    where it is known.  Weights that fall with the norm make a Gaussian direction one of light tails: what is negative
    under weights must be so without them, in the ``plain`` moment.
    """
    if values is None:
        values = kurtosis_along(moment, U)
    gaussian = np.abs(values) <= SIGNIFICANT * error_along(moment, U)
    light = np.flatnonzero((values < 0) & ~gaussian)
    if plain is not None and light.size:
        some, axes = plain(), U[light]
        gaussian[light] = kurtosis_along(some, axes) >= -SIGNIFICANT * error_along(some, axes)
    return np.asarray(gaussian)


def error_along(moment: Halved, U: np.ndarray) -> np.ndarray:
    """The standard error of the kurtosis along unit rows ``U (m, r)``, if the samples are Gaussian."""
    variance = np.sum((U @ moment.covariance()) * U, axis=1)
    return np.asarray(variance**2 * np.sqrt(24 / moment.effective.sum()))


def kurtosis_along(moment: Halved, U: np.ndarray) -> np.ndarray:
    """``<T, u^(x4)>`` of the cumulant for unit rows ``U (m, r)``, as accurate as a sampling error asks for."""
    T = moment.cumulant()
    return np.diagonal(to_numpy(T.on_squares(from_numpy(U, T.like, T.like.dtype)))).astype(np.float64)


def search(
    moment: Halved,
    n: int,
    known: np.ndarray,
    rng: np.random.Generator,
    progress: Callable[[int], None] | None = None,
    *,
    halves: bool = False,
    tight: bool = False,
) -> Search:
    """``n`` atoms from the top of the spectrum.

    Parameters
    ----------
    moment : Halved
    n : int
    known : ndarray of shape (m, r)
        Unit rows that are among the atoms.
    rng : numpy.random.Generator
    progress : callable, optional
        Called with the number of sweeps.
    halves : bool
        Whether the same is done for each half of the samples.
    tight : bool
        Whether the span of all samples, and the atoms in it, are iterated to rounding: where no refinement follows, the
        answer should not depend on a random start.
    """
    for_halves, for_whole = rng.spawn(2)  # the answer of the whole does not depend on what the halves drew
    spectra = [_top(moment.cumulant(half), n, for_halves, progress) for half in (_halves(moment) if halves else ())]
    both = _both([s.head(n).flattened() for s in spectra], known, for_halves)
    whole = _top(moment.cumulant(), n, for_whole, progress, tight)
    sweeps = whole.sweeps + sum(s.sweeps for s in spectra)
    return _found(moment, whole, whole.head(n).flattened(), both, TOP, known, for_whole, sweeps, tight)


def _top(
    T: FourTensor, n: int, rng: np.random.Generator, progress: Callable[[int], None] | None, tight: bool = False
) -> Spectrum:
    """The ``n`` eigenvalues of largest magnitude."""
    tolerance, most = (TIGHT, None) if tight else (TOLERANCE, SWEEPS)
    return leading_spectrum(
        T,
        n + OVERSAMPLING,
        rng=rng,
        wanted=lambda values: n,
        tolerance=tolerance,
        by_magnitude=True,
        most=most,
        rough=not tight,
        callback=progress,
    )


def search_window(
    moment: Halved,
    n: int,
    known: np.ndarray,
    rng: np.random.Generator,
    progress: Callable[[int], None] | None = None,
) -> Search | None:
    """The best window below the top of the spectrum, by certificate; None where there is none, or it costs too much."""
    if moment.cumulant().pair_dim > DENSE_LIMIT:
        return None
    whole = _all_eigenpairs(moment.cumulant())
    best, most = None, 0.0
    for tried, window in enumerate(windows(whole.values, n)):
        span = _window(whole, n, window)
        B = recover(span, rng)
        F = evaluate(span, B).values
        likely = float(np.sum(np.where((F > LIKELY) & (pair_energy(span, B) < DETERMINED), F, 0.0)))
        best, most = (window, likely) if likely > most else (best, most)
        if progress is not None:
            progress(tried + 1)
    if best is None:
        return None
    return _found(moment, whole, _window(whole, n, best), [], best, known, rng, 0)


def _halves(moment: Halved) -> tuple[int, ...]:
    """The two halves; none where one has too few samples for its word to count."""
    return (0, 1) if np.all(moment.effective >= FEW * moment.dim) else ()


def _both(spans: list[FactoredTensor], known: np.ndarray, rng: np.random.Generator) -> list[Half]:
    """What each half gives: its atoms, and its span."""
    return [(_atoms(span, known, rng), span) for span in spans]


def _found(
    moment: Halved,
    spectrum: Spectrum,
    span: FactoredTensor,
    both: list[Half],
    window: tuple[int, int],
    known: np.ndarray,
    rng: np.random.Generator,
    sweeps: int,
    tight: bool = False,
) -> Search:
    atoms = _atoms(span, known, rng)
    if tight and atoms.shape[0]:
        found = postprocess(span, from_numpy(atoms[known.shape[0] :], span.like, span.like.dtype), SETTLING)
        atoms = np.concatenate((known, to_numpy(found).astype(np.float64)))
    return Search(atoms, both, spectrum.values, window, sweeps, moment)


def _atoms(L: FactoredTensor, known: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The known atoms, and those in what is left of the span."""
    if known.shape[0] == 0:
        return to_numpy(recover(L, rng)).astype(np.float64)
    given = from_numpy(known, L.like, L.like.dtype)
    rest = recover(deflate_span(L, polar(given)), rng) if known.shape[0] < L.rank else no_rows(L.like, L.dim)
    return np.concatenate((known, to_numpy(rest).astype(np.float64)))


def _window(spectrum: Spectrum, n: int, window: tuple[int, int]) -> FactoredTensor:
    """The span of a window, with equal weights."""
    a, b = window
    kept = np.concatenate((np.arange(a), np.arange(b, b + n - a)))
    return FactoredTensor(np.ones(n, dtype=spectrum.vectors.dtype), spectrum.vectors[:, kept])


def _all_eigenpairs(T: FourTensor) -> Spectrum:
    matrix = to_numpy(T.to_packed())  # few dimensions: the host will do
    values, V = np.linalg.eigh((matrix + matrix.T) / 2)
    zero = np.zeros(values.shape[0])
    return Spectrum(values[::-1].astype(np.float64), V[:, ::-1], zero, np.zeros((0, 0)), 1, True)
