"""Local tempering: atoms that occur together, untangled in the subspace that they span together.

Where supports are strongly correlated the spectral stage on all dimensions leaves atoms uncertified, and any orthogonal
iteration on the samples ends in wrong axes; but in the right subspaces, one for each group of atoms that occur
together.  In such a subspace of few dimensions, the fourth moment of the samples in which the group is active is taken
under weights that fall with the norm there, strong ones to weak ones.  Strong weights leave samples with few active
atoms: their pair terms are small, and the top of the spectrum is the span of the atoms.  Where too few samples are left
for that, as in large groups whose atoms are nearly always active together, the pair terms are larger than everything
that is wanted but the first: the atoms are in the first eigenvector and the last ones.

A proposer: it judges its own steps by two halves of the samples (``algorithms.certify``), in coordinates of the
subspace; what it finds is proven elsewhere (``quartic.certify``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations_with_replacement

import numpy as np
from scipy.optimize import linear_sum_assignment

from quartic._arrays import pack_rank_one, packed_dim, to_numpy, unpack
from quartic.algorithms.certify import is_certified, split_certificates
from quartic.algorithms.recover import polar, recover
from quartic.algorithms.refine import iterated, orthogonal, orthogonal_step, statistics, tanh_score
from quartic.algorithms.temper import active, effective, ladder, tempering
from quartic.algorithms.together import (
    contrasts,
    energy_correlations,
    groups,
    heavy,
    least_correlation,
    overlaps,
    together,
)
from quartic.evidence.parts import Evidence
from quartic.propose.span import Certified, search
from quartic.tensors.factored import FactoredTensor
from quartic.tensors.samples import rows_in_a_chunk
from quartic.views import ImplicitMoment

MOST = 16  # atoms that are solved for together: the moment of 16 dimensions has 136^2 entries
NEAR = 8  # atoms in the neighbourhood of one, where there are no closed groups
ROWS, ROWS_LEAST = 256, 8192  # times k^2, and at least: active samples that feed a problem of k dimensions
FEWEST = 1.0  # times k (k + 1): effective samples in each half, below which a temperature is not tried
LAST = 4  # atoms from which on the end of a spectrum is tried; of two or three, other axes are there by symmetry
CONVINCING = 0.8  # certificate of what is taken for an atom here; where supports are tangled lower ones have been wrong
CHANCE = (
    2.0  # over the root of the effective samples of a half: the least angle that is claimed; halves agree by chance
)
MARGIN = 2.0  # times the angle by which an atom, or a subspace, seems to be off: few samples tell no more
DOUBTING = 16384  # samples that are enough to doubt an atom
OVERLAP = -0.15  # at small norms, from which on two signals are looked at; two sparse atoms have -0.3 or less
BESIDE = 4  # directions beside an atom in which its symmetry is tried
SIGNIFICANT, MATTERS = 5.0, 0.25  # standard errors, and a part of what is possible: an asymmetry that counts
REFUTED = -4.0  # standard errors of a contrast in the plane of two atoms
STEPS = 60  # of the orthogonal iteration, from a random start
COOLER = (0.25, 0.1)  # shares of the effective sample size for all dimensions, after the usual one
TURNED = 0.9  # squared cosine below which an axis counts as another
SECOND_CHANCES = 3  # rounds after one in which atoms turned out to be wrong
SWEEPS = 3  # over the neighbourhoods; one or two are enough where they can be solved


@dataclass(frozen=True)
class Untangled:
    """What local tempering found.

    Attributes
    ----------
    atoms : ndarray of shape (r, r)
        Orthonormal rows: first those that are certified, then the best guess at the others.
    certified : Certified
    tangled : bool
        Whether some of the others occur together: then no local method can be trusted to find better axes.
    """

    atoms: np.ndarray
    certified: Certified
    tangled: bool


@dataclass(frozen=True)
class Solved:
    """The atoms of one group.

    Attributes
    ----------
    atoms : ndarray of shape (k, k)
        Unit rows.
    bounds : ndarray of shape (k,)
        Certificates by the two halves of the samples; 0 where nothing is proven.
    least : float
        The smallest angle to the truth that so many samples can tell.
    top : bool
        Whether they are in the top of the spectrum.
    """

    atoms: np.ndarray
    bounds: np.ndarray
    least: float
    top: bool

    @property
    def certified(self) -> bool:
        """Whether every atom is."""
        return bool(np.all(is_certified(self.bounds)))

    def claim(self) -> float:
        """The smallest certificate, as far as so many samples can tell."""
        return min(float(np.min(self.bounds)), np.cos(self.least) ** 2)

    def agrees(self, other: Solved) -> bool:
        """Whether both mean the same axes."""
        return bool(np.all(np.max((self.atoms @ other.atoms.T) ** 2, axis=1) > TURNED))


def solve(cloud: Evidence, rng: np.random.Generator) -> Solved | None:
    """The atoms of one group, from samples in the subspace of the group; None where no temperature gives as many.

    The strongest weights at which the top of the spectrum is certified decide which axes are meant; among all
    temperatures that find the same ones the most certain counts.
    """
    trials = _trials(cloud, rng)
    if not trials:
        return None
    meant = next((t for t in trials if t.top and t.certified), None)
    if meant is None:
        windows = [t for t in trials if not t.top and np.min(t.bounds) > CONVINCING]
        meant = max(windows, key=lambda t: float(np.sum(t.bounds)), default=None)
    if meant is None:
        # A part of a group proves nothing: in weak weights pairs of atoms look like pairs turned by 45 degrees.
        best = max(trials, key=lambda t: (int(np.sum(is_certified(t.bounds))), float(np.sum(t.bounds))))
        return replace(best, bounds=np.zeros_like(best.bounds))
    return max((t for t in trials if t.certified and t.agrees(meant)), key=Solved.claim)


def _trials(cloud: Evidence, rng: np.random.Generator) -> list[Solved]:
    """Every temperature, the strongest first; the top of its spectrum, and its end."""
    k = cloud.Z.shape[1]
    squares = cloud.squares
    mine = np.flatnonzero(active(squares))[: max(ROWS * k * k, ROWS_LEAST)]
    halves = [mine[cloud.half[mine] == h] for h in (0, 1)]
    features = [pack_rank_one(cloud.Z[rows].astype(np.float64)) for rows in halves]  # (N, m_h)
    trials = []
    for temper in ladder(squares[mine]):
        weights = [temper.weights(squares[rows]) * cloud.weights[rows] for rows in halves]
        samples = min(effective(w) for w in weights)
        if samples < FEWEST * 2 * packed_dim(k):
            continue
        moments = [(F * w) @ F.T for F, w in zip(features, weights, strict=True)]
        vectors = [np.linalg.eigh(M)[1][:, ::-1] for M in (*moments, moments[0] + moments[1])]
        for top in (True, False) if k >= LAST else (True,):
            kept = np.arange(k) if top else np.concatenate(([0], np.arange(packed_dim(k) - k + 1, packed_dim(k))))
            spans = [FactoredTensor(np.ones(k), np.ascontiguousarray(V[:, kept])) for V in vectors]
            found = [to_numpy(recover(span, rng)) for span in spans]
            if found[2].shape[0] == k:
                bounds = split_certificates(found[2], list(zip(found[:2], spans[:2], strict=True)))
                trials.append(Solved(found[2], bounds, CHANCE / np.sqrt(samples), top))
    return trials


def doubtful(cloud: Evidence, U: np.ndarray) -> np.ndarray:
    """Which of the unit rows ``U (m, r)`` may not be atoms, if small norms mean few active atoms.

    Fourth moments do not tell two atoms that occur together from the same two turned by 45 degrees.  Samples of small
    norm in their plane do: they are sparse in the right axes.  So two rows that belong together, or a row and what is
    beside all of them, must not show the opposite.  Only signals with tails heavier than Gaussian are compared: others
    are sparse in no axes.
    """
    m, r = U.shape
    cloud = cloud.seen_in(np.concatenate((U, _complement(U, r)))).first(DOUBTING)
    # Atoms hardly overlap where their norm is small: what does is looked at, and so is what belongs together.
    sparse = heavy(cloud.Z, cloud.weights)
    both = sparse & sparse[:, None] & ~np.eye(r, dtype=bool)
    belong = energy_correlations(cloud.Z, cloud.weights) > least_correlation(effective(cloud.weights))
    belong = both & (belong | (overlaps(cloud.Z, cloud.weights) > OVERLAP))
    wrong = np.any(belong & (contrasts(cloud.Z, cloud.weights) < REFUTED), axis=1)[:m]
    alike = np.flatnonzero(np.any(belong, axis=1)[:m])
    wrong[alike] |= asymmetric(cloud, alike)
    return wrong


def asymmetric(cloud: Evidence, axes: np.ndarray) -> np.ndarray:
    """Whether the samples change when the sign of a signal is turned, for some axes of the cloud.

    For an atom they do not: ``E[s v v' v''] = 0`` for all ``v`` beside it.  Tried in the few directions in which most
    happens when the signal ``s`` is large.  A mixture of three atoms betrays itself so, ``(a + b + c) / sqrt(3)``.
    """
    Z = cloud.Z.astype(np.float64)
    out = np.zeros(axes.shape[0], dtype=bool)
    size = rows_in_a_chunk(Z.shape[1], Z)
    happens = np.zeros((packed_dim(Z.shape[1]), axes.shape[0]))
    for first in range(0, Z.shape[0], size):
        rows = slice(first, first + size)
        happens += pack_rank_one(Z[rows]) @ (cloud.weights[rows, None] * Z[rows][:, axes] ** 2)
    for place, (axis, scatter) in enumerate(zip(axes, unpack(happens), strict=True)):
        scatter[axis], scatter[:, axis] = 0.0, 0.0
        V = Z @ np.linalg.eigh(scatter)[1][:, -BESIDE:]
        i, j, k = np.array(list(combinations_with_replacement(range(V.shape[1]), 3))).T
        cubic = V[:, i] * V[:, j] * V[:, k]
        values = (cloud.weights * Z[:, axis])[:, None] * cubic
        scale = np.sqrt(np.sum((cloud.weights * Z[:, axis] ** 2)[:, None] * V[:, i] ** 2, axis=0)) * np.sqrt(
            np.sum(cloud.weights[:, None] * V[:, j] ** 2 * V[:, k] ** 2, axis=0)
        )
        total, error = np.abs(np.sum(values, axis=0)), np.sqrt(np.sum(values**2, axis=0))
        out[place] = bool(np.any((total > SIGNIFICANT * error) & (total > MATTERS * scale)))
    return out


def tangled(cloud: Evidence) -> bool:
    """Whether some of the signals, one an axis, occur together."""
    return bool(np.any(together(cloud.Z, cloud.weights) > least_correlation(effective(cloud.weights))))


def untangle(
    cloud: Evidence,
    known: Certified,
    rng: np.random.Generator,
    progress: Callable[[int], None] | None = None,
    *,
    thorough: bool = True,
) -> Untangled:
    """All atoms, from those that are certified already: group by group in the complement of what is found.

    Parameters
    ----------
    cloud : Evidence
    known : Certified
        What the search in all dimensions found.
    rng : numpy.random.Generator
    progress : callable, optional
        Called with the number of certified atoms.
    thorough : bool
        Whether to go on where no closed group is left: with cooler moments, and with overlapping neighbourhoods.
    """
    r = cloud.Z.shape[1]
    chances = SECOND_CHANCES
    while True:
        rest = _complement(known.atoms, r)
        k = rest.shape[0]
        if k == 0:
            return Untangled(known.axes, known, False)
        inside = cloud.seen_in(rest)
        W = orthogonal_axes(inside, rng)
        rest = W @ rest
        inside = cloud.seen_in(rest)
        tilt = _tilts(cloud, np.concatenate((known.axes, rest)), r - k)
        before = known.atoms.shape[0]
        known = _groupwise(inside, rest, known, tilt, rng)
        if known.atoms.shape[0] == before and thorough:
            known = _at_once(inside, rest, known, tilt, rng)
        wrong = doubtful(cloud, known.atoms)
        known = known.only(~wrong)
        if progress is not None:
            progress(known.atoms.shape[0])
        if np.any(wrong) and chances > 0:
            chances -= 1  # a group that held a wrong atom can be solved without it
        elif known.atoms.shape[0] <= before:
            if np.any(wrong):
                rest = _complement(known.atoms, r)
                inside = cloud.seen_in(rest)
            guess = _neighbourhoods(inside, rng) @ rest if thorough else rest
            return Untangled(np.concatenate((known.axes, guess)), known, tangled(inside))


def _complement(atoms: np.ndarray, r: int) -> np.ndarray:
    """Orthonormal rows ``(r - m, r)`` beside the rows of ``atoms (m, r)``."""
    m = atoms.shape[0]
    return np.linalg.qr(atoms.T, mode="complete")[0][:, m:].T if m < r else np.zeros((0, r))


def orthogonal_axes(cloud: Evidence, rng: np.random.Generator) -> np.ndarray:
    """An orthogonal solution ``(k, k)``: right subspaces, if not the right axes."""
    k = cloud.Z.shape[1]
    some = cloud.first(max(ROWS_LEAST, 4 * k * k)).chunks()
    start = orthogonal(polar(rng.standard_normal((k, k))))
    (W,), _, _ = iterated(partial(statistics, some), np.eye(k), STEPS, start)
    (W,), _, _ = iterated(partial(statistics, cloud.chunks()), np.eye(k), STEPS // 6, orthogonal(W))
    return W


def _tilts(cloud: Evidence, W: np.ndarray, skip: int) -> Callable[[np.ndarray], float]:
    """For a group of the rows of ``W (r, r)`` from ``skip`` on: how far its subspace is off, by both halves.

    A step of the orthogonal iteration is nearly one of Newton's between subspaces: it leads from an error in ``W`` to
    the sampling error of a half.
    """
    chunks = cloud.chunks()
    (means,) = statistics(chunks, (W.T, tanh_score))
    if not means.both:
        return lambda group: np.pi / 2
    steps = [orthogonal_step(W, *means.of(h)) @ W.T for h in (0, 1)]

    def tilt(group: np.ndarray) -> float:
        mine = skip + group
        cosine = min(np.linalg.svd(step[np.ix_(mine, mine)], compute_uv=False)[-1] for step in steps)
        return float(np.arccos(np.clip(cosine, 0.0, 1.0)))

    return tilt


def convincing(atoms: np.ndarray, bounds: np.ndarray, tilt: float = 0.0, least: float = 0.0) -> Certified:
    """Those that are taken for atoms, with what is claimed of them: less than it seems.

    ``tilt`` is the angle by which their subspace is off, ``least`` the smallest angle that can be told.
    """
    angle = np.arccos(np.sqrt(bounds)) + tilt
    claimed = np.cos(np.minimum(MARGIN * np.maximum(angle, least), np.pi / 2)) ** 2
    return Certified(atoms, claimed).only(np.cos(np.minimum(angle, np.pi / 2)) ** 2 > CONVINCING)


def _groupwise(
    cloud: Evidence, rest: np.ndarray, known: Certified, tilt: Callable[[np.ndarray], float], rng: np.random.Generator
) -> Certified:
    """What each closed group certifies: one that no atom outside of it belongs to."""
    R = together(cloud.Z, cloud.weights)
    least = least_correlation(effective(cloud.weights))
    for group in groups(R, least):
        outside = np.delete(R[group], group, axis=1)
        if not 2 <= group.shape[0] <= MOST or np.max(outside, initial=0.0) > least:
            continue
        found = solve(cloud.seen_in(np.eye(rest.shape[0])[group]), rng)
        if found is not None:
            known = known.and_also(convincing(found.atoms @ rest[group], found.bounds, tilt(group), found.least))
    return known


def _at_once(
    cloud: Evidence, rest: np.ndarray, known: Certified, tilt: Callable[[np.ndarray], float], rng: np.random.Generator
) -> Certified:
    """What all dimensions that are left certify together: as one group, or some of them by cooler moments."""
    k = rest.shape[0]
    angle = tilt(np.arange(k))
    found = solve(cloud, rng) if 2 <= k <= MOST else None
    best = known
    if found is not None:
        best = known.and_also(convincing(found.atoms @ rest, found.bounds, angle, found.least))
    if best.atoms.shape[0] > known.atoms.shape[0]:
        return best
    squares = cloud.squares
    for share in COOLER:
        weights = tempering(squares, share).weights(squares) * cloud.weights
        if effective(weights) < packed_dim(k):
            break  # fewer samples than dimensions have any span
        cooler = search(ImplicitMoment(cloud.Z, cloud.half, weights), k, np.zeros((0, k)), rng, halves=True)
        more = known.and_also(convincing(cooler.atoms @ rest, cooler.likely, angle))
        best = max(best, more, key=lambda c: c.atoms.shape[0])
    return best


def _neighbourhoods(cloud: Evidence, rng: np.random.Generator) -> np.ndarray:
    """Axes ``(k, k)`` where groups overlap: neighbourhoods of single atoms, solved in turn until nothing changes.

    They are a guess: the subspace of a neighbourhood holds parts of atoms outside of it.
    """
    k = cloud.Z.shape[1]
    W, cloud = np.eye(k), cloud.first(max(ROWS_LEAST, ROWS * NEAR * NEAR))
    Z = cloud.Z.copy()
    least = least_correlation(effective(cloud.weights))
    bounds, changes, solved = np.zeros(k), np.zeros(k, dtype=int), set()
    R: np.ndarray | None = None  # how far signals belong together, as long as none of them changes
    for _ in range(SWEEPS):
        moved = False
        for i in np.argsort(bounds, kind="stable"):
            R = together(Z, cloud.weights) if R is None else R
            near = np.argsort(-R[i], kind="stable")
            near = near[R[i, near] > least]
            if near.size >= MOST:  # with so many it has no neighbourhood of few dimensions
                continue
            group = np.sort(np.concatenate(([i], near[: NEAR - 1])))
            key = (tuple(group), tuple(changes[group]))
            if group.shape[0] < 2 or key in solved:
                continue
            solved.add(key)
            found = solve(replace(cloud, Z=Z[:, group]), rng)
            if found is None or np.sum(is_certified(found.bounds)) < np.sum(is_certified(bounds[group])):
                continue
            _, order = linear_sum_assignment(found.atoms.T**2, maximize=True)
            B = polar(found.atoms[order])
            bounds[group] = found.bounds[order]
            W[group], Z[:, group], R = B @ W[group], Z[:, group] @ B.T.astype(Z.dtype), None
            turned = group[np.diagonal(B) ** 2 < TURNED]
            changes[turned] += 1
            moved |= turned.size > 0
        if not moved:
            break
    return W
