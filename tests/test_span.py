"""What the spectrum of an exact fourth moment holds: spans, the tie at tau = 1/3, the window beyond, certificates."""

from __future__ import annotations

import numpy as np
import pytest
from test_section5 import PATTERNS, largest_pair, nice_moments

from quartic._arrays import pack_rank_one, packed_dim
from quartic.algorithms.certify import invariant_certificates, is_certified
from quartic.algorithms.recover import recover
from quartic.algorithms.select import windows
from quartic.algorithms.truncate import Spectrum
from quartic.datasets import COEFFICIENTS, ERRORS, SUPPORTS, planted_tensor, population_moment, random_orthonormal
from quartic.learn.plan import top_and_window
from quartic.metrics import match
from quartic.propose.span import TOP, search, search_window
from quartic.tensors import PackedTensor


class Population:
    """A fourth moment, known but for tiny errors that are independent in its halves: they decide where nothing does."""

    def __init__(self, packed: np.ndarray, rng: np.random.Generator, noise: float = 1e-9) -> None:
        G = noise * rng.standard_normal((2, *packed.shape))
        self.halves = packed + G + G.transpose(0, 2, 1)
        self.dim = PackedTensor(packed).dim
        self.effective = np.full(2, 1e6)

    def cumulant(self, half: int | None = None) -> PackedTensor:
        return PackedTensor(np.mean(self.halves, axis=0) if half is None else self.halves[half])

    def covariance(self, half: int | None = None) -> np.ndarray:
        return np.eye(self.dim)


def spectrum_of(M: np.ndarray) -> Spectrum:
    """All eigenpairs, the largest first, by LAPACK."""
    values, V = np.linalg.eigh(M)
    N = values.shape[0]
    return Spectrum(values[::-1], V[:, ::-1], np.zeros(N), np.zeros((N, N)), 1, True)


def blocks(tau: float, count: int = 2, size: int = 5, between: float = 0.0) -> np.ndarray:
    """``X`` of equal blocks: 1 on the diagonal, ``tau`` in a block."""
    n = count * size
    block = np.arange(n) // size
    X = np.where(block == block[:, None], tau, between)
    np.fill_diagonal(X, 1.0)
    return X


def ring(tau: float) -> np.ndarray:
    """Eight supports in a ring, each overlapping with two."""
    return PATTERNS["ring"](8, tau, None)


def bipartite(tau: float) -> np.ndarray:
    """Three atoms, each of which occurs with each of three others."""
    return PATTERNS["bipartite"](6, tau, None)


def pairs(n: int) -> tuple[np.ndarray, np.ndarray]:
    return np.triu_indices(n, 1)


# --- the span ----------------------------------------------------------------------------------------------------


def in_span(A: np.ndarray, X: np.ndarray) -> bool:
    """Whether the flattened top ``n`` of the moment is ``sum_i a_i^(x4)``, to rounding."""
    n = A.shape[0]
    B = pack_rank_one(A)
    flattened = spectrum_of(population_moment(A, X)).head(n).flattened().to_packed()
    return bool(np.linalg.norm(flattened - B @ B.T, 2) < 1e-7)


@pytest.mark.parametrize("coefficients", COEFFICIENTS)
@pytest.mark.parametrize("supports", SUPPORTS)
def test_the_spectrum_of_a_moment(supports, coefficients, rng):
    """Eigenvalues of ``X``, on the span of the atoms, and ``2 X_ij`` on the mixed products; nothing else."""
    n, d = 6, 7
    X = nice_moments(supports, coefficients, n)
    A = random_orthonormal(d, n, rng)
    values = np.linalg.eigvalsh(population_moment(A, X))
    expected = np.concatenate((np.linalg.eigvalsh(X), 2 * X[pairs(n)], np.zeros(packed_dim(d) - packed_dim(n))))
    np.testing.assert_allclose(values, np.sort(expected), atol=1e-12)
    if np.linalg.eigvalsh(X)[0] > 2 * largest_pair(X) + 1e-6:
        assert in_span(A, X)


