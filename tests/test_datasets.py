"""Planted tensors: orthonormal components, and errors of the norm and the structure that their names promise."""

import itertools

import numpy as np
import pytest

from quartic import PackedTensor
from quartic._arrays import pack_rank_one, packed_dim, unpack
from quartic.datasets import ERRORS, planted_tensor, random_orthonormal

EPS = 0.3


@pytest.fixture(params=ERRORS)
def error(request):
    return request.param


def dense(M, d):
    """A packed matrix ``(N, N)`` as ``(d, d, d, d)``."""
    return unpack(unpack(M).reshape(-1, d * d)).reshape(d, d, d, d)


def spectrum(p):
    return np.linalg.eigvalsh(p.error)


class TestEveryFamily:
    @pytest.mark.parametrize(("d", "n"), [(1, 1), (2, 1), (2, 2), (3, 2), (7, 3), (8, 8)])
    def test_the_norm_is_eps(self, seed, error, d, n):
        p = planted_tensor(d, n, EPS, error=error, random_state=seed)
        assert np.linalg.norm(p.error, 2) == pytest.approx(EPS, rel=1e-12)
        flattening = dense(p.error, d).reshape(d * d, d * d)
        assert np.linalg.norm(flattening, 2) == pytest.approx(EPS, rel=1e-12)

    def test_the_tensor_is_signal_plus_error(self, seed, error):
        w = np.array([3.0, 1.0, 2.0])
        p = planted_tensor(5, 3, EPS, error=error, weights=w, random_state=seed)
        A = p.components
        np.testing.assert_allclose(A @ A.T, np.eye(3), atol=1e-12)
        np.testing.assert_array_equal(p.weights, w)
        signal = np.einsum("k,ka,kb,kc,kd->abcd", w, A, A, A, A)
        np.testing.assert_allclose(p.tensor, signal + dense(p.error, 5), atol=1e-12)
        np.testing.assert_allclose(PackedTensor(p.packed).to_dense(), p.tensor, atol=1e-12)

    def test_pair_symmetric(self, seed, error):
        T = planted_tensor(5, 3, EPS, error=error, random_state=seed).tensor
        for axes in [(1, 0, 2, 3), (0, 1, 3, 2), (2, 3, 0, 1)]:
            np.testing.assert_allclose(T, T.transpose(axes), atol=1e-13)
        assert PackedTensor.from_dense(T).asymmetry == 0.0

    def test_no_error_for_eps_zero(self, seed, error):
        p = planted_tensor(5, 3, 0.0, error=error, random_state=seed)
        assert not p.error.any()
        B = pack_rank_one(p.components)
        np.testing.assert_allclose(p.packed, B @ B.T, atol=1e-14)

    def test_a_seed_gives_the_same_tensor_again(self, seed, error):
        one, other, another = (planted_tensor(5, 3, EPS, error=error, random_state=s) for s in (seed, seed, seed + 1))
        np.testing.assert_array_equal(one.packed, other.packed)
        np.testing.assert_array_equal(one.components, other.components)
        assert not np.allclose(one.components, another.components)

    def test_the_components_do_not_depend_on_eps_or_family(self, seed, error):
        plain = planted_tensor(5, 3, 0.1, random_state=seed)
        np.testing.assert_array_equal(
            planted_tensor(5, 3, EPS, error=error, random_state=seed).components, plain.components
        )

    def test_a_generator_is_drawn_from(self, rng, error):
        one, other = (planted_tensor(5, 3, EPS, error=error, random_state=rng) for _ in range(2))
        assert not np.allclose(one.components, other.components)


