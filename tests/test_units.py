"""Units: which rows are independent of each other, standard errors by them, and rows that are copies."""

import numpy as np
import pytest
from scipy.signal import lfilter

from quartic import Covariance, FourthMoment, SpectralDictionaryLearning
from quartic.certify.contrast import _Units, cube, measure, tanh
from quartic.certify.readings import small_norms
from quartic.evidence.parts import Evidence, distinct
from quartic.evidence.units import EDGE, STRETCHES, Kind, _in_pairs, rows_alone, seen
from quartic.metrics import match
from quartic.samples import Held

pytestmark = pytest.mark.filterwarnings("ignore::quartic.DecompositionWarning")  # dependent rows certify less

LAWS = {
    "laplace": lambda rng, shape: rng.laplace(size=shape) / np.sqrt(2),
    "uniform": lambda rng, shape: rng.uniform(-1, 1, shape) * np.sqrt(3),
    "sparse": lambda rng, shape: rng.standard_normal(shape) * (rng.random(shape) < 0.1) * np.sqrt(10),
    "t3": lambda rng, shape: rng.standard_t(3, shape) / np.sqrt(3),
}
FEW_VALUES = {
    "signs": lambda rng, shape: rng.choice([-1.0, 1.0], shape),
    "sparse signs": lambda rng, shape: (
        rng.choice([-1.0, 1.0], shape) * (rng.random(shape) < 0.1 + 0.4 * rng.random(shape[1]))
    ),
    "poisson": lambda rng, shape: rng.poisson(rng.uniform(0.2, 3.0, shape[1]), shape).astype(float),
    "rounded gaussians": lambda rng, shape: np.round(rng.standard_normal(shape) * rng.uniform(0.5, 5.0, shape[1])),
}


def autoregressive(rng, coefficient, shape, p=1.0):
    """Of Laplace innovations, of which a share ``p`` is not zero."""
    innovations = rng.laplace(size=shape) * (rng.random(shape) < p)
    return lfilter([1.0], [1.0, -coefficient], innovations, axis=0)


def white(X):
    X = X - X.mean(axis=0)
    values, vectors = np.linalg.eigh(X.T @ X / len(X))
    return X @ vectors / np.sqrt(values)


def up_to(rng, low, high):
    return int(np.exp(rng.uniform(np.log(low), np.log(high))))


