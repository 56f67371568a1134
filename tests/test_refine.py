"""The stages of the refinement: against exact distributions, finite differences, and what each of them promises."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest
from scipy import integrate, linalg, stats
from test_lemmas import tilted, unit

from quartic.algorithms.refine import (
    LONGEST,
    QUANTILES,
    ClippedScore,
    Statistics,
    atoms_of,
    contrast,
    free,
    free_direction,
    free_step,
    half_atoms,
    iterated,
    orthogonal,
    orthogonal_direction,
    orthogonal_step,
    pair_moments,
    sines,
    statistics,
    tanh_score,
)
from quartic.datasets import nice_samples, random_orthonormal
from quartic.halves import half_of, row_hash


def chunks_of(rows, weights=None):
    """Rows as a pass reads them, in two chunks for each half."""
    m = rows.shape[0]
    w = np.ones(m) if weights is None else weights
    half = half_of(row_hash(np.arange(m)))
    parts = [np.flatnonzero((half == h) & (np.arange(m) % 2 == k)) for h in (0, 1) for k in (0, 1)]
    return [(int(half[part[0]]), rows[part], w[part]) for part in parts if part.size]


def enumerated(n, rng, correlated):
    """All values of ``n`` signals of variance 1, and probabilities: independent, or with correlated supports.

    Signs are independent given the magnitudes; one signal has lighter tails than a Gaussian.
    """
    levels = np.array([-2.0, -0.5, 0.0, 0.5, 2.0])
    x = np.array(list(itertools.product(levels, repeat=n)))
    active = x[:, 1:] != 0
    single = np.where(x == 0, 0.7, np.where(np.abs(x) == 2, 0.05, 0.1))
    single[:, 0] = np.where(x[:, 0] == 0, 0.0, np.where(np.abs(x[:, 0]) == 2, 0.45, 0.05))  # nearly two-valued
    p = np.prod(single, axis=1)
    if correlated:
        p = p * rng.uniform(0.2, 3, 2 ** (n - 1))[active @ 2 ** np.arange(n - 1)]  # any weight for any support
    p /= p.sum()
    return x / np.sqrt(p @ x**2), p


def skew(n, size, rng):
    G = rng.standard_normal((n, n))
    return size * (G - G.T) / np.linalg.norm(G - G.T, 2)


class TestStatistics:
    def test_directly(self, rng):
        rows, w = rng.standard_normal((300, 4)), rng.uniform(0, 2, 300)
        U = rng.standard_normal((4, 3))
        V, score = rng.standard_normal((4, 2)), ClippedScore.fit(rng.standard_normal((100, 2)))
        found, other = statistics(chunks_of(rows, w), (U, tanh_score), (V, score))
        half = half_of(row_hash(np.arange(300)))
        S = rows @ U
        for h in (None, 0, 1):
            mask = slice(None) if h is None else half == h
            v = w[mask] / w[mask].sum()
            cross, slope = found.of(h)
            np.testing.assert_allclose(cross, (np.tanh(S[mask]).T * v) @ S[mask], atol=1e-12)
            np.testing.assert_allclose(slope, v @ (1 - np.tanh(S[mask]) ** 2), atol=1e-12)
        np.testing.assert_allclose(found.weight, [w[half == h].sum() for h in (0, 1)])
        (alone,) = statistics(chunks_of(rows, w), (V, score))
        for name in ("cross", "slope", "weight"):
            np.testing.assert_array_equal(getattr(other, name), getattr(alone, name))

    def test_one_half(self):
        (found,) = statistics([(1, np.ones((3, 1)), np.ones(3))], (np.eye(1), tanh_score))
        assert np.all(np.isfinite(found.cross))
        np.testing.assert_allclose(found.of(None)[0], np.tanh(1))

    def test_single_precision_rows(self, rng):
        rows = rng.standard_normal((300, 3)).astype(np.float32)
        found, exact = (statistics(chunks_of(x), (np.eye(3), tanh_score))[0] for x in (rows, rows.astype(float)))
        assert found.cross.dtype == np.float64
        np.testing.assert_allclose(found.of(None)[0], exact.of(None)[0], atol=1e-5)

    @pytest.mark.parametrize("score", ["tanh", "clipped"])
    def test_a_score_comes_with_its_derivative(self, rng, score):
        S = rng.standard_normal((200, 2))
        psi = tanh_score if score == "tanh" else ClippedScore.fit(rng.laplace(size=(500, 2)))
        h = 1e-6
        (up, _), (down, _), (_, slope) = psi(S + h), psi(S - h), psi(S)
        np.testing.assert_allclose((up - down) / (2 * h), slope, atol=1e-6)
        np.testing.assert_allclose(psi(-S)[0], -psi(S)[0])  # odd


class TestOrthogonal:
    @pytest.mark.parametrize("correlated", [False, True])
    def test_the_truth_is_a_fixed_point(self, rng, correlated):
        """Exactly: ``E psi(s_i) s_j = 0`` for any supports, if the signs are independent given the magnitudes."""
        n = 4
        x, p = enumerated(n, rng, correlated)
        A = random_orthonormal(n, n, rng)
        means = statistics(chunks_of(x @ A, p), (A.T, tanh_score))[0].of(None)
        np.testing.assert_allclose(means[0], np.diag(np.diagonal(means[0])), atol=1e-13)
        np.testing.assert_allclose(orthogonal_direction(*means), 0, atol=1e-12)
        np.testing.assert_allclose(orthogonal_step(A, *means), A, atol=1e-12)

    def test_gradient(self, rng):
        """``cross`` is the gradient of ``E log cosh s_i``: of ``W - h D W`` by finite differences."""
        n = 3
        x, p = enumerated(n, rng, True)
        W = rng.standard_normal((n, n))

        def objective(W):
            return p @ np.sum(np.log(np.cosh(x @ W.T)), axis=1)

        cross, _ = statistics(chunks_of(x, p), (W.T, tanh_score))[0].of(None)
        D, h = rng.standard_normal((n, n)), 1e-6
        change = (objective(W - h * D @ W) - objective(W + h * D @ W)) / (2 * h)
        assert change == pytest.approx(-np.sum(cross * D), rel=1e-7)

    @pytest.mark.parametrize("size", [0.1, 0.03, 0.01])
    def test_steps_converge_quadratically_for_independent_signals(self, rng, size):
        """Both the Newton direction and the fixed point, with signals of heavier and of lighter tails together."""
        n = 4
        x, p = enumerated(n, rng, False)
        A = random_orthonormal(n, n, rng)
        W = linalg.expm(skew(n, size, rng)) @ A
        means = statistics(chunks_of(x @ A, p), (W.T, tanh_score))[0].of(None)
        D = orthogonal_direction(*means)
        np.testing.assert_allclose(D, -D.T, atol=1e-14)
        for step in (W - D @ W, orthogonal_step(W, *means)):
            assert np.linalg.norm(step - A, 2) < 5 * size**2

    def test_steps_stay_orthogonal_and_keep_signs(self, rng):
        n = 4
        x, p = enumerated(n, rng, True)
        W = random_orthonormal(n, n, rng)
        step = orthogonal_step(W, *statistics(chunks_of(x, p), (W.T, tanh_score))[0].of(None))
        np.testing.assert_allclose(step @ step.T, np.eye(n), atol=1e-12)
        assert np.all(np.sum(step * W, axis=1) >= 0)

    @pytest.mark.parametrize("supports", ["independent", "blocks", "hubs"])
    @pytest.mark.parametrize("coefficients", ["sign", "gaussian", "laplace"])
    def test_on_samples(self, supports, coefficients, seed, rng):
        """From squared correlation 0.8 to the accuracy of the samples, in a few passes.

        With sign coefficients ``tanh(s)`` is a multiple of ``s``, and orthonormal atoms are found exactly.
        """
        n, m = 8, 20_000
        options = {"supports": supports, "coefficients": coefficients, "group": 4, "dictionary": "orthonormal"}
        data = nice_samples(m, n, **options, random_state=seed)
        start = np.linalg.qr(tilted(data.dictionary, 0.8, rng).T)[0].T
        start *= np.sign(np.sum(start * data.dictionary, axis=1))[:, None]
        chunks, forward = chunks_of(data.samples), np.eye(n) / np.sqrt(0.1)
        (W,), (means,), passes = iterated(partial(statistics, chunks), forward, 20, orthogonal(start))
        assert np.all(sines(W, data.dictionary) < (1e-3 if coefficients == "sign" else 10) / np.sqrt(m))
        assert isinstance(means, Statistics)
        if coefficients != "sign":
            assert passes < 20
            # Where it has arrived it stays.
            assert iterated(partial(statistics, chunks), forward, 20, orthogonal(W))[2] <= 2
        assert iterated(partial(statistics, chunks), forward, 1, orthogonal(start))[2] == 1

    def test_one_half_alone(self, seed):
        data = nice_samples(2000, 4, dictionary="orthonormal", random_state=seed)
        chunks = [(1, data.samples, np.ones(2000))]
        start = orthogonal(data.dictionary)
        (W,), _, _ = iterated(partial(statistics, chunks), np.eye(4) / np.sqrt(0.1), 20, start)
        assert np.all(sines(W, data.dictionary) < 0.2)


def draw(kind, m, rng):
    """Independent draws of variance 1."""
    if kind == "gaussian":
        return rng.standard_normal(m)
    if kind == "laplace":
        return rng.laplace(size=m) / np.sqrt(2)
    if kind == "uniform":
        return rng.uniform(-np.sqrt(3), np.sqrt(3), m)
    return np.where(rng.random(m) < 0.1, rng.standard_normal(m) * np.sqrt(10), 0) + 0.1 * rng.standard_normal(m)


KINDS = ["gaussian", "laplace", "uniform", "sparse"]


class TestScore:
    def test_the_fit_minimises_its_objective(self, rng):
        """``E psi^2 - 2 E psi'`` is quadratic in the coefficients; a ridge of a millionth keeps it definite."""
        S = np.stack([draw(kind, 4000, rng) for kind in KINDS], axis=1)
        fitted = ClippedScore.fit(S)
        ridge = (
            1e-6
            * np.mean([np.sum(np.clip(S, -t, t) ** 2, axis=0) for t in fitted.knots], axis=0)
            / 4000
            * len(QUANTILES)
        )

        def objective(coefficients):
            psi, slope = ClippedScore(fitted.knots, coefficients)(S)
            return np.mean(psi**2 - 2 * slope, axis=0) + ridge * np.sum(coefficients**2, axis=0)

        best = objective(fitted.coefficients)
        for _ in range(30):
            step = rng.standard_normal(fitted.coefficients.shape) * 10.0 ** rng.uniform(-3, 0)
            assert np.all(objective(fitted.coefficients + step) > best)

    @pytest.mark.parametrize(("kind", "information"), [("gaussian", 1.0), ("laplace", 2.0)])
    def test_it_finds_the_true_score(self, kind, information, rng):
        """``s`` for a Gaussian, ``sqrt(2) sign(s)`` for a Laplace variable: most of the Fisher information."""
        S = draw(kind, 50_000, rng)[:, None]
        fitted = ClippedScore.fit(S)
        _, slope = fitted(S)
        assert 0.8 * information < np.mean(slope) < 1.05 * information
        s = np.array([[1.5]])
        exact = {"gaussian": 1.5, "laplace": np.sqrt(2)}[kind]
        assert fitted(s)[0][0, 0] == pytest.approx(exact, rel=0.15)

    def test_signals_that_are_mostly_zero(self, rng):
        S = np.where(rng.random((1000, 2)) < 0.02, 5.0, 0.0)
        S[:, 1] = 0  # and one that never varies
        fitted = ClippedScore.fit(S[:, :1])
        assert np.all(np.isfinite(fitted.coefficients))
        assert np.all(fitted.knots > 0)

    def test_in_single_precision(self, rng):
        S = rng.laplace(size=(2000, 3)).astype(np.float32)
        one, other = ClippedScore.fit(S), ClippedScore.fit(S.astype(float))
        np.testing.assert_allclose(one.coefficients, other.coefficients, rtol=0.02, atol=0.02)
        assert one(S)[0].dtype == np.float32


