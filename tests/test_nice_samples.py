"""Nice samples: what is drawn has the probabilities, the moments and the tau that are stated to be exact."""

import numpy as np
import pytest

from quartic._arrays import pack_rank_one, unpack
from quartic.datasets import COEFFICIENTS, SUPPORTS, nice_samples, population_moment, samples

SIGMAS = 6  # deviations allowed: about 1e-9 of a chance for each of some 10,000 numbers compared
M = 20_000  # at p = 0.15 two independent atoms are active together some 450 times

# Pr[j | i] of atoms two steps apart: over an active or over an idle atom between, at p = 0.15 and c = 0.4.
TWO_STEPS = 0.4 * 0.4 + 0.6 * (0.15 * 0.6 / 0.85)

KURTOSIS = {"sign": 1, "gaussian": 3, "laplace": 6}
CORRELATED = ["blocks", "markov", "hubs"]


@pytest.fixture(params=SUPPORTS)
def supports(request):
    return request.param


@pytest.fixture(params=COEFFICIENTS)
def coefficients(request):
    return request.param


def draw(seed, supports="independent", m=M, n=18, **options):
    """A problem in which the last group is not full."""
    if supports in CORRELATED:
        options = {"cooccurrence": 0.4} | options
    return nice_samples(m, n, supports=supports, random_state=seed, **({"p": 0.15, "group": 4} | options))


def assert_agree(found, expected, deviation):
    """``deviation`` is the standard deviation of ``found``; where it is zero the two are equal."""
    assert np.all(np.abs(found - expected) <= SIGMAS * deviation + 1e-12)


def assert_pairs(data):
    """Every pair of atoms is active together as often as stated."""
    active = (data.codes != 0).astype(float)
    P = data.pair
    assert_agree(active.T @ active / len(active), P, np.sqrt(P * (1 - P) / len(active)))


class TestSupports:
    def test_pairs_are_active_as_often_as_stated(self, seed, supports, coefficients):
        assert_pairs(draw(seed, supports, coefficients=coefficients))

    def test_samples_are_independent(self, seed, supports):
        active = (draw(seed, supports).codes != 0).astype(float) - 0.15
        assert_agree(np.mean(active[1:] * active[:-1], axis=0), 0, 0.15 * 0.85 / np.sqrt(M))

    def test_independent(self):
        P = draw(0).pair
        np.testing.assert_allclose(P, np.where(np.eye(18), 0.15, 0.15**2))

    def test_blocks(self):
        given = draw(0, "blocks").pair / 0.15  # Pr[j | i]
        same = np.arange(18) // 4 == np.arange(18)[:, None] // 4
        np.testing.assert_allclose(given, np.where(np.eye(18), 1, np.where(same, 0.4, 0.15)))

    def test_atoms_of_an_active_block_are_independent(self, seed):
        active = draw(seed, "blocks").codes[:, :4] != 0
        together = 0.15 / 0.4 * 0.4**4
        assert_agree(np.mean(np.all(active, axis=1)), together, np.sqrt(together / M))

    def test_markov(self):
        given = draw(0, "markov").pair / 0.15
        np.testing.assert_allclose(np.diagonal(given, 1), 0.4)
        np.testing.assert_allclose(np.diagonal(given, 2), TWO_STEPS)
        np.testing.assert_allclose(given[0, -1], 0.15, atol=1e-6)

    def test_the_chain_has_no_memory(self, seed):
        active = draw(seed, "markov").codes != 0
        before, here, after = (active[:, 5 + k][active[:, 6]] for k in range(3))
        assert_agree(np.mean(before & after), 0.4**2, 0.4 / np.sqrt(here.size))

    def test_hubs(self):
        given = draw(0, "hubs").pair / 0.15
        np.testing.assert_allclose(given[0, 1:4], 0.4)
        np.testing.assert_allclose(given[3, [0, 4, 5, 6]], 0.4)  # a neighbour of the first hub, the hub of the second
        np.testing.assert_allclose(given[1, [2, 3]], TWO_STEPS)
        np.testing.assert_allclose(given[0, 4:7], TWO_STEPS)
        assert np.count_nonzero(np.isclose(np.triu(given, 1), 0.4)) == 17  # the edges of a tree
        assert np.all(given - np.eye(18) < 0.4 + 1e-12)
        assert np.all(given > 0.15)

    def test_hubs_of_two_are_a_chain(self):
        np.testing.assert_array_equal(draw(0, "hubs", group=2).pair, draw(0, "markov").pair)

    def test_exclusive(self, seed):
        data = draw(seed, "exclusive")
        same = np.arange(18) // 4 == np.arange(18)[:, None] // 4
        np.testing.assert_allclose(data.pair, np.where(np.eye(18), 0.15, np.where(same, 0, 0.15**2)))
        for start in range(0, 18, 4):
            assert np.max(np.count_nonzero(data.codes[:, start : start + 4], axis=1)) == 1

    @pytest.mark.parametrize("p", [0.25, 1 / 3])
    def test_exclusive_and_never_idle(self, seed, p):
        data = draw(seed, "exclusive", n=2 * round(1 / p), group=round(1 / p), p=p)
        assert np.all(np.count_nonzero(data.codes, axis=1) == 2)

    @pytest.mark.parametrize("supports", CORRELATED)
    def test_the_cooccurrence_may_be_anything_from_p_to_one(self, seed, supports):
        np.testing.assert_allclose(draw(seed, supports, cooccurrence=0.15).pair, draw(seed).pair)
        assert_pairs(draw(seed, supports, cooccurrence=1.0))
        assert np.all(draw(seed, supports, cooccurrence=1.0, p=1.0).codes)

    @pytest.mark.parametrize("supports", CORRELATED)
    def test_the_default_cooccurrence(self, supports):
        assert nice_samples(1, 10, supports=supports, random_state=0).tau == pytest.approx(0.25)

    def test_one_atom(self, seed, supports):
        data = draw(seed, supports, n=1)
        assert data.tau == 0
        assert_pairs(data)

    def test_small_chunks(self, seed, supports, monkeypatch):
        monkeypatch.setattr(samples, "CHUNK", 7)
        data = draw(seed, supports, snr=20)
        assert_pairs(data)
        noise = data.samples - data.codes @ data.dictionary
        assert_agree(np.std(noise), data.noise_std, data.noise_std / np.sqrt(2 * noise.size))


