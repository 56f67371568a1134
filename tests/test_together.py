"""Which atoms belong together: correlations of energies, overlaps at small norms, groups, contrasts in planes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from test_temper import block, moments_of, signed

from quartic.algorithms.together import (
    COOLING,
    DEVIATION,
    IN_PLANE,
    TOGETHER,
    contrasts,
    cooled,
    correlations_of_pairs,
    energy_correlations,
    groups,
    heavy,
    least_correlation,
    overlaps,
    tau_of_pairs,
    together,
)
from quartic.datasets import nice_samples, random_orthonormal

CLEAR = 0.6  # of the largest contrast: what two atoms exceed, and mixtures of three do not
CONFIRMED = 3.0  # standard errors


def correlation(a, b, w):
    """Of two variables under weights."""
    cov = np.cov(a, b, aweights=w)
    return cov[0, 1] / np.sqrt(cov[0, 0] * cov[1, 1])


def signals(rng, m=400, n=4):
    """Heavy-tailed, of different sizes, with a common factor in the magnitudes of all but the last."""
    S = rng.laplace(size=(m, n)) * rng.uniform(0.5, 3, n)
    S[:, :-1] *= 1 + rng.exponential(size=(m, 1))
    return S, rng.uniform(0.2, 2, m)


class TestEnergyCorrelations:
    def test_cooled(self, rng):
        S, _ = signals(rng)
        S[:, 1] = 0
        E = cooled(S)
        for i in (0, 2, 3):
            beta = COOLING / np.quantile(S[:, i] ** 2, 0.99)
            np.testing.assert_allclose(E[:, i], np.exp(-beta * S[:, i] ** 2))
        np.testing.assert_array_equal(E[:, 1], 1)
        np.testing.assert_allclose(cooled(1e3 * S), E, rtol=1e-9)
        assert cooled(S.astype(np.float32)).dtype == np.float32

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_literally(self, rng, dtype):
        S, w = signals(rng)
        found = energy_correlations(S.astype(dtype), w)
        tolerance = 1e-9 if dtype == np.float64 else 1e-4
        for i, j in itertools.product(range(4), repeat=2):
            expected = 0 if i == j else correlation(S[:, i] ** 2, S[:, j] ** 2, w)
            assert found[i, j] == pytest.approx(expected, abs=tolerance)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_overlaps_literally(self, rng, dtype):
        S, w = signals(rng)
        found = overlaps(S.astype(dtype), w)
        E, squares = cooled(S), S**2
        silent = squares < IN_PLANE * np.quantile(squares, 0.99, axis=0)
        for i, j in itertools.product(range(4), repeat=2):
            a, b = squares[:, i], squares[:, j]
            v = np.where(silent[:, i] & silent[:, j], 0, w * E[:, i] * E[:, j])
            expected = 0 if i == j else 1.5 * (2 * v @ (a * b) / (v @ (a**2 + b**2)) - 1 / 3)
            assert found[i, j] == pytest.approx(expected, abs=1e-9 if dtype == np.float64 else 1e-4)

    def test_together_is_the_larger(self, rng):
        S, w = signals(rng)
        both = energy_correlations(S, w), overlaps(S, w)
        sparse = heavy(S, w)
        found = together(S, w)
        for i, j in itertools.product(range(4), repeat=2):
            assert found[i, j] == max(both[0][i, j], both[1][i, j] if sparse[i] and sparse[j] else 0)

    def test_heavy(self, rng):
        S = np.stack([rng.laplace(size=20000), rng.standard_normal(20000), rng.choice([-1.0, 1.0], 20000)], axis=1)
        np.testing.assert_array_equal(heavy(S, np.ones(20000)), [True, False, False])
        w = np.where(np.abs(S[:, 0]) < 0.5, 1.0, 0.0)  # no tails are left
        assert not heavy(S, w)[0]

    def test_a_silent_signal_and_constant_energy(self, rng):
        S = rng.choice([-1.0, 1.0], (100, 3))
        S[:, 1] = 0
        S[:, 2] = rng.laplace(size=100)
        np.testing.assert_allclose(energy_correlations(S, np.ones(100)), 0, atol=1e-6)
        assert overlaps(S, np.ones(100))[0, 1] == -0.5  # never both

    def test_one_signal(self, rng):
        S = rng.laplace(size=(50, 1))
        np.testing.assert_array_equal(together(S, np.ones(50)), [[0]])

    def test_mixtures_overlap_where_norms_are_small_and_atoms_do_not(self, seed):
        """Exactly: all samples of a pair of sign coefficients, on the axes and turned by 45 degrees."""
        supports, probability = block(2, 0.1, 0.5)
        x, w = signed(supports, probability)
        turned = x @ np.array([[1, 1], [1, -1]]) / np.sqrt(2)
        assert energy_correlations(x, w)[0, 1] > 0.4
        # Each row once, so that the quantile sees the active values; their probabilities are the weights.
        assert overlaps(x, w)[0, 1] < -0.4
        assert overlaps(turned, w)[0, 1] > 0.8

    def test_enough_samples_to_call_it_a_correlation(self):
        assert least_correlation(1e9) == TOGETHER
        assert least_correlation(400) == pytest.approx(DEVIATION / 20)
        assert least_correlation(0) == DEVIATION  # never: a correlation is at most 1


class TestPairs:
    def test_correlations_are_those_of_the_samples(self, rng):
        S, w = signals(rng)
        v = w / w.sum()
        S = S / np.sqrt(v @ S**2)  # of variance 1
        np.testing.assert_allclose(correlations_of_pairs(moments_of(S, w)), energy_correlations(S, w), atol=1e-9)

    def test_exactly_for_blocks(self):
        """Supports of sign coefficients: ``E x_i^2 x_j^2 = p c``, so correlated by ``(c - p) / (1 - p)``."""
        p, c = 0.1, 0.6
        supports, probability = block(3, p, c)
        X = moments_of(supports / np.sqrt(p), probability)
        np.testing.assert_allclose(correlations_of_pairs(X), np.where(np.eye(3), 0, (c - p) / (1 - p)), atol=1e-12)
        assert tau_of_pairs(X) == pytest.approx(c)

    @pytest.mark.parametrize("coefficients", ["sign", "gaussian", "laplace"])
    @pytest.mark.parametrize("supports", ["independent", "blocks", "markov", "hubs", "exclusive"])
    def test_tau_is_that_of_the_model(self, seed, supports, coefficients):
        frequencies = np.random.default_rng(seed).uniform(0.5, 1, 9)
        options = {} if supports == "exclusive" else {"frequencies": frequencies}
        data = nice_samples(
            20_000, 9, supports=supports, coefficients=coefficients, group=4, random_state=seed, **options
        )
        assert tau_of_pairs(data.moments) == pytest.approx(data.tau)
        scale = np.sqrt(np.diagonal(data.pair))
        assert tau_of_pairs(data.moments / scale / scale[:, None]) == pytest.approx(data.tau)  # units do not matter
        assert tau_of_pairs(moments_of(data.codes, np.ones(20_000))) == pytest.approx(data.tau, abs=0.06)

    def test_tau_literally(self, rng):
        S, w = signals(rng)
        X = moments_of(S, w)
        expected = max(X[i, j] / np.sqrt(X[i, i] * X[j, j]) for i in range(4) for j in range(4) if i != j)
        assert tau_of_pairs(X) == pytest.approx(expected)

    def test_signals_of_constant_energy(self):
        """Signs: no correlation can be told, and tau is 1."""
        np.testing.assert_array_equal(correlations_of_pairs(np.ones((3, 3))), 0)
        assert tau_of_pairs(np.ones((3, 3))) == 1

    def test_one_atom(self):
        X = np.array([[5.0]])
        np.testing.assert_array_equal(correlations_of_pairs(X), [[0]])
        assert tau_of_pairs(X) == 0 == nice_samples(1, 1, random_state=0).tau


def as_sets(found):
    return {frozenset(group.tolist()) for group in found}


class TestGroups:
    @pytest.mark.parametrize("sizes", [[1] * 6, [6], [2, 4], [3, 1, 2, 5, 1]])
    def test_blocks_in_any_order(self, rng, sizes):
        label = np.repeat(np.arange(len(sizes)), sizes)
        rng.shuffle(label)
        n = label.size
        noise = rng.uniform(-0.05, 0.05, (n, n))
        R = np.where(label == label[:, None], 0.4, 0.0) + noise + noise.T
        np.fill_diagonal(R, 0)
        found = groups(R, TOGETHER)
        assert as_sets(found) == {frozenset(np.flatnonzero(label == k).tolist()) for k in range(len(sizes))}
        assert sorted(np.concatenate(found).tolist()) == list(range(n))

    def test_correlations_below_the_least_bind_nothing(self):
        R = np.full((4, 4), 0.2)
        assert len(groups(R, 0.21)) == 4
        assert len(groups(R, 0.19)) == 1

    def test_one_strong_pair_does_not_bind_two_groups(self):
        """The average counts: a single pair between groups may be large by chance."""
        R = np.kron(np.eye(2), np.full((4, 4), 0.5))
        R[0, 4] = R[4, 0] = 0.3
        assert as_sets(groups(R, TOGETHER)) == {frozenset(range(4)), frozenset(range(4, 8))}

    @pytest.mark.parametrize("cooccurrence", [0.4, 0.8])
    def test_of_samples_even_in_wrong_axes(self, seed, cooccurrence):
        """Inside each group any rotation shows the same groups."""
        rng = np.random.default_rng(seed)
        data = nice_samples(5000, 12, supports="blocks", group=4, cooccurrence=cooccurrence, random_state=seed)
        S = data.codes.copy()
        for first in (0, 4, 8):
            S[:, first : first + 4] = S[:, first : first + 4] @ random_orthonormal(4, 4, rng)
        found = groups(together(S, np.ones(5000)), least_correlation(5000))
        assert as_sets(found) == {frozenset(range(k, k + 4)) for k in (0, 4, 8)}

    def test_negative_and_excessive_correlations(self):
        R = np.array([[0, 1 + 1e-12, -0.9], [1 + 1e-12, 0, -1e-3], [-0.9, -1e-3, 0]])
        assert as_sets(groups(R, TOGETHER)) == {frozenset({0, 1}), frozenset({2})}

    def test_one_atom(self):
        (only,) = groups(np.zeros((1, 1)), TOGETHER)
        np.testing.assert_array_equal(only, [0])


TURN = np.array([[1, 1], [1, -1]]) / np.sqrt(2)


class TestContrasts:
    @pytest.mark.parametrize("share", [0.0, 0.6])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_literally(self, rng, dtype, share):
        """The mean of ``w q`` over its standard error about zero, pair by pair."""
        S, w = signals(rng)
        found = contrasts(S.astype(dtype), w, share)
        E, squares = cooled(S), S**2
        silent = squares < IN_PLANE * np.quantile(squares, 0.99, axis=0)
        for i, j in itertools.permutations(range(4), 2):
            a, b = squares[:, i], squares[:, j]
            v = np.where(silent[:, i] & silent[:, j], 0, w * E[:, i] * E[:, j])
            q = v * ((1 - share) * (a * a + b * b) - 6 * a * b)
            expected = np.mean(q) / np.sqrt(np.mean(q * q) / q.size)
            assert found[i, j] == pytest.approx(expected, rel=1e-9 if dtype == np.float64 else 1e-3, abs=1e-3)

    @pytest.mark.parametrize("snr", [None, 10])
    @pytest.mark.parametrize("cooccurrence", [0.4, 0.6, 0.8])
    def test_turned_by_half_a_right_angle_a_pair_has_the_opposite_sign(self, seed, cooccurrence, snr):
        options = {"supports": "blocks", "group": 2, "cooccurrence": cooccurrence, "snr": snr}
        S = nice_samples(8000, 2, dictionary=np.eye(2), **options, random_state=seed).samples
        assert contrasts(S, np.ones(8000))[0, 1] > 5
        assert contrasts(S @ TURN, np.ones(8000))[0, 1] < -5

    @pytest.mark.parametrize("snr", [None, 10])
    @pytest.mark.parametrize("cooccurrence", [0.4, 0.6, 0.8])
    def test_a_mixture_of_three_has_a_smaller_share(self, seed, cooccurrence, snr):
        """``(a + b + c) / sqrt(3)`` with what is beside it in their space, next to the atoms themselves."""
        options = {"supports": "blocks", "group": 3, "cooccurrence": cooccurrence, "snr": snr}
        S = nice_samples(8000, 3, dictionary=np.eye(3), **options, random_state=seed).samples
        w = np.ones(8000)
        assert np.min(contrasts(S, w, CLEAR)[~np.eye(3, dtype=bool)]) > CONFIRMED
        mixture = np.linalg.qr(np.array([[1, 1, 1], [1, -1, 0], [1, 1, -2]]).T)[0]
        assert np.min(contrasts(S @ mixture, w, CLEAR)[0, 1:]) < 0

    def test_exactly_the_opposite(self, rng):
        """For samples whose directions are all multiples of 45 degrees: cooled by the same weights before and after."""
        angle = np.repeat(np.arange(8), 50) * np.pi / 4
        S = np.tile(rng.uniform(0.5, 1, 50), 8)[:, None] * np.stack((np.cos(angle), np.sin(angle)), axis=1)
        w = rng.uniform(0, 1, 400)
        assert contrasts(S @ TURN, w)[0, 1] == pytest.approx(-contrasts(S, w)[0, 1], rel=1e-9)
        w[np.arange(400) // 50 % 2 == 1] = 0  # none but those on the axes
        assert contrasts(S, w)[0, 1] > 5

    def test_gaussian_signals_have_no_clear_contrast(self, rng):
        """Samples in which both are silent are those in a square, not a disc: hence a little contrast even so."""
        S = rng.standard_normal((4000, 8))
        found = contrasts(S, np.ones(4000), CLEAR)[~np.eye(8, dtype=bool)]
        assert np.max(found) < -5

    def test_units_do_not_matter(self, rng):
        S, w = signals(rng)
        np.testing.assert_allclose(contrasts(1e-3 * S, 50 * w), contrasts(S, w), rtol=1e-6)

    def test_silent_signals(self):
        np.testing.assert_array_equal(contrasts(np.zeros((20, 3)), np.ones(20)), 0)
