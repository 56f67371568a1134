"""Weights that fall with the norm: the lemma, on models small enough to enumerate, and how weights are chosen.

And what is measured under them: correlations of energies, groups of atoms, and contrasts in the plane of two atoms.
"""

from __future__ import annotations

import itertools

import literal
import numpy as np
import pytest

from quartic._arrays import pack_rank_one
from quartic.algorithms.temper import (
    ACTIVE,
    CARRYING,
    LADDER,
    LARGE,
    SHARE,
    STRONGEST,
    Tempering,
    active,
    effective,
    ladder,
    tempering,
)
from quartic.datasets import population_moment, random_orthonormal
from quartic.tensors import PackedTensor


def subsets(n):
    """All supports, ``(2^n, n)``."""
    return np.array(list(itertools.product([0.0, 1.0], repeat=n)))


def signed(magnitudes, probability):
    """Coefficients ``(k 2^n, n)`` with every pattern of signs, and their probabilities."""
    signs = 2 * subsets(magnitudes.shape[1]) - 1
    x = (magnitudes[:, None, :] * signs).reshape(-1, magnitudes.shape[1])
    return x, np.repeat(probability, signs.shape[0]) / signs.shape[0]


def moments_of(x, w):
    """``X_ij = E x_i^2 x_j^2`` under weights."""
    squares = x**2
    return (squares.T * (w / w.sum())) @ squares


class TestLemma:
    def model(self, n, rng):
        """Any magnitudes on any supports, signs uniform and independent given them."""
        magnitudes = subsets(n) * rng.uniform(0.2, 2, (2**n, n))
        return signed(magnitudes, rng.exponential(size=2**n))

    @pytest.mark.parametrize("beta", [0.0, 0.3, 2.0])
    def test_odd_moments_vanish_after_reweighting(self, rng, beta):
        n = 4
        x, probability = self.model(n, rng)
        z = x @ random_orthonormal(6, n, rng)
        w = probability * Tempering(beta, 0.5).weights(np.sum(z**2, axis=1))
        moment = literal.fourth_moment(x, w)
        for index in itertools.product(range(n), repeat=4):
            counts = np.bincount(index, minlength=n)
            if np.any(counts % 2):
                assert abs(moment[index]) < 1e-14
        third = np.einsum("s,si,sj,sk->ijk", w / w.sum(), x, x, x)
        np.testing.assert_allclose(third, 0, atol=1e-14)

    @pytest.mark.parametrize("beta", [0.0, 0.3, 2.0])
    def test_the_weighted_moment_is_that_of_a_nice_distribution(self, rng, beta):
        """The exact one for the weighted ``X``; and the span of the atoms stays invariant."""
        n, d = 4, 5
        x, probability = self.model(n, rng)
        A = random_orthonormal(d, n, rng)
        w = probability * Tempering(beta, 0.5).weights(np.sum((x @ A) ** 2, axis=1))
        T = PackedTensor(population_moment(A, moments_of(x, w)))
        np.testing.assert_allclose(T.to_dense(), literal.fourth_moment(x @ A, w), atol=1e-13)
        B = pack_rank_one(A)
        image = T.apply(B)
        np.testing.assert_allclose(image, B @ (B.T @ image), atol=1e-13)

    @pytest.mark.parametrize("kind", ["norm", "norm of a part", "product"])
    def test_every_moment_with_an_odd_power_vanishes(self, rng, kind):
        """For any function of the norm, of the norm in the span of some atoms, and for ``prod_i exp(-b_i x_i^2)``."""
        n = 4
        x, probability = self.model(n, rng)
        A = random_orthonormal(6, n, rng)
        z = x @ A
        if kind == "norm":
            w = probability * rng.exponential(size=10_000)[np.round(1000 * np.sum(z**2, axis=1)).astype(int) % 10_000]
        elif kind == "norm of a part":
            part = random_orthonormal(2, 2, rng) @ A[[0, 2]]  # any basis of the span
            w = probability * Tempering(0.7, 0.5).weights(np.sum((z @ part.T) ** 2, axis=1))
        else:
            w = probability * np.exp(-(x**2) @ rng.exponential(size=n))
        powers = np.array(list(itertools.product(range(4), repeat=n)))  # (256, n)
        moments = np.array([w @ np.prod(x**a, axis=1) for a in powers]) / w.sum()
        odd = np.any(powers % 2, axis=1)
        np.testing.assert_allclose(moments[odd], 0, atol=1e-12)
        assert np.all(moments[~odd] > 0)
        plain = np.array([probability @ np.prod(x**a, axis=1) for a in powers[~odd]]) / probability.sum()
        assert np.max(np.abs(moments[~odd] / plain - 1)) > 0.1  # these weights do change the distribution

    def test_the_part_must_be_spanned_by_atoms(self, rng):
        """The norm in another plane depends on signs."""
        x, probability = self.model(3, rng)
        w = probability * Tempering(1.0, 0.0).weights((x @ np.array([0.6, 0.8, 0.0])) ** 2)
        assert abs(w @ (x[:, 0] * x[:, 1])) > 1e-3 * w.sum()

    def test_it_needs_orthonormal_atoms(self, rng):
        """Otherwise the norm depends on signs, and weights make odd moments."""
        x, probability = self.model(3, rng)
        A = random_orthonormal(3, 3, rng)
        A[1] = (A[0] + A[1]) / np.sqrt(2)
        w = probability * Tempering(1.0, 0.0).weights(np.sum((x @ A) ** 2, axis=1))
        assert abs(np.einsum("s,s,s->", w / w.sum(), x[:, 0], x[:, 1])) > 1e-3