class TestFrequencies:
    def test_marginals_and_pairs(self, seed, supports):
        f = np.random.default_rng(seed).uniform(1, 2, 18)
        data = draw(seed, supports, frequencies=f, p=0.1)
        np.testing.assert_allclose(np.diagonal(data.pair), 0.1 * f / np.mean(f))
        assert_pairs(data)

    def test_alike(self, supports):
        np.testing.assert_allclose(draw(0, supports, frequencies=np.full(18, 7.0)).pair, draw(0, supports).pair)

    @pytest.mark.parametrize("supports", ["blocks", "markov"])
    def test_the_largest_conditional_probability_is_that_of_the_most_frequent_atom(self, supports):
        f = np.linspace(2, 1, 18)
        P = draw(0, supports, frequencies=f).pair
        np.testing.assert_allclose(P[1, 0] / P[1, 1], 0.4)
        assert np.max(P / np.diagonal(P)[:, None] - np.eye(18)) == pytest.approx(0.4)

    def test_tau(self):
        data = draw(0, "blocks", frequencies=np.linspace(2, 1, 18))
        P = data.pair
        assert data.tau == pytest.approx(P[0, 1] / np.sqrt(P[0, 0] * P[1, 1]))


class TestCoefficients:
    def test_unit_variance_symmetry_and_kurtosis(self, seed, coefficients):
        data = draw(seed, coefficients=coefficients, p=1.0)
        x = data.codes  # all active
        assert data.kurtosis == KURTOSIS[coefficients]
        for power, expected in [(1, 0), (2, 1), (3, 0), (4, data.kurtosis)]:
            assert_agree(np.mean(x**power), expected, np.std(x**power) / np.sqrt(x.size))

    def test_coefficients_are_independent_of_each_other(self, seed, supports, coefficients):
        x = draw(seed, supports, coefficients=coefficients).codes
        i, j = np.triu_indices(18, 1)
        products = x[:, i] * x[:, j]
        assert_agree(np.mean(products, axis=0), 0, np.std(products, axis=0) / np.sqrt(M))

    def test_moments(self, seed, supports, coefficients):
        data = draw(seed, supports, coefficients=coefficients)
        np.testing.assert_allclose(data.moments, np.where(np.eye(18), KURTOSIS[coefficients], 1) * data.pair)
        # Their sum, E |x|^4: one by one, products of Laplace variables have tails too heavy for a normal deviation.
        fourth = np.sum(data.codes**2, axis=1) ** 2
        assert_agree(np.mean(fourth), np.sum(data.moments), np.std(fourth) / np.sqrt(M))

    @pytest.mark.parametrize(
        ("supports", "given"),
        [("independent", 0.15), ("blocks", 0.4), ("markov", 0.4), ("hubs", 0.4), ("exclusive", 0.15)],
    )
    def test_tau(self, coefficients, supports, given):
        data = draw(0, supports, m=1, coefficients=coefficients)
        assert data.tau == pytest.approx(given / KURTOSIS[coefficients])

    def test_tau_of_one_exclusive_group(self):
        assert draw(0, "exclusive", m=1, n=4).tau == 0


