"""How many components: the cut of the spectrum is chosen by certificate.

By Weyl's inequality a tensor with ``n`` components of weight at least ``w`` and an error of norm ``eps`` has ``n``
eigenvalues of at least ``w - eps`` and no other above ``eps`` in magnitude.  For ``w >= 3 eps`` the cut after the
``n``-th is a drop by a factor of two.  There may be other drops (below an error of low rank, between components
of unequal weight), so a drop is only a *proposal*: the rank is the largest proposal whose span is full of
components, each certified for the error that the cut implies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from quartic._arrays import Array
from quartic.algorithms.certify import certificates, is_certified
from quartic.algorithms.truncate import Spectrum

DROP = 1.5  # least ratio of a proposed cut: Weyl promises 2 for weights of 3 eps, and Ritz values are not exact
TRIALS = 16  # proposals that are tried at most, the sharpest drops; weights far apart make many


@dataclass(frozen=True)
class Selection:
    """A rank and why.

    Attributes
    ----------
    rank : int
    reason : str
        In words, with the figures.
    components : array of shape (m, d) or None
        What was found in the span of that rank, when it has been searched.
    convincing : bool
        Whether every dimension of the span is explained by a certified component.
    """

    rank: int
    reason: str
    components: Array | None
    convincing: bool


def drops(values: np.ndarray, most: int, floor: float) -> np.ndarray:
    """``values[k-1]`` over the largest magnitude beyond it, for ``k = 1, ..., most``; ``floor`` is taken as zero."""
    most = min(most, values.shape[0])
    beyond = np.append(np.abs(values), 0.0)[::-1]
    largest = np.maximum.accumulate(beyond)[::-1][1 : most + 1]
    least = max(floor, np.finfo(np.float64).tiny)  # of a tensor that is exactly zero
    return np.where(values[:most] > least, values[:most] / np.maximum(largest, least), 0.0)


def lowest_drop(values: np.ndarray, most: int, floor: float) -> int:
    """The largest proposed cut, down to which eigenvalues have to be known; the sharpest drop where there is none."""
    ratio = drops(values, most, floor)
    proposed = np.nonzero(ratio >= DROP)[0]
    return int(proposed[-1] if proposed.size else np.argmax(ratio)) + 1


def rank_above(values: np.ndarray, eps: float, most: int) -> Selection:
    """The rank for a given ``eps``: Algorithm 4.1 keeps what lies above it."""
    # A multiple of the identity puts the whole error at eps to rounding; Ritz values may exceed it by as much.
    above = int(np.count_nonzero(values > eps * (1 + 1e-3)))
    reason = f"{above} eigenvalues exceed the eps that was given"
    if above > most:
        reason += f", more than the {most} orthogonal components there can be"
    return Selection(min(above, most), reason, None, above <= most)


def rank_by_certificate(
    spectrum: Spectrum, most: int, floor: float, recover: Callable[[int], Array], *, least: int = 1
) -> Selection:
    """The largest proposed cut that is full of certified components.

    Parameters
    ----------
    spectrum : Spectrum
    most : int
        Largest rank that is considered.
    floor : float
        Eigenvalues below it are rounding.
    recover : callable
        From a rank, the components found in the span of the first ``rank`` Ritz vectors.
    least : int
        0 if the spectrum may hold nothing that is sought.
    """
    ratio = drops(spectrum.values, most, floor)
    sharpest = np.argsort(-ratio, kind="stable")[:TRIALS] + 1
    proposals = [int(k) for k in sharpest if ratio[k - 1] >= DROP]
    best: Selection | None = None
    fullest = 0
    for k in sorted(proposals, reverse=True):
        eps = spectrum.outside(k)
        B = recover(k)
        good = int(np.sum(is_certified(certificates(eps, B, span=(spectrum, k)))))
        figures = (
            f"eigenvalue {k} is {ratio[k - 1]:.3g} times as large as any beyond it"
            if eps > floor
            else f"beyond eigenvalue {k} there is nothing but rounding"
        )
        if good == k:
            return Selection(k, f"{figures}, and {good} of {k} dimensions are certified components", B, True)
        if best is None or good > fullest:
            best = Selection(k, f"{figures}, but only {good} of {k} dimensions are certified components", B, False)
            fullest = good
    if least == 0 and fullest == 0:
        return Selection(0, "no certified component is left besides the known ones", None, True)
    if best is not None:
        return best
    k = int(np.argmax(ratio)) + 1
    factor = float(ratio[k - 1])
    drop = f": the sharpest drop, after eigenvalue {k}, is by a factor of {factor:.2g}" if factor > 1 else ""
    return Selection(k, f"the spectrum has no clear gap{drop}", None, False)


def windows(values: np.ndarray, n: int, most: int = 6) -> list[tuple[int, int]]:
    """Proposed windows ``(a, b)`` of a spectrum: keep ``n`` eigenvectors, those before ``a`` and those from ``b`` on.

    In a block of atoms that occur together the pair terms ``2 E[x_i^2 x_j^2]`` may exceed the eigenvalues ``E[x_i^4]
    - E[x_i^2 x_j^2]`` of the wanted span: from ``tau = 1/3`` on they form a cluster *inside* it.  A cluster lies
    between two of the ``most`` widest gaps of the descending ``values``; which one it is, certificates say.
    """
    gaps = values[:-1] - values[1:]
    edges = np.sort(np.argsort(-gaps, kind="stable")[:most] + 1)
    starts = [0, *(int(a) for a in edges if a < n)]
    return [(a, int(b)) for a in starts for b in edges if b > a and b + n - a <= values.shape[0]]
