"""Moments as accumulators: against direct formulas in float64, however the samples were cut, ordered and merged."""

from __future__ import annotations

import dataclasses
import itertools

import literal
import numpy as np
import pytest

from quartic._arrays import pack_rank_one
from quartic.datasets import SUPPORTS, nice_samples, population_moment
from quartic.frame import Frame
from quartic.halves import half_of, row_hash
from quartic.moments import Covariance, FourthMoment
from quartic.tensors import Congruence
from quartic.views import ImplicitMoment

M, D = 500, 4
SIGMAS = 6


def samples(rng, m=M, d=D):
    """Correlated, skewed, not centred."""
    Y = rng.standard_normal((m, d)) ** 2 * rng.choice([-1.0, 1.0, 1.0], (m, d))
    return Y @ rng.standard_normal((d, d)) + rng.standard_normal(d)


def identity_frame(d=D, mean=None):
    return Frame(np.zeros(d) if mean is None else mean, np.eye(d), np.eye(d), np.ones(d), "given")


def half_masks(index):
    halves = half_of(row_hash(np.asarray(index)))
    return [halves == 0, halves == 1]


def weighted(Y, w):
    """Mean and covariance, directly."""
    mean = w @ Y / w.sum()
    return mean, ((Y - mean).T * w) @ (Y - mean) / w.sum()


def second(Z, w):
    """Second moment, directly."""
    return (Z.T * w) @ Z / w.sum()


def assert_same(one, other, rtol=1e-12):
    """Two accumulators hold the same sums, half by half."""
    for name in ("weight", "squares", *one._SUMS):
        x, y = getattr(one, name), getattr(other, name)
        np.testing.assert_allclose(x, y, rtol=0, atol=rtol * max(1.0, np.max(np.abs(y))), err_msg=name)
    assert (one.rows, one.count) == (other.rows, other.count)