class TestDictionary:
    def test_gaussian(self, seed):
        data = draw(seed, m=1, n=100, d=150)
        assert data.samples.shape == (1, 150)
        A = data.dictionary
        assert_agree(np.mean(A), 0, 1 / 150)
        assert_agree(np.var(A), 1 / 150, 1 / 150 * np.sqrt(2 / A.size))

    def test_orthonormal(self, seed):
        data = draw(seed, m=1, n=5, d=7, dictionary="orthonormal")
        np.testing.assert_allclose(data.dictionary @ data.dictionary.T, np.eye(5), atol=1e-12)

    @pytest.mark.parametrize("d", [None, 3])
    def test_given(self, rng, seed, d):
        A = rng.standard_normal((18, 3))
        data = draw(seed, m=50, d=d, dictionary=A)
        np.testing.assert_array_equal(data.dictionary, A)
        assert not np.shares_memory(data.dictionary, A)
        np.testing.assert_allclose(data.samples, data.codes @ A, atol=1e-12)

    def test_components(self, seed):
        data = draw(seed, m=1)
        np.testing.assert_allclose(np.linalg.norm(data.components, axis=1), 1)
        np.testing.assert_allclose(
            np.sum(data.components * data.dictionary, axis=1), np.linalg.norm(data.dictionary, axis=1)
        )

    @pytest.mark.parametrize(("n", "d"), [(18, 18), (18, 25), (18, 7)])
    @pytest.mark.parametrize("condition", [1, 30, 1e4])
    def test_condition(self, seed, n, d, condition):
        values = np.linalg.svd(draw(seed, m=1, n=n, d=d, condition=condition).dictionary, compute_uv=False)
        assert values[0] == pytest.approx(1)
        np.testing.assert_allclose(values[1:] / values[:-1], condition ** (-1 / (min(n, d) - 1)), rtol=1e-8)

    def test_more_atoms_than_features(self, seed):
        data = draw(seed, m=50, d=4)
        assert data.samples.shape == (50, 4)
        np.testing.assert_allclose(data.samples, data.codes @ data.dictionary, atol=1e-12)


class TestNoise:
    @pytest.mark.parametrize("snr", [-5, 10, 30])
    def test_snr(self, seed, supports, coefficients, snr):
        A = np.random.default_rng(seed).standard_normal((18, 12)) * np.linspace(1, 3, 18)[:, None]
        options = {"frequencies": np.linspace(2, 1, 18), "p": 0.1, "coefficients": coefficients}
        data = draw(seed, supports, dictionary=A, snr=snr, **options)
        signal = data.codes @ A
        noise = data.samples - signal
        assert_agree(np.mean(noise**2), data.noise_std**2, data.noise_std**2 * np.sqrt(2 / noise.size))
        powers = np.sum(signal**2, axis=1)
        expected = 10 ** (snr / 10) * 12 * data.noise_std**2
        assert_agree(np.mean(powers), expected, np.std(powers) / np.sqrt(M))

    def test_isotropic_and_independent_of_the_codes(self, seed):
        data = draw(seed, snr=10)
        noise = (data.samples - data.codes @ data.dictionary) / data.noise_std
        assert_agree(noise.T @ noise / M, np.eye(18), np.sqrt((1 + np.eye(18)) / M))
        assert_agree(noise.T @ data.codes / M, 0, np.sqrt(0.15 / M))
        assert_agree(np.mean(noise**4), 3, np.sqrt(96 / noise.size))

    def test_none(self, seed):
        data = draw(seed, m=50)
        assert data.noise_std == 0
        np.testing.assert_allclose(data.samples, data.codes @ data.dictionary, atol=1e-12)


class TestOutliers:
    @pytest.mark.parametrize("snr", [None, 0])
    def test_norm_and_number(self, seed, snr):
        data = draw(seed, outliers=0.01, snr=snr)
        assert np.count_nonzero(data.outliers) == M // 100
        norms = np.linalg.norm(data.samples, axis=1)
        squares = norms[~data.outliers] ** 2
        gross = norms[data.outliers]
        np.testing.assert_allclose(gross, gross[0], rtol=1e-6)
        assert_agree((gross[0] / 100) ** 2, np.mean(squares), np.std(squares) / np.sqrt(squares.size))

    def test_spread_over_samples_and_directions(self, seed):
        data = draw(seed, outliers=0.2)
        assert_agree(np.mean(np.nonzero(data.outliers)[0]) / M, 0.5, 1 / np.sqrt(12 * 0.2 * M))
        U = data.samples[data.outliers]
        U = U / np.linalg.norm(U, axis=1, keepdims=True)
        assert_agree(U.T @ U / len(U), np.eye(18) / 18, np.sqrt(3) / 18 / np.sqrt(len(U)))

    def test_the_others_are_as_without(self, seed):
        plain, data = draw(seed, snr=10), draw(seed, snr=10, outliers=0.1)
        assert not np.any(plain.outliers)
        np.testing.assert_array_equal(data.samples[~data.outliers], plain.samples[~data.outliers])
        np.testing.assert_array_equal(data.codes, plain.codes)