class TestSeen:
    @pytest.mark.parametrize("m", [1, 2, 7, 8])
    def test_sums_of_pairs(self, rng, m):
        X = rng.standard_normal((m, 3))
        np.testing.assert_allclose(_in_pairs(X), np.add.reduceat(X, np.arange(0, m, 2), axis=0), atol=1e-15)

    def test_independent_rows_are_units_of_their_own(self, seed):
        rng = np.random.default_rng([seed, 1])
        alarms = 0
        for draw in range(200):
            shape = up_to(rng, 200, 20_000 if draw % 10 == 0 else 2000), int(rng.integers(1, 13))
            law = LAWS[list(LAWS)[draw % 4]]
            alarms += not seen(law(rng, shape), np.arange(shape[0])).alone
        assert alarms <= 5  # by chance once in 100,000 times, at the rate of 1 in 500

    @pytest.mark.parametrize("shape", [(150, 2), (500, 2), (2000, 4), (20_000, 12)])
    def test_walks_have_no_independent_parts(self, seed, shape):
        rng = np.random.default_rng([seed, 2])
        for X in (np.cumsum(rng.laplace(size=shape), axis=0), autoregressive(rng, 0.999, shape)):
            units = seen(white(X), np.arange(len(X)))
            assert units.kind is Kind.STRETCHES
            assert units.needed == STRETCHES
            assert not units.enough
            assert f"{STRETCHES} are needed" in str(units)

    @pytest.mark.parametrize("shape", [(500, 1), (2000, 1), (500, 12), (2000, 12)])
    def test_nor_have_slow_sines(self, seed, shape):
        rng = np.random.default_rng([seed, 3])
        m, d = shape
        X = np.sin(2 * np.pi * (np.arange(m)[:, None] / m * rng.uniform(1, 20, d) + rng.random(d)))
        assert not seen(white(X), np.arange(m)).enough

    def test_what_is_soon_over_leaves_stretches(self, seed):
        rng = np.random.default_rng([seed, 4])
        m, enough = 20_000, 0
        for _ in range(10):
            units = seen(white(autoregressive(rng, 0.9, (m, 4))), np.arange(m))
            assert units.kind is Kind.STRETCHES
            assert 10 < units.effect < 40  # (1 + 0.9) / (1 - 0.9) is 19
            if units.enough:
                assert units.length > 5 / (1 - 0.9)
                assert units.count == -(-m // units.length) >= STRETCHES
            enough += units.enough
        assert enough >= 7  # a correlation that is there by chance at the two longest lengths counts as one

    def test_stretches_are_dealt_in_turn_without_their_edges(self, seed):
        rng = np.random.default_rng([seed, 5])
        while not (units := seen(white(autoregressive(rng, 0.9, (20_000, 3))), np.arange(20_000))).enough:
            pass
        edge = units.of < 0
        place = np.arange(20_000)
        np.testing.assert_array_equal(edge, place % units.length < EDGE * units.length)
        np.testing.assert_array_equal(units.of[~edge], place[~edge] // units.length)
        np.testing.assert_array_equal(units.half[~edge], units.of[~edge] % 2)
        assert np.min(np.diff(np.flatnonzero(units.apart))) >= units.effect
        some = units.at(~edge)
        assert np.min(some.of) >= 0
        np.testing.assert_array_equal(some.apart, units.apart[~edge])

    @pytest.mark.parametrize("coefficient", [0.9, 0.98])
    def test_bursts_are_seen_though_signals_are_white(self, seed, coefficient):
        rng = np.random.default_rng([seed, 6])
        shape = 10_000, 4
        spread = np.sqrt(1 - coefficient**2)
        envelope = np.exp(lfilter([1.0], [1.0, -coefficient], spread * rng.standard_normal(shape), axis=0))
        Z = white(envelope * rng.standard_normal(shape))
        assert seen(Z, np.arange(len(Z))).kind is Kind.STRETCHES
        order = rng.permutation(len(Z))
        assert seen(Z[order], np.arange(len(Z))).found < 6

    def test_the_order_that_rows_come_in_does_not_matter(self, seed):
        rng = np.random.default_rng([seed, 7])
        for X in (autoregressive(rng, 0.8, (10_000, 4)), autoregressive(rng, 0.999, (2000, 4))):
            Z, order = white(X), rng.permutation(len(X))
            index = 3 * np.arange(len(X)) + 7
            one, other = seen(Z, index), seen(Z[order], index[order])
            same = ("kind", "count", "needed", "length", "effect", "found")
            assert [getattr(one, name) for name in same] == [getattr(other, name) for name in same]
            for name in ("of", "half", "apart") if one.enough else ("half", "apart"):
                np.testing.assert_array_equal(getattr(one, name)[order], getattr(other, name))

    @pytest.mark.parametrize("share", [0.5, 0.25, 0.1])
    def test_a_random_part_of_the_rows_shows_it_as_well(self, seed, share):
        rng = np.random.default_rng([seed, 8])
        X = autoregressive(rng, 0.99, (20_000, 4))
        rows = np.flatnonzero(rng.random(len(X)) < share)
        units = seen(white(X)[rows], rows)
        assert units.kind is Kind.STRETCHES
        assert units.effect > 0.25 * share * 199  # (1 + 0.99) / (1 - 0.99)
        if units.enough:
            assert units.length > 100

    def test_from_few_rows_nothing_is_told(self, rng):
        for m in (0, 1, 2 * STRETCHES - 1):
            units = seen(rng.standard_normal((m, 2)), np.arange(m))
            assert units.alone
            assert units.enough

    def test_rows_that_do_not_vary_are_units_of_their_own(self):
        assert seen(np.zeros((1000, 2)), np.arange(1000)).alone

    def test_the_half_of_a_row_goes_by_its_place(self, rng):
        order = rng.permutation(5000)
        np.testing.assert_array_equal(rows_alone(order).half, rows_alone(np.arange(5000)).half[order])
        assert 2200 < np.sum(rows_alone(order).half) < 2800


def literal(S, units, score):
    """Sums over units of the influence of each sample, squared: kurtosis (r,), offset (r, r), dependence (r, r)."""
    m, r = S.shape
    spread = np.sqrt(np.mean(S**2, axis=0))
    psi, slope, phi = score(S / spread)
    slope, phi = slope / spread, phi / spread
    out = np.zeros(r), np.zeros((r, r)), np.zeros((r, r))
    for i in range(r):
        steep, own = np.mean(slope[:, i]), spread[i] ** 2
        influence = psi[:, i] * S[:, i] - steep * S[:, i] ** 2 - slope[:, i] * own
        influence = influence - np.mean(influence)
        turned = psi[:, i] - np.mean(psi[:, i]) - steep * S[:, i]
        for u in np.unique(units):
            mine = units == u
            out[0][i] += (np.sum(influence[mine]) / m) ** 2
            for j in range(r):
                out[1][i, j] += (np.sum(turned[mine] * S[mine, j]) / m) ** 2
                centred = (phi[mine, i] - np.mean(phi[:, i])) * (S[mine, j] ** 2 - spread[j] ** 2)
                out[2][i, j] += (np.sum(centred) / m) ** 2
    return out


def jackknife(S, units, figure):
    """Variance of a figure of samples, by leaving out one unit after the other."""
    names = np.unique(units)
    without = np.array([figure(S[units != u]) for u in names])
    return (len(names) - 1) / len(names) * np.sum((without - without.mean(axis=0)) ** 2, axis=0)


def in_units(rng, m=1200, r=3, count=40):
    """Samples in units with a level and a gain of their own."""
    units = rng.integers(count, size=m)
    S = rng.laplace(size=(m, r)) * np.exp(0.3 * rng.standard_normal((count, r)))[units]
    return white(S + 0.3 * rng.standard_normal((count, r))[units]), units


@pytest.mark.parametrize("score", [cube, tanh])
class TestStandardErrors:
    def test_of_rows_that_are_units_are_those_without_units(self, rng, score):
        m, r = 3000, 5
        S = white(LAWS["laplace"](rng, (m, r)))
        weights = rng.uniform(0.5, 1.5, (m, r))
        for W in (np.full((m, 1), 1 / m), weights / np.sum(weights, axis=0)):
            plain = measure(S, W, score)
            for units in (np.arange(m), rng.permutation(m), 5 * rng.permutation(m) + 2):
                inflation = np.sqrt(_Units(units).inflation)
                assert 1 < inflation < 1.01
                found = measure(S, W, score, units)
                pairs = [
                    (getattr(found, name), getattr(plain, name))
                    for name in ("kurtosis", "shape", "offset", "stiffness", "coupling", "dependence", "skewness")
                ]
                if W.shape[1] == 1:
                    pairs += list(zip(found.harmonics, plain.harmonics, strict=True))
                for a, b in pairs:
                    np.testing.assert_allclose(a.value, b.value, rtol=1e-9, atol=1e-12)
                    assert np.all(a.error >= b.error * (1 - 1e-9))
                    assert np.all(a.error <= inflation * b.error * (1 + 1e-6))
                np.testing.assert_allclose(found.gaussian, found.kurtosis.error)

    def test_are_those_of_literal_sums_over_units(self, rng, score):
        S, units = in_units(rng)
        W = np.full((len(S), 1), 1 / len(S))
        found, plain = measure(S, W, score, units), measure(S, W, score)
        kurtosis, offset, dependence = literal(S, units, score)
        alone = literal(S, np.arange(len(S)), score)
        inflation = _Units(units).inflation
        np.testing.assert_allclose(found.kurtosis.error**2, inflation * kurtosis, rtol=1e-8)
        np.testing.assert_allclose(found.offset.error**2, inflation * offset, rtol=1e-8, atol=1e-15)
        np.testing.assert_allclose(plain.kurtosis.error**2, alone[0], rtol=1e-8)
        np.testing.assert_allclose(plain.offset.error**2, alone[1], rtol=1e-8, atol=1e-15)
        # The sample that was not seen yet is added to both.
        more = found.dependence.error**2 - plain.dependence.error**2
        np.testing.assert_allclose(more, inflation * dependence - alone[2], rtol=1e-7, atol=1e-13)

    def test_are_about_those_of_a_jackknife(self, rng, score):
        S, units = in_units(rng, m=4000, count=100)
        spread = np.sqrt(np.mean(S**2, axis=0))

        def figures(X):
            X = X - X.mean(axis=0)
            psi, slope, phi = score(X / spread)
            slope, phi, C = slope / spread, phi / spread, X.T @ X / len(X)
            kurtosis = np.mean(psi * X, axis=0) - np.mean(slope, axis=0) * np.diag(C)
            offset = psi.T @ X / len(X) - np.mean(slope, axis=0)[:, None] * C
            dependence = phi.T @ X**2 / len(X) - np.outer(np.mean(phi, axis=0), np.mean(X**2, axis=0))
            return np.stack((np.diag(kurtosis), offset, dependence))

        found = measure(S, np.full((len(S), 1), 1 / len(S)), score, units)
        kurtosis, offset, dependence = np.sqrt(_Units(units).inflation * jackknife(S, units, figures))
        other = ~np.eye(3, dtype=bool)
        np.testing.assert_allclose(found.kurtosis.error, np.diag(kurtosis), rtol=0.25)
        np.testing.assert_allclose(found.offset.error[other], offset[other], rtol=0.25)
        assert np.all(found.dependence.error[other] > 0.75 * dependence[other])

    def test_of_few_units_are_larger(self, rng, score):
        S = white(LAWS["laplace"](rng, (2000, 3)))
        inflation = [_Units(np.arange(2000) * n // 2000).inflation for n in (10, 30, 100, 2000)]
        assert inflation == sorted(inflation, reverse=True)
        assert inflation[0] > 4
        many, few = (measure(S, np.full((2000, 1), 1 / 2000), score, np.arange(2000) * n // 2000) for n in (400, 10))
        np.testing.assert_array_equal(many.kurtosis.value, few.kurtosis.value)


class TestSmallNorms:
    FIGURES = ("all", "sparse", "against", "denser", "count", "weaker")

    def samples(self, rng, m, r=4):
        return LAWS["sparse"](rng, (m, r)) + 0.05 * rng.standard_normal((m, r))

    def test_of_rows_that_are_units_are_those_without_units(self, rng):
        S = self.samples(rng, 9000)
        dependent = np.zeros((4, 4), dtype=bool)
        dependent[0, 1] = dependent[1, 0] = True
        plain = small_norms(S, dependent)
        for unit in (np.arange(9000), rng.permutation(9000)):
            found = small_norms(S, dependent, unit)
            for name in self.FIGURES:
                np.testing.assert_allclose(getattr(found, name), getattr(plain, name), rtol=1e-5, atol=1e-9)

    @pytest.mark.parametrize("times", [2, 7, 20])
    def test_of_repeated_rows_are_those_of_the_rows(self, rng, times):
        m = 8000 // times
        S, unit = self.samples(rng, m), rng.permutation(np.repeat(np.arange(m), times))
        dependent = np.zeros((4, 4), dtype=bool)
        dependent[0, 1] = dependent[1, 0] = True
        once, copied = small_norms(S, dependent), small_norms(S[unit], dependent, unit)
        fooled = small_norms(S[unit], dependent)
        np.testing.assert_allclose(copied.count, once.count, rtol=0.1)  # what is silent goes by a quantile
        np.testing.assert_allclose(copied.all, once.all, rtol=0.05, atol=0.3)
        np.testing.assert_allclose(fooled.count, times * copied.count, rtol=1e-5)
        np.testing.assert_allclose(fooled.all, np.sqrt(times) * copied.all, rtol=1e-5)
        np.testing.assert_allclose(copied.denser[0, 1], once.denser[0, 1], atol=0.1)
        for name in ("sparse", "against"):
            a, b = (np.log(np.maximum(getattr(x, name), 1e-300)) for x in (copied, once))
            np.testing.assert_allclose(a, b, rtol=0.25, atol=1.0)

    def test_counts_fall_by_what_units_have_in_common(self, rng):
        """Units in which one signal alone is active, or the other one: sums over them vary more."""
        m, size = 6000, 30
        unit = np.arange(m) // size
        active = np.repeat(rng.random((m // size, 2)) < 0.5, size, axis=0)
        S = rng.standard_normal((m, 2)) * np.where(active, 1.0, 0.1)
        none = np.zeros((2, 2), dtype=bool)
        assert small_norms(S, none, unit).count[0, 1] < small_norms(S, none).count[0, 1] / 2
        assert small_norms(S, none, unit).all[0, 1] < small_norms(S, none).all[0, 1] / np.sqrt(2)


class TestCopies:
    @pytest.mark.parametrize("name", ["laplace", "uniform", "sparse signs", "poisson", "rounded gaussians"])
    def test_are_seen(self, seed, name):
        rng = np.random.default_rng([seed, 9])
        for together in (True, False):
            m, d, times = int(rng.integers(300, 1000)), int(rng.integers(4, 9)), int(rng.integers(2, 51))
            X = np.unique((LAWS | FEW_VALUES)[name](rng, (m, d)), axis=0) @ rng.standard_normal((d, d))
            rows = np.repeat(np.arange(len(X)), times)
            rows = rows if together else rng.permutation(rows)
            kept = distinct(X[rows], np.arange(len(rows)))
            np.testing.assert_array_equal(np.sort(rows[kept]), np.arange(len(X)))
            assert np.all(np.diff(kept) > 0)

    def test_are_seen_beside_rows_that_are_alike_by_chance(self, seed):
        rng = np.random.default_rng([seed, 10])
        X = FEW_VALUES["sparse signs"](rng, (1000, 4)) @ rng.standard_normal((4, 4))
        rows = rng.permutation(np.repeat(np.arange(1000), 6))
        kept = distinct(X[rows], np.arange(6000))
        assert len(kept) == len(np.unique(np.round(X, 9), axis=0))

    def test_the_first_of_each_is_kept(self, rng):
        X = rng.laplace(size=(400, 1))
        for rows in (np.repeat(np.arange(400), 5), rng.permutation(np.repeat(np.arange(400), 5))):
            index = rng.permutation(10_000)[:2000]
            order = np.argsort(index)
            first = order[np.unique(rows[order], return_index=True)[1]]
            np.testing.assert_array_equal(distinct(X[rows], index), np.sort(first))

    def test_pairs_are_seen_in_a_random_quarter_of_the_rows(self, seed):
        rng = np.random.default_rng([seed, 11])
        rows = np.repeat(np.arange(3000), 2)
        rows = rows[rng.random(6000) < 0.25]
        kept = distinct(rng.laplace(size=(3000, 3))[rows], np.arange(len(rows)))
        np.testing.assert_array_equal(np.sort(rows[kept]), np.unique(rows))

    def test_as_far_as_digits_tell(self, rng):
        X = np.repeat(rng.laplace(size=(500, 3)), 4, axis=0)
        assert len(distinct(X + 1e-12 * rng.standard_normal(X.shape), np.arange(2000))) == 500
        assert len(distinct(X + 1e-3 * rng.standard_normal(X.shape), np.arange(2000))) == 2000

    @pytest.mark.parametrize("name", list(FEW_VALUES))
    def test_samples_that_are_alike_by_chance_are_none(self, seed, name):
        rng = np.random.default_rng([seed, 12])
        alarms = 0
        for _ in range(60):
            m, d = up_to(rng, 50, 5000), int(rng.integers(1, 9))
            Z = FEW_VALUES[name](rng, (m, d)) @ rng.standard_normal((d, d))
            alarms += len(distinct(Z, rng.permutation(10 * m)[:m])) < m
        assert alarms <= 3  # by chance once in 100,000 times, at the rate of 1 in 500

    def test_nor_are_samples_that_differ(self, rng):
        for m in (0, 1, 2, 3, 500):
            np.testing.assert_array_equal(distinct(rng.laplace(size=(m, 3)), np.arange(m)), np.arange(m))
        np.testing.assert_array_equal(distinct(np.zeros((2, 3)), np.arange(2)), np.arange(2))

    def test_counts_that_chance_makes_are_moments(self, rng):
        """Of the mixing law under weights ``exp(-mean)``: the inequality of Cauchy and Schwarz, sharp for one mean."""
        factorial = np.cumprod(np.append(1.0, np.arange(1.0, 40)))
        c = np.arange(1, 39)
        for points in (1, 1, 2, 3, 10, 200):
            means = np.exp(rng.uniform(np.log(0.01), np.log(20), points))
            weights = rng.dirichlet(np.full(points, 0.3))
            f = np.sum(weights * np.exp(-means) * means ** np.arange(40)[:, None], axis=1) / factorial
            left, right = f[c - 1] * f[c + 1], c / (c + 1) * f[c] ** 2
            assert np.all(left >= right * (1 - 1e-9))
            if points == 1:
                np.testing.assert_allclose(left, right, rtol=1e-9)

    def test_copies_count_once(self, rng):
        Y = rng.laplace(size=(800, 3))
        evidence = Evidence.of(Held(np.repeat(Y, 5, axis=0)), Covariance().update(Y).frame())
        assert evidence.Z.shape == (800, 3)
        assert evidence.copies == 5
        assert evidence.total == 800
        assert not evidence.halves_by_hash
        again = Evidence.of(Held(Y), Covariance().update(Y).frame())
        assert again.copies == 1
        assert again.halves_by_hash


def mixed(seed, m=10_000, d=4):
    """AR(0.9) of sparse innovations, mixed; and the atoms."""
    rng = np.random.default_rng([seed, 13])
    S = autoregressive(rng, 0.9, (m, d), p=0.1)
    A = rng.standard_normal((d, d))
    return S / S.std(axis=0) @ A, A


def fitted(Y, **parameters):
    return SpectralDictionaryLearning(**parameters).fit(Y)


def same(a, b):
    np.testing.assert_allclose(a.components_, b.components_, rtol=0, atol=1e-8)
    np.testing.assert_allclose(a.certificates_, b.certificates_, rtol=0, atol=1e-8)
    assert (a.status_.code, a.report_.units) == (b.status_.code, b.report_.units)


class TestFits:
    @pytest.mark.parametrize("shape", [(300, 2), (2000, 4), (5000, 8)])
    @pytest.mark.parametrize("refine", [True, False])
    def test_of_walks_certify_nothing(self, seed, shape, refine):
        rng = np.random.default_rng([seed, 14])
        Y = np.cumsum(rng.laplace(size=shape), axis=0) @ rng.standard_normal((shape[1], shape[1]))
        model = fitted(Y, refine=refine)
        assert not np.any(model.certified_)
        assert model.status_.code == "serial"
        assert "independent stretches of rows" in model.status_.message

    def test_certificates_rest_on_stretches(self, seed):
        Y, A = mixed(seed)
        model = fitted(Y)
        assert "serial" in (model.status_.code, *model.status_.causes)
        assert "stretches of" in model.report_.units
        squared = match(model.components_, A).squared
        assert np.all(squared[model.certified_] > 0.5)

    @pytest.mark.parametrize("rows", ["auto", "exchangeable"])
    def test_rows_in_random_order_are_units_again(self, seed, rows):
        Y, A = mixed(seed)
        model = fitted(Y[np.random.default_rng(seed).permutation(len(Y))], rows=rows)
        if rows == "exchangeable":
            assert model.report_.units == "rows"
            assert "serial" not in (model.status_.code, *model.status_.causes)
        assert np.all(match(model.components_, A).squared[model.certified_] > 0.5)
        assert fitted(Y, rows="exchangeable").report_.units == "rows"

    def test_do_not_depend_on_chunks(self, seed):
        da = pytest.importorskip("dask.array")
        Y, _ = mixed(seed)
        for refine in (True, False):
            whole = fitted(Y, refine=refine)
            for rows in (900, 3001):
                same(whole, fitted(da.from_array(Y, chunks=(rows, Y.shape[1])), refine=refine))

    def test_nor_on_batches(self, seed):
        Y, _ = mixed(seed)
        frame = Covariance().update(Y).frame()
        whole = fitted(Y, refine=False, frame=frame)
        for cuts in ([3000], [1500, 1501, 3000, 9600]):
            model, moment = SpectralDictionaryLearning(frame=frame), FourthMoment(frame)
            for first, batch in zip([0, *cuts], np.split(Y, cuts), strict=True):
                model.partial_fit(batch)
                moment = FourthMoment(frame).update(batch, index=first).merge(moment)
            same(whole, model)
            same(whole, SpectralDictionaryLearning().fit_moment(moment))