class TestStructure:
    def plant(self, seed, error, d=8, n=4):
        return planted_tensor(d, n, EPS, error=error, random_state=seed)

    def test_gaussian_fills_the_spectrum_on_both_sides(self, seed):
        values = spectrum(self.plant(seed, "gaussian", d=16))
        assert np.min(values) < -0.8 * EPS
        assert np.max(values) > 0.8 * EPS
        assert np.linalg.matrix_rank(self.plant(seed, "gaussian").error) == packed_dim(8)

    def test_gaussian_symmetric_under_all_permutations(self, seed):
        E = dense(self.plant(seed, "gaussian-symmetric").error, 8)
        for axes in itertools.permutations(range(4)):
            np.testing.assert_allclose(E, E.transpose(axes), atol=1e-13)
        plain = dense(self.plant(seed, "gaussian").error, 8)
        assert np.abs(plain - plain.transpose(0, 2, 1, 3)).max() > 1e-3

    def test_low_rank(self, seed):
        values = np.abs(spectrum(self.plant(seed, "low-rank")))
        assert np.count_nonzero(values > 1e-10) == 4
        np.testing.assert_allclose(np.sort(values)[-4:], EPS, rtol=1e-10)

    def test_low_rank_where_there_is_little_room(self, seed):
        assert np.count_nonzero(np.abs(spectrum(self.plant(seed, "low-rank", 1, 1))) > 1e-10) == 1

    def test_identity(self, seed):
        np.testing.assert_allclose(self.plant(seed, "identity").error, EPS * np.eye(36), atol=1e-15)

    def test_covariance(self, seed):
        E = dense(self.plant(seed, "covariance").error, 8)
        np.testing.assert_allclose(E, EPS / 8 * np.einsum("ab,cd->abcd", np.eye(8), np.eye(8)), atol=1e-14)

    @pytest.mark.parametrize(("n", "cancelled"), [(1, 1), (4, 1), (20, 2), (25, 2)])
    def test_cancel_a_tenth_of_the_components(self, seed, n, cancelled):
        p = self.plant(seed, "cancel", d=25, n=n)
        B = pack_rank_one(p.components)
        values = np.diagonal(B.T @ p.error @ B)
        assert np.count_nonzero(np.abs(values + EPS) < 1e-10) == cancelled
        assert np.count_nonzero(np.abs(values) < 1e-10) == n - cancelled
        assert np.linalg.matrix_rank(p.error) == cancelled

    def test_basis(self, seed):
        p = self.plant(seed, "basis")
        values, vectors = np.linalg.eigh(p.error)
        np.testing.assert_allclose(values[:-8], 0, atol=1e-12)
        np.testing.assert_allclose(values[-8:], EPS, rtol=1e-10)
        # The sum of the squares of an orthonormal basis is the identity, and it is not the planted basis.
        one = vectors[:, -8:] @ (vectors[:, -8:].T @ pack_rank_one(np.eye(8)).sum(axis=1))
        np.testing.assert_allclose(unpack(one[:, None])[0], np.eye(8), atol=1e-10)
        B = pack_rank_one(p.components)
        assert np.max(np.diagonal(B.T @ p.error @ B)) < 0.9 * EPS

    @pytest.mark.parametrize(("d", "sizes"), [(8, [2, 2, 2, 2]), (10, [3, 3, 2, 2]), (3, [1, 1, 1])])
    def test_trap(self, seed, d, sizes):
        values = spectrum(self.plant(seed, "trap", d=d, n=2))
        full, spurious = sum(packed_dim(k) for k in sizes), sum(sizes)
        # Twice on the squares of the spurious basis, once on the rest of each Sym2, nothing between the subspaces.
        np.testing.assert_allclose(np.sort(values)[-spurious:], EPS, rtol=1e-10)
        np.testing.assert_allclose(np.sort(values)[-full:-spurious], EPS / 2, rtol=1e-10)
        np.testing.assert_allclose(np.sort(values)[:-full], 0, atol=1e-12)


class TestRandomOrthonormal:
    @pytest.mark.parametrize(("d", "n"), [(1, 1), (5, 2), (6, 6)])
    def test_rows(self, rng, d, n):
        A = random_orthonormal(d, n, rng)
        assert A.shape == (n, d)
        np.testing.assert_allclose(A @ A.T, np.eye(n), atol=1e-12)

    def test_uniform(self, seed):
        """Entries have mean 0, variance 1/d and no correlation: five standard deviations of 1000 draws."""
        rng = np.random.default_rng(seed)
        rows = np.array([random_orthonormal(3, 3, rng) for _ in range(1000)]).reshape(1000, 9)
        spread = 5 / np.sqrt(1000)
        assert np.abs(rows.mean(axis=0)).max() < spread
        assert np.abs(rows.T @ rows / 1000 - np.eye(9) / 3).max() < spread


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, r"n must lie between 1 and d = 5; got 0"),
        ({"n": 6}, r"n must lie between 1 and d = 5; got 6"),
        ({"eps": -0.1}, r"eps must be finite and not negative; got -0.1"),
        ({"eps": float("nan")}, r"eps must be finite and not negative; got nan"),
        ({"eps": float("inf")}, r"eps must be finite and not negative; got inf"),
        ({"error": "none"}, r"error must be one of gaussian, .*, trap; got 'none'"),
        ({"weights": [1.0, 2.0]}, r"weights must have shape \(3,\); got \(2,\)"),
        ({"weights": [1.0, 2.0, 0.0]}, r"weights must be positive and finite"),
        ({"weights": [1.0, np.inf, 1.0]}, r"weights must be positive and finite"),
        ({"random_state": "x"}, r"random_state must be .*; got 'x'"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        planted_tensor(**({"d": 5, "n": 3, "eps": 0.1} | arguments))