class TestFree:
    def test_the_direction_solves_its_equations(self, rng):
        """``slope_i D_ij + D_ji = cross_ij``, where two signals are not both Gaussian."""
        n = 5
        cross, slope = rng.standard_normal((n, n)), rng.uniform(1.2, 3, n)
        D = free_direction(cross, slope)
        expected = slope[:, None] * D + D.T
        off = ~np.eye(n, dtype=bool)
        np.testing.assert_allclose(expected[off], cross[off], atol=1e-12)
        np.testing.assert_array_equal(np.diagonal(D), 0)
        assert np.all(np.isfinite(free_direction(cross, np.ones(n))))

    def test_it_undoes_a_small_mixture(self, rng):
        """``W = Id + Delta`` without constraint: the step leaves a part of it, for signals of any kind."""
        n, m = 4, 60_000
        x = np.stack([draw(kind, m, rng) for kind in ("laplace", "sparse", "laplace", "sparse")], axis=1)
        Delta = 0.03 * rng.standard_normal((n, n))
        np.fill_diagonal(Delta, 0)
        W = unit(np.eye(n) + Delta)
        S = x @ W.T
        S /= np.std(S, axis=0)
        D = free_direction(*statistics(chunks_of(S), (np.eye(n), ClippedScore.fit(S)))[0].of(None))
        assert np.linalg.norm(D - Delta) < 0.4 * np.linalg.norm(Delta)

    @pytest.mark.parametrize("supports", ["independent", "blocks", "markov"])
    def test_the_truth_is_nearly_a_fixed_point(self, supports, seed):
        """Up to the accuracy of the samples: signs that are independent make it a solution, whatever the supports."""
        n, m = 6, 20_000
        options = {"supports": supports, "coefficients": "laplace", "group": 3, "dictionary": np.eye(n)}
        data = nice_samples(m, n, **options, random_state=seed)
        S = data.samples / np.std(data.samples, axis=0)
        D = free_direction(*statistics(chunks_of(S), (np.eye(n), ClippedScore.fit(S)))[0].of(None))
        assert np.max(np.abs(D)) < 6 / np.sqrt(m)

    def test_steps_are_not_too_long(self, rng):
        W = unit(rng.standard_normal((4, 4)))
        for size in (1e-3, 1e3):
            D = rng.standard_normal((4, 4))
            D *= size / np.linalg.norm(D, 2)
            step = free_step(W, D)
            np.testing.assert_allclose(np.linalg.norm(step, axis=1), 1, atol=1e-12)
            raw = W - min(1, LONGEST / size) * D @ W
            np.testing.assert_allclose(step, unit(raw), atol=1e-12)

    def test_it_beats_the_orthogonal_stage(self, seed):
        """Which inherits the error of the covariance."""
        n, m = 6, 8000
        data = nice_samples(m, n, coefficients="laplace", p=0.2, dictionary="orthonormal", snr=25, random_state=seed)
        chunks = chunks_of(data.samples)
        C = data.samples.T @ data.samples / m
        values, V = np.linalg.eigh(C)
        forward = V / np.sqrt(values)
        truth = unit(data.dictionary @ forward)
        start = np.linalg.qr(truth.T)[0].T
        (W,), _, _ = iterated(partial(statistics, chunks), forward, 20, orthogonal(start))
        score = ClippedScore.fit(data.samples @ forward @ W.T)
        (better,), (means,), passes = iterated(partial(statistics, chunks), forward, 20, free(W, score))
        assert passes < 20
        # Both at once: as many passes as the slower needs, and nobody is disturbed.
        both = iterated(partial(statistics, chunks), forward, 20, orthogonal(start), free(W, score))
        assert passes <= both[2] < 20
        np.testing.assert_allclose(both[0][0], W, atol=1e-3)
        np.testing.assert_allclose(both[0][1], better, atol=1e-3)
        assert np.linalg.norm(sines(atoms_of(better), truth)) < 0.5 * np.linalg.norm(sines(atoms_of(W), truth))
        # The halves tell how far: their distance, over two, estimates the error of the whole.
        halves = half_atoms(better, [free_direction(*means.of(h)) for h in (0, 1)])
        told, error = (np.sqrt(np.mean(x**2)) for x in (sines(*halves) / 2, sines(atoms_of(better), truth)))
        assert 0.4 < told / error < 2.5


