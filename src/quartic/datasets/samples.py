"""Samples of tau-nice distributions (section 5): sparse codes with correlated supports, times a dictionary.

A sample is ``y = sum_i x_i a_i``.  The support, the set of atoms with ``x_i != 0``, comes from one of the models in
:data:`SUPPORTS`; each knows exactly how often two atoms are active together.  Given the support the coefficients are
independent and symmetric with unit variance, so ``E x_i x_j x_k x_l = 0`` unless the product is a square, and

    X_ij = E x_i^2 x_j^2 = Pr[i and j active],      X_ii = E x_i^4 = kurtosis Pr[i active],
    tau  = max over i != j of X_ij / sqrt(X_ii X_jj).

The paper scales the codes to ``E x_i^4 = 1``; here an active coefficient has unit variance, which leaves tau as it is.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from quartic._arrays import check_random_state, pack_rank_one
from quartic.datasets.tensors import random_orthonormal

__all__ = ["COEFFICIENTS", "SUPPORTS", "NiceSamples", "nice_samples", "population_moment"]

CHUNK = 2**14  # samples drawn at a time; arbitrary: some megabytes of temporaries, whatever the number of samples
GROSS = 100.0  # norm of an outlier, in root-mean-square norms of the others; arbitrary, far outside of the cloud
COOCCURRENCE = 0.25  # default of Pr[j | i] for correlated supports; arbitrary, below the 1/3 where plain moments fail


@dataclass(frozen=True)
class NiceSamples:
    """``samples = codes @ dictionary + noise``, but for the outliers.

    Attributes
    ----------
    samples : ndarray of shape (m, d)
    codes : ndarray of shape (m, n)
        Of the dtype of the samples.  The codes of an outlier are those of the sample it replaced.
    dictionary : ndarray of shape (n, d)
        The atoms as used, rows in float64.
    pair : ndarray of shape (n, n)
        Exact probability that both atoms are active; on the diagonal, that the atom is.
    kurtosis : float
        ``E x_i^4`` given that atom ``i`` is active: 1 for signs, 3 for Gaussian, 6 for Laplace coefficients.
    noise_std : float
        Standard deviation of the noise in each feature.
    outliers : ndarray of bool, shape (m,)
        Which samples were replaced.

    Examples
    --------
    >>> import quartic
    >>> data = quartic.datasets.nice_samples(1000, 6, outliers=0.01, random_state=0)
    >>> left = abs(data.samples - data.codes @ data.dictionary).max(axis=1)
    >>> bool((data.outliers == (left > 1e-12)).all())
    True
    """

    samples: np.ndarray
    codes: np.ndarray
    dictionary: np.ndarray
    pair: np.ndarray
    kurtosis: float
    noise_std: float
    outliers: np.ndarray

    @property
    def components(self) -> np.ndarray:
        """The atoms as unit rows, ``(n, d)``."""
        return self.dictionary / np.linalg.norm(self.dictionary, axis=1, keepdims=True)

    @property
    def moments(self) -> np.ndarray:
        """Exact ``X_ij = E x_i^2 x_j^2``, ``(n, n)``, with ``E x_i^4`` on the diagonal."""
        X = self.pair.copy()
        np.fill_diagonal(X, self.kurtosis * np.diagonal(X))
        return X

    @property
    def tau(self) -> float:
        """The tau of the distribution: the largest ``X_ij / sqrt(X_ii X_jj)`` of two atoms, 0 if there is but one."""
        X = self.moments
        scale = 1 / np.sqrt(np.diagonal(X))
        np.fill_diagonal(X, 0)
        return float(np.max(X * scale * scale[:, None]))


def nice_samples(
    m: int,
    n: int,
    d: int | None = None,
    *,
    supports: str = "independent",
    cooccurrence: float | None = None,
    group: int = 8,
    coefficients: str = "sign",
    p: float = 0.1,
    frequencies: Any = None,
    dictionary: Any = "gaussian",
    condition: float | None = None,
    snr: float | None = None,
    outliers: float = 0.0,
    dtype: Any = np.float64,
    random_state: Any = None,
) -> NiceSamples:
    """Samples of a dictionary with sparse codes, tau-nice with a tau that is known exactly.

    Parameters
    ----------
    m, n : int
        Number of samples and of atoms.
    d : int, optional
        Number of features; ``n``, or the columns of the dictionary, when not given.  May be less than ``n``.
    supports : str, default="independent"
        Which atoms are active together, one of :data:`SUPPORTS`:

        - ``independent``: each atom on its own, ``Pr[j | i] = p``;
        - ``blocks``: a block of ``group`` atoms is active with probability ``p / c``, and then each of its atoms
          on its own with probability ``c``: ``Pr[j | i] = c`` in a block, ``p`` elsewhere;
        - ``markov``: a stationary chain over the atoms, ``Pr[i + 1 | i] = c``, falling with the distance to ``p``;
        - ``hubs``: stars in a row.  A group of ``group`` atoms is a hub and its neighbours, and the last neighbour
          is the hub of the next group.  ``Pr[j | i] = c`` between a hub and its neighbours; otherwise it falls with
          the number of steps between the two as in the chain, which is the case ``group=2``;
        - ``exclusive``: of ``group`` atoms at most one is active: ``Pr[j | i] = 0`` in a group, ``p`` elsewhere.
    cooccurrence : float, optional
        The largest ``Pr[j | i]``, called ``c`` above, between ``p`` and 1; 0.25 when not given.  It cannot be chosen
        for independent (``p``) and exclusive (0) supports.
    group : int, default=8
        Atoms in a group, at least 2.  Not used by independent and markov supports.
    coefficients : {"sign", "gaussian", "laplace"}, default="sign"
        Distribution of an active coefficient, symmetric and of unit variance, independent of everything else.
    p : float, default=0.1
        Probability that an atom is active, on average over the atoms.
    frequencies : array-like of shape (n,), optional
        How often atoms are active, up to a common factor; all alike when not given.  Supports are drawn as if every
        atom were as frequent as the most frequent one, then each active atom is kept with a probability of its own:
        ``Pr[j | i]`` shrinks by the factor of atom ``j``.
    dictionary : {"gaussian", "orthonormal"} or array-like of shape (n, d), default="gaussian"
        Atoms as rows: Gaussian entries of variance ``1 / d``, orthonormal rows, or those given.
    condition : float, optional
        Condition number of a Gaussian dictionary: its singular values become a geometric ladder from 1 to
        ``1 / condition``.
    snr : float, optional
        Expected squared norm of the signal over that of the noise, in decibels.  The noise is Gaussian, alike in all
        features; there is none when not given.
    outliers : float, default=0.0
        Fraction of the samples replaced by gross ones: of a uniformly random direction, and 100 times as long as
        the root-mean-square of the others.
    dtype : {float64, float32}, default=float64
        Of the samples and codes; the same numbers up to rounding.
    random_state : None, int or numpy.random.Generator
        Dictionary, codes, noise and outliers each have their own stream: one does not change with the others.

    Returns
    -------
    NiceSamples

    Notes
    -----
    Besides samples, codes and outliers only some megabytes are held.  Random numbers are drawn in float32: that moves a
    probability by at most 2^-24, and leaves about as few active Gaussian or Laplace coefficients exactly zero.

    Examples
    --------
    >>> import numpy as np, quartic
    >>> data = quartic.datasets.nice_samples(1000, 20, supports="blocks", cooccurrence=0.3, group=5, random_state=0)
    >>> data.samples.shape, data.components.shape, round(data.tau, 12)
    ((1000, 20), (20, 20), 0.3)
    >>> np.allclose(data.samples, data.codes @ data.dictionary)
    True
    """
    m, n, dtype = operator.index(m), operator.index(n), np.dtype(dtype)
    if m < 1 or n < 1:
        raise ValueError(f"m and n must be at least 1; got m = {m}, n = {n}.")
    if coefficients not in COEFFICIENTS:
        raise ValueError(f"coefficients must be one of {', '.join(COEFFICIENTS)}; got {coefficients!r}.")
    if snr is not None and not np.isfinite(snr):
        raise ValueError(f"snr must be a finite number of decibels, or None for no noise; got {snr}.")
    if not 0 <= outliers < 1:
        raise ValueError(f"outliers must be a fraction of the samples, at least 0 and below 1; got {outliers}.")
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64; got {dtype}.")
    model = _supports(supports, n, p, cooccurrence, operator.index(group), frequencies)
    rng = check_random_state(random_state)
    for_atoms, for_codes, for_noise, for_outliers = map(np.random.default_rng, rng.integers(2**63, size=4))
    A = _dictionary(dictionary, n, d, condition, for_atoms)  # (n, d)
    d = A.shape[1]

    # Codes are uncorrelated: E |A'x|^2 = sum_i E x_i^2 |a_i|^2.
    power = float(np.diagonal(model.pair) @ np.sum(A**2, axis=1))
    noise_power = 0.0 if snr is None else power / 10 ** (snr / 10)
    noise_std = float(np.sqrt(noise_power / d))

    kurtosis, draw_coefficients = COEFFICIENTS[coefficients]
    codes, samples = np.zeros((m, n), dtype), np.empty((m, d), dtype)
    atoms = A.astype(dtype)
    for start in range(0, m, CHUNK):
        x, y = codes[start : start + CHUNK], samples[start : start + CHUNK]
        active = model.draw(for_codes, x.shape[0])
        x[active] = draw_coefficients(for_codes, int(np.count_nonzero(active)))
        np.matmul(x, atoms, out=y)
        if noise_std:
            y += noise_std * for_noise.standard_normal(y.shape, dtype=np.float32)

    replaced = np.zeros(m, dtype=bool)
    replaced[for_outliers.choice(m, round(outliers * m), replace=False)] = True
    gross = for_outliers.standard_normal((np.count_nonzero(replaced), d), dtype=np.float32)
    gross *= GROSS * np.sqrt(power + noise_power) / np.linalg.norm(gross, axis=1, keepdims=True)
    samples[replaced] = gross
    return NiceSamples(samples, codes, A, model.pair, kurtosis, noise_std, replaced)


def population_moment(A: np.ndarray, X: np.ndarray) -> np.ndarray:
    """The fourth moment ``E (sum_i x_i a_i)^(x4)`` of a nice distribution, exactly, packed on Sym2.

    It is ``sum_i X_ii a_i^(x4)`` plus, over ``i != j``, ``X_ij`` times the three pairings of ``a_i, a_i, a_j, a_j``.

    Parameters
    ----------
    A : array-like of shape (n, d)
        The atoms as rows.
    X : array-like of shape (n, n)
        Symmetric, ``X_ij = E x_i^2 x_j^2``; :attr:`NiceSamples.moments`.

    Returns
    -------
    ndarray of shape (N, N)
        ``N = d (d + 1) / 2``.

    Examples
    --------
    >>> import quartic
    >>> data = quartic.datasets.nice_samples(1, 5, random_state=0)
    >>> quartic.datasets.population_moment(data.dictionary, data.moments).shape
    (15, 15)
    """
    A, X = np.asarray(A, dtype=np.float64), np.asarray(X, dtype=np.float64)
    if A.ndim != 2:
        raise ValueError(f"A must have two dimensions, atoms as rows; got shape {A.shape}.")
    n = A.shape[0]
    if X.shape != (n, n):
        raise ValueError(f"X must have shape ({n}, {n}), a row for each row of A; got {X.shape}.")
    if not np.allclose(X, X.T):
        raise ValueError("X must be symmetric: X_ij = E x_i^2 x_j^2; got a matrix that is not.")
    B = pack_rank_one(A)  # (N, n)
    i, j = np.triu_indices(n, 1)
    # On Sym2 the pairings 13|24 and 14|23 of (i, j) and (j, i) together are s s', with s = a_i a_j' + a_j a_i'
    # = (a_i + a_j)(a_i + a_j)' - a_i a_i' - a_j a_j'.
    S = pack_rank_one(A[i] + A[j]) - B[:, i] - B[:, j]  # (N, n (n - 1) / 2)
    return B @ X @ B.T + (S * X[i, j]) @ S.T


def _dictionary(
    dictionary: Any, n: int, d: int | None, condition: float | None, rng: np.random.Generator
) -> np.ndarray:
    """The atoms as rows, ``(n, d)``."""
    if condition is not None:
        if not (isinstance(dictionary, str) and dictionary == "gaussian"):
            raise ValueError(f"condition is for dictionary='gaussian' only; got condition = {condition} with another.")
        if not 1 <= condition < np.inf:
            raise ValueError(f"condition must be finite and at least 1; got {condition}.")
    if not isinstance(dictionary, str):
        A = np.array(dictionary, dtype=np.float64)
        shape = (n, A.shape[-1] if d is None and A.ndim else d)
        if A.shape != shape:
            raise ValueError(f"dictionary must have shape (n, d) = {shape}, atoms as rows; got {A.shape}.")
        if not np.all(np.isfinite(A)) or not np.all(np.any(A, axis=1)):
            raise ValueError("dictionary must be finite, and no atom may be zero.")
        return A
    d = n if d is None else operator.index(d)
    if d < 1:
        raise ValueError(f"d must be at least 1; got {d}.")
    if dictionary == "orthonormal":
        if n > d:
            raise ValueError(f"n must be at most d = {d} for dictionary='orthonormal'; got {n}.")
        return random_orthonormal(d, n, rng)
    if dictionary != "gaussian":
        raise ValueError(f"dictionary must be 'gaussian', 'orthonormal' or an array; got {dictionary!r}.")
    A = rng.standard_normal((n, d)) / np.sqrt(d)
    if condition is None:
        return A
    U, _, V = np.linalg.svd(A, full_matrices=False)
    return (U * np.geomspace(1, 1 / condition, V.shape[0])) @ V


@dataclass(frozen=True)
class _Supports:
    """A distribution of supports: ``pair (n, n)``, exact, and ``draw(rng, k)``, a mask ``(k, n)``."""

    pair: np.ndarray
    draw: Callable[[np.random.Generator, int], np.ndarray]


def _supports(supports: str, n: int, p: float, cooccurrence: float | None, group: int, frequencies: Any) -> _Supports:
    """The model asked for, with the frequencies asked for."""
    if supports not in SUPPORTS:
        raise ValueError(f"supports must be one of {', '.join(SUPPORTS)}; got {supports!r}.")
    if not 0 < p <= 1:
        raise ValueError(f"p must be above 0 and at most 1; got {p}.")
    if group < 2:
        raise ValueError(f"group must be at least 2; got {group}.")
    f = np.ones(n) if frequencies is None else np.asarray(frequencies, dtype=np.float64)
    if f.shape != (n,):
        raise ValueError(f"frequencies must have shape ({n},); got {f.shape}.")
    if not np.all((f > 0) & np.isfinite(f)):
        raise ValueError("frequencies must be positive and finite.")
    peak = float(p * np.max(f) / np.mean(f))  # Pr[i active] of the most frequent atom
    c = COOCCURRENCE if cooccurrence is None else cooccurrence
    if supports in ("independent", "exclusive"):
        only, most = (p, 1.0) if supports == "independent" else (0.0, 1 / min(group, n))
        if cooccurrence not in (None, only):
            raise ValueError(
                f"cooccurrence is {only} for supports={supports!r}; got {cooccurrence}. "
                "Leave it out, or choose supports='blocks', 'markov' or 'hubs'."
            )
        if peak > most:
            raise ValueError(
                f"p must leave the most frequent atom a probability of at most {most:.3g} for supports={supports!r}; "
                f"got {peak:.3g}. Lower p, or make the frequencies more alike."
            )
    elif not peak <= c <= 1:
        raise ValueError(
            f"cooccurrence must lie between the probability of the most frequent atom, {peak:.3g}, and 1; got {c}. "
            "Raise it, or lower p."
        )
    model = SUPPORTS[supports](n, peak, c, group)
    np.fill_diagonal(model.pair, peak)  # the models fill in the pairs
    return model if frequencies is None else _thinned(model, f / np.max(f))


def _independent(n: int, p: float, c: float, group: int) -> _Supports:
    return _Supports(np.full((n, n), p * p), lambda rng, k: _coins(rng, k, n, p))


def _blocks(n: int, p: float, c: float, group: int) -> _Supports:
    block = np.arange(n) // group  # (n,)

    def draw(rng: np.random.Generator, k: int) -> np.ndarray:
        awake = _coins(rng, k, block[-1] + 1, p / c)
        return awake[:, block] & _coins(rng, k, n, c)

    return _Supports(np.where(block == block[:, None], p * c, p * p), draw)


def _hubs(n: int, p: float, c: float, group: int) -> _Supports:
    """A tree in which each atom repeats its parent with probability r, and else tosses its own coin.

    Along an edge ``Pr[1 | 1] = r + (1 - r) p = c``, and over a path of k edges ``Pr[1 | 1] = p + (1 - p) r^k``.
    """
    step = group - 1
    hub = (np.arange(n) - 1) // step * step  # (n,): the parents; that of atom 0 is not used
    r = (c - p) / (1 - p) if p < 1 else 0.0
    R = np.eye(n)  # r to the length of the path
    for i in range(1, n):
        R[i, :i] = R[:i, i] = r * R[hub[i], :i]

    def draw(rng: np.random.Generator, k: int) -> np.ndarray:
        active, repeat = _coins(rng, k, n, p), _coins(rng, k, n, r)
        for i in range(1, n):
            np.copyto(active[:, i], active[:, hub[i]], where=repeat[:, i])
        return active

    return _Supports(p * (p + (1 - p) * R), draw)


def _markov(n: int, p: float, c: float, group: int) -> _Supports:
    return _hubs(n, p, c, 2)


def _exclusive(n: int, p: float, c: float, group: int) -> _Supports:
    block, place = np.divmod(np.arange(n), group)  # (n,) each

    def draw(rng: np.random.Generator, k: int) -> np.ndarray:
        # One uniform number for a group: the interval of length p that it falls into names the atom.
        interval = (rng.random((k, block[-1] + 1), dtype=np.float32) / p).astype(np.int64)
        return interval[:, block] == place

    return _Supports(np.where(block == block[:, None], 0.0, p * p), draw)


def _thinned(model: _Supports, keep: np.ndarray) -> _Supports:
    """Each active atom ``i`` is kept with probability ``keep_i``, on its own."""
    pair = model.pair * keep * keep[:, None]
    np.fill_diagonal(pair, np.diagonal(model.pair) * keep)
    return _Supports(pair, lambda rng, k: model.draw(rng, k) & _coins(rng, k, keep.shape[0], keep))


def _coins(rng: np.random.Generator, k: int, n: int, p: Any) -> np.ndarray:
    """A mask ``(k, n)`` of independent coins, true with probability ``p``, one number or ``(n,)``."""
    return rng.random((k, n), dtype=np.float32) < p


SUPPORTS: dict[str, Callable[[int, float, float, int], _Supports]] = {
    "independent": _independent,
    "blocks": _blocks,
    "markov": _markov,
    "hubs": _hubs,
    "exclusive": _exclusive,
}
"""Models of supports: a function of the number of atoms, their marginal, the co-occurrence and the group size."""


def _signs(rng: np.random.Generator, k: int) -> np.ndarray:
    return 2 * rng.integers(2, size=k, dtype=np.int8) - 1


def _gaussians(rng: np.random.Generator, k: int) -> np.ndarray:
    return rng.standard_normal(k, dtype=np.float32)


def _laplacians(rng: np.random.Generator, k: int) -> np.ndarray:
    return _signs(rng, k) * rng.standard_exponential(k, dtype=np.float32) / np.float32(np.sqrt(2))


COEFFICIENTS: dict[str, tuple[float, Callable[[np.random.Generator, int], np.ndarray]]] = {
    "sign": (1.0, _signs),
    "gaussian": (3.0, _gaussians),
    "laplace": (6.0, _laplacians),
}
"""Distributions of an active coefficient, of unit variance: the fourth moment, and a draw of ``k``."""
