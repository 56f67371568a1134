"""Sparse codes by pursuit, dictionaries by least squares, and the two in turn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import orthogonal_mp

from quartic.algorithms.sparse_code import fit, least_squares, most_atoms, pursue
from quartic.datasets import nice_samples


def unit(rng, n, d):
    D = rng.standard_normal((n, d))
    return D / np.linalg.norm(D, axis=1, keepdims=True)


def near(D, sine, rng):
    """Unit rows at about that sine from those of ``D``."""
    turned = D + sine * unit(rng, *D.shape)
    return turned / np.linalg.norm(turned, axis=1, keepdims=True)


def worst(D, A):
    """The largest squared sine between the rows of two dictionaries in the same order."""
    inner = np.sum(D * A, axis=1, keepdims=True)
    return float(np.max(np.sum((D - inner * A) ** 2, axis=1)))


class TestPursue:
    @pytest.mark.parametrize("most", [1, 2, 5])
    def test_one_sample_at_a_time_by_scikit_learn(self, rng, most):
        D, Z = unit(rng, 20, 8), rng.standard_normal((30, 8))
        codes, residuals = pursue(Z, D, most, 0.0)
        np.testing.assert_allclose(codes, orthogonal_mp(D.T, Z.T, n_nonzero_coefs=most).reshape(20, -1).T, atol=1e-9)
        rest = np.linalg.norm(Z - codes @ D, axis=1) / np.linalg.norm(Z, axis=1)
        np.testing.assert_allclose(residuals, rest, atol=1e-9)

    def test_stops_at_the_tolerance(self, rng):
        D, Z = unit(rng, 20, 8), rng.standard_normal((200, 8))
        codes, residuals = pursue(Z, D, 6, 0.4)
        used = np.count_nonzero(codes, axis=1)
        assert np.all((residuals <= 0.4) | (used == 6))
        for k in range(1, 6):
            # With one atom less none was explained.
            fewer = pursue(Z[used == k + 1], D, k, 0.0)[1]
            assert np.all(fewer > 0.4)

    def test_zero_samples_and_repeated_atoms(self, rng):
        D = unit(rng, 4, 3)
        D[1] = D[0]
        codes, residuals = pursue(np.concatenate((np.zeros((2, 3)), 2 * D[:1])), D, 3, 1e-9)
        np.testing.assert_array_equal(codes[:2], 0)
        np.testing.assert_array_equal(residuals[:2], 0)
        np.testing.assert_allclose(codes[2] @ D, 2 * D[0], atol=1e-7)

    def test_units_do_not_matter(self, rng):
        D, Z = unit(rng, 12, 6), rng.standard_normal((50, 6))
        one, two = pursue(Z, D, 3, 0.2), pursue(1e-6 * Z, D, 3, 0.2)
        np.testing.assert_allclose(two[0], 1e-6 * one[0], rtol=1e-9)
        np.testing.assert_allclose(two[1], one[1], rtol=1e-9)

    def test_most_atoms(self):
        assert [most_atoms(d) for d in (1, 8, 16, 33)] == [2, 2, 4, 8]


class TestLeastSquares:
    def test_the_dictionary_and_the_offset_of_given_codes(self, rng):
        D, offset = unit(rng, 9, 5), rng.standard_normal(5)
        codes = rng.standard_normal((100, 9)) * (rng.uniform(size=(100, 9)) < 0.3)
        found, where = least_squares(codes @ D + offset, codes, unit(rng, 9, 5))
        np.testing.assert_allclose(found, D, atol=1e-9)
        np.testing.assert_allclose(where, offset, atol=1e-9)

    def test_unused_atoms_stay(self, rng):
        D, old = unit(rng, 6, 4), unit(rng, 6, 4)
        codes = rng.standard_normal((60, 6))
        codes[:, 2] = 0
        found, _ = least_squares(codes @ D, codes, old)
        np.testing.assert_allclose(found[2], old[2], atol=1e-6)
        np.testing.assert_allclose(np.delete(found, 2, axis=0), np.delete(D, 2, axis=0), atol=1e-6)


class TestFit:
    @pytest.mark.parametrize("coefficients", ["sign", "gaussian"])
    def test_exactly_sparse_samples_have_an_exact_dictionary(self, seed, coefficients):
        data = nice_samples(4000, 24, 12, p=0.06, coefficients=coefficients, random_state=seed)
        rng = np.random.default_rng(seed)
        shift = 0.1 * rng.standard_normal(12)  # the samples are sparse about another point than their mean
        found = fit(data.samples + shift, near(data.components, 0.2, rng))
        assert worst(found.atoms, data.components) < 1e-20
        np.testing.assert_allclose(found.offset, shift, atol=1e-9)
        assert found.residual < 1e-12
        assert found.explained > 0.5

    def test_noise_ends_it_early_and_does_no_harm(self, seed):
        data = nice_samples(6000, 24, 12, p=0.06, snr=20, random_state=seed)
        start = near(data.components, 0.2, np.random.default_rng(seed))
        found = fit(data.samples, start)
        assert worst(found.atoms, data.components) < worst(start, data.components) / 4
        assert found.tolerance > 0.01

    def test_samples_that_are_not_sparse_leave_it(self, rng):
        start = unit(rng, 40, 20)
        found = fit(rng.standard_normal((2000, 20)), start)
        assert found.rounds == 0
        np.testing.assert_array_equal(found.atoms, start)

    def test_a_part_of_the_samples_is_enough(self, seed):
        """Half have few atoms, half far too many."""
        sparse, dense = (nice_samples(3000, 24, 12, p=p, random_state=seed) for p in (0.06, 0.5))
        Z = np.concatenate((sparse.samples, dense.codes @ sparse.dictionary))
        found = fit(Z, near(sparse.components, 0.15, np.random.default_rng(seed)))
        assert worst(found.atoms, sparse.components) < 1e-16
