"""Problem 5.2: the dictionary from a fourth moment that is given, on moments computed exactly from the model."""

import warnings

import numpy as np
import pytest

from quartic import DecompositionWarning, PackedTensor, dictionary_from_moment
from quartic._arrays import pack_rank_one, unpack
from quartic.certify.moments import has_rival, second_moments
from quartic.datasets import COEFFICIENTS, SUPPORTS, nice_samples, population_moment, random_orthonormal
from quartic.metrics import match

# Atoms that occur together are found, and not certified: see test_every_model.
pytestmark = pytest.mark.filterwarnings("ignore::quartic.DecompositionWarning")

D, N = 10, 6


def model(seed, n=N, d=D, **options):
    """A dictionary and the exact moments of its coefficients; the samples are not used."""
    options = {"supports": "blocks", "group": 3, "dictionary": "orthonormal"} | options
    if options["supports"] not in ("independent", "exclusive"):
        options = {"cooccurrence": 0.25} | options
    return nice_samples(10, n, d, random_state=seed, **options)


def moment(data):
    return population_moment(data.components, data.moments)


def quietly(*args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DecompositionWarning)
        return dictionary_from_moment(*args, **kwargs)


def truth(A, B):
    """Squared correlation of each row of ``B`` with the nearest of ``A``."""
    return np.max((B @ A.T) ** 2, axis=1)


def dense(T, d=D):
    return unpack(unpack(T).reshape(-1, d * d)).reshape(d, d, d, d)


class TestExact:
    @pytest.mark.parametrize("coefficients", COEFFICIENTS)
    @pytest.mark.parametrize("supports", SUPPORTS)
    @pytest.mark.parametrize("rank", [N, None])
    def test_every_model(self, seed, rank, supports, coefficients):
        data = model(seed, supports=supports, coefficients=coefficients)
        result = quietly(PackedTensor(moment(data)), rank, random_state=seed)
        assert result.rank == N
        assert match(data.components, result.components).found(1 - 1e-9) == N
        # Dependent atoms of one weight have a second reading, and neither is certified.
        X = data.moments
        m, k = np.diagonal(data.pair)[0], X[0, 0] - 3 * data.pair[0, 0] ** 2
        beside = X[~np.eye(N, dtype=bool)]
        rival = np.any(np.abs(beside - m * m) > 0.1 * abs(k)) or np.any(beside == 0)
        assert supports != "independent" or not rival
        assert result.status.code == ("uncertified" if rival else "complete")
        np.testing.assert_allclose(result.certificates, 0 if rival else 1, atol=1e-5)

    def test_turned_by_45_degrees_neither_reading_is_certified(self, seed):
        """A block of two beyond tau = 1/3 has the moment of another, in the axes of sums and differences."""
        A = random_orthonormal(2, 2, np.random.default_rng(seed))
        for tau in (0.2, 0.6):
            X = np.array([[1.0, tau], [tau, 1.0]])
            result = quietly(PackedTensor(population_moment(A, X)), 2, random_state=seed)
            assert not np.any(result.certified)

    def test_weights_that_differ_leave_one_reading(self):
        X = np.array([[1.0, 0.6], [0.6, 1.0]])
        assert np.all(has_rival(X, 0.0, white=False))
        assert not np.any(has_rival(X + np.diag([0.0, 0.5]), 0.0, white=False))
        assert np.all(has_rival(X + np.diag([0.0, 0.5]), 0.3, white=False))  # which an error of that size hides

    def test_second_moments_of_independent_atoms(self, rng):
        m = rng.uniform(0.1, 1.0, 5)
        np.testing.assert_allclose(second_moments(np.outer(m, m) + np.diag(rng.uniform(size=5))), m)
        assert second_moments(np.eye(2)) is None
        assert second_moments(np.eye(3)) is None  # never active together: nothing follows

    @pytest.mark.parametrize("n", [1, 2, D])
    def test_any_number(self, seed, n):
        data = model(seed, n, supports="independent")
        result = dictionary_from_moment(PackedTensor(moment(data)), n, random_state=seed)
        assert match(data.components, result.components).found(1 - 1e-9) == n

    def test_weights_are_fourth_moments(self, seed):
        data = model(seed)
        result = dictionary_from_moment(PackedTensor(moment(data)), N, random_state=seed)
        pairs = match(data.components, result.components)
        np.testing.assert_allclose(result.weights[pairs.columns], np.diagonal(data.moments), rtol=1e-6)
        assert np.all(np.diff(result.weights) <= 1e-12)

    def test_what_is_left_are_the_pair_terms(self, seed):
        data = model(seed)
        T = moment(data)
        result = dictionary_from_moment(PackedTensor(T), N, random_state=seed)
        B = pack_rank_one(result.components)
        assert result.eps == pytest.approx(np.linalg.norm(T - (B * result.weights) @ B.T, 2), rel=0.06)

    @pytest.mark.parametrize("rank", [N, None])
    def test_cleaned(self, seed, rank):
        """Algorithm 5.4, with three times the largest pair moment."""
        data = model(seed, supports="independent")
        pair = float(np.max(data.moments - np.diag(np.diagonal(data.moments))))
        result = dictionary_from_moment(PackedTensor(moment(data)), rank, clean=3 * pair, random_state=seed)
        assert result.reason == ("given" if rank else "what Algorithm 5.4 keeps")
        assert result.rank == N
        assert match(data.components, result.components).found(0.99) == N

    def test_dense_arrays_of_any_library(self, seed, xp):
        data = model(seed)
        T = moment(data)
        result = dictionary_from_moment(xp.asarray(dense(T)), N, random_state=seed)
        expected = dictionary_from_moment(PackedTensor(T), N, random_state=seed)
        np.testing.assert_allclose(xp.numpy(result.components), expected.components, atol=1e-6)
        np.testing.assert_allclose(xp.numpy(result.certificates), expected.certificates, atol=1e-6)

    def test_progress(self, seed):
        told = []
        T = PackedTensor(moment(model(seed)))
        dictionary_from_moment(T, random_state=seed, callback=lambda stage, done: told.append(stage))
        assert set(told) == {"pack", "truncate", "recover", "certify"}


