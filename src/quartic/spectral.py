"""The spectral stage on a subsample that grows until its two halves certify every atom."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from quartic._arrays import available_memory, packed_dim
from quartic._progress import Stages
from quartic.algorithms.recover import polar
from quartic.algorithms.refine import Source, orthogonal
from quartic.algorithms.temper import temperature
from quartic.moments import FourthMoment, Frame, ImplicitMoment, half_of, row_hash
from quartic.samples import Samples
from quartic.search import Halved, Search, search, search_if_certified, search_window

SUBSAMPLE = 2  # times r^2: samples that feed the spectral stage at first; measured, mostly enough for tau <= 1/4
LARGEST = 64  # times r^2: where the subsample stops to double; what it does not show by then is not there
SPARSE_ROWS, SPARSE_LEAST = 50, 2000  # times n, and at least: samples of the sparse stage, far more than determine it
POLISH_STEPS = 10  # of the fixed point on a half of the samples


@dataclass(frozen=True)
class Spectral:
    """What the spectral stage found, and from what."""

    found: Search
    moment: Halved
    rows: np.ndarray
    rank: int
    rank_reason: str
    samples: int
    reason: str
    form: str


def spectral_stage(
    data: Samples, frame: Frame, n: int, known: np.ndarray, form: str, rng: np.random.Generator, stages: Stages
) -> Spectral:
    """The spectral stage on a subsample that doubles until every atom is certified, or nothing is gained any more."""
    m = data.Y.shape[0]
    share, taken, squares, beta, least = 0.0, np.zeros(0, dtype=np.intp), np.zeros(0), 0.0, 0.0
    accumulated = None
    size = min(m, max(SUBSAMPLE * frame.dim**2, SPARSE_ROWS * n, SPARSE_LEAST))
    while True:
        with stages("moment") as progress:
            part = min(1.0, size / m)
            fresh = data.chosen(share, part if part < 1 else 2.0)
            share_before, share, taken = share, part, np.concatenate((taken, fresh))
            squares = np.concatenate((squares, data.squared_norms(fresh, frame)))
            if share_before == 0:  # one temperature for all rounds, so that their moments add
                beta, least = temperature(squares), float(np.min(squares, initial=np.inf))
            weights = np.exp(-beta * np.maximum(squares - least, 0.0)) * data.weight(taken)
            chosen = choose_form(form, taken.shape[0], frame.dim, n)
            moment: Halved
            if chosen == "accumulated":
                new = slice(0 if accumulated is None else taken.shape[0] - fresh.shape[0], None)
                accumulated = FourthMoment(frame, np.float32) if accumulated is None else accumulated
                moment = accumulated.update(data.Y[taken[new]], weights[new], index=taken[new])
            else:
                moment = ImplicitMoment(frame.whiten(data.Y[taken], np.float32), half_of(row_hash(taken)), weights)
            progress(taken.shape[0])
        last = share == 1 or size >= LARGEST * frame.dim**2
        with stages("search") as progress:
            polish = Polish(data.part(taken), frame, n, rng)
            look = top_or_window if last else search_if_certified
            found = look(moment, n, known, rng, progress, polish)
        if found is not None:
            break
        size *= 2
    certified = f"{found.certified} of {n} atoms are certified"
    reason = f"{certified}, more samples are left to the refinement" if share < 1 else f"all there are, {certified}"
    return Spectral(found, moment, taken, n, "given", taken.shape[0], reason, chosen)


@dataclass(frozen=True)
class Polish:
    """The orthogonal stage of the refinement, on one half of the samples alone: its best guess at the atoms."""

    source: Source
    frame: Frame
    n: int
    rng: np.random.Generator

    def __call__(self, half: int, B: np.ndarray) -> np.ndarray:
        """Unit rows from the rows of ``B``, which the span of that half gave."""
        start = complete(B, self.n, self.frame.dim, self.rng)
        mine = [chunk for chunk in self.source() if chunk[0] == half]
        inside = self.frame.narrowed(start.T)
        return orthogonal(lambda: mine, inside.forward, np.eye(self.n), POLISH_STEPS)[0] @ start


def top_or_window(
    moment: Halved, n: int, known: np.ndarray, rng: np.random.Generator, progress: Any, polish: Polish | None = None
) -> Search:
    """The top of the spectrum, or a window of it where that certifies more."""
    found = search(moment, n, known, rng, progress, polish)
    if 2 * found.certified < n and moment.weight.sum() >= SUBSAMPLE * found.atoms.shape[1] ** 2:
        other = search_window(moment, n, known, rng, progress, polish)
        if other is not None and other.certified > found.certified:
            return other
    return found


def choose_form(form: str, m: int, r: int, n: int) -> str:
    """``accumulated`` or ``implicit``, by operations and memory."""
    if form != "auto":
        return form
    N, k, sweeps = packed_dim(r), n + 8, 5  # sweeps of each of three tensors, as measured
    accumulated = m * N * N + 2 * 3 * sweeps * N * N * k  # the moment is symmetric: half of 2 m N^2
    implicit = 2 * 4 * sweeps * m * N * k  # all samples once for the whole, once for the halves
    free_memory = available_memory()
    fits = free_memory is None or free_memory > 4 * 8 * N * N
    return "accumulated" if fits and accumulated <= implicit else "implicit"


def counted(spectral: Spectral, known: np.ndarray, rng: np.random.Generator) -> Spectral:
    """The number of atoms, when it is not given: as many as are certified, if their own span certifies them again."""
    found, r = spectral.found, spectral.rank
    n = found.certified
    if n == r:
        return replace(spectral, rank_reason=f"as many as dimensions, {r}, and all are certified")
    if max(1, known.shape[0]) <= n:
        again = search(spectral.moment, n, known, rng)
        if again.certified == n:
            return replace(spectral, found=again, rank=n, rank_reason=f"{n} directions of {r} are certified atoms")
    return replace(spectral, rank_reason=f"as many as dimensions, {r}; {n} are certified")


def complete(B: np.ndarray, n: int, r: int, rng: np.random.Generator) -> np.ndarray:
    """``n`` orthonormal rows ``(n, r)``: those closest to ``B (m, r)``, and random ones for what is missing."""
    B = B[:n]
    if B.shape[0] < n:
        noise = rng.standard_normal((n - B.shape[0], r))
        basis = np.linalg.qr(np.concatenate((B, noise)).T)[0].T
        B = np.concatenate((B, basis[B.shape[0] :]))
    return polar(B)