@pytest.mark.parametrize("weights", ["alike", "unequal"])
@pytest.mark.parametrize(("pattern", "tie"), [(blocks, 1 / 3), (ring, 1 / 4), (bipartite, 1 / 5)])
def test_the_tie(pattern, tie, weights, rng):
    """The top n hold the atoms, whatever the weights, up to ``lambda_min(X) = 2 max X_ij``, and not beyond.

    For equal blocks that is ``1 - tau = 2 tau``; for a ring ``1 - 2 tau``, for a complete bipartite pattern of three
    and three ``1 - 3 tau``.
    """
    for tau in (0.3 * tie, 0.98 * tie, 1.02 * tie, 1.3 * tie):
        X = pattern(tau)
        n = X.shape[0]
        if weights == "unequal":
            scale = np.linspace(1, 0.9, n)
            X = X * scale * scale[:, None]
        margin = np.linalg.eigvalsh(X)[0] - 2 * largest_pair(X)
        if weights == "alike":
            assert np.sign(margin) == np.sign(tie - tau)
        assert in_span(random_orthonormal(n + 1, n, rng), X) == (margin > 0)


def test_at_the_tie_the_block_is_isotropic(rng):
    """At tau = 1/3 the moment of a block does not depend on the axes: nothing is there to be found."""
    size = 4
    one, other = (random_orthonormal(size, size, rng) for _ in range(2))
    X = blocks(1 / 3, 1, size)
    np.testing.assert_allclose(population_moment(one, X), population_moment(other, X), atol=1e-12)
    X = blocks(0.4, 1, size)
    assert np.linalg.norm(population_moment(one, X) - population_moment(other, X), 2) > 0.1


def test_beyond_the_tie_two_atoms_look_like_two_others(rng):
    """A block of two has the moment of another nice distribution, rotated by 45 degrees, with ``tau' < 1/3 < tau``.

    So whatever is certified from fourth moments rests on ``tau < 1/3``.
    """
    A = random_orthonormal(2, 2, rng)
    rotated = np.array([[1, 1], [1, -1]]) / np.sqrt(2) @ A
    for tau in (0.1, 1 / 3, 0.5, 0.8):
        X = (np.array([[1 + 3 * tau, 1 - tau], [1 - tau, 1 + 3 * tau]])) / 2
        np.testing.assert_allclose(population_moment(A, blocks(tau, 1, 2)), population_moment(rotated, X), atol=1e-12)
        assert ((1 - tau) / (1 + 3 * tau) < 1 / 3 - 1e-12) == (tau > 1 / 3 + 1e-12)
        assert in_span(rotated, X) == (tau > 0.34)


# --- the window --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tau", [0.4, 0.5, 0.6, 0.8])
def test_a_window_is_proposed(tau):
    """Above the pair terms one direction a block, below them the others."""
    count, size = 2, 5
    X = blocks(tau, count, size, between=0.05)
    values = np.sort(np.concatenate((np.linalg.eigvalsh(X), 2 * X[pairs(count * size)])))[::-1]
    cluster = count * size * (size - 1) // 2
    assert (count, count + cluster) in windows(values, count * size)


def test_windows_lie_in_the_spectrum(rng):
    for n in (1, 3, 10):
        values = np.sort(rng.standard_normal(21))[::-1]
        proposed = windows(values, n, 6)
        assert len(set(proposed)) == len(proposed) <= 6 * 7
        for a, b in proposed:
            assert 0 <= a < n
            assert a < b
            assert b + n - a <= 21
            assert a == 0 or values[a - 1] > values[a]


def test_windows_go_by_the_widest_gaps():
    values = np.array([9.0, 8.9, 5.0, 4.9, 4.8, 2.0, 1.9, 0.1])
    assert windows(values, 3, 2) == [(0, 2), (0, 5), (2, 5)]  # the gaps after 2 and after 5
    assert windows(values, 1, 1) == [(0, 2)]
    assert windows(values, 8, 3) == []  # nothing can be skipped