def block(size, p, c):
    """Supports of a product block ``(2^size, size)`` and their probabilities: awake with ``p / c``, then coins."""
    supports = subsets(size)
    count = supports.sum(axis=1)
    probability = p / c * c**count * (1 - c) ** (size - count)
    probability[0] += 1 - p / c
    return supports, probability


class TestTau:
    @pytest.mark.parametrize("size", [2, 3, 6])
    @pytest.mark.parametrize("beta", [0.0, 0.05, 0.3])
    @pytest.mark.parametrize("tau", [0.2, 0.5, 0.8])
    def test_product_blocks(self, tau, beta, size):
        """``tau_beta = tau e / (1 - tau + tau e)`` with ``e = exp(-beta / p)``, for sign coefficients."""
        p = 0.1
        supports, probability = block(size, p, tau)
        z = supports / np.sqrt(p)  # whitened
        e = np.exp(-beta / p)
        expected = tau * e / (1 - tau + tau * e)
        assert expected <= tau
        for least in (0.0, 1 / p):  # a sample without any active atom has no moment, so its weight does not matter
            X = moments_of(z, probability * Tempering(beta, least).weights(np.sum(z**2, axis=1)))
            np.testing.assert_allclose(X / X[0, 0], np.where(np.eye(size), 1, expected), atol=1e-12)

    def test_other_blocks_do_not_matter(self):
        """Exponential weights of independent blocks factor."""
        (one, p_one), (two, p_two) = block(3, 0.1, 0.5), block(2, 0.1, 0.7)
        pair = [np.concatenate((a, b)) for a in one for b in two]
        z = np.array(pair) / np.sqrt(0.1)
        beta = 0.08
        X = moments_of(z, np.outer(p_one, p_two).ravel() * Tempering(beta, 0.0).weights(np.sum(z**2, axis=1)))
        e = np.exp(-beta / 0.1)
        assert X[0, 1] / X[0, 0] == pytest.approx(0.5 * e / (1 - 0.5 + 0.5 * e))
        assert X[3, 4] / X[3, 3] == pytest.approx(0.7 * e / (1 - 0.7 + 0.7 * e))

    @pytest.mark.parametrize("beta", [0.05, 0.3])
    def test_weights_that_fall_in_the_plane_of_a_pair(self, beta):
        """They lower the tau of the pair as much, and leave those of others in between."""
        p, tau = 0.1, 0.6
        supports, probability = block(4, p, tau)
        z = supports / np.sqrt(p)
        X = moments_of(z, probability * np.exp(-beta * (z[:, 0] ** 2 + z[:, 1] ** 2)))
        e = np.exp(-beta / p)
        assert X[0, 1] / X[0, 0] == pytest.approx(tau * e / (1 - tau + tau * e))
        assert X[2, 3] / X[2, 2] == pytest.approx(tau)

    def test_tau_may_also_grow(self):
        """Two atoms that meet alone, and otherwise occur only among many others: so the certificate has to choose."""
        supports = np.array([[1, 1, 0, 0, 0, 0], [1, 0, 1, 1, 1, 1], [0, 1, 1, 1, 1, 1]], dtype=float)
        taus = []
        for beta in (0.0, 0.5):
            X = moments_of(supports, Tempering(beta, 0.0).weights(np.sum(supports**2, axis=1)))
            taus.append(X[0, 1] / X[0, 0])
        assert taus[0] == pytest.approx(0.5)
        assert taus[1] > 0.8

    @pytest.mark.parametrize("coins", [False, True])
    def test_it_may_grow_for_every_strength(self, coins):
        """The same with others that toss coins, so that every support occurs: tau grows with beta, towards 1."""
        alone = np.array([[1.0, 1, 0, 0, 0, 0]])
        others = subsets(4) if coins else np.ones((1, 4))
        among = [np.concatenate(([1.0, 0.0][::s], rest)) for s in (1, -1) for rest in others if rest.sum() >= 2]
        supports = np.concatenate((alone, among))
        probability = np.concatenate(([0.4], np.full(len(among), 0.6 / len(among))))
        taus = []
        for beta in (0.0, 0.3, 1.0, 4.0):
            X = moments_of(supports, probability * Tempering(beta, 0.0).weights(np.sum(supports**2, axis=1)))
            taus.append(X[0, 1] / X[0, 0])
        assert taus[0] == pytest.approx(0.4 / 0.7)  # 0.4 alone, and one of two others with 0.3 each
        assert np.all(np.diff(taus) > 0)
        assert taus[-1] > 0.95


