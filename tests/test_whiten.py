"""Whitening: there and back, units of any size, and how many directions vary or stand above a floor of noise."""

from __future__ import annotations

import numpy as np
import pytest

from quartic.algorithms.whiten import GAP, LEAST, MANY, above_floor, whiten
from quartic.datasets import random_orthonormal
from quartic.moments import Covariance

MANY_SAMPLES = 1e9


def covariance(values, rng):
    """With the given eigenvalues, in random directions."""
    d = len(values)
    Q = random_orthonormal(d, d, rng)
    return (Q.T * values) @ Q


def check(C, white, rank, rtol=1e-8):
    """The maps belong together, and whiten ``C``."""
    d = C.shape[0]
    assert white.forward.shape == (d, rank)
    assert white.backward.shape == (rank, d)
    np.testing.assert_allclose(white.forward.T @ C @ white.forward, np.eye(rank), atol=rtol)
    np.testing.assert_allclose(white.backward @ white.forward, np.eye(rank), atol=rtol)
    projector = white.forward @ white.backward
    np.testing.assert_allclose(projector @ projector, projector, atol=rtol * max(1, np.max(np.abs(projector))))
    np.testing.assert_allclose(white.spectrum, np.linalg.eigvalsh(C)[::-1], atol=1e-12 * np.max(np.abs(C)))
    return projector


class TestMaps:
    @pytest.mark.parametrize("d", [1, 2, 5, 20])
    def test_there_and_back(self, rng, d):
        C = covariance(rng.uniform(0.5, 1.5, d), rng)
        white = whiten(C, 1e4)
        np.testing.assert_allclose(check(C, white, d), np.eye(d), atol=1e-8)
        np.testing.assert_allclose(white.backward.T @ white.backward, C, atol=1e-10)
        assert white.reason == "every direction varies"

    def test_identity(self):
        white = whiten(np.eye(4), 1e4)
        check(np.eye(4), white, 4, 1e-12)
        np.testing.assert_allclose(white.forward @ white.forward.T, np.eye(4), atol=1e-12)

    @pytest.mark.parametrize("condition", [1e4, 1e8, 1e12])
    def test_ill_conditioned(self, rng, condition):
        """Of the covariance: up to its square root in the dictionary."""
        C = covariance(np.geomspace(1, 1 / condition, 6), rng)
        white = whiten(C, MANY_SAMPLES)
        np.testing.assert_allclose(check(C, white, 6, 1e-15 * condition + 1e-9), np.eye(6), atol=1e-6)

    @pytest.mark.parametrize("spread", [1e3, 1e8, 1e100])
    def test_units_of_any_size(self, rng, spread):
        """Metres beside nanometres: rank is a matter of correlations, which do not know them."""
        C = covariance(rng.uniform(0.5, 1.5, 5), rng)
        units = np.geomspace(1, spread, 5)
        scaled = C * units * units[:, None]
        white = whiten(scaled, MANY_SAMPLES)
        assert white.forward.shape == (5, 5)
        assert white.reason == "every direction varies"
        np.testing.assert_allclose(white.backward @ white.forward, np.eye(5), atol=1e-10)
        np.testing.assert_allclose((white.backward / units).T @ (white.backward / units), C, atol=1e-10)

    @pytest.mark.parametrize("scale", [1e-300, 1e-100, 1e100, 1e300])
    def test_any_scale(self, rng, scale):
        C = scale * covariance(rng.uniform(0.5, 1.5, 4), rng)
        white = whiten(C, 1e4)
        assert white.forward.shape == (4, 4)
        np.testing.assert_allclose(white.backward @ white.forward, np.eye(4), atol=1e-10)


