"""Algorithm 4.1: the block eigensolver against LAPACK, and the truncation."""

import numpy as np
import pytest

from quartic import PackedTensor
from quartic.algorithms import truncate as algorithm
from quartic.algorithms.truncate import leading_spectrum, spectral_norm, truncate
from quartic.tensors import FactoredTensor

D, N = 13, 91
TIGHT = 1e-6


def frame(rng):
    return np.linalg.qr(rng.standard_normal((N, N)))[0]


def with_spectrum(rng, values):
    """A symmetric ``N x N`` matrix with the given eigenvalues, and zeros beyond them."""
    Q = frame(rng)[:, : len(values)]
    return (Q * values) @ Q.T


MATRICES = {
    "random": lambda rng: (lambda G: G + G.T)(rng.standard_normal((N, N))),
    "positive": lambda rng: (lambda G: G @ G.T)(rng.standard_normal((N, N))),
    "gap": lambda rng: with_spectrum(rng, np.r_[np.ones(6), rng.uniform(-0.5, 0.5, N - 6)]),
    "low rank": lambda rng: with_spectrum(rng, rng.uniform(1, 2, 4)),
    "low rank, both signs": lambda rng: with_spectrum(rng, [3.0, 2.0, 1.0, -1.5, -2.5]),
    "identity": lambda rng: np.eye(N),
    "clustered": lambda rng: with_spectrum(
        rng, np.r_[1 + 1e-9 * rng.standard_normal(6), 0.3 * rng.uniform(-1, 1, N - 6)]
    ),
    "negative definite": lambda rng: with_spectrum(rng, -np.linspace(1, 3, N)),
    "no gap": lambda rng: with_spectrum(rng, np.linspace(1, -1, N)),
    "zero": lambda rng: np.zeros((N, N)),
    "one": lambda rng: with_spectrum(rng, [1.0]),
    "spread": lambda rng: with_spectrum(rng, 10.0 ** -np.arange(0, 20, 0.5)),
}


@pytest.fixture(params=MATRICES)
def matrix(request, rng):
    M = MATRICES[request.param](rng)
    return (M + M.T) / 2


def solve(M, width=8, wanted=6, tolerance=TIGHT, seed=0, **options):
    return leading_spectrum(
        PackedTensor(M), width, rng=np.random.default_rng(seed), wanted=lambda v: wanted, tolerance=tolerance, **options
    )


def assert_ritz_pairs(M, spectrum, width, tolerance=3e-8):
    """Orthonormal vectors, and residuals that are the true ones down to the root of the precision."""
    V, lam = np.asarray(spectrum.vectors), spectrum.values[:width]
    scale = max(np.linalg.norm(M, 2), 1e-300)
    assert V.shape == (M.shape[0], width)
    np.testing.assert_allclose(V.T @ V, np.eye(width), atol=1e-8)
    R = M @ V - V * lam
    np.testing.assert_allclose(spectrum.residuals, np.linalg.norm(R, axis=0), atol=tolerance * scale)
    np.testing.assert_allclose(spectrum.gram, R.T @ R, atol=tolerance * scale**2)
    np.testing.assert_allclose(np.diagonal(V.T @ M @ V), lam, atol=tolerance * scale)


def test_leading_eigenvalues(matrix, seed):
    spectrum = solve(matrix, seed=seed)
    exact = np.linalg.eigvalsh(matrix)[::-1]
    scale = max(abs(exact[0]), abs(exact[-1]))
    assert spectrum.converged
    assert_ritz_pairs(matrix, spectrum, 8)
    # A Ritz value lies within its residual of an eigenvalue, and leading ones are not missed by a random block.
    np.testing.assert_allclose(spectrum.values[:6], exact[:6], atol=1e-6 * scale)
    assert np.all(np.diff(spectrum.values) <= 0)