class TestEffective:
    @pytest.mark.parametrize("size", [1, 2, 4])
    @pytest.mark.parametrize("fifths", [2, 3, 4])
    @pytest.mark.parametrize("beta", [0.0, 0.05, 0.3])
    def test_product_blocks(self, beta, fifths, size):
        """What weights cost: the share ``((1 - c + c e)^2 / (1 - c + c e^2))^size`` of the samples is left.

        Exactly, for a block that is awake: five equally likely samples for each coin.
        """
        p, c = 0.1, fifths / 5
        supports = np.array(list(itertools.product(np.arange(5) < fifths, repeat=size)), dtype=float)
        w = Tempering(beta, 0.0).weights(np.sum(supports**2, axis=1) / p)
        e = np.exp(-beta / p)
        expected = ((1 - c + c * e) ** 2 / (1 - c + c * e**2)) ** size
        assert effective(w) / w.size == pytest.approx(expected)
        # One weight for two blocks costs both shares, and lowers tau in each as much as its own would.
        both = np.outer(w, w).ravel()
        assert effective(both) / both.size == pytest.approx(expected**2)

    def test_values(self, rng):
        assert effective(np.ones(7)) == pytest.approx(7)
        assert effective(np.array([0.0, 3.0, 0.0])) == pytest.approx(1)
        assert effective(np.array([1.0, 3.0])) == pytest.approx(1.6)
        assert effective(np.zeros(3)) == effective(np.zeros(0)) == 0
        w = rng.uniform(0, 1, 20)
        assert 1 <= effective(w) <= 20
        assert effective(1e-3 * w) == pytest.approx(effective(w))

    def test_it_is_what_a_mean_varies_by(self, rng):
        """The variance of a weighted mean is that of a mean of so many samples."""
        w = rng.exponential(size=30)
        means = rng.standard_normal((20_000, 30)) @ w / w.sum()
        assert np.var(means) == pytest.approx(1 / effective(w), rel=0.06)  # 6 deviations


NORMS = {
    "gaussian": lambda rng: rng.chisquare(20, 3000),
    "few dimensions": lambda rng: rng.chisquare(2, 3000),
    "heavy-tailed": lambda rng: rng.chisquare(10, 3000) * np.minimum(rng.pareto(2.5, 3000) + 0.2, 50),
    "sparse": lambda rng: rng.binomial(40, 0.1, 3000) * 10 + rng.uniform(0, 1e-3, 3000),
    "noisy": lambda rng: rng.binomial(20, 0.1, 3000) * 10 + rng.chisquare(20, 3000) / 10,
}


