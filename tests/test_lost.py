"""What was lost on the way to the file: what is seen of it, what is no loss, and what it does to certificates."""

import math
import warnings

import numpy as np
import pytest

from quartic import Covariance, SpectralDictionaryLearning
from quartic.certify import Reason
from quartic.evidence.lost import TENTH, Loss, Lost
from quartic.frame import inverse_root

CONTINUOUS = {
    "laplace": lambda rng, shape: rng.laplace(size=shape),
    "uniform": lambda rng, shape: rng.uniform(-1, 1, shape),
    "gaussian": lambda rng, shape: rng.standard_normal(shape),
    "sparse gaussian": lambda rng, shape: rng.standard_normal(shape) * (rng.random(shape) < 0.2),
    "t5": lambda rng, shape: rng.standard_t(5, shape),
    "triangular": lambda rng, shape: rng.triangular(-1, 0, 1, shape),
}
FEW_VALUES = {
    "signs": lambda rng, shape: rng.choice([-1.0, 1.0], shape),
    "sparse signs": lambda rng, shape: rng.choice([-1.0, 1.0], shape) * (rng.random(shape) < 0.1),
    "three points": lambda rng, shape: rng.choice([-1.0, 0.0, 1.0], shape),
}
LAWS = CONTINUOUS | FEW_VALUES
continuous = pytest.mark.parametrize("law", list(CONTINUOUS))


def mixed(law, rng, low=2, high=10):
    """Of 1,000 to 10,000 rows."""
    m, d = int(np.exp(rng.uniform(np.log(1000), np.log(10_000)))), int(rng.integers(low, high + 1))
    return LAWS[law](rng, (m, d)) @ rng.standard_normal((d, d))


def lost_of(Y):
    return Lost.of(Y, Covariance().update(Y).frame())


def kinds(Y):
    return set(lost_of(Y).kinds)


def filled_in(Y, gone, value):
    known = np.where(gone, np.nan, Y)
    return np.where(gone, value(known, axis=0), Y)


@pytest.fixture
def rng(seed, request):
    """Other draws for each test."""
    return np.random.default_rng([seed, *request.node.originalname.encode()])


class TestRounded:
    @continuous
    def test_is_seen_with_its_variance(self, rng, law):
        Y = 100 + mixed(law, rng)
        for step in (np.std(Y, axis=0) * rng.uniform(0.01, 1.0, Y.shape[1]), np.full(Y.shape[1], 2.0**-6)):
            rounded = np.round(Y / step) * step
            lost = lost_of(rounded)
            assert set(lost.kinds) == {Loss.ROUNDED}
            np.testing.assert_allclose(lost.shares * np.var(rounded, axis=0), step**2 / 12, rtol=1e-6)

    def test_one_feature_of_several_is(self, rng):
        Y = mixed("laplace", rng, low=3)
        Y[:, 1] = np.round(Y[:, 1] / Y[:, 1].std(), 1)
        lost = lost_of(Y)
        assert lost.kinds[1] is Loss.ROUNDED
        assert set(np.delete(np.array(lost.kinds, dtype=object), 1)) == {None}
        assert np.flatnonzero(lost.shares).tolist() == [1]
        assert np.all(lost.of_signals(np.eye(Y.shape[1])) > 0)  # in whitened coordinates features are mixed
        assert lost.worst(np.eye(Y.shape[1])[0]) == 1

    def test_single_precision_is_next_to_nothing(self, rng):
        lost = lost_of(mixed("laplace", rng).astype(np.float32).astype(np.float64))
        assert np.max(lost.shares) < 1e-9

    @pytest.mark.parametrize("law", list(LAWS))
    def test_mixtures_in_full_precision_are_not(self, rng, law):
        assert Loss.ROUNDED not in kinds(mixed(law, rng))

    def test_signs_alone_are(self, rng):
        """Nobody knows what they were."""
        lost = lost_of(np.sign(rng.standard_normal((2000, 4))))
        assert set(lost.kinds) == {Loss.ROUNDED}
        np.testing.assert_allclose(lost.shares, 1 / 3, rtol=0.02)