@pytest.mark.parametrize("tau", [0.4, 0.5, 0.6, 0.8])
def test_a_window_recovers_what_the_top_does_not(tau, rng):
    count, size = 2, 5
    X = blocks(tau, count, size, between=0.05)
    n = count * size
    A = random_orthonormal(n, n, rng)
    moment = Population(population_moment(A, X), rng)
    none = np.zeros((0, n))
    assert match(A, search(moment, n, none, rng).atoms).found(0.9) == 0
    found = search_window(moment, n, none, rng)
    assert found.window == (count, count + count * size * (size - 1) // 2)
    np.testing.assert_allclose(match(A, found.atoms).squared, 1, atol=1e-9)
    np.testing.assert_array_equal(found.likely, 0)  # the halves were not asked
    assert [other.window for other in top_and_window(moment, n, none, rng, None)] == [TOP, found.window]


@pytest.mark.parametrize("tau", [0.1, 0.25, 0.32])
def test_below_the_tie_the_top_is_taken(tau, rng):
    n = 10
    A = random_orthonormal(n, n, rng)
    moment = Population(population_moment(A, blocks(tau, between=0.02)), rng)
    found = next(top_and_window(moment, n, np.zeros((0, n)), rng, None, halves=True))
    assert found.window == TOP == (0, 0)
    assert np.sum(is_certified(found.likely)) == n
    np.testing.assert_allclose(match(A, found.atoms).squared, 1, atol=1e-3 if tau > 0.3 else 1e-6)


def test_at_the_tie_nothing_is_likely(rng):
    """Any orthonormal basis of the block would do, and none may look certain."""
    n = 5
    A = random_orthonormal(n, n, rng)
    moment = Population(population_moment(A, blocks(1 / 3, 1)), rng)
    for found in top_and_window(moment, n, np.zeros((0, n)), rng, None, halves=True):
        assert not np.any(is_certified(found.likely))


def test_no_window_in_a_moment_without_structure(rng):
    """The moment of a Gaussian, and its cumulant, zero."""
    n = 6
    gaussian = population_moment(np.eye(n), 1 + 2 * np.eye(n))
    for M in (gaussian, 0 * gaussian):
        for found in top_and_window(Population(M, rng), n, np.zeros((0, n)), rng, None, halves=True):
            assert not np.any(is_certified(found.likely))


# --- certificates with a known error -----------------------------------------------------------------------------


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("supports", SUPPORTS)
def test_invariant_certificates_bound_the_correlation(supports, error, rng):
    """Davis and Kahan: with ``||E|| <= eps`` no certificate exceeds the squared correlation, of any vector."""
    n, d = 6, 6
    X = nice_moments(supports, "gaussian", n)
    A = random_orthonormal(d, n, rng)
    for eps in (0.02, 0.1):
        E = planted_tensor(d, n, eps, error, random_state=rng).error
        spectrum = spectrum_of(population_moment(A, X) + E)
        found = recover(spectrum.head(n).flattened(), rng)
        shaken = found + 0.2 * rng.standard_normal(found.shape)
        U = np.concatenate((found, shaken / np.linalg.norm(shaken, axis=1, keepdims=True)))
        bounds = invariant_certificates(eps, U, spectrum, n)
        assert np.all(bounds <= np.max((U @ A.T) ** 2, axis=1))
    assert np.all(invariant_certificates(0.02, A, spectrum_of(population_moment(A, X)), n) > 0.5)


def test_invariant_certificates_are_nearly_attained(rng):
    """An error that turns one atom's square towards a direction outside: the bound is lost to the gap only."""
    n, d, eps = 3, 5, 0.1
    A = random_orthonormal(d, n, rng)
    B = pack_rank_one(A)
    b, w = B[:, 0], pack_rank_one(np.linalg.svd(A)[2][n:][:1])[:, 0]
    E = eps * (np.outer(b, w) + np.outer(w, b))
    spectrum = spectrum_of(population_moment(A, np.eye(n)) + E)
    sine = np.linalg.norm((np.eye(B.shape[0]) - B @ B.T) @ spectrum.vectors[:, :n], 2)
    bound = eps / (spectrum.values[n - 1] - max(spectrum.values[n], 0) - eps)
    assert 0.85 * bound < sine <= bound


def test_invariant_certificates_without_a_gap(rng):
    """At the tie nothing is proven, and with no kept vectors neither."""
    A = random_orthonormal(5, 5, rng)
    spectrum = spectrum_of(population_moment(A, blocks(1 / 3, 1)))
    assert not np.any(invariant_certificates(0.01, A, spectrum, 5))
    assert not np.any(invariant_certificates(0.0, A, spectrum, 0))