class TestChoice:
    @pytest.mark.parametrize("share", [0.3, SHARE, 0.7])
    @pytest.mark.parametrize("norms", NORMS)
    def test_the_share_is_met(self, rng, norms, share):
        squares = NORMS[norms](rng)
        chosen = tempering(squares, share)
        carrying = squares[squares > CARRYING * np.mean(squares)]
        assert chosen.least == np.min(carrying)
        assert effective(chosen.weights(carrying)) == pytest.approx(share * carrying.size, rel=1e-6)

    def test_a_smaller_share_takes_stronger_weights(self, rng):
        squares = rng.chisquare(20, 3000)
        betas = [tempering(squares, share).beta for share in (0.9, 0.6, 0.3)]
        assert 0 < betas[0] < betas[1] < betas[2]

    def test_units_do_not_matter(self, rng):
        squares = rng.chisquare(20, 3000)
        one = tempering(squares)
        for factor in (1e-200, 1e-3, 1e200):
            other = tempering(factor * squares)
            assert other.beta * factor == pytest.approx(one.beta, rel=1e-9)
            np.testing.assert_allclose(other.weights(factor * squares), one.weights(squares), rtol=1e-9)

    def test_samples_without_active_atoms_count_for_nothing(self, rng):
        squares = 10 * (1 + rng.binomial(20, 0.1, 3000)) + rng.uniform(0, 1, 3000)
        one, other = tempering(squares), tempering(np.concatenate((squares, np.zeros(3000))))
        assert other == one
        np.testing.assert_array_equal(other.weights(np.zeros(2)), 1)

    def test_weights_fall_with_the_norm(self, rng):
        squares = np.sort(rng.chisquare(20, 300))
        w = tempering(squares).weights(squares)
        assert w[0] == 1
        assert np.all(np.diff(w) < 0)
        assert np.all(w > 0)

    def test_a_few_gross_samples_do_not_switch_it_off(self, rng):
        """What trimming leaves: norms of some ten times the others, in one sample of a hundred."""
        squares = rng.chisquare(20, 3000)
        squares[:30] *= 200
        chosen = tempering(squares)
        assert 0.4 < effective(chosen.weights(squares)) / 3000 < 0.6

    @pytest.mark.parametrize(
        "squares",
        [
            np.zeros(0),
            np.zeros(10),
            np.ones(1),
            np.ones(10),
            np.r_[np.ones(10), 2.0, 3.0],
            np.r_[np.zeros(10), 2.0],
            np.r_[np.ones(10), 1e300],
            np.full(5, 1e-300),
            np.full(5, 1e300),
        ],
        ids=["none", "zeros", "one", "alike", "mostly alike", "one of many", "outlier", "tiny", "huge"],
    )
    def test_degenerate(self, squares):
        """No warning, and finite weights, 1 for the smallest norm."""
        chosen = tempering(squares)
        w = chosen.weights(squares)
        assert np.isfinite(chosen.beta)
        assert chosen.beta >= 0
        assert np.all((w >= 0) & (w <= 1))
        if squares.size:
            assert w[np.argmin(squares)] == 1

    def test_norms_that_hardly_differ(self):
        """Weights stay bounded: no stronger than some times the inverse of a typical norm."""
        squares = 1 + 1e-9 * np.arange(100)
        chosen = tempering(squares)
        assert chosen.beta == pytest.approx(STRONGEST)
        np.testing.assert_allclose(chosen.weights(squares), 1, atol=1e-5)


class TestActive:
    def test_literally(self, rng):
        squares = rng.chisquare(3, 500)
        squares[:200] *= 1e-3
        limit = ACTIVE * np.quantile(squares, LARGE)
        np.testing.assert_array_equal(active(squares), [s > limit for s in squares])
        assert not np.any(active(squares)[:100] & (squares[:100] < limit))

    def test_silent_samples_of_a_noisy_group(self, rng):
        """In a group the noise is that of its few dimensions, far below the energy of one active atom."""
        awake = rng.random(4000) < 0.2
        squares = np.where(awake, 10.0, 0.0) * rng.integers(1, 4, 4000) + 0.1 * rng.chisquare(3, 4000)
        assert np.mean(active(squares) == awake) > 0.99

    def test_nothing_and_zeros(self):
        assert active(np.zeros(0)).shape == (0,)
        assert not np.any(active(np.zeros(7)))
        assert np.all(active(np.ones(7)))


class TestLadder:
    @pytest.mark.parametrize("norms", NORMS)
    def test_strongest_first_and_plain_at_last(self, rng, norms):
        squares = NORMS[norms](rng)
        squares = squares[active(squares)]
        betas = [step.beta for step in ladder(squares)]
        assert np.all(np.diff(betas) < 0)
        assert betas[-1] == 0
        assert 2 <= len(betas) <= len(LADDER)
        carrying = squares[squares > CARRYING * np.mean(squares)]
        shares = [effective(step.weights(carrying)) / carrying.size for step in ladder(squares)]
        np.testing.assert_allclose(shares[1:], LADDER[1 - len(shares) :], rtol=1e-6)
        if betas[0] < STRONGEST / np.median(carrying):
            assert shares[0] == pytest.approx(LADDER[-len(shares)])
        else:  # no stronger ones are tried
            assert LADDER[-len(shares)] <= shares[0] < shares[1]

    def test_norms_that_are_all_alike(self):
        """The strongest weights that are tried change nothing, so there is but one of them."""
        assert [step.beta for step in ladder(np.ones(10))] == [STRONGEST, 0]

    def test_no_samples(self):
        assert [step.beta for step in ladder(np.zeros(0))] == [0]
