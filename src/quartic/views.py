"""What stands in for a fourth moment: that of samples that are kept, and one in coordinates of its own samples."""

from __future__ import annotations

import math

import numpy as np

from quartic._arrays import Array, from_numpy, take_rows, to_numpy
from quartic.algorithms.temper import effective
from quartic.evidence.lost import Lost
from quartic.evidence.parts import Evidence
from quartic.frame import Frame, inverse_root
from quartic.moments import FourthMoment, cumulant_of
from quartic.tensors import FourTensor, SampleTensor, Sum
from quartic.tensors.combine import Congruence
from quartic.tensors.factored import FactoredTensor


class ImplicitMoment:
    """The fourth moment of samples that are kept, multiplied without being formed.

    Parameters
    ----------
    Z : ndarray of shape (m, r)
        Whitened samples.
    half : ndarray of shape (m,)
        The half, 0 or 1, of each.
    weights : ndarray of shape (m,)
    """

    def __init__(self, Z: Array, half: np.ndarray, weights: np.ndarray) -> None:
        self.dim = int(Z.shape[1])
        mine = [np.flatnonzero(half == h) for h in (0, 1)]
        self.weight = np.array([weights[rows].sum() for rows in mine])
        self.effective = np.array([effective(weights[rows]) for rows in mine])
        self.parts = {
            h: SampleTensor(take_rows(Z, rows), weights[rows]) for h, rows in enumerate(mine) if self.weight[h] > 0
        }
        self._covariances = {h: to_numpy(part.covariance) for h, part in self.parts.items()}

    def covariance(self, half: int | None = None) -> np.ndarray:
        """Second moment ``(r, r)``, of one half or of all."""
        if half is not None:
            return self._covariances[half]
        total = self.weight.sum()
        return np.asarray(sum(float(self.weight[h] / total) * C for h, C in self._covariances.items()))

    def moment(self, half: int | None = None) -> FourTensor:
        """``E[z^(x4)]`` over one half or all of the samples."""
        if half is not None:
            return self.parts[half]
        return Sum(self._shares)

    def cumulant(self, half: int | None = None) -> FourTensor:
        """The fourth cumulant; see :meth:`FourthMoment.cumulant`."""
        return cumulant_of(self.moment(half), self.covariance(half))

    @property
    def _shares(self) -> list[tuple[float, SampleTensor]]:
        total = self.weight.sum()
        return [(float(self.weight[h] / total), part) for h, part in self.parts.items()]


class Rewhitened:
    """A fourth moment in coordinates in which its own samples are white.

    Samples that were not in the first pass have a covariance ``C`` in the frame that differs from the identity; the
    whitener is completed by ``root = C^(-1/2)``, from all samples, for both halves alike.  Their mean may differ from
    that of the frame by ``delta``: a cumulant about the wrong point lacks ``2 delta^4``, which is added, and errs by
    ``4 delta`` times the third cumulant, which vanishes for symmetric coefficients.
    """

    def __init__(self, moment: FourthMoment) -> None:
        self.moment = moment
        self.dim, self.effective = moment.dim, moment.effective
        self.shift = to_numpy(moment._mean(moment.first, None))  # (r,)
        self.root = inverse_root(moment.covariance() - np.outer(self.shift, self.shift))

    @property
    def frame(self) -> Frame:
        """The coordinates, and the mean of all samples."""
        old = self.moment.frame
        return old.completed(old.mean + self.shift @ old.backward, self.root)

    def evidence(self, *, ordered: bool = True) -> Evidence:
        """The rows that were kept, in these coordinates."""
        kept, total = self.moment.kept, math.ceil(np.sum(self.moment.effective))
        Z, frame = (kept.Z - self.shift) @ self.root, self.frame
        whole = frame.dim == frame.mean.shape[0]  # otherwise features are not known any more
        lost = Lost.of(Z @ frame.backward + frame.mean, frame) if whole else None
        return Evidence.of_rows(Z, kept.index, kept.weights, total, kept.groups, lost, ordered=ordered)

    def covariance(self, half: int | None = None) -> np.ndarray:
        """Covariance ``(r, r)`` of one half, or of all samples: the identity, for all."""
        return self.root @ (self.moment.covariance(half) - np.outer(self.shift, self.shift)) @ self.root

    def cumulant(self, half: int | None = None) -> FourTensor:
        """The fourth cumulant of one half, or of all samples."""
        T = self.moment.cumulant(half)
        delta, one, root = (from_numpy(x, T.like, T.like.dtype) for x in (self.shift[None, :], np.ones(1), self.root))
        return Congruence(Sum([(1.0, T), (2.0, FactoredTensor.from_components(one, delta))]), root)