class TestFilled:
    @pytest.mark.parametrize("law", ["laplace", "uniform", "gaussian", "sparse gaussian", "triangular", "sparse signs"])
    def test_with_the_mean_is_seen_with_its_variance(self, rng, law):
        Y = mixed(law, rng, low=4)
        gone = rng.random(Y.shape) < rng.uniform(0.02, 0.3)
        full = filled_in(Y, gone, np.nanmean)
        lost = lost_of(full)
        assert set(lost.kinds) == {Loss.FILLED}
        expected = np.mean(gone, axis=0) * np.var(Y, axis=0)
        np.testing.assert_allclose(lost.shares * np.var(full, axis=0), expected, rtol=0.3)

    @pytest.mark.parametrize("law", ["laplace", "uniform", "gaussian", "t5", "triangular"])
    def test_with_the_median_as_well(self, rng, law):
        d, seen = int(rng.integers(4, 11)), 0
        Y = LAWS[law](rng, (8000, d)) @ rng.standard_normal((d, d))
        count = 2 * int(rng.integers(80, 1200))  # an even number is known: the median is none of them
        gone = np.stack([rng.permutation(8000) < count for _ in range(d)], axis=1)
        full = filled_in(Y, gone, np.nanmedian)
        lost = lost_of(full)
        for f, kind in enumerate(lost.kinds):
            expected = count / 8000 * np.var(Y[:, f])
            seen += kind is Loss.FILLED and abs(lost.shares[f] * np.var(full[:, f]) / expected - 1) < 0.3
        assert seen >= d - 2  # where two values are next to it by chance it is taken for one of them

    def test_one_feature_of_several_is(self, rng):
        Y = mixed("laplace", rng, low=3)
        gone = np.zeros(Y.shape, dtype=bool)
        gone[:, 2] = rng.random(len(Y)) < 0.1
        assert [k for k, kind in enumerate(lost_of(filled_in(Y, gone, np.nanmean)).kinds) if kind] == [2]

    @pytest.mark.parametrize("p", [0.02, 0.1, 0.3])
    def test_signals_at_rest_are_not(self, rng, p):
        m, d = 5000, int(rng.integers(2, 7))
        S = rng.standard_normal((m, d)) * (rng.random((m, d)) < p)
        for Y in (S @ rng.standard_normal((d, d)), S @ rng.standard_normal((d, d)) + 3.7, S):
            assert Loss.FILLED not in kinds(Y)

    @pytest.mark.parametrize("law", list(LAWS))
    def test_nor_are_mixtures(self, rng, law):
        assert Loss.FILLED not in kinds(mixed(law, rng))


class TestClipped:
    @continuous
    def test_at_both_ends_is_seen(self, rng, law):
        Y = mixed(law, rng)
        limit = np.quantile(np.abs(Y), 1 - rng.uniform(0.01, 0.2), axis=0)
        assert kinds(np.clip(Y, -limit, limit)) == {Loss.CLIPPED}

    def test_at_one_end_is_seen(self, rng):
        Y = mixed("laplace", rng)
        limit = np.quantile(Y, 0.95, axis=0)
        for clipped in (np.minimum(Y, limit), np.maximum(Y, -limit)):
            assert kinds(clipped) == {Loss.CLIPPED}

    def test_of_a_laplace_signal_its_variance_is_known(self, rng):
        """Beyond a limit it is exponential, with the mean square 2: of a share of 5% that is lost at each end."""
        Y = rng.laplace(size=(20_000, 2))
        limit = math.log(1 / (2 * 0.05))
        lost = lost_of(np.clip(Y, -limit, limit))
        np.testing.assert_allclose(lost.shares * np.var(np.clip(Y, -limit, limit), axis=0), 2 * 0.05 * 2, rtol=0.2)

    @pytest.mark.parametrize("law", list(LAWS))
    def test_mixtures_are_not(self, rng, law):
        Y = mixed(law, rng)
        assert Loss.CLIPPED not in kinds(Y)

    def test_heavy_tails_are_not(self, rng):
        for Y in (rng.standard_t(2, (5000, 4)), rng.standard_cauchy((5000, 3)), rng.exponential(size=(5000, 4))):
            assert Loss.CLIPPED not in kinds(Y)

    def test_nothing_lies_below_a_zero(self, rng):
        assert Loss.CLIPPED not in kinds(np.maximum(rng.standard_normal((5000, 3)), 0.0))