EVERYTHING = {"m": 300, "snr": 10, "outliers": 0.1, "frequencies": np.linspace(2, 1, 18), "p": 0.1}


class TestRandomState:
    def test_the_same_again(self, seed, supports, coefficients):
        one, other, another = (
            draw(s, supports, coefficients=coefficients, **EVERYTHING) for s in (seed, seed, seed + 1)
        )
        for name in ["samples", "codes", "dictionary", "outliers"]:
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
            assert not np.array_equal(getattr(one, name), getattr(another, name))

    def test_a_generator_is_drawn_from(self, seed):
        one, same = (draw(np.random.default_rng(seed), m=20) for _ in range(2))
        rng = np.random.default_rng(seed)
        first, second = draw(rng, m=20), draw(rng, m=20)
        np.testing.assert_array_equal(one.samples, same.samples)
        np.testing.assert_array_equal(one.samples, first.samples)
        assert not np.array_equal(first.samples, second.samples)

    def test_each_part_has_its_own_stream(self, seed):
        plain = draw(seed, m=300)
        noisy = draw(seed, **(EVERYTHING | {"frequencies": None, "p": 0.15}))
        np.testing.assert_array_equal(noisy.codes, plain.codes)
        np.testing.assert_array_equal(noisy.dictionary, plain.dictionary)
        np.testing.assert_array_equal(draw(seed, "blocks", m=5, coefficients="laplace").dictionary, plain.dictionary)
        np.testing.assert_array_equal(draw(seed, m=300, dictionary=np.eye(18)).codes, plain.codes)

    def test_both_precisions_have_the_same_numbers(self, seed, supports, coefficients):
        double, single = (
            draw(seed, supports, coefficients=coefficients, dtype=dtype, **EVERYTHING)
            for dtype in (np.float64, "float32")
        )
        assert double.samples.dtype == double.codes.dtype == np.float64
        assert single.samples.dtype == single.codes.dtype == np.float32
        assert single.dictionary.dtype == np.float64
        np.testing.assert_array_equal(single.codes, double.codes)
        np.testing.assert_allclose(single.samples, double.samples, rtol=1e-5, atol=1e-5)


