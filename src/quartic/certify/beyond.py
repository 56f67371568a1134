"""More atoms than dimensions: certified by spans of weighted moments, if no fewer axes explain as much.

The bounds are those of two halves of the samples (``overcomplete.split_caps``): each atom as one half has it, on the
span that the other half gives.  They count on atoms in every dimension of these spans, so they are worth nothing where
a law of fewer atoms has sums that fill them: what is asked here is whether it may be one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from quartic._arrays import pack_rank_one, unpack
from quartic.algorithms.certify import CERTIFIED, is_certified, nearest_orthonormal
from quartic.algorithms.subspace_power import normalised
from quartic.certify.doubts import Doubt, Reason
from quartic.evidence.lost import TENTH, Lost

BIAS = 0.15  # radians by which weights may turn an atom; measured, up to 0.07 at the strongest, twice that is taken
GLANCE, MIRRORS = 16, 1 << 22  # atoms that nearly all mirrors fail on; cosines of images at a time


@dataclass(frozen=True)
class Spans:
    """What spans of weighted moments say of more atoms than dimensions.

    Attributes
    ----------
    bounds : ndarray of shape (n,)
        Lower bounds on their squared correlation with an atom, if there are as many atoms as dimensions of the span.
    weights : ndarray of shape (n,)
        Those with which they fit the cumulant best.
    """

    bounds: np.ndarray
    weights: np.ndarray


def certify_beyond(U: np.ndarray, spans: Spans, lost: Lost) -> tuple[np.ndarray, tuple[Doubt | None, ...]]:
    """Bounds of more atoms ``U (n, r)`` than dimensions, 0 where nothing is proven, and why it is not."""
    if has_mirrors(U, spans):
        return np.zeros(U.shape[0]), (Doubt(Reason.RIVAL),) * U.shape[0]
    gone = lost.of_signals(U)
    angle = np.arccos(np.sqrt(spans.bounds)) + lost.tilts(U)
    bounds = np.where(gone <= TENTH, np.cos(np.minimum(angle, math.pi / 2)) ** 2, 0.0)
    sure = is_certified(bounds)
    doubts: list[Doubt | None] = []
    for certified, bound, share in zip(sure, bounds, gone, strict=True):
        small = Doubt(Reason.INACCURATE, found=float(bound), needed=CERTIFIED)
        spoiled = Doubt(Reason.LOST, found=float(share), needed=TENTH)
        doubts.append(None if certified else spoiled if share > TENTH else small)
    return np.where(sure, bounds, 0.0), tuple(doubts)


def has_mirrors(U: np.ndarray, spans: Spans) -> bool:
    """Whether mirrors map the certified atoms of ``U (n, r)`` to atoms, and those that move one span too many.

    Signs of orthonormal axes are independent given the magnitudes if and only if the law is the same in the mirrors
    normal to these axes; and the law of more atoms than dimensions is the same in a mirror only if that maps the atoms
    to each other.  The sums ``(+-a +-b +-c)/sqrt(3)`` of three atoms have the mirrors of the three: where the mirrors
    that move an atom span more atoms than dimensions, fewer axes that explain as much are another reading of these.
    Each atom is asked by itself: of some groups only a few mirrors are found.  Atoms in general position have none.

    Noise that is not white leaves whitened atoms oblique.  The cumulant ``sum_i w_i u_i^(x4)`` does not see it, and has
    their lengths, ``|w_i|^(1/4)``; and linear maps that only swap atoms, or their signs, are orthogonal where ``sum_i
    |w_i|^(1/2) u_i u_i'`` is the identity: these are the coordinates in which mirrors are looked for.
    """
    U = normalised(nearest_orthonormal(U, np.abs(spans.weights) ** 0.25))
    sure = np.flatnonzero(is_certified(spans.bounds))
    some, glance = U[sure], U[sure[:GLANCE]]
    # The normals of mirrors that take a certified atom to another one; most take one of the first few to nowhere.
    first, second = np.nonzero(sure[:, None] != np.arange(U.shape[0]))
    normals = normalised(np.concatenate((some[first] - U[second], some[first] + U[second])))
    for seen in (glance, some):
        _, cosine = _images(normals, seen, U)
        normals = normals[np.all(cosine > math.cos(BIAS), axis=1)]
    if not normals.shape[0]:
        return False
    moved = np.abs(normals @ some.T) > math.sin(BIAS)  # (k, l)
    values, vectors = np.linalg.eigh(unpack(pack_rank_one(normals) @ moved))  # (l, r), (l, r, r)
    spanned = values > 0.5  # a normal that was found has a value of 1 or more, errors of several far less
    atoms = np.union1d(sure, _images(normals, some, U)[0])
    inside = np.einsum("lai,li->la", (U[atoms] @ vectors) ** 2, spanned) > math.cos(BIAS) ** 2
    return bool(np.any(np.sum(inside, axis=1) > np.sum(spanned, axis=1)))


def _images(A: np.ndarray, some: np.ndarray, U: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which of ``U (n, r)`` mirrors with unit normals ``A (k, r)`` take ``some (l, r)`` to, and how nearly: ``(k, l)``.

    The latter as cosines.
    """
    size = max(1, MIRRORS // max(U.shape[0] * some.shape[0], 1))
    place, nearest = [np.zeros((0, some.shape[0]), dtype=np.intp)], [np.zeros((0, some.shape[0]))]
    for start in range(0, A.shape[0], size):
        B = A[start : start + size]
        cosine = np.abs(some @ U.T - 2 * (B @ some.T)[:, :, None] * (B @ U.T)[:, None, :])  # <R u_i, u_j>, (k, l, n)
        place.append(np.argmax(cosine, axis=2))
        nearest.append(np.max(cosine, axis=2))
    return np.concatenate(place), np.concatenate(nearest)