def test_by_magnitude(matrix, seed):
    spectrum = solve(matrix, wanted=3, seed=seed, by_magnitude=True)
    exact = np.linalg.eigvalsh(matrix)
    exact = exact[np.argsort(-np.abs(exact))]
    np.testing.assert_allclose(np.abs(spectrum.values[:3]), np.abs(exact[:3]), atol=1e-6 * abs(exact[0]))
    assert_ritz_pairs(matrix, spectrum, 8)


@pytest.mark.parametrize(("blocks", "least"), [(2, 0), (3, 16)])
def test_thick_restarts(matrix, seed, monkeypatch, blocks, least):
    monkeypatch.setattr(algorithm, "BASIS_BLOCKS", blocks)
    monkeypatch.setattr(algorithm, "BASIS_LEAST", least)
    monkeypatch.setattr(algorithm, "MAX_SWEEPS", 400)
    spectrum = solve(matrix, wanted=3, tolerance=1e-5, seed=seed)
    exact = np.linalg.eigvalsh(matrix)[::-1]
    assert spectrum.converged
    assert spectrum.values.shape[0] <= max(blocks * 8, least)
    assert_ritz_pairs(matrix, spectrum, 8)
    np.testing.assert_allclose(spectrum.values[:3], exact[:3], atol=1e-4 * np.max(np.abs(exact)))


def test_a_restart_happens_where_the_basis_is_short(rng, monkeypatch):
    M = MATRICES["no gap"](rng)
    free = solve(M, tolerance=1e-5)
    monkeypatch.setattr(algorithm, "BASIS_BLOCKS", 2)
    monkeypatch.setattr(algorithm, "BASIS_LEAST", 0)
    monkeypatch.setattr(algorithm, "MAX_SWEEPS", 400)
    short = solve(M, tolerance=1e-5)
    assert free.values.shape[0] > short.values.shape[0]
    assert short.sweeps > free.sweeps
    np.testing.assert_allclose(short.values[:6], free.values[:6], atol=1e-5)


def test_the_tolerance_is_met(rng, seed):
    M = MATRICES["gap"](rng)
    sweeps = []
    for tolerance in (0.3, 0.03, 0.003):
        spectrum = solve(M, tolerance=tolerance, seed=seed)
        assert spectrum.converged
        assert np.sqrt(np.mean(spectrum.residuals[:6] ** 2)) <= tolerance * spectrum.values[5]
        sweeps.append(spectrum.sweeps)
    assert sweeps == sorted(sweeps)
    assert sweeps[-1] > sweeps[0]


def test_sweeps_are_counted_and_told(rng):
    class Counting(PackedTensor):
        count = 0

        def apply(self, X):
            self.count += 1
            return super().apply(X)

    T, told = Counting(MATRICES["gap"](rng)), []
    spectrum = leading_spectrum(T, 8, rng=rng, wanted=lambda v: 6, tolerance=1e-3, callback=told.append)
    assert spectrum.sweeps == T.count
    assert told == list(range(1, T.count + 1))


def test_what_does_not_converge_is_said(rng, monkeypatch):
    monkeypatch.setattr(algorithm, "MAX_SWEEPS", 2)
    M = MATRICES["no gap"](rng)
    spectrum = solve(M)
    assert not spectrum.converged
    assert spectrum.sweeps == 2
    assert_ritz_pairs(M, spectrum, 8)


def test_a_block_as_wide_as_the_space(rng):
    M = MATRICES["random"](rng)[:10, :10]
    spectrum = solve(M, width=50, wanted=10)
    np.testing.assert_allclose(spectrum.values, np.linalg.eigvalsh(M)[::-1], atol=1e-10)
    assert_ritz_pairs(M, spectrum, 10)
    assert spectrum.sweeps == 1


