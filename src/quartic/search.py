"""The spectral stage on samples: from a fourth cumulant with two halves to certified atoms in whitened coordinates.

The cumulant of a nice distribution is ``B X B'`` plus pair terms that live outside the span of ``B``, whose columns are
the ``a_i (x) a_i``.  So its leading eigenvectors span the columns of ``B``, with weights that do not matter (see
``FactoredTensor.flattened``), as long as ``lambda_min(X)`` exceeds the pair terms; otherwise a window of the spectrum
does.  Everything is done three times, for each half of the samples and for all of them: the halves certify.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from quartic._arrays import to_numpy
from quartic.algorithms.certify import DETERMINED, is_certified, pair_energy, split_certificates
from quartic.algorithms.postprocess import evaluate
from quartic.algorithms.recover import deflate_span, polar, recover
from quartic.algorithms.select import windows
from quartic.algorithms.truncate import OVERSAMPLING, Spectrum, leading_spectrum
from quartic.tensors.base import FourTensor
from quartic.tensors.factored import FactoredTensor

SWEEPS = 8  # at most: a spectrum that takes more has no gap, and then more samples are wanted, not more sweeps
TOP = (0, 0)  # the window that skips nothing
DENSE_LIMIT = 2500  # N up to which a window is looked for: all eigenvectors are needed, some seconds at 2,500
LIKELY = 0.8  # F on the own span of a candidate that a window is judged by, before the halves are asked


Half = tuple[np.ndarray, FactoredTensor]  # what one half of the samples gives: atoms, and the span they lie in
Polish = Callable[[int, np.ndarray], np.ndarray]


class Halved(Protocol):
    """A fourth moment that knows two halves of its samples."""

    weight: np.ndarray

    def cumulant(self, half: int | None = None) -> FourTensor:
        """The cumulant of one half, or of all samples."""


@dataclass(frozen=True)
class Search:
    """What the spectral stage found.

    Attributes
    ----------
    atoms : ndarray of shape (m, r)
        Unit rows in whitened coordinates, known ones first; ``m`` is at most what was asked for.
    halves : list of (ndarray, FactoredTensor)
        What each half of the samples gives alone, and its span; empty when a half has no samples.
    certificates : ndarray of shape (m,)
    spectrum : ndarray
        Leading eigenvalues of the cumulant, the largest magnitude first.
    window : tuple of int
        ``(a, b)``: eigenvectors ``a`` to ``b - 1`` were skipped.
    sweeps : int
    """

    atoms: np.ndarray
    halves: list[Half]
    certificates: np.ndarray
    spectrum: np.ndarray
    window: tuple[int, int]
    sweeps: int

    @property
    def certified(self) -> int:
        """How many atoms are certified."""
        return int(np.sum(is_certified(self.certificates)))

    def certify(self, U: np.ndarray) -> np.ndarray:
        """Certificates of atoms ``U (m, r)``, unit rows, however they were found."""
        return split_certificates(U, self.halves) if self.halves else np.zeros(U.shape[0])


def search(
    moment: Halved,
    n: int,
    known: np.ndarray,
    rng: np.random.Generator,
    progress: Callable[[int], None] | None = None,
    polish: Polish | None = None,
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
    polish : callable, optional
        From a half and the atoms found in it, better ones, by the samples of that half alone.
    """
    return _from_whole(moment, n, known, rng, progress, *_from_halves(moment, n, known, rng, progress, polish))


def search_if_certified(
    moment: Halved,
    n: int,
    known: np.ndarray,
    rng: np.random.Generator,
    progress: Callable[[int], None] | None = None,
    polish: Polish | None = None,
) -> Search | None:
    """As :func:`search`; but where the two halves do not certify ``n`` atoms it ends with them, and None."""
    both, sweeps = _from_halves(moment, n, known, rng, progress, polish)
    certified = int(np.sum(is_certified(split_certificates(both[0][0], both)))) if both else 0
    return _from_whole(moment, n, known, rng, progress, both, sweeps) if certified == n else None


def _from_halves(
    moment: Halved,
    n: int,
    known: np.ndarray,
    rng: np.random.Generator,
    progress: Callable[[int], None] | None,
    polish: Polish | None,
) -> tuple[list[Half], int]:
    spectra = [_top(moment.cumulant(half), n, rng, progress) for half in _halves(moment)]
    both = _both([s.head(n).flattened() for s in spectra], known, rng, polish)
    return both, sum(s.sweeps for s in spectra)