class TestPopulationMoment:
    @pytest.mark.parametrize(("n", "d"), [(1, 1), (1, 3), (4, 4), (3, 5), (6, 3)])
    def test_against_all_index_quadruples(self, rng, n, d):
        A, X = rng.standard_normal((n, d)), rng.uniform(size=(n, n))
        X = X + X.T
        E = np.zeros((n, n, n, n))
        for i in range(n):
            for j in range(n):
                E[i, i, j, j] = E[i, j, i, j] = E[i, j, j, i] = X[i, j]
        T = np.einsum("ijkl,ia,jb,kc,ld->abcd", E, A, A, A, A)
        M = population_moment(A, X)
        np.testing.assert_allclose(unpack(unpack(M).reshape(-1, d * d)).reshape(d, d, d, d), T, atol=1e-12)

    def test_against_samples(self, seed, supports):
        """With signs: the tails of the others are too heavy for a normal deviation."""
        data = draw(seed, supports, m=50_000, n=7, d=4, frequencies=np.linspace(2, 1, 7), p=0.1)
        F = pack_rank_one(data.samples)  # (N, m)
        found = F @ F.T / F.shape[1]
        deviation = np.sqrt((F**2 @ (F**2).T / F.shape[1] - found**2) / F.shape[1])
        assert_agree(found, population_moment(data.dictionary, data.moments), deviation)

    @pytest.mark.parametrize(
        ("A", "X", "message"),
        [
            (np.ones(3), np.eye(3), r"A must have two dimensions, atoms as rows; got shape \(3,\)"),
            (np.ones((3, 2)), np.eye(2), r"X must have shape \(3, 3\), a row for each row of A; got \(2, 2\)"),
            (np.ones((2, 2)), [[1, 2], [3, 4]], r"X must be symmetric"),
        ],
    )
    def test_bad_arguments(self, A, X, message):
        with pytest.raises(ValueError, match=message):
            population_moment(A, X)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"m": 0}, r"m and n must be at least 1; got m = 0, n = 6"),
        ({"n": 0}, r"m and n must be at least 1; got m = 9, n = 0"),
        ({"d": 0}, r"d must be at least 1; got 0"),
        ({"supports": "cliques"}, r"supports must be one of independent, .*, exclusive; got 'cliques'"),
        ({"cooccurrence": 0.25}, r"cooccurrence is 0.1 for supports='independent'; got 0.25. Leave it out, or choose"),
        ({"supports": "exclusive", "cooccurrence": 0.1}, r"cooccurrence is 0.0 for supports='exclusive'; got 0.1"),
        ({"supports": "blocks", "cooccurrence": 0.05}, r"cooccurrence must lie between .* 0.1, and 1; got 0.05"),
        ({"supports": "markov", "cooccurrence": 1.5}, r"cooccurrence must lie between .* 0.1, and 1; got 1.5"),
        (
            {"supports": "hubs", "p": 0.3},
            r"cooccurrence must lie between .* 0.3, and 1; got 0.25. Raise it, or lower p",
        ),
        ({"supports": "hubs", "frequencies": [1, 1, 1, 1, 1, 7]}, r"cooccurrence must lie between .* 0.35, and 1"),
        ({"supports": "blocks", "cooccurrence": np.nan}, r"cooccurrence must lie between .*; got nan"),
        ({"group": 1}, r"group must be at least 2; got 1"),
        ({"coefficients": "cauchy"}, r"coefficients must be one of sign, gaussian, laplace; got 'cauchy'"),
        ({"p": 0}, r"p must be above 0 and at most 1; got 0"),
        ({"p": 1.1}, r"p must be above 0 and at most 1; got 1.1"),
        ({"p": np.nan}, r"p must be above 0 and at most 1; got nan"),
        (
            {"supports": "exclusive", "p": 0.2},
            r"p must leave .* at most 0.167 for supports='exclusive'; got 0.2. Lower p",
        ),
        ({"p": 0.6, "frequencies": [1, 1, 1, 1, 1, 7]}, r"p must leave .* at most 1 for .*'independent'; got 2.1"),
        ({"frequencies": [1, 2]}, r"frequencies must have shape \(6,\); got \(2,\)"),
        ({"frequencies": [1, 1, 1, 1, 1, 0]}, r"frequencies must be positive and finite"),
        ({"frequencies": [1, 1, 1, 1, 1, np.inf]}, r"frequencies must be positive and finite"),
        ({"dictionary": "wavelet"}, r"dictionary must be 'gaussian', 'orthonormal' or an array; got 'wavelet'"),
        ({"dictionary": "orthonormal", "d": 4}, r"n must be at most d = 4 for dictionary='orthonormal'; got 6"),
        (
            {"dictionary": np.ones((5, 6))},
            r"dictionary must have shape \(n, d\) = \(6, 6\), atoms as rows; got \(5, 6\)",
        ),
        ({"dictionary": np.ones((6, 5)), "d": 6}, r"dictionary must have shape \(n, d\) = \(6, 6\), .*; got \(6, 5\)"),
        ({"dictionary": np.ones(6)}, r"dictionary must have shape .*; got \(6,\)"),
        ({"dictionary": np.diag([1, 1, 1, 1, 1, 0])}, r"dictionary must be finite, and no atom may be zero"),
        ({"dictionary": np.full((6, 6), np.nan)}, r"dictionary must be finite, and no atom may be zero"),
        ({"condition": 0.5}, r"condition must be finite and at least 1; got 0.5"),
        ({"condition": np.inf}, r"condition must be finite and at least 1; got inf"),
        (
            {"condition": 2, "dictionary": "orthonormal"},
            r"condition is for dictionary='gaussian' only; got condition = 2",
        ),
        ({"condition": 2, "dictionary": np.eye(6)}, r"condition is for dictionary='gaussian' only; got condition = 2"),
        ({"snr": np.inf}, r"snr must be a finite number of decibels, or None for no noise; got inf"),
        ({"outliers": -0.1}, r"outliers must be a fraction of the samples, at least 0 and below 1; got -0.1"),
        ({"outliers": 1}, r"outliers must be a fraction of the samples, at least 0 and below 1; got 1"),
        ({"dtype": np.float16}, r"dtype must be float32 or float64; got float16"),
        ({"random_state": "x"}, r"random_state must be .*; got 'x'"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        nice_samples(**({"m": 9, "n": 6} | arguments))