def test_more_wanted_than_the_block_holds(rng):
    M = MATRICES["low rank"](rng)
    spectrum = solve(M, width=5, wanted=40)
    assert spectrum.converged
    assert_ritz_pairs(M, spectrum, 5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_library(xp, rng, dtype):
    M = MATRICES["gap"](rng)
    T = PackedTensor(xp.asarray(M, dtype))
    spectrum = leading_spectrum(T, 8, rng=np.random.default_rng(0), wanted=lambda v: 6, tolerance=1e-3)
    assert spectrum.vectors.dtype == xp.dtype(dtype)
    assert spectrum.values.dtype == np.float64
    np.testing.assert_allclose(spectrum.values[:6], 1.0, atol=1e-3)
    V = xp.numpy(spectrum.vectors)
    np.testing.assert_allclose(V.T @ V, np.eye(8), atol=1e-5 if dtype == "float32" else 1e-10)


class TestSpectrum:
    def test_outside(self, rng):
        M = with_spectrum(rng, [5.0, 4.0, 1.0, -2.0])
        spectrum = solve(M, wanted=4)
        for rank, expected in [(0, 5.0), (1, 4.0), (2, 2.0), (3, 2.0)]:
            assert spectrum.outside(rank) == pytest.approx(expected, rel=1e-6)
        assert spectrum.outside(spectrum.values.shape[0]) == 0.0

    def test_head(self, rng, xp):
        M = with_spectrum(rng, [5.0, 4.0, 1.0])
        spectrum = leading_spectrum(PackedTensor(xp.asarray(M)), 5, rng=rng, wanted=lambda v: 3, tolerance=TIGHT)
        head = spectrum.head(2)
        assert isinstance(head, FactoredTensor)
        assert head.rank == 2
        assert xp.owns(head.lam)
        values = np.linalg.eigvalsh(xp.numpy(head.to_packed()))[::-1]
        np.testing.assert_allclose(values[:3], [5, 4, 0], atol=1e-6)


class TestNorm:
    @pytest.mark.parametrize("sign", [1, -1])
    def test_from_below_and_next_to_an_eigenvalue(self, matrix, seed, sign):
        eigenvalues = np.abs(np.linalg.eigvalsh(matrix))
        norm = spectral_norm(PackedTensor(sign * matrix), np.random.default_rng(seed))
        assert norm <= eigenvalues.max() * (1 + 1e-12)
        assert np.min(np.abs(eigenvalues - norm)) <= algorithm.NORM_TOLERANCE * norm

    @pytest.mark.parametrize("sign", [1, -1])
    def test_an_eigenvalue_that_stands_out_is_seen_whatever_its_sign(self, rng, seed, sign):
        M = with_spectrum(rng, np.r_[sign * 1.0, rng.uniform(-0.8, 0.8, N - 1)])
        assert spectral_norm(PackedTensor(M), np.random.default_rng(seed)) == pytest.approx(1.0, rel=0.01)

    def test_callback(self, rng):
        told = []
        spectral_norm(PackedTensor(np.eye(N)), rng, told.append)
        assert told == [1]


class TestTruncate:
    def test_is_the_positive_part_of_the_shifted_matrix(self, rng, seed, xp):
        M = with_spectrum(rng, np.r_[[3.0, 2.0, 1.5, 1.2], rng.uniform(-0.5, 0.5, N - 4)])
        spectrum = leading_spectrum(
            PackedTensor(xp.asarray(M)), 8, rng=np.random.default_rng(seed), wanted=lambda v: 4, tolerance=TIGHT
        )
        values, vectors = np.linalg.eigh(M)
        expected = (vectors * np.maximum(values - 1.0, 0.0)) @ vectors.T
        kept = truncate(spectrum, 1.0)
        assert kept.rank == 4
        np.testing.assert_allclose(xp.numpy(kept.to_packed()), expected, atol=1e-5)

    def test_nothing_is_left_above_the_norm(self, rng):
        spectrum = solve(with_spectrum(rng, [3.0, 2.0]), wanted=2)
        kept = truncate(spectrum, 4.0)
        assert kept.rank == 0
        assert not kept.to_packed().any()