class TestRank:
    def test_of_a_dictionary_with_fewer_atoms_than_features(self, rng):
        A = rng.standard_normal((3, 8))
        white = whiten(A.T @ A, MANY_SAMPLES)
        projector = check(A.T @ A, white, 3)
        np.testing.assert_allclose(projector.T @ A.T, A.T, atol=1e-8)  # samples y' are taken to y' forward backward
        assert white.reason == "3 of 8 directions vary"

    def test_constant_and_duplicate_features(self, rng):
        Y = rng.standard_normal((1000, 4))
        Y = np.column_stack((Y, np.full(1000, 3.0), Y[:, 0], 1e6 * Y[:, 1], Y[:, 2] + Y[:, 3]))
        C = np.cov(Y.T, bias=True)
        white = whiten(C, 1000)
        assert white.forward.shape == (8, 4)
        assert white.reason == "4 of 8 directions vary"
        Z = (Y - Y.mean(axis=0)) @ white.forward
        np.testing.assert_allclose(Z.T @ Z / 1000, np.eye(4), atol=1e-8)
        size = np.max(np.abs(Y), axis=0)
        np.testing.assert_allclose((Z @ white.backward + Y.mean(axis=0)) / size, Y / size, atol=1e-8)

    def test_nothing_varies(self):
        white = whiten(np.zeros((3, 3)), 100)
        assert white.forward.shape == (3, 0)
        assert white.backward.shape == (0, 3)

    @pytest.mark.parametrize("offset", [0.0, 30.0, 1000.0])
    def test_rounding_of_the_samples_is_not_a_direction(self, rng, offset):
        """Rank 3, to float32: the rounding errors, those of the mean included, are no more directions."""
        Y = rng.standard_normal((2000, 3)) @ rng.standard_normal((3, 6)) + offset
        assert Covariance().update(Y).frame().dim == 3
        assert Covariance().update(Y.astype(np.float32)).frame().dim == 3

    def test_small_directions_of_single_precision_samples_are_kept(self, rng):
        """Far above their rounding: a condition number of 1e4 of the dictionary."""
        Y = (rng.standard_normal((5000, 4)) @ covariance([1.0, 1e-1, 1e-3, 1e-4], rng)).astype(np.float32)
        assert Covariance().update(Y).frame().dim == 4

    def test_a_dimension_that_is_given(self, rng):
        C = covariance([5.0, 4.0, 3.0, 2.0, 1.0], rng)
        white = whiten(C, 1e4, 2)
        check(C, white, 2)
        assert white.reason == "given"
        top = np.linalg.eigh(C)[1][:, 3:]
        np.testing.assert_allclose(white.forward @ white.backward, top @ top.T, atol=1e-10)

    @pytest.mark.parametrize("dim", [3, 5, 8])
    def test_no_more_than_vary(self, rng, dim):
        A = rng.standard_normal((3, 8))
        assert whiten(A.T @ A, 1e4, dim).forward.shape == (8, 3)


def empirical(values, m, rng):
    """Eigenvalues, descending, of the covariance of ``m`` Gaussian samples with the given variances."""
    Y = rng.standard_normal((m, len(values))) * np.sqrt(values)
    return np.linalg.eigvalsh(Y.T @ Y / m)[::-1]


class TestFloor:
    @pytest.mark.parametrize("m", [500, 2000, 20_000])
    @pytest.mark.parametrize("d", [5, 30])
    def test_isotropic_data_are_not_cut(self, rng, d, m):
        assert above_floor(empirical(np.ones(d), m, rng), m) == d

    @pytest.mark.parametrize("m", [500, 2000, 20_000])
    @pytest.mark.parametrize("signal", [3, 10])
    def test_directions_above_noise_are_found(self, rng, signal, m):
        """Variances of 5 to 20 above a floor of 1."""
        values = np.concatenate((np.geomspace(20, 5, signal), np.ones(20)))
        assert above_floor(empirical(values, m, rng), m) == signal

    def test_a_slope_is_no_floor(self, rng):
        """A random square dictionary: eigenvalues of any size, down to nearly zero."""
        for _ in range(20):
            A = rng.standard_normal((30, 30))
            assert above_floor(np.linalg.eigvalsh(A.T @ A)[::-1], MANY_SAMPLES) >= 28
        assert above_floor(np.geomspace(1, 1e-6, 20), MANY_SAMPLES) == 20

    def test_a_few_values_make_a_floor_and_fewer_do_not(self):
        assert above_floor(np.r_[9.0, 8.0, np.ones(LEAST)], MANY_SAMPLES) == 2
        assert above_floor(np.r_[9.0, 8.0, np.ones(LEAST - 1)], MANY_SAMPLES) == LEAST + 1

    def test_a_floor_lies_below_a_gap(self):
        for top, expected in ((10.0, 2), (1.01 * GAP, 2), (0.99 * GAP, 12)):
            assert above_floor(np.r_[top, top, np.ones(10)], MANY_SAMPLES) == expected

    def test_with_few_samples_none_is_looked_for(self, rng):
        values = np.r_[10.0, 9.0, np.ones(10)]
        assert above_floor(values, MANY * 12) == 2
        assert above_floor(values, MANY * 12 - 1) == 12

    @pytest.mark.parametrize("values", [[], [1.0], [2.0, 1.0], [9.0, 0.1, 0.1], [0.0] * 12])
    def test_few_values(self, values):
        assert above_floor(np.array(values), MANY_SAMPLES) == len(values)

    def test_whitening_cuts_there_unless_told_otherwise(self, rng):
        C = covariance(np.r_[9.0, 8.0, 7.0, np.ones(8)], rng)
        white = whiten(C, MANY_SAMPLES)
        check(C, white, 3)
        assert white.reason == "3 eigenvalues of the covariance stand above a floor of 8 equal ones"
        assert whiten(C, MANY_SAMPLES, 5).forward.shape == (11, 5)
        assert whiten(C, MANY_SAMPLES, 11).forward.shape == (11, 11)

    def test_noise_in_a_part_of_the_features_only(self, rng):
        """A floor and directions that do not vary at all: the former is looked for among the others."""
        values = np.r_[9.0, 8.0, 7.0, np.ones(8), np.zeros(3)]
        white = whiten(covariance(values, rng), MANY_SAMPLES)
        assert white.forward.shape == (14, 3)
        assert "floor of 8 equal ones" in white.reason