class TestSquashed:
    @pytest.mark.parametrize("law", ["laplace", "uniform", "gaussian", "sparse gaussian", "triangular"])
    def test_is_seen(self, rng, law):
        Y = mixed(law, rng)
        lost = lost_of(np.tanh((Y - Y.mean(axis=0)) / Y.std(axis=0) * rng.uniform(1.2, 3.0)))
        assert set(lost.kinds) == {Loss.SQUASHED}
        np.testing.assert_allclose(lost.shares, 1.0)
        assert lost.everywhere > 0.99 / Y.shape[1]  # features are no more than all the same

    @pytest.mark.parametrize("law", list(LAWS))
    def test_mixtures_are_not(self, rng, law):
        assert Loss.SQUASHED not in kinds(mixed(law, rng))

    def test_sums_of_arcsines_are_not(self, rng):
        m, d = 5000, int(rng.integers(5, 11))
        Y = np.sin(rng.uniform(0, 2 * np.pi, (m, d))) @ rng.standard_normal((d, d))
        assert Loss.SQUASHED not in kinds(Y)


class TestGrossSensor:
    @pytest.mark.parametrize("law", ["laplace", "uniform", "gaussian"])
    def test_is_named(self, rng, law):
        Y = mixed(law, rng, low=3)
        column = int(rng.integers(Y.shape[1]))
        spikes = rng.random(len(Y)) < rng.uniform(0.01, 0.1)
        Y[:, column] += spikes * rng.standard_normal(len(Y)) * rng.uniform(20, 100) * Y[:, column].std()
        assert lost_of(Y).gross == column

    @pytest.mark.parametrize("law", list(LAWS))
    def test_there_is_none_in_mixtures(self, rng, law):
        assert lost_of(mixed(law, rng, low=3)).gross is None

    def test_nor_where_one_atom_is_rare(self, rng):
        """All features have its spikes, one of them the largest."""
        m, d = 5000, 4
        S = rng.laplace(size=(m, d))
        S[:, 0] = 30 * rng.standard_normal(m) * (rng.random(m) < 0.02)
        A = rng.standard_normal((d, d))
        A[0] = [1.0, 0.3, 0.3, 0.3]
        assert lost_of(S @ A).gross is None


class TestNothing:
    def test_is_known_of_no_features(self):
        lost = Lost.nothing()
        U = np.eye(3)
        assert lost.everywhere == 0
        np.testing.assert_array_equal(lost.of_signals(U), 0)
        np.testing.assert_array_equal(lost.tilts(U), 0)
        assert lost.seen_in(U) is lost

    def test_nor_of_one_direction(self, rng):
        Y = np.round(rng.laplace(size=(1000, 1)) @ np.ones((1, 3)), 1)
        assert lost_of(Y).kinds == ()

    def test_nor_of_few_rows(self, rng):
        assert lost_of(rng.laplace(size=(7, 2))).kinds == ()

    def test_is_lost_of_a_constant(self, rng):
        Y = np.append(rng.laplace(size=(1000, 3)), np.ones((1000, 1)), axis=1)
        lost = lost_of(Y)
        assert lost.kinds == (None,) * 4
        assert not np.any(lost.shares)


def known(G):
    """Noise of covariance ``G'G`` in whitened coordinates."""
    return Lost((Loss.ROUNDED,) * len(G), np.zeros(len(G)), G)


def noise(rng, largest):
    """A covariance ``(r, r)`` with that largest eigenvalue, as ``G (d, r)``: of all features, or of one or two."""
    r = int(rng.integers(2, 8))
    G = rng.standard_normal((int(rng.choice([1, 2, r, r + 3])), r)) * np.exp(rng.uniform(-2, 2, r))
    return G * np.sqrt(largest / np.linalg.norm(G.T @ G, 2))


def atoms_in(G, rng):
    """Rows ``b_i`` with ``B B' = I - N``, and the orthonormal axes next to them."""
    r = G.shape[1]
    C = np.eye(r) - G.T @ G
    Q = np.linalg.qr(rng.standard_normal((r, r)))[0]
    return Q @ inverse_root(np.linalg.inv(C)), Q