class TestCovariance:
    """Lemma 5.3: whitened by the covariance that is given, the atoms are orthonormal."""

    @pytest.mark.parametrize("rank", [N, None])
    @pytest.mark.parametrize("condition", [1, 100])
    def test_any_independent_atoms(self, seed, rng, condition, rank):
        data = model(seed)
        A = random_orthonormal(D, N, rng).T @ np.diag(np.geomspace(1, 1 / condition, N)) @ random_orthonormal(N, N, rng)
        A = A.T / np.linalg.norm(A, axis=0)[:, None]  # (n, d), badly conditioned
        T = PackedTensor(population_moment(A, data.moments))
        result = dictionary_from_moment(T, rank, covariance=A.T @ A, random_state=seed)
        assert result.rank == N
        assert match(A, result.components).found(1 - 1e-6) == N

    def test_orthonormal_ones_stay(self, seed):
        data = model(seed, N)
        C = data.components.T @ data.components
        plain = dictionary_from_moment(PackedTensor(moment(data)), N, random_state=seed)
        white = dictionary_from_moment(PackedTensor(moment(data)), N, covariance=C, random_state=seed)
        np.testing.assert_allclose(white.components, plain.components, atol=1e-7)


class TestCertificates:
    @pytest.mark.parametrize("share", [0.02, 0.1, 0.25])
    @pytest.mark.parametrize("kind", ["gaussian", "turn", "rank-one"])
    def test_never_above_the_truth(self, seed, rng, kind, share):
        """Random errors, one that turns an eigenvector of the span out of it, and a competing square."""
        for k in range(3):
            data = model(10 * seed + k, coefficients="gaussian")
            T = moment(data)
            values, vectors = np.linalg.eigh(T)
            if kind == "gaussian":
                E = rng.standard_normal(T.shape)
                E = E + E.T
            elif kind == "turn":
                E = np.outer(vectors[:, -N], vectors[:, 0])
                E = E + E.T
            else:
                x = pack_rank_one(rng.standard_normal((1, D)))
                E = x @ x.T
            eps = share * values[-N]
            T = T + E * (eps / np.linalg.norm(E, 2))
            result = quietly(PackedTensor(T), N, eps, random_state=seed)
            assert np.all(result.certificates <= truth(data.components, result.components) + 1e-9)
            assert result.eps_assumed == eps
            if share == 0.02:
                assert np.all(result.certified)  # zero is never above the truth either

    def test_a_larger_eps_proves_less(self, seed):
        T = PackedTensor(moment(model(seed, coefficients="gaussian")))
        bounds = [quietly(T, N, eps, random_state=seed).certificates for eps in (0.0, 0.003, 0.01)]
        assert np.all(bounds[0] > bounds[1])
        assert np.all(bounds[1] > bounds[2])

    def test_beyond_a_third_it_does_not_claim_to_be_complete(self, seed):
        """Pair terms exceed the span: its leading eigenvectors are not those of the atoms."""
        result = quietly(PackedTensor(moment(model(seed, cooccurrence=0.6))), random_state=seed)
        assert result.status.code in ("incomplete", "nothing")
        assert result.status.remedy

    def test_gaussian_samples_have_no_dictionary(self, seed):
        one = np.eye(D)
        T = population_moment(one, np.ones((D, D)) + 2 * one)
        with pytest.warns(DecompositionWarning):
            result = dictionary_from_moment(PackedTensor(T), random_state=seed)
        assert not np.any(result.certified)


class TestBadInput:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"eps": -1.0}, "eps must be a number, finite and not negative; got -1.0"),
            ({"eps": np.nan}, "eps must be a number, finite and not negative; got nan"),
            ({"eps": "small"}, "eps must be a number, finite and not negative; got 'small'"),
            ({"eps": 1e9}, r"eps must lie below the largest eigenvalue of T, .*; got 1e\+09"),
            ({"clean": -0.1}, "clean must be a number, finite and not negative; got -0.1"),
            ({"rank": 0}, "rank must be a whole number between 1 and 10, or None; got 0"),
            ({"rank": 11}, "rank must be a whole number between 1 and 10, or None; got 11"),
            ({"rank": 2.5}, "rank must be a whole number between 1 and 10, or None; got 2.5"),
            ({"rank": 0, "covariance": np.eye(10)}, "rank must be a whole number between 1 and 10, or None; got 0"),
            ({"eps": True}, "eps must be a number, finite and not negative; got True"),
            ({"covariance": np.eye(3)}, r"covariance must be finite, of shape \(10, 10\); got shape \(3, 3\)"),
            ({"covariance": np.full((10, 10), np.nan)}, r"covariance must be finite"),
            ({"covariance": np.zeros((10, 10))}, "covariance must have a positive eigenvalue"),
        ],
    )
    def test_is_named(self, options, message):
        with pytest.raises(ValueError, match=message):
            dictionary_from_moment(PackedTensor(moment(model(0))), random_state=0, **options)

    def test_a_cleaning_that_leaves_nothing(self):
        with pytest.warns(DecompositionWarning, match="no atom found"):
            result = dictionary_from_moment(PackedTensor(moment(model(0))), clean=1e3, random_state=0)
        assert result.status.code == "nothing"
        assert "clean" in result.status.remedy