def _from_whole(
    moment: Halved,
    n: int,
    known: np.ndarray,
    rng: np.random.Generator,
    progress: Callable[[int], None] | None,
    both: list[Half],
    sweeps: int,
) -> Search:
    whole = _top(moment.cumulant(), n, rng, progress)
    return _found(whole, whole.head(n).flattened(), both, TOP, known, rng, sweeps + whole.sweeps)


def _top(T: FourTensor, n: int, rng: np.random.Generator, progress: Callable[[int], None] | None) -> Spectrum:
    """The ``n`` eigenvalues of largest magnitude."""
    return leading_spectrum(
        T, n + OVERSAMPLING, rng=rng, wanted=lambda values: n, by_magnitude=True, most=SWEEPS, callback=progress
    )


def search_window(
    moment: Halved,
    n: int,
    known: np.ndarray,
    rng: np.random.Generator,
    progress: Callable[[int], None] | None = None,
    polish: Polish | None = None,
) -> Search | None:
    """The best window below the top of the spectrum, by certificate; None where there is none, or it costs too much."""
    if moment.cumulant().pair_dim > DENSE_LIMIT:
        return None
    whole = _all_eigenpairs(moment.cumulant())
    best, most = None, 0
    for tried, window in enumerate(windows(whole.values, n)):
        span = _window(whole, n, window)
        B = recover(span, rng)
        likely = int(np.sum((evaluate(span, B).values > LIKELY) & (pair_energy(span, B) < DETERMINED)))
        best, most = (window, likely) if likely > most else (best, most)
        if progress is not None:
            progress(tried + 1)
    if best is None:
        return None
    spans = [_window(_all_eigenpairs(moment.cumulant(half)), n, best) for half in _halves(moment)]
    return _found(whole, _window(whole, n, best), _both(spans, known, rng, polish), best, known, rng, 0)


def _halves(moment: Halved) -> tuple[int, ...]:
    """The two halves; none where one is empty."""
    return (0, 1) if np.all(moment.weight > 0) else ()


def _both(
    spans: list[FactoredTensor], known: np.ndarray, rng: np.random.Generator, polish: Polish | None
) -> list[Half]:
    """What each half gives: its atoms, polished, and its span."""
    found = [_atoms(span, known, rng) for span in spans]
    if polish is not None:
        found = [polish(h, B) for h, B in enumerate(found)]
    return list(zip(found, spans, strict=True))


def _found(
    spectrum: Spectrum,
    span: FactoredTensor,
    both: list[Half],
    window: tuple[int, int],
    known: np.ndarray,
    rng: np.random.Generator,
    sweeps: int,
) -> Search:
    atoms = _atoms(span, known, rng)
    bounds = split_certificates(atoms, both) if both else np.zeros(atoms.shape[0])
    return Search(atoms, both, bounds, spectrum.values, window, sweeps)


def _atoms(L: FactoredTensor, known: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The known atoms, and those in what is left of the span."""
    if known.shape[0] == 0:
        return to_numpy(recover(L, rng)).astype(np.float64)
    given = known.astype(L.like.dtype)
    rest = recover(deflate_span(L, polar(given)), rng) if known.shape[0] < L.rank else given[:0]
    return np.concatenate((known, to_numpy(rest).astype(np.float64)))


def _window(spectrum: Spectrum, n: int, window: tuple[int, int]) -> FactoredTensor:
    """The span of a window, with equal weights."""
    a, b = window
    kept = np.concatenate((np.arange(a), np.arange(b, b + n - a)))
    return FactoredTensor(np.ones(n, dtype=spectrum.vectors.dtype), spectrum.vectors[:, kept])


def _all_eigenpairs(T: FourTensor) -> Spectrum:
    matrix = to_numpy(T.to_packed())
    values, V = np.linalg.eigh((matrix + matrix.T) / 2)
    zero = np.zeros(values.shape[0])
    return Spectrum(values[::-1].astype(np.float64), V[:, ::-1], zero, np.zeros((0, 0)), 1, True)