def unit(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def angles(U, B):
    cosine = np.abs(np.sum(unit(U) * unit(B), axis=1))
    return np.arctan2(np.linalg.norm(unit(B) - np.sum(unit(U) * unit(B), axis=1)[:, None] * unit(U), axis=1), cosine)


def beside(G, U):
    """The angle ``N u`` may make, without what noise that depends on the signals may add."""
    NU = U @ G.T @ G
    own = np.sum(NU * U, axis=1)
    return np.arctan2(np.linalg.norm(NU - own[:, None] * U, axis=1), 1 - own)


class TestTilts:
    """Atoms ``B`` with ``B B' = I - N`` are beside an axis ``u`` by no more than ``N u``.

    Of axes that all other atoms are normal to that is exact, for ``(I - N) u = B B' u`` is their own atom; of the
    nearest orthonormal axes it follows from Hoelder's inequality: ``(I - N)^(1/2) u`` is no farther from ``u`` than
    ``(I - N) u``.  Of other axes the spread of the noise along ``u`` makes up for it where no direction is mostly
    noise; that is measured.
    """

    def test_are_exact_for_axes_that_see_one_atom_alone(self, rng):
        for _ in range(100):
            G = noise(rng, rng.uniform(0.01, 0.95))
            B, _ = atoms_in(G, rng)
            U = unit(np.linalg.inv(B).T)
            np.testing.assert_allclose(angles(U, B), beside(G, U), atol=1e-7)
            assert np.all(angles(U, B) <= known(G).tilts(U) + 1e-7)

    def test_hold_for_the_nearest_orthonormal_axes(self, rng):
        for _ in range(100):
            G = noise(rng, rng.uniform(0.01, 0.999))
            B, U = atoms_in(G, rng)
            off = angles(U, B)
            assert np.all(off <= beside(G, U) + 1e-7)
            assert np.all(off <= known(G).tilts(U) + 1e-7)

    def test_hold_in_a_plane_of_which_one_direction_is_nearly_lost(self):
        for share in (0.5, 0.9, 0.99, 0.9999):
            for angle in np.linspace(0.0, np.pi / 2, 50):
                G = np.sqrt(share) * np.array([[np.cos(angle), np.sin(angle)]])
                B = inverse_root(np.linalg.inv(np.eye(2) - G.T @ G))
                U = np.eye(2)
                assert np.all(angles(U, B) <= known(G).tilts(U) + 1e-7)

    def test_hold_for_axes_that_are_found_one_after_the_other(self, rng):
        for _ in range(100):
            G = noise(rng, rng.uniform(0.001, 0.3))
            B, _ = atoms_in(G, rng)
            for order in (np.arange(len(B)), rng.permutation(len(B))):
                U = np.linalg.qr(B[order].T)[0].T
                assert np.all(angles(U, B[order]) <= known(G).tilts(U) + 1e-7)

    def test_hold_for_axes_of_largest_kurtosis(self, rng):
        for _ in range(30):
            G = noise(rng, rng.uniform(0.001, 0.3))
            B, U = atoms_in(G, rng)
            kurtosis = np.exp(rng.uniform(-3, 3, len(B)))
            for _ in range(200):
                left, _, right = np.linalg.svd((U @ B.T) ** 3 * kurtosis @ B)
                U = left @ right
            assert np.argmax(np.abs(U @ B.T), axis=1).tolist() == list(range(len(B)))
            assert np.all(angles(U, B) <= known(G).tilts(U) + 1e-7)

    def test_hold_where_values_are_filled_in(self, rng):
        """What is filled in with the mean is not correlated with what is there: ``B B' = I + N``."""
        for _ in range(100):
            G = noise(rng, rng.uniform(0.01, 0.95))
            r = G.shape[1]
            B = np.linalg.qr(rng.standard_normal((r, r)))[0] @ np.linalg.inv(inverse_root(np.eye(r) + G.T @ G))
            U = unit(np.linalg.inv(B).T)
            assert np.all(angles(U, B) <= known(G).tilts(U) + 1e-7)

    def test_are_nothing_without_noise_and_everything_where_all_is_lost(self):
        U = np.eye(3)
        np.testing.assert_array_equal(known(np.zeros((2, 3))).tilts(U), 0)
        assert np.all(known(np.eye(3)).tilts(U) >= np.pi / 2)

    def test_and_shares_do_not_depend_on_the_coordinates(self, rng):
        G = noise(rng, 0.5)
        r = G.shape[1]
        Q = np.linalg.qr(rng.standard_normal((r, r)))[0]
        U = unit(rng.standard_normal((4, r)))
        one, other = known(G), known(G).seen_in(Q)
        np.testing.assert_allclose(other.tilts(U @ Q.T), one.tilts(U), atol=1e-9)
        np.testing.assert_allclose(other.of_signals(U @ Q.T), one.of_signals(U), atol=1e-12)
        np.testing.assert_allclose(other.everywhere, one.everywhere, atol=1e-12)
        assert np.all(one.of_signals(U) >= one.everywhere - 1e-12)
        assert np.max(one.of_signals(U)) <= 0.5 + 1e-12

    def test_are_those_of_samples(self, rng):
        """Noise of a known covariance on Laplace sources, in coordinates that the samples are white in."""
        m, d = 50_000, 4
        A, spread = rng.standard_normal((d, d)), rng.uniform(0.1, 0.4, d)
        Y = rng.laplace(size=(m, d)) / np.sqrt(2) @ A + spread * rng.standard_normal((m, d))
        frame = Covariance().update(Y).frame()
        lost, B = known(spread[:, None] * frame.forward), A @ frame.forward
        assert np.all(angles(unit(np.linalg.inv(B).T), B) <= lost.tilts(unit(np.linalg.inv(B).T)) + 0.03)
        np.testing.assert_allclose(B.T @ B, np.eye(d) - lost.G.T @ lost.G, atol=0.05)


SPOILED = (
    "walks", "AR(0.999)", "slow sines", "repeated", "rounded", "imputed", "clipped", "squashed", "signs",
    "gross sensor",
)  # fmt: skip


def fitted(Y, seed, count=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SpectralDictionaryLearning(count, random_state=seed).fit(Y)


class TestFits:
    @pytest.mark.parametrize("kind", SPOILED)
    def test_certify_nothing_wrong(self, seed, kind):
        spoiled = pytest.importorskip("benchmarks.spoiled", reason="no benchmarks in a source distribution")
        judged = pytest.importorskip("benchmarks.must_show.one_proof").judged
        assert kind in spoiled.KINDS
        for case_seed in (1000 + 2 * seed, 1001 + 2 * seed):
            case = spoiled.draw(kind, case_seed, shape=(2000, 4))
            model = fitted(case.samples, case_seed, case.sources if case_seed % 2 else None)
            assert judged(case, model)["wrong"] == 0
            if kind in ("walks", "AR(0.999)", "repeated", "rounded", "imputed", "signs"):
                assert case.cause in (model.status_.code, *model.status_.causes)

    def test_all_kinds_are_tried(self):
        assert set(pytest.importorskip("benchmarks.spoiled").KINDS) == set(SPOILED)

    def test_certify_less_the_more_is_lost(self, rng, seed):
        Y = rng.laplace(size=(5000, 4)) @ np.linalg.qr(rng.standard_normal((4, 4)))[0]
        best = 1.0
        for step in (0.01, 0.1, 0.3, 0.5):
            model = fitted(np.round(Y / step) * step, seed)
            assert 0.5 < np.max(model.certificates_) < best + 1e-3
            assert np.max(model.certificates_) < 1 - 0.9 * step**2 / 12 / 2  # of a variance of 2
            best = np.max(model.certificates_)

    def test_certify_nothing_where_more_than_a_tenth_is_lost(self, rng, seed):
        Y = rng.laplace(size=(5000, 4)) @ np.linalg.qr(rng.standard_normal((4, 4)))[0]
        step = 1.05 * math.sqrt(12 * TENTH / (1 - TENTH)) * Y.std(axis=0)
        model = fitted(np.round(Y / step) * step, seed)
        assert not np.any(model.certified_)
        assert {doubt.reason for doubt in model.doubts_} == {Reason.LOST}
        assert model.status_.code == "rounded"
