"""Beyond the paper: weights that fall with the norm of a sample, so that those with few active atoms count more.

Lemma.  Let ``z = sum_i x_i a_i`` with orthonormal ``a_i`` and coefficients whose signs are independent given their
magnitudes.  Then the distribution of ``x`` reweighted by any function ``w(||z||)`` is again of that kind: all odd
moments vanish.  So it is for weights that are any function of the magnitudes ``|x_i|``, such as the norm of the part of
``z`` in the span of some of the atoms.

Proof.  ``||z||^2 = sum_i x_i^2`` is a function of the magnitudes alone, so the weighted distribution has the density
of the magnitudes changed, and the signs are independent and uniform given the magnitudes as before.

So the span of the ``a_i (x) a_i`` is still an invariant subspace of the weighted moment, and whatever is found there
is found.  Samples of large norm, in which many atoms are active at once, are what makes the empirical moment noisy and
its pair terms large: with half of the effective sample size the span is known as well as from several times as many
samples.

*Global* weights fall with the norm of the whole sample.  Where that is a sum over many groups of atoms, one weight for
all is blunt: *local* weights fall with the norm of the part in the span of one group, and leave out the samples in
which the group is silent.  Which atoms belong together: see ``algorithms.together``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from quartic._arrays import Array, array_namespace, maximum, median

SHARE = 0.5  # effective sample size that is kept; measured: 0.3 to 0.7 do alike, 0.15 loses everything on small samples
STRONGEST = 8.0  # times 1 / ||z||^2 of a typical sample: the largest beta that is tried
CARRYING = 0.1  # of the mean square: samples of less norm have no active atom, and carry no moment
STEPS = 60  # of bisection, to the last bit
ACTIVE, LARGE = 0.1, 0.95  # of this quantile of the squared norms: below it a group of atoms is silent
LADDER = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)  # shares of the effective sample size that are tried in a group


def effective(weights: Array) -> float:
    """Effective sample size ``(sum w)^2 / sum w^2``."""
    xp = array_namespace(weights)
    total = float(xp.sum(weights))
    return total * total / float(xp.sum(weights * weights)) if total > 0 else 0.0


@dataclass(frozen=True)
class Tempering:
    """Weights ``exp(-beta (||z||^2 - least))``, and 1 below ``least``."""

    beta: float
    least: float

    def weights(self, squares: Array) -> Array:
        """Weights of samples with the squared norms ``squares (m,)``."""
        xp = array_namespace(squares)
        return xp.exp(-self.beta * maximum(squares - self.least, 0.0))


def tempering(squares: Array, share: float = SHARE) -> Tempering:
    """The weights that keep a ``share`` of the effective sample size, among the samples that carry a moment.

    ``squares (m,)`` are the ``||z||^2`` of a part of the samples.
    """
    xp = array_namespace(squares)
    carrying = squares[squares > CARRYING * xp.mean(squares)] if squares.shape[0] else squares
    count = carrying.shape[0]
    if count == 0:
        return Tempering(0.0, 0.0)
    least = float(xp.min(carrying))
    low, high = 0.0, STRONGEST / float(median(carrying))
    if share >= 1 or effective(Tempering(high, least).weights(carrying)) >= share * count:
        return Tempering(high if share < 1 else 0.0, least)
    for _ in range(STEPS):
        middle = (low + high) / 2
        if effective(Tempering(middle, least).weights(carrying)) > share * count:
            low = middle
        else:
            high = middle
    return Tempering(low, least)


def active(squares: np.ndarray) -> np.ndarray:
    """Mask of the samples in which a group of atoms is not silent, by the squared norms ``(m,)`` of its part."""
    return squares > ACTIVE * np.quantile(squares, LARGE) if squares.size else np.zeros(0, dtype=bool)


def ladder(squares: np.ndarray) -> Iterator[Tempering]:
    """Temperings of active samples, the strongest first, each other than the one before."""
    last = None
    for share in LADDER:
        temper = tempering(squares, share)
        if last is None or temper.beta < last.beta:
            yield temper
        last = temper
