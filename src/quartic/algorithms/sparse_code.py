"""Sparse codes for a dictionary of any size, and the dictionary for sparse codes: refinement where ``n > d``.

Orthogonal matching pursuit: the atom that fits the residual best is added, all coefficients are fitted anew, until the
residual is small or enough atoms are there; for all samples at once, with batched solves of small Gram matrices.  The
dictionary that fits given codes best is one of least squares.  The two in turn, on the samples that few atoms explain,
converge to the exact dictionary of exactly sparse data: with the right supports the error of the codes is proportional
to that of the dictionary, and so is the tolerance, which follows the residuals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

FIRST = 0.35  # part of a sample's norm that its atoms may leave at first: the sine of an error of 20 degrees
SHRINK, STEEPEST = 2.0, 100.0  # factors by which a tolerance falls, at least and at most
MULTIPLE = 3.0  # times the median residual of what is explained, if that is less
KEPT = 0.8  # of the samples that were explained before: as many must be, or the tolerance is too low
LEAST, APART = 0.1, 4.0  # a part of the samples, and how far below the tolerance most of it must lie to count alone
FEWEST, FIRST_ROUNDS = 2, 3  # atoms, and rounds: at a high tolerance more would explain samples that are not sparse
SILENT = 0.02  # of the root mean square norm: less is no active atom
STALLS = 2  # rounds at the old tolerance, after which a lower one is given up
ROUNDS = 60
PART = 4  # of the dimensions: atoms that explain a sample at most, or two; more are no sparse explanation
DETERMINED = 4  # explained samples for each number of the dictionary's row, below which a round is not trusted


def most_atoms(d: int) -> int:
    """How many atoms may explain a sample of ``d`` dimensions."""
    return max(2, d // PART)


def pursue(Z: np.ndarray, D: np.ndarray, most: int, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """Orthogonal matching pursuit of the samples ``Z (m, d)`` in the unit rows of ``D (n, d)``.

    At most ``most`` atoms each, and no more once the residual is below ``tolerance`` times the norm of the sample.
    Returns the codes ``(m, n)`` and the residuals over the norms, ``(m,)``.
    """
    m, n = Z.shape[0], D.shape[0]
    norms = np.linalg.norm(Z, axis=1)
    gram, inner = D @ D.T, Z @ D.T  # (n, n), (m, n)
    codes, residuals = np.zeros((m, n)), np.where(norms > 0, 1.0, 0.0)
    support = np.zeros((m, most), dtype=np.intp)
    rows = np.flatnonzero(residuals > tolerance)
    left = np.abs(inner[rows])  # correlations of what is left with the atoms
    for k in range(1, min(most, n) + 1):
        if rows.size == 0:
            break
        np.put_along_axis(left, support[rows, : k - 1], -1.0, axis=1)
        support[rows, k - 1] = np.argmax(left, axis=1)
        chosen = support[rows, :k]
        fitted = inner[rows[:, None], chosen]
        if k > 1:
            blocks = gram[chosen[:, :, None], chosen[:, None, :]] + 1e-14 * np.eye(k)  # two atoms may be the same
            fitted = np.linalg.solve(blocks, fitted[:, :, None])[:, :, 0]
        codes[rows[:, None], chosen] = fitted
        rest = Z[rows] - codes[rows] @ D
        residuals[rows] = np.linalg.norm(rest, axis=1) / norms[rows]
        going = residuals[rows] > tolerance
        rows, left = rows[going], np.abs(rest[going] @ D.T)
    return codes, residuals


def least_squares(Z: np.ndarray, codes: np.ndarray, D: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The unit rows, and the offset, that fit ``Z (m, d)`` best with the given codes ``(m, n)``; unused atoms stay."""
    n = D.shape[0]
    codes = np.concatenate((codes, np.ones((codes.shape[0], 1))), axis=1)  # the last one is the offset
    old = np.concatenate((D, np.zeros((1, D.shape[1]))))
    gram = codes.T @ codes
    small = 1e-14 * np.trace(gram) / (n + 1) + np.finfo(np.float64).tiny
    fitted = np.linalg.solve(gram + small * np.eye(n + 1), codes.T @ Z + small * old)
    norms = np.linalg.norm(fitted[:n], axis=1, keepdims=True)
    return np.where(norms > 0, fitted[:n] / np.where(norms > 0, norms, 1.0), D), fitted[n]


@dataclass(frozen=True)
class Fitted:
    """A dictionary that was fitted to sparse codes.

    Attributes
    ----------
    atoms : ndarray of shape (n, d)
        Unit rows.
    offset : ndarray of shape (d,)
        The point that the samples are sparse about: their mean is not it.
    residual : float
        Median residual of the samples that are explained, over their norm.
    tolerance : float
        Residual below which a sample counts as explained.
    explained : float
        Part of the samples that are, among those with an active atom.
    rounds : int
    """

    atoms: np.ndarray
    offset: np.ndarray
    residual: float
    tolerance: float
    explained: float
    rounds: int


def fit(Z: np.ndarray, D: np.ndarray, floor: float = 1e-13) -> Fitted:
    """Codes and dictionary in turn, from unit rows ``D (n, d)``, with a tolerance that falls as far as samples allow.

    A lower tolerance is kept if nearly as many samples are explained by it; or if a part of them is, far better than it
    asks for: these are sparse, and the others have too many atoms.  Where neither holds, after another round at the old
    one, the samples are no sparser.
    """
    n, d = D.shape
    most = most_atoms(d)
    offset = np.median(Z, axis=0)  # that of samples without active atoms, if these are most
    least = SILENT * np.sqrt(np.mean(Z * Z) * d)
    best, trial, stalls = Fitted(D, offset, 1.0, 1.0, 0.0, 0), FIRST, 0
    for rounds in range(1, ROUNDS + 1):
        codes, residuals = pursue(Z - offset, D, FEWEST if rounds <= FIRST_ROUNDS else most, trial)
        active = np.linalg.norm(Z - offset, axis=1) > least
        explained = active & (residuals <= trial)
        share = float(np.sum(explained) / max(np.sum(active), 1))
        level = float(np.median(residuals[explained])) if share > 0 else 1.0
        nearly_all = share >= KEPT * best.explained
        a_part = share >= LEAST and level <= trial / APART
        if (nearly_all or a_part) and np.sum(explained) >= DETERMINED * n:
            lower = trial < best.tolerance
            best = Fitted(D, offset, level, trial, share, rounds)
            if best.residual <= floor:
                break
            stalls = 0 if lower else stalls
            D, offset = least_squares(Z[explained], codes[explained], D)
            trial = max(min(trial / SHRINK, MULTIPLE * best.residual), trial / STEEPEST)
        elif best.rounds == 0 or stalls == STALLS:
            break
        else:
            stalls, trial = stalls + 1, best.tolerance
    return best
