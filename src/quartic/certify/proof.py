r"""One proof: ``certify(candidates, evidence)``, whatever found the candidates.

Candidates are axes ``u_i``, with what each half of the samples gives in their place when it is asked alone.  Axes from
one half are measured on the other (``certify.contrast``), so that their errors are independent of what they are
measured by.  Then, for each axis:

1. *Its signal is not Gaussian*: its kurtosis is significant.
2. *Its planes have axes*: the stiffness of every plane that it spans with another axis is significant.
3. *One reading is left* in each of them (``certify.readings``).
4. *How far it is off*: ``a^2 = sum_j (o_ij / S_ij)^2`` estimates the squared tangent of its angle to the truth, with
   sampling errors of known size.  An upper limit of it, with the energies of what else should vanish, bounds the energy
   of ``u u'`` in the span of the true ``a a'`` from below,

       G >= 1 / (1 + 2 a^2 + (remainder + dependence) / k_i^2),

   and ``correlation_from_energy`` makes of it a squared correlation.  In the population, for independent sources and
   the cube, ``G`` is the squared cosine of ``T(uu')`` and ``uu'``, and the bound is a theorem, whatever the kurtoses.
5. *To the truth in these coordinates*: whitened by ``m`` samples, atoms are orthogonal up to an angle of about
   ``sqrt(r / m) / 2``, and twice that is added; noise that is not white tilts them further, which shows in the part
   of ``o / S`` that is symmetric, and is added as well; and it may leave several near one direction, with the noise
   beside them, which shows in cross terms with axes that are no sources: the angle at which these atoms are is added.
   What was lost on the way to the file is such noise, of a covariance that is known (``evidence.lost``): the angle by
   which it turns an atom is added, and an axis whose signal has lost more than a tenth of its variance is not
   certified.
6. *To the atom that is reported* the angle is added.

Several scores and weights are asked in turn, until an axis is certified.  Weights ``exp(-beta ||z||^2)`` factorise over
orthonormal axes: they keep independent sources independent, skewed ones too, about their weighted mean; and signs
independent given magnitudes in any case.  Where cross terms do not vanish, an axis is measured on the samples in which
it, or an atom that it occurs together with, is active; which keeps signs independent.

One rate of false alarms a fit is divided among all axes, or planes, and all scores (``readings.Limits``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from quartic.algorithms.certify import CERTIFIED, TILT, contradicted, correlation_from_energy, is_certified
from quartic.algorithms.recover import polar
from quartic.algorithms.temper import tempering
from quartic.certify.beyond import Spans, certify_beyond
from quartic.certify.contrast import Contrast, Figure, Score, cube, measure, offsets, remainder, tanh
from quartic.certify.doubts import Basis, Doubt, Reason
from quartic.certify.readings import NEAR, TENTH, Limits, Planes, read
from quartic.evidence.lost import TENTH as LOST
from quartic.evidence.parts import Evidence
from quartic.propose.fixed_point import complete, optimum

Part = tuple[np.ndarray, np.ndarray, np.ndarray | None]  # signals, weights, and units where rows are none
LIMIT = 2.5  # standard errors by which an angle may be larger than it is measured: one in 160, and see ``_angle``
RUNGS: tuple[tuple[float, Score], ...] = ((1.0, tanh), (1.0, cube), (0.8, cube), (0.5, cube), (0.5, tanh))
"""Share of the effective samples that weights leave, and score; measured (benchmarks/must_show/one_proof): the plain
ones do for most laws, the mild weights for heavy tails, the stronger ones where eighth moments are not finite."""
LOCAL: tuple[Score, ...] = (tanh, cube)
ACTIVE, LARGE = 0.1, 0.95  # of this quantile of its norm: below it a neighbourhood is silent
STEPS, LONGEST, SHORTEST = 8, 0.3, 1e-4  # Newton steps to the axes of a half, and their largest and smallest angles


@dataclass(frozen=True)
class Candidates:
    """Axes that may be atoms.

    Attributes
    ----------
    atoms : ndarray of shape (n, r)
        Unit rows in whitened coordinates.
    halves : tuple of two ndarray of shape (k, r)
        What each half of the samples gives alone, from a start of its own; empty where it was not asked.
    spans : Spans, optional
        What they are judged by where there are more of them than dimensions.
    """

    atoms: np.ndarray
    halves: tuple[np.ndarray, ...] = ()
    spans: Spans | None = None


@dataclass(frozen=True)
class Proof:
    """What is proven of some axes, and why not more.

    Attributes
    ----------
    axes : ndarray of shape (n, r)
        Unit rows.
    bounds : ndarray of shape (n,)
        Lower bounds on their squared correlation with an atom in whitened coordinates; 0 where nothing is proven.
    doubts : tuple of Doubt or None
        Why an axis is not certified; None for one that is.
    bases : tuple of Basis
        What each bound rests on.
    together : ndarray of shape (n, n)
        Pairs whose cross terms are shown not to vanish.
    """

    axes: np.ndarray
    bounds: np.ndarray
    doubts: tuple[Doubt | None, ...]
    bases: tuple[Basis, ...]
    together: np.ndarray

    @property
    def certified(self) -> np.ndarray:
        """Mask ``(n,)``."""
        return is_certified(self.bounds)

    @property
    def count(self) -> int:
        """How many are certified."""
        return int(np.sum(self.certified))

    @property
    def rest_is_gaussian(self) -> bool:
        """Whether there are certified axes, and the signals of all others may be Gaussian."""
        beside = [doubt.reason is Reason.GAUSSIAN for doubt in self.doubts if doubt is not None]
        return self.count > 0 and all(beside)

    @property
    def one_reading(self) -> np.ndarray:
        """Axes that one reading is left for, certified or not, ``(n,)``.

        Of those that are not, the halves, the samples or others of their group do not tell enough.
        """
        unsure = (Reason.GROUP, Reason.UNSTABLE, Reason.INACCURATE)
        return np.array([doubt is None or doubt.reason in unsure for doubt in self.doubts], dtype=bool)

    @property
    def tangled(self) -> np.ndarray:
        """Axes whose cross terms with others do not vanish, ``(n,)``: local methods may leave them."""
        return np.any(self.together, axis=1)

    def about(self, U: np.ndarray) -> Proof:
        """What it proves of other unit rows ``U (m, r)``: the angle to the nearest axis is added to its own.

        Two rows that mean the same axis are not both certified: the farther one is contradicted.
        """
        mine = np.argmax(np.abs(U @ self.axes.T), axis=1)
        angle = angles(U, self.axes[mine])
        bounds = np.cos(np.minimum(angle + np.arccos(np.sqrt(self.bounds[mine])), math.pi / 2)) ** 2
        doubts = self._doubts_of(mine)
        for i, bound in enumerate(bounds):
            if doubts[i] is None and not bound > CERTIFIED:
                doubts[i] = Doubt(Reason.INACCURATE, found=float(bound), needed=CERTIFIED)
        nearer = (angle[:, None] > angle) | ((angle[:, None] == angle) & np.tri(len(mine), k=-1, dtype=bool))
        wrong = contradicted(U, bounds, TILT) | np.any((mine[:, None] == mine) & nearer, axis=1)
        bounds = np.where(wrong, 0.0, bounds)
        together = self.together[np.ix_(mine, mine)]
        group = in_part(bounds, together)
        bounds = np.where(group, 0.0, bounds)
        for k in map(int, np.flatnonzero(wrong | group)):
            doubts[k] = doubts[k] or Doubt(Reason.CONTRADICTED if wrong[k] else Reason.GROUP)
        return Proof(U, bounds, tuple(doubts), tuple(self.bases[j] for j in mine), together)

    def at(self, rows: np.ndarray) -> Proof:
        """Of some of the axes, or in another order."""
        bases = tuple(self.bases[i] for i in rows)
        return Proof(
            self.axes[rows], self.bounds[rows], tuple(self._doubts_of(rows)), bases, self.together[np.ix_(rows, rows)]
        )

    def _doubts_of(self, rows: np.ndarray) -> list[Doubt | None]:
        """What is said of the axes that ``rows (m,)`` lists; of several places of the other axis the first counts."""
        place = {int(i): at for at, i in reversed(list(enumerate(rows)))}
        return [doubt and doubt.moved(place) for doubt in (self.doubts[i] for i in rows)]


def unproven(U: np.ndarray, reason: Reason) -> Proof:
    """Nothing of unit rows ``U (n, r)``, for one reason."""
    n = U.shape[0]
    none = np.zeros((n, n), dtype=bool)
    return Proof(U, np.zeros(n), (Doubt(reason),) * n, (Basis.INDEPENDENCE,) * n, none)


def barred(evidence: Evidence) -> Reason | None:
    """Why nothing could be certified, whatever the candidates are; None where something could."""
    if not evidence.Z.shape[0]:
        return Reason.NO_SAMPLES
    if not evidence.units.enough:
        return Reason.SERIAL
    if not evidence.enough:
        return Reason.FEW_SAMPLES
    return Reason.LOST if evidence.lost.everywhere > LOST else None


def certify(candidates: Candidates, evidence: Evidence) -> Proof:
    """Certificates of candidates ``(n, r)``, however they were found, and reasons where there is none."""
    n = candidates.atoms.shape[0]
    reason = barred(evidence)
    if n == 0 or reason is not None:
        return unproven(candidates.atoms, reason or Reason.FEW_SAMPLES)
    if candidates.spans is not None and not evidence.halves_by_hash:
        return unproven(candidates.atoms, Reason.SERIAL)
    if candidates.spans is not None:
        bounds, doubts = certify_beyond(candidates.atoms, candidates.spans, evidence.lost)
        return Proof(candidates.atoms, bounds, doubts, (Basis.SIGNS,) * n, np.zeros((n, n), dtype=bool))
    axes = complete(candidates.atoms, evidence.dim)  # (r, r): what is beside the candidates spans planes with them
    frames = _half_frames(axes, candidates.halves, evidence)
    return _Trial(axes, frames, evidence).proof().at(np.arange(n)).about(candidates.atoms)


def _half_frames(axes: np.ndarray, given: Sequence[np.ndarray], evidence: Evidence) -> list[np.ndarray]:
    """The axes as each half alone has them, in their order and with their signs.

    From a start of its own where that leads to the same axes, and otherwise from ``axes``: an iteration that has
    converged depends on its start by the axes that it leads to, and in nothing else.
    """
    frames = []
    for h in (0, 1):
        own = _matched(axes, given[h]) if len(given) == 2 and given[h].shape == axes.shape else None
        if own is None or np.any(np.sum(own * axes, axis=1) < math.cos(NEAR)):
            own = _matched(axes, optimum(evidence.part(h), axes))
        frames.append(own)
    return frames


def _matched(axes: np.ndarray, B: np.ndarray) -> np.ndarray:
    """The rows of ``B (r, r)`` in the order, and with the signs, of the axes next to them."""
    cosine = axes @ B.T
    _, order = linear_sum_assignment(cosine**2, maximize=True)
    return B[order] * np.where(np.sum(axes * B[order], axis=1) < 0, -1.0, 1.0)[:, None]


class _Trial:
    """One set of axes before the evidence."""

    def __init__(self, axes: np.ndarray, frames: list[np.ndarray], evidence: Evidence) -> None:
        self.axes, self.frames, self.evidence = axes, frames, evidence
        self.rows = single(evidence.Z)  # figures have errors of a part in a hundred
        self.parts: dict[float, list[Part]] = {}  # by the share of the effective samples
        self.r = axes.shape[0]
        self.limits = Limits.of(self.r, len(RUNGS) + len(LOCAL))
        self.other = ~np.eye(self.r, dtype=bool)
        self.bounds = np.zeros(self.r)
        self.sharpest, self.stiffest = np.zeros(self.r), np.zeros(self.r)  # the largest figures, in standard errors
        self.doubts: list[Doubt | None] = [None] * self.r

    def proof(self) -> Proof:
        """All of it."""
        contrasts = [_both(measure(S, W, score, of) for S, W, of in self._weighted(share)) for share, score in RUNGS]
        heavy, light = np.zeros(self.r, dtype=bool), np.zeros(self.r, dtype=bool)
        for (share, score), contrast in zip(RUNGS, contrasts, strict=True):
            sharp, positive = contrast.sharp(self.limits.axis), (contrast.kurtosis.value > 0) == (score is cube)
            heavy |= sharp & positive
            light |= sharp & ~positive & (share == 1)  # weights take from any tails
        shares = (np.stack(self.frames) @ self.axes.T) ** 2
        planes = read(
            contrasts, [share < 1 for share, _ in RUNGS], heavy, light, shares, self.evidence.Z @ self.axes.T,
            self.evidence.units, self.limits,
        )  # fmt: skip
        settled = np.all(planes.settled, axis=1)  # of others no bound is worth its price
        tangled = np.any(planes.dependent, axis=1)
        gaussian, free = ~tangled, np.ones(self.r, dtype=bool)
        for (share, score), contrast in zip(RUNGS, contrasts, strict=True):
            sharp, stiff = self._gates(contrast)
            gaussian &= ~sharp
            free &= ~(sharp & stiff)
            sources = sharp & stiff & settled
            self._raise(
                sources & ~is_certified(self.bounds),
                contrast,
                self._weighted(share),
                score,
                self.frames,
                ~planes.dependent,
                sources,
            )
        left = tangled & settled & ~is_certified(self.bounds)
        near = planes.dependent | ~self.other
        for score in LOCAL if np.any(left) else ():
            frames = [_settled(self.evidence.part(h), self.axes, near, score) for h in (0, 1)]
            parts = self._local(frames, near)
            contrast = _both(measure(S, W, score, of) for S, W, of in parts)
            sharp, stiff = self._gates(contrast)
            free &= ~(sharp & stiff)
            sources = sharp & stiff & settled
            self._raise(sources & left, contrast, parts, score, frames, ~planes.dependent, sources)
        return self._told(planes, gaussian, free)

    def _weighted(self, share: float) -> list[Part]:
        """Signals, weights and units, for the whole sample: each half's axes on the other half."""
        if share not in self.parts:
            squares = self.evidence.squares
            beta = tempering(squares, share).beta
            w = self.evidence.weights * np.exp(-beta * (squares - np.min(squares)))
            self.parts[share] = [self._part(h, w) for h in (0, 1)]
        return self.parts[share]

    def _part(self, h: int, w: np.ndarray) -> Part:
        """Those of one half's axes under weights ``w (m,)``."""
        mine = (self.evidence.half != h) & (w > 0)
        v = single(w[mine] / np.sum(w[mine]))
        S = self.rows[mine] @ single(self.frames[h].T)
        return S - v @ S, v[:, None], None if self.evidence.unit is None else self.evidence.unit[mine]

    def _local(self, frames: list[np.ndarray], near: np.ndarray) -> list[Part]:
        """The same on the samples in which the neighbourhood of an axis is active."""
        parts = []
        for h in (0, 1):
            other = self.evidence.part(1 - h)
            S = single(other.Z @ frames[h].T)
            parts.append((S, single(_active(S, other.weights, near)), other.unit))
        return parts

    def _gates(self, contrast: Contrast) -> tuple[np.ndarray, np.ndarray]:
        """Whose signal is not Gaussian, and whose planes all have axes."""
        axes = np.max([harmonic.in_errors() for harmonic in contrast.harmonics], axis=0)
        stiff = np.min(np.where(self.other, axes, np.inf), axis=1, initial=np.inf)
        sharp = contrast.sharpness
        self.sharpest, self.stiffest = np.maximum(self.sharpest, sharp), np.maximum(self.stiffest, stiff)
        return sharp > self.limits.axis, stiff > self.limits.plane

    def _raise(
        self,
        mask: np.ndarray,
        contrast: Contrast,
        parts: Iterable[Part],
        score: Score,
        frames: list[np.ndarray],
        counted: np.ndarray,
        sources: np.ndarray,
    ) -> None:
        """Take over what a contrast proves of some axes.

        ``counted`` are the planes whose cross terms should vanish, ``sources`` the axes that may be atoms.
        """
        some = np.flatnonzero(mask)
        if not some.size:
            return
        middle = frames[0] + frames[1]
        middle = middle / np.linalg.norm(middle, axis=1, keepdims=True)
        to_middle = angles(middle, self.axes)
        apart = _apart(frames, self.axes)
        k = np.abs(contrast.kurtosis.value) - contrast.kurtosis.error
        off, tilt = _angle(contrast, k, self.limits.axis)
        should_vanish = Figure(
            np.where(counted & self.other, contrast.dependence.value, 0.0),
            np.where(counted & self.other, contrast.dependence.error, 0.0),
        )
        cross = _above_noise(np.sum(should_vanish.value**2, axis=1), np.sum(should_vanish.error**2, axis=1), self.r - 1)
        energies = [remainder(S, W, score, some) for S, W, _ in parts]
        rest = np.zeros(self.r)
        value, error = (sum(getattr(energy, name) for energy in energies) / 2 for name in ("value", "error"))
        rest[some] = _above_noise(value, error, (self.r - 1) * (self.r - 2) // 2)
        with np.errstate(divide="ignore", over="ignore"):
            G = np.where(k > 0, 1 / (1 + 2 * off**2 + (cross + rest) / np.where(k > 0, k, 1.0) ** 2), 0.0)
        # For the cube, and atoms of one sign at angles t_l, however oblique, sum_j c_ij / k_i is the mean of tan(t_l)^2
        # under weights kappa_l cos(t_l)^4: the nearest is no farther.  Towards another source it may be dependence.
        oblique = should_vanish.surely_beyond(0.0, self.limits.interval) & (k > 0)[:, None]
        oblique &= (should_vanish.value * contrast.kurtosis.value[:, None] > 0) & ~sources
        leaning = np.sum(np.where(oblique, np.abs(should_vanish.value) + LIMIT * should_vanish.error, 0.0), axis=1)
        angle_to_nearest = np.arctan(np.sqrt(leaning / np.where(k > 0, k, 1.0)))
        angle = np.arccos(np.sqrt(correlation_from_energy(G))) + to_middle + tilt + angle_to_nearest
        angle += math.sqrt(self.r / self.evidence.total) + self.evidence.lost.tilts(self.axes)
        bounds = np.cos(np.minimum(angle, math.pi / 2)) ** 2
        for i in np.flatnonzero(mask & (apart > NEAR)):
            self.doubts[i] = Doubt(Reason.UNSTABLE, found=float(apart[i]), needed=NEAR)
        self.bounds = np.where(mask & (apart <= NEAR), np.maximum(self.bounds, bounds), self.bounds)

    def _told(self, planes: Planes, gaussian: np.ndarray, free: np.ndarray) -> Proof:
        """Bounds without those that something speaks against, and what that is."""
        settled = np.all(planes.settled, axis=1)
        lost = self.evidence.lost.of_signals(self.axes)
        bounds = np.where(settled & (lost <= LOST), self.bounds, 0.0)
        group = in_part(bounds, planes.dependent)
        bounds = np.where(group, 0.0, bounds)
        doubts: list[Doubt | None] = []
        for i, bound in enumerate(bounds):
            if bound > CERTIFIED:
                doubts.append(None)
            elif lost[i] > LOST:
                doubts.append(Doubt(Reason.LOST, found=float(lost[i]), needed=LOST))
            elif gaussian[i]:
                doubts.append(Doubt(Reason.GAUSSIAN, found=float(self.sharpest[i]), needed=self.limits.axis))
            elif np.any(planes.alike[i]):
                doubts.append(Doubt(Reason.ALIKE, other=int(np.argmax(planes.alike[i]))))
            elif free[i]:
                other = _least(planes.settled[i], planes.ratio[i], i)
                doubts.append(Doubt(Reason.NO_AXES, other, float(self.stiffest[i]), self.limits.plane))
            elif self.bounds[i] == 0 and self.doubts[i] is not None:
                doubts.append(self.doubts[i])
            elif not settled[i]:
                j = _least(planes.settled[i], planes.ratio[i], i)
                beyond = planes.ratio[i, j] > TENTH  # or something else speaks against this reading
                figures = {"found": float(planes.ratio[i, j]), "needed": TENTH} if beyond else {}
                doubts.append(Doubt(Reason.RIVAL, other=j, **figures))
            elif group[i]:
                doubts.append(Doubt(Reason.GROUP, other=int(np.argmax(planes.dependent[i]))))
            else:
                doubts.append(Doubt(Reason.INACCURATE, found=float(self.bounds[i]), needed=CERTIFIED))
        signs = np.any(planes.dependent | planes.by_signs, axis=1)
        bases = tuple(Basis.SIGNS if s else Basis.INDEPENDENCE for s in signs)
        bounds = np.where(is_certified(bounds), bounds, 0.0)
        return Proof(self.axes, bounds, tuple(doubts), bases, planes.dependent)


def in_part(bounds: np.ndarray, together: np.ndarray) -> np.ndarray:
    """Certified axes that occur together with one that is not, ``(n,)``; ``together (n, n)`` are such pairs.

    A part of a group proves nothing: other axes may be right for the whole of it.
    """
    sure = is_certified(bounds)
    return sure & np.any(together & ~sure, axis=1)


def single(X: np.ndarray) -> np.ndarray:
    """In float32."""
    return X.astype(np.float32)


def _both(parts: Iterable[Contrast]) -> Contrast:
    """Of the two halves together."""
    first, second = parts
    return first & second


def angles(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Between unit rows of ``A`` and of ``B``, of either sign; small ones are known to rounding, not to its root."""
    signs = np.where(np.sum(A * B, axis=1) < 0, -1.0, 1.0)[:, None]
    return np.asarray(2 * np.arcsin(np.minimum(np.linalg.norm(A - signs * B, axis=1) / 2, 1.0)))


def _apart(frames: Sequence[np.ndarray], axes: np.ndarray) -> np.ndarray:
    """The larger angle of each axis to what the two halves have in its place, ``(r,)``."""
    return np.asarray(np.max([angles(B, axes) for B in frames], axis=0))


def _least(settled: np.ndarray, ratio: np.ndarray, i: int) -> int:
    """The plane of axis ``i`` that is settled least: the largest cross term among those that are not."""
    score = np.where(settled, -1.0, ratio)
    score[i] = -2.0
    return int(np.argmax(score))


def _angle(contrast: Contrast, k: np.ndarray, sure: float) -> tuple[np.ndarray, np.ndarray]:
    """Upper limit on the tangent of each axis' angle to the truth, ``(r,)``, and the tilt that noise makes, ``(r,)``.

    If an axis is off by a vector of length ``a``, and measured with errors ``n_j`` of standard deviations ``e_j``, the
    measured length is at least ``a + n_1``, with ``n_1`` the error along that vector; the others add energy, of which a
    lower limit is taken away.  The symmetric part of ``o / S`` is no rotation of the frame: it is there where atoms are
    not orthogonal, as in noise that is not white.
    """
    r = k.shape[0]
    other = ~np.eye(r, dtype=bool)
    # For axes whose energies fall together S exceeds k: what counts is the smaller.
    stiff = np.minimum(np.abs(contrast.stiffness.value) - contrast.stiffness.error, k[:, None])
    usable = other & (stiff > 0)
    safe = np.where(usable, stiff, 1.0)
    x = np.where(usable, contrast.offset.value / safe, 0.0)
    e = np.where(usable, contrast.offset.error / safe, 0.0)
    real = contrast.sharp(sure)
    known = usable & (LIMIT * e <= math.tan(NEAR))
    both = known & known.T & real[:, None] & real
    symmetric = np.where(both, (x + x.T) ** 2 - e**2 - e.T**2, 0.0) / 4
    # A rotation turns i towards j as far as j away from i: where one of the two is hardly known the other
    # counts, for a source of two points beside a heavy-tailed one, say.
    better = usable.T & ~known & (np.where(usable, e, np.inf) > e.T)
    x, e, usable = np.where(better, -x.T, x), np.where(better, e.T, e), usable | usable.T
    lost = np.any(other & ~usable, axis=1)
    noise = np.sum(e**2, axis=1) - 2 * np.sqrt(2 * np.sum(e**4, axis=1))
    length = np.sqrt(np.maximum(np.sum(x**2, axis=1) - np.maximum(noise, 0.0), 0.0)) + LIMIT * np.max(e, axis=1)
    return np.where(lost, np.inf, length), np.sqrt(np.maximum(np.sum(symmetric, axis=1), 0.0))


def _above_noise(energy: np.ndarray, noise: np.ndarray, entries: int) -> np.ndarray:
    """Energy without what noise adds at least: two standard deviations below its mean."""
    share = max(0.0, 1 - 2 * math.sqrt(2 / max(entries, 1)))
    return np.maximum(energy - share * noise, 0.0)


def _active(S: np.ndarray, weights: np.ndarray, near: np.ndarray) -> np.ndarray:
    """Weights ``(m, r)`` of the samples ``S (m, r)`` in which an axis, or one ``near (r, r)`` to it, is active."""
    energy = (S * S) @ near.T.astype(np.float64)
    active = (energy > ACTIVE * np.quantile(energy, LARGE, axis=0)) * weights[:, None]
    return active / np.maximum(np.sum(active, axis=0), 1e-300)


def _settled(part: Evidence, axes: np.ndarray, near: np.ndarray, score: Score) -> np.ndarray:
    """The axes next to ``axes (r, r)`` in which one half of the samples has no offset: Newton steps in rotations."""
    B, r = axes, axes.shape[0]
    for _ in range(STEPS):
        S = part.Z @ B.T
        o, stiff = offsets(S, _active(S, part.weights, near), score)
        power = stiff**2 + stiff.T**2
        turn = (o * stiff - (o * stiff).T) / np.maximum(power, 1e-2 * np.median(power) + np.finfo(float).tiny)
        np.fill_diagonal(turn, 0.0)
        longest = float(np.linalg.norm(turn, 2))
        B = polar((np.eye(r) + turn * min(1.0, LONGEST / max(longest, SHORTEST))) @ B)
        if longest < SHORTEST:
            break
    return _matched(axes, B)