class TestHash:
    def test_halves_are_even_and_look_random(self):
        half = half_of(row_hash(np.arange(100_000)))
        assert set(half) == {0, 1}
        deviation = np.sqrt(100_000) / 2
        assert abs(half.sum() - 50_000) < SIGMAS * deviation
        assert abs(np.sum(half[1:] == half[:-1]) - 50_000) < SIGMAS * deviation
        for period in (2, 3, 7, 10, 64, 100):  # data in a pattern are not split along it
            first = half[::period]
            assert abs(first.sum() - first.size / 2) < SIGMAS * np.sqrt(first.size) / 2

    def test_it_depends_on_the_index_alone(self, rng):
        index = rng.permutation(1000)
        np.testing.assert_array_equal(row_hash(index), row_hash(np.arange(1000))[index])
        np.testing.assert_array_equal(row_hash(index.astype(np.uint64)), row_hash(index))
        assert np.unique(row_hash(np.arange(100_000))).size == 100_000

    def test_subsamples_do_not_favour_a_half(self):
        """A part goes by the highest bits, a half by the lowest."""
        h = row_hash(np.arange(100_000))
        part = (h >> np.uint64(11)) < np.uint64(2**53 // 10)
        assert abs(part.sum() - 10_000) < SIGMAS * np.sqrt(9000)
        assert abs(half_of(h)[part].sum() - part.sum() / 2) < SIGMAS * np.sqrt(part.sum()) / 2


class TestCovariance:
    def test_directly(self, rng):
        Y = samples(rng)
        c = Covariance().update(Y)
        np.testing.assert_allclose(c.mean, Y.mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(c.covariance, np.cov(Y.T, bias=True), rtol=1e-10)
        for h, mask in enumerate(half_masks(np.arange(M))):
            np.testing.assert_allclose(c.half(h), np.cov(Y[mask].T, bias=True), rtol=1e-10)
            assert c.weight[h] == c.effective[h] == mask.sum()
        assert (c.rows, c.count) == (M, M)

    def test_weights(self, rng):
        Y, w = samples(rng), rng.uniform(0, 3, M) * (rng.random(M) < 0.8)
        c = Covariance().update(Y, w)
        mean, C = weighted(Y, w)
        np.testing.assert_allclose(c.mean, mean, rtol=1e-10)
        np.testing.assert_allclose(c.covariance, C, rtol=1e-10)
        for h, mask in enumerate(half_masks(np.arange(M))):
            np.testing.assert_allclose(c.half(h), weighted(Y[mask], w[mask])[1], rtol=1e-10)
            assert c.effective[h] == pytest.approx(w[mask].sum() ** 2 / np.sum(w[mask] ** 2))

    def test_a_half_without_samples(self, rng):
        index = np.flatnonzero(half_of(row_hash(np.arange(2 * M))) == 1)[: M // 2]
        Y = samples(rng, M // 2)
        c = Covariance().update(Y, index=index)
        assert c.weight[0] == 0
        np.testing.assert_allclose(c.covariance, np.cov(Y.T, bias=True), rtol=1e-10)
        np.testing.assert_array_equal(c.half(0), c.covariance)
        np.testing.assert_array_equal(c.half(1), c.covariance)

    @pytest.mark.parametrize("offset", [1e4, 1e8])
    def test_far_from_the_origin(self, rng, offset):
        """As exact as the samples themselves, which are rounded there."""
        Y = samples(rng) + offset * np.array([1.0, -1.0, 0.0, 2.0])
        exact = np.asarray(Y - Y[0], dtype=np.longdouble)  # exact: the samples lie within a factor of two
        C = (exact - exact.mean(axis=0)).T @ (exact - exact.mean(axis=0)) / M
        halves = [Covariance().update(Y[: M // 3]), Covariance().update(Y[M // 3 :], index=M // 3)]
        for c in (Covariance().update(Y), halves[0].merge(halves[1])):
            np.testing.assert_allclose(c.covariance, C.astype(float), rtol=0, atol=1e-7 * np.max(C))
            np.testing.assert_allclose(c.mean, Y.mean(axis=0), rtol=1e-12, atol=1e-7)

    def test_single_precision_far_from_the_origin(self, rng):
        """Samples in float32 are exact numbers: nothing more is lost."""
        Y = (samples(rng) + 1e4).astype(np.float32)
        c = Covariance().update(Y)
        np.testing.assert_allclose(c.covariance, np.cov(Y.astype(float).T, bias=True), rtol=1e-9)
        assert c.rounding == np.finfo(np.float32).eps
        assert Covariance().update(samples(rng)).merge(c).rounding == np.finfo(np.float32).eps

    def test_integers_and_lists(self):
        Y = [[1, 2], [3, 5], [4, 4], [0, 1]]
        np.testing.assert_allclose(Covariance().update(Y).covariance, np.cov(np.array(Y).T, bias=True), rtol=1e-12)

    def test_nothing_is_not_something(self):
        for c in (Covariance(), Covariance().update(np.zeros((0, 3))), Covariance().update(np.ones((2, 3)), [0, 0])):
            with pytest.raises(ValueError, match="no samples have been seen"):
                c.covariance  # noqa: B018
            with pytest.raises(ValueError, match="no samples have been seen"):
                c.frame()

    def test_other_features_are_refused(self, rng):
        c = Covariance().update(samples(rng))
        with pytest.raises(ValueError, match=r"batch must have samples as rows, shape \(m, 4\); got shape \(2, 3\)"):
            c.update(np.ones((2, 3)))
        with pytest.raises(ValueError, match="same features; got 4 and 3"):
            c.merge(Covariance().update(np.ones((2, 3))))

    def test_an_empty_one_changes_nothing(self, rng):
        Y = samples(rng)
        assert_same(Covariance().merge(Covariance().update(Y)), Covariance().update(Y))
        assert_same(Covariance().update(Y).merge(Covariance()), Covariance().update(Y))


def accumulators(rng):
    """Both kinds, with a frame from other samples."""
    frame = Covariance().update(samples(rng)).frame()
    return [Covariance, lambda: FourthMoment(frame)]


class TestAddition:
    @pytest.mark.parametrize("which", [0, 1])
    def test_any_chunks_in_any_order(self, rng, which):
        make = accumulators(rng)[which]
        Y, w = samples(rng), rng.uniform(0, 2, M)
        whole = make().update(Y, w)
        for _ in range(3):
            cuts = [0, *np.sort(rng.integers(0, M, 6)), M]
            chunks = list(itertools.pairwise(cuts))  # some may be empty
            rng.shuffle(chunks)
            one = make()
            for a, b in chunks:
                one.update(Y[a:b], w[a:b], index=int(a))
            assert_same(one, whole)
            parts = [make().update(Y[a:b], w[a:b], index=int(a)) for a, b in chunks]
            while len(parts) > 1:  # merged as a random tree
                i, j = rng.choice(len(parts), 2, replace=False)
                parts[i].merge(parts[j])
                del parts[j]
            assert_same(parts[0], whole)

    @pytest.mark.parametrize("which", [0, 1])
    def test_rows_in_any_order_with_their_indices(self, rng, which):
        make = accumulators(rng)[which]
        Y = samples(rng)
        order = rng.permutation(M)
        assert_same(make().update(Y[order], index=order), make().update(Y))

    @pytest.mark.parametrize("which", [0, 1])
    def test_batches_without_an_index_go_on(self, rng, which):
        make = accumulators(rng)[which]
        Y = samples(rng)
        assert_same(make().update(Y[:123]).update(Y[123:]), make().update(Y))
        assert_same(make().update(Y[:123], index=1000).update(Y[123:]), make().update(Y, index=1000))

    @pytest.mark.parametrize("which", [0, 1])
    def test_merging_leaves_the_other_as_it_was(self, rng, which):
        make = accumulators(rng)[which]
        Y = samples(rng)
        other = make().update(Y[200:], index=200)
        make().update(Y[:200]).merge(other).update(Y, index=7)
        assert_same(other, make().update(Y[200:], index=200))

    @pytest.mark.parametrize("which", [0, 1])
    def test_whole_weights_are_repetitions_and_zero_is_none(self, rng, which):
        make = accumulators(rng)[which]
        Y, w = samples(rng), rng.integers(0, 4, M)
        one = make().update(Y, w)
        repeated = make().update(np.repeat(Y, w, axis=0), index=np.repeat(np.arange(M), w))
        kept = np.flatnonzero(w)
        left = make().update(Y[kept], w[kept], index=kept)
        for name in ("weight", *one._SUMS):
            for other in (repeated, left):
                x, y = getattr(one, name), getattr(other, name)
                np.testing.assert_allclose(x, y, rtol=0, atol=1e-12 * np.max(np.abs(y)))
        np.testing.assert_array_equal(one.squares, left.squares)

    @pytest.mark.parametrize("which", [0, 1])
    def test_a_removed_sample_may_be_anything(self, rng, which):
        """An outlier of weight zero leaves no trace, not even in rounding."""
        make = accumulators(rng)[which]
        Y, w = samples(rng), np.ones(M)
        gross = Y.copy()
        w[:3], gross[:3] = 0, 1e12
        assert_same(make().update(gross, w), make().update(Y, w), rtol=1e-10)

    @pytest.mark.parametrize("which", [0, 1])
    @pytest.mark.parametrize(
        ("batch", "options", "message"),
        [
            ([1.0, 2.0], {}, r"batch must have samples as rows.*got shape \(2,\)"),
            ([[np.nan, 0, 0, 0]], {}, "NaN or infinite"),
            ([[np.inf, -np.inf, 0, 0]], {}, "NaN or infinite"),
            ([["a", "b", "c", "d"]], {}, "batch must hold real numbers"),
            (np.ones((2, 4)) * 1j, {}, "batch must hold real numbers"),
            (np.ones((2, 4)), {"sample_weight": [1.0]}, "sample_weight must hold 2 finite weights"),
            (np.ones((2, 4)), {"sample_weight": [1.0, -1.0]}, "sample_weight must hold 2 finite weights"),
            (np.ones((2, 4)), {"sample_weight": [1.0, np.nan]}, "sample_weight must hold 2 finite weights"),
            (np.ones((2, 4)), {"index": [1, 2, 3]}, "index must be .* each of 2 rows"),
            (np.ones((2, 4)), {"index": 1.5}, "index must be"),
            (np.ones((2, 4)), {"index": -1}, "index must be"),
        ],
    )
    def test_bad_batches(self, rng, which, batch, options, message):
        make = accumulators(rng)[which]
        before = make().update(samples(np.random.default_rng(1)))
        accumulator = make().update(samples(np.random.default_rng(1)))
        with pytest.raises(ValueError, match=message):
            accumulator.update(batch, **options)
        assert_same(accumulator, before)


class TestFourthMoment:
    def test_literally(self, rng):
        Y, w = samples(rng), rng.uniform(0, 2, M)
        frame = Covariance().update(Y, w).frame()
        moment = FourthMoment(frame).update(Y, w)
        Z = (Y - frame.mean) @ frame.forward
        for h, mask in ((None, slice(None)), *enumerate(half_masks(np.arange(M)))):
            np.testing.assert_allclose(moment.moment(h).to_dense(), literal.fourth_moment(Z[mask], w[mask]), atol=1e-10)
            cumulant = literal.fourth_cumulant(Z[mask], w[mask])
            np.testing.assert_allclose(moment.cumulant(h).to_dense(), cumulant, atol=1e-10)
            np.testing.assert_allclose(
                moment.covariance(h), (Z[mask].T * w[mask]) @ Z[mask] / w[mask].sum(), atol=1e-12
            )
        np.testing.assert_allclose(moment.covariance(), np.eye(D), atol=1e-10)

    def test_implicit_is_accumulated_is_literal(self, rng):
        Z, w = rng.standard_normal((M, D)) ** 3, rng.uniform(0, 2, M)
        implicit = ImplicitMoment(Z, half_of(row_hash(np.arange(M))), w)
        accumulated = FourthMoment(identity_frame()).update(Z, w)
        for h, mask in ((None, slice(None)), *enumerate(half_masks(np.arange(M)))):
            expected = literal.fourth_cumulant(Z[mask], w[mask])
            scale = np.max(np.abs(expected))
            for moment in (implicit, accumulated):
                np.testing.assert_allclose(moment.cumulant(h).to_dense(), expected, atol=1e-12 * scale)
                np.testing.assert_allclose(moment.covariance(h), second(Z[mask], w[mask]), atol=1e-12 * scale)
        np.testing.assert_allclose(implicit.effective, accumulated.effective)
        assert implicit.dim == accumulated.dim == D

    def test_an_implicit_moment_with_an_empty_half(self, rng):
        Z = rng.standard_normal((M, D))
        moment = ImplicitMoment(Z, np.ones(M, dtype=int), np.ones(M))
        np.testing.assert_allclose(moment.cumulant().to_dense(), literal.fourth_cumulant(Z), atol=1e-12)
        assert moment.effective[0] == 0

    def test_single_precision_is_summed_in_double(self, rng):
        """A batch beside one of a billion times its weight: float32 sums would not see it."""
        Y, other = samples(rng), samples(rng)
        moment = FourthMoment(identity_frame(), np.float32).update(other, np.full(M, 1e9))
        before = {name: getattr(moment, name).copy() for name in moment._SUMS}
        moment.update(Y.astype(np.float32))
        features = pack_rank_one(Y.astype(np.float32).astype(float))
        masks = half_masks(np.arange(M, 2 * M))
        exact = np.stack([features[:, mask] @ features[:, mask].T for mask in masks])
        np.testing.assert_allclose(moment.fourth - before["fourth"], exact, atol=1e-3 * np.max(exact))
        assert all(getattr(moment, name).dtype == np.float64 for name in moment._SUMS)

    def test_products_in_single_precision(self, rng):
        Y = samples(rng).astype(np.float32)
        frame = Covariance().update(Y).frame()
        exact = FourthMoment(frame, np.float64).update(Y)
        for single in (FourthMoment(frame).update(Y), FourthMoment(frame, "float32").update(Y.astype(float))):
            size = np.max(np.abs(exact.moment().to_packed()))
            error = np.max(np.abs(single.moment().to_packed() - exact.moment().to_packed())) / size
            assert 1e-9 < error < 1e-5
            np.testing.assert_allclose(single.covariance(), np.eye(D), atol=1e-10)  # second moments are always double
        assert FourthMoment(frame, np.float32).update(Y).cumulant().like.dtype == np.float32
        assert FourthMoment(frame).update(Y).cumulant().like.dtype == np.float64

    def test_condition_number(self, seed):
        """Whitening first: a condition number of 1e4, and far from the origin, is no worse than 1."""
        options = {"supports": "blocks", "group": 3, "random_state": seed}
        tame = nice_samples(3000, 6, dictionary=np.eye(6), **options)
        wild = nice_samples(3000, 6, condition=1e4, **options)
        np.testing.assert_array_equal(tame.codes, wild.codes)
        cumulants = []
        for data, offset in ((tame, 0.0), (wild, 10.0)):
            frame = Covariance().update(data.samples + offset).frame()
            assert frame.dim == 6
            # In coordinates in which the atoms are the axes, up to rounding: those of the other frame, rotated.
            moment = FourthMoment(frame).update(data.samples + offset)
            T = Congruence(moment.cumulant(), (data.dictionary @ frame.forward) / np.sqrt(0.1))
            cumulants.append(T.to_packed())
        np.testing.assert_allclose(cumulants[1], cumulants[0], atol=1e-6 * np.max(np.abs(cumulants[0])))

    def test_rank_deficient(self, rng):
        Y = samples(rng, d=3) @ rng.standard_normal((3, 7)) + 1.0
        frame = Covariance().update(Y).frame()
        assert frame.dim == 3
        moment = FourthMoment(frame).update(Y)
        np.testing.assert_allclose(moment.covariance(), np.eye(3), atol=1e-8)
        np.testing.assert_allclose(frame.whiten(Y) @ frame.backward + frame.mean, Y, atol=1e-8)

    def test_frames_must_be_the_same(self, rng):
        Y = samples(rng)
        frame = Covariance().update(Y).frame()
        other = Covariance().update(Y[:-1]).frame()
        with pytest.raises(ValueError, match="merged only if they were taken in the same frame"):
            FourthMoment(frame).update(Y).merge(FourthMoment(other).update(Y))
        again = Covariance().update(Y).frame()
        assert again == frame
        assert hash(again) == hash(frame)
        assert frame != other
        assert frame != "frame"
        assert FourthMoment(frame).update(Y).merge(FourthMoment(again).update(Y)).count == 2 * M
        for change in ("mean", "forward", "backward"):
            moved = dataclasses.replace(frame, **{change: getattr(frame, change) * (1 + 1e-15)})
            assert (moved == frame) == np.array_equal(getattr(moved, change), getattr(frame, change))

    def test_nothing_seen(self):
        moment = FourthMoment(identity_frame())
        for ask in (moment.moment, moment.cumulant, moment.covariance):
            with pytest.raises(ValueError, match="no samples have been seen"):
                ask()

    @pytest.mark.parametrize("coefficients", ["sign", "gaussian", "laplace"])
    @pytest.mark.parametrize("supports", SUPPORTS)
    def test_moments_converge_to_those_of_the_population(self, supports, coefficients, seed):
        """Every entry within some standard deviations of what is stated to be exact."""
        m, n, d = 20_000, 5, 4
        data = nice_samples(m, n, d, supports=supports, coefficients=coefficients, p=0.2, group=3, random_state=seed)
        moment = FourthMoment(identity_frame(d)).update(data.samples)
        features = pack_rank_one(data.samples)
        squares = (features**2) @ (features**2).T / m
        T = moment.moment().to_packed()
        deviation = np.sqrt((squares - T**2) / m)
        assert np.all(np.abs(T - population_moment(data.dictionary, data.moments)) <= SIGMAS * deviation)