class TestPieces:
    def test_sines(self, rng):
        A = unit(rng.standard_normal((5, 4)))
        np.testing.assert_allclose(sines(A, A), 0, atol=1e-15)
        np.testing.assert_allclose(sines(A, -A), 0, atol=1e-15)
        np.testing.assert_allclose(sines(tilted(A, 0.64, rng), A), 0.6)
        np.testing.assert_allclose(sines(tilted(A, 1 - 1e-14, rng), A), 1e-7, rtol=1e-2)  # where cosines are blind

    def test_atoms_are_orthogonal_to_the_other_rows(self, rng):
        W = rng.standard_normal((5, 5))
        A = atoms_of(W)
        np.testing.assert_allclose(np.linalg.norm(A, axis=1), 1)
        products = W @ A.T
        np.testing.assert_allclose(products, np.diag(np.diagonal(products)), atol=1e-9 * np.max(np.abs(products)))
        Q = random_orthonormal(5, 5, rng)
        np.testing.assert_allclose(atoms_of(Q), Q, atol=1e-12)

    def test_half_atoms_are_those_of_a_step(self, rng):
        W, D = random_orthonormal(4, 4, rng), 0.1 * rng.standard_normal((4, 4))
        one, other = half_atoms(W, [D, 0 * D])
        np.testing.assert_allclose(one, atoms_of((np.eye(4) - D) @ W), atol=1e-12)
        np.testing.assert_allclose(other, W, atol=1e-12)

    def test_contrast(self, rng):
        exact = integrate.quad(lambda s: stats.norm.pdf(s) * np.log(np.cosh(s)), -30, 30, epsabs=1e-12)[0]
        nodes = stats.norm.ppf((np.arange(20_000) + 0.5) / 20_000)[:, None]
        assert contrast(nodes) == pytest.approx(0, abs=1e-8)
        s = np.linspace(-40, 40, 5)[:, None]  # large values neither overflow nor lose
        assert contrast(s) == pytest.approx((np.mean(np.log(np.cosh(s))) - exact) ** 2)
        for kind in ("laplace", "uniform", "sparse"):
            x = np.stack([draw(kind, 20_000, rng) for _ in range(2)], axis=1)
            mixed = x @ np.array([[1, 1], [1, -1]]) / np.sqrt(2)
            assert contrast(x) > 1.5 * contrast(mixed)  # mixtures are closer to Gaussian
            assert contrast(-x) == pytest.approx(contrast(x))

    def test_pair_moments(self, rng):
        rows, w = rng.laplace(size=(1000, 3)), rng.uniform(0, 2, 1000)
        U = rng.standard_normal((3, 2))
        squares = (rows @ U) ** 2
        for found, v in (
            (pair_moments(chunks_of(rows), U), np.full(1000, 1e-3)),
            (pair_moments(chunks_of(rows, w), U), w / w.sum()),
        ):
            for i, j in itertools.product(range(2), repeat=2):
                expected = v @ (squares[:, i] * squares[:, j]) / ((v @ squares[:, i]) * (v @ squares[:, j]))
                assert found[i, j] == pytest.approx(expected, rel=1e-10)
        longer = pair_moments(chunks_of(rows), U * [1e-3, 20])  # the lengths of signals do not matter
        np.testing.assert_allclose(longer, pair_moments(chunks_of(rows), U), rtol=1e-10)
