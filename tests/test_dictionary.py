"""End to end: the dictionary of small problems, of every kind, for any seed."""

import math
import warnings

import numpy as np
import pytest
from sklearn.decomposition import FastICA

from quartic import Covariance, DecompositionWarning, SpectralDictionaryLearning, SpectralICA
from quartic.datasets import nice_samples, random_orthonormal
from quartic.datasets.samples import COEFFICIENTS, SUPPORTS
from quartic.learn.plan import choose_form
from quartic.metrics import match
from quartic.samples import FAR, TRIM, trim

N, M = 14, 6000
EXACT = 1 - 1e-9


def draw(seed, m=M, n=N, d=None, **options):
    return nice_samples(m, n, d, **{"group": 5, "dictionary": "orthonormal", **options}, random_state=seed)


def squared(model, data):
    """Squared correlation of each atom with its true partner, in whitened coordinates; what certificates bound."""
    found, true = (A @ model.frame_.forward for A in (model.components_, data.components))
    matched = match(found, true)
    return matched.squared


# Exactly sparse samples


@pytest.mark.parametrize("coefficients", COEFFICIENTS)
@pytest.mark.parametrize("supports", SUPPORTS)
def test_exact_for_every_model_of_supports_and_coefficients(seed, supports, coefficients):
    data = draw(seed, supports=supports, coefficients=coefficients, dictionary="gaussian")
    model = SpectralDictionaryLearning().fit(data.samples)
    assert match(data.components, model.components_).found(EXACT) == N == model.n_components_
    assert np.all(model.certified_)
    assert model.status_.code == "complete"
    assert model.report_.refinement.startswith("the data are exactly sparse: dictionary exact to")
    assert np.max(model.uncertainty_) < 1e-9
    assert np.all(model.certificates_ <= squared(model, data) + 1e-9)


def test_atoms_of_very_different_frequency_and_length(seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((N, N)) * np.geomspace(1, 100, N)[:, None]
    data = draw(seed, m=10_000, dictionary=A, frequencies=np.geomspace(1, 3, N), p=0.1)
    model = SpectralDictionaryLearning(N).fit(data.samples)
    matched = match(data.components, model.components_)
    assert matched.found(EXACT) == N
    energy = np.linalg.norm(A, axis=1) * np.sqrt(np.diagonal(data.pair))
    rank = np.argsort(np.argsort(-energy[matched.rows]))
    assert np.all(np.abs(rank - matched.columns) <= 1)  # the most energy first; neighbours are close


def test_a_badly_conditioned_dictionary(seed):
    data = draw(seed, dictionary="gaussian", condition=1e4)
    model = SpectralDictionaryLearning(N).fit(data.samples)
    assert match(data.components, model.components_).found(EXACT) == N
    assert model.status_.ok


@pytest.mark.parametrize("distance", [1e3, 1e6])
def test_data_far_from_the_origin(seed, distance):
    data = draw(seed)
    shift = distance * np.random.default_rng(seed).standard_normal(N)
    model = SpectralDictionaryLearning(N).fit(data.samples + shift)
    assert match(data.components, model.components_).found(EXACT) == N
    assert model.status_.ok
    assert model.report_.trimmed == 0
    np.testing.assert_allclose(model.mean_, shift, rtol=0, atol=1e-12 * distance)


def test_gross_outliers_are_left_out(seed):
    data = draw(seed, outliers=0.01)
    model = SpectralDictionaryLearning(N).fit(data.samples)
    assert model.report_.trimmed == np.count_nonzero(data.outliers) == M // 100
    assert match(data.components, model.components_).found(EXACT) == N
    assert model.status_.ok


def test_single_precision_is_exact_to_single_precision(seed):
    data = draw(seed, dtype=np.float32)
    model = SpectralDictionaryLearning(N).fit(data.samples)
    assert match(data.components, model.components_).found(EXACT) == N
    assert model.report_.refinement.startswith("the data are exactly sparse")
    assert np.max(model.uncertainty_) < 1e-5


# Noise


@pytest.mark.parametrize("supports", SUPPORTS)
def test_noise_of_ten_decibels(seed, supports):
    data = draw(seed, m=8000, supports=supports, snr=10)
    model = SpectralDictionaryLearning(N).fit(data.samples)
    matched = match(data.components, model.components_)
    assert matched.found(0.99) == N
    assert model.status_.ok
    assert np.all(model.certificates_ <= squared(model, data))
    # What it says about its error, against the error.
    error, said = np.sqrt(1 - matched.squared), model.uncertainty_[matched.columns]
    assert 1 / 3 < np.median(said) / np.median(error) < 3
    assert 1 / 3 < np.median(said / error) < 3


@pytest.mark.parametrize("snr", [10, 40, 80])
def test_samples_that_are_not_exactly_sparse_are_not_called_so(seed, snr):
    model = SpectralDictionaryLearning(N).fit(draw(seed, snr=snr).samples)
    assert "exact" not in model.report_.refinement
    assert not np.any(model.thresholds_)
    assert np.max(model.uncertainty_) > 1e-7


@pytest.mark.filterwarnings("ignore::quartic.DecompositionWarning")  # a source with the lightest tails of six
@pytest.mark.parametrize("source", ["laplace", "uniform"])
def test_sources_that_are_not_sparse(rng, source):
    S = rng.laplace(size=(M, 6)) if source == "laplace" else rng.uniform(-1, 1, size=(M, 6))
    model = SpectralDictionaryLearning(6).fit(S)
    assert "exact" not in model.report_.refinement
    assert match(np.eye(6), model.components_).found(0.99) == 6
    assert np.sum(model.certified_) >= 4


def test_more_samples_are_better(seed):
    errors = []
    for m in (3000, 30_000):
        data = draw(seed, m=m, snr=10)
        model = SpectralDictionaryLearning(N).fit(data.samples)
        errors.append(
            (np.median(1 - match(data.components, model.components_).squared), np.median(model.uncertainty_**2))
        )
    (few, few_said), (many, many_said) = errors
    assert many < few / 4  # ten times the samples, a tenth of the squared error
    assert many_said < few_said / 4


@pytest.mark.parametrize(("n", "d"), [(8, 16), (5, 20)])
def test_fewer_atoms_than_dimensions(seed, n, d):
    data = draw(seed, n=n, d=d, snr=10)
    model = SpectralDictionaryLearning().fit(data.samples)
    assert model.n_components_ == n
    assert match(data.components, model.components_).found(0.99) == n
    assert model.status_.ok
    assert f"{n} eigenvalues of the covariance stand above a floor" in model.report_.frame_reason


# What can not be found


@pytest.mark.parametrize(("m", "d"), [(1000, 3), (3000, 6), (1000, 12)])
def test_gaussian_samples_have_no_dictionary(rng, m, d):
    model = SpectralDictionaryLearning()
    with pytest.warns(DecompositionWarning, match=f"0 of {d} atoms certified"):
        model.fit(rng.standard_normal((m, d)) @ rng.standard_normal((d, d)))
    assert model.status_.code == "no-structure"
    assert model.n_components_ == d
    assert "exact" not in model.report_.refinement


def test_too_few_samples_are_said_and_the_answer_is_as_good_as_that_of_fastica(seed):
    ours, theirs = 0, 0
    for part in range(3):
        data = draw(100 * seed + part, m=150, n=12, snr=20)
        model = SpectralICA(12)
        with pytest.warns(DecompositionWarning, match="certified"):
            model.fit(data.samples)
        assert not model.status_.ok
        assert not np.all(model.certified_)
        assert model.report_.subsample == 150
        fast = FastICA(12, whiten="unit-variance", random_state=part, max_iter=2000, tol=1e-3).fit(data.samples)
        ours += match(data.components, model.mixing_.T).found(0.9)
        theirs += match(data.components, fast.mixing_.T).found(0.9)
    assert ours >= theirs - 1
    assert ours >= 30


@pytest.mark.filterwarnings("ignore::quartic.DecompositionWarning")
@pytest.mark.parametrize("m", [100, 400, 1500])
def test_certificates_do_not_exceed_the_truth(seed, m):
    for supports in ("blocks", "hubs", "markov"):
        data = draw(seed, m=m, n=10, supports=supports, cooccurrence=0.4, snr=10)
        model = SpectralDictionaryLearning(10).fit(data.samples)
        assert np.all(model.certificates_[model.certified_] <= squared(model, data)[model.certified_])


# How it was done


def test_forms_agree(seed):
    data = draw(seed, snr=10)
    models = {
        form: SpectralDictionaryLearning(N, moment=form).fit(data.samples) for form in ("accumulated", "implicit")
    }
    for form, model in models.items():
        assert model.report_.form == form
        assert model.status_.ok
    a, b = models.values()
    assert a.report_.subsample == b.report_.subsample
    np.testing.assert_allclose(a.components_, b.components_, rtol=0, atol=1e-2 * np.median(a.uncertainty_))
    np.testing.assert_allclose(a.certificates_, b.certificates_, rtol=0, atol=1e-2)
    np.testing.assert_allclose(a.eps_, b.eps_, rtol=0.05)


def test_the_form_is_chosen_by_operations_and_memory():
    assert choose_form("auto", 10**6, 5, 5, math.inf) == "accumulated"  # many samples of few dimensions
    assert choose_form("auto", 10**4, 200, 200, math.inf) == "implicit"  # a packed matrix of 20,100 rows
    N2 = 60 * 61 // 2
    assert choose_form("auto", 60_000, 60, 200, math.inf) == "accumulated"
    assert choose_form("auto", 60_000, 60, 200, 8 * N2 * N2) == "implicit"  # no room for a few such matrices
    for form in ("accumulated", "implicit"):
        assert choose_form(form, 10**6, 5, 5, math.inf) == choose_form(form, 10**4, 200, 200, 0) == form


def test_only_as_many_samples_as_needed_feed_the_spectral_stage(seed):
    model = SpectralDictionaryLearning(N).fit(draw(seed, m=20_000).samples)
    assert f"a fixed point, {N} of {N} atoms certified" in model.report_.subsample_reason
    assert model.report_.samples == model.n_samples_seen_ == 20_000
    model = SpectralDictionaryLearning(N, temperature=0.05).fit(draw(seed, m=20_000).samples)
    assert model.report_.subsample < 5000
    assert f"{N} of {N} atoms are certified, more samples are left" in model.report_.subsample_reason
    model = SpectralDictionaryLearning(N, temperature=0.05).fit(draw(seed, m=1000).samples)
    assert model.report_.subsample == 1000
    assert f"all there are, {N} of {N} atoms are certified" in model.report_.subsample_reason
    model = SpectralDictionaryLearning(N, refine=False).fit(draw(seed, m=20_000).samples)
    assert model.report_.subsample == 20_000


def test_the_report_is_whole(seed):
    report = SpectralDictionaryLearning(N).fit(draw(seed, snr=10).samples).report_
    assert list(report.timings) == ["trim", "covariance", "evidence", "search", "certify", "refine", "measure"]
    assert all(seconds >= 0 for seconds in report.timings.values())
    assert (report.dim, report.trimmed, report.window) == (N, 0, (0, 0))
    assert report.sweeps == 0  # a fixed point did
    assert report.passes > 0
    assert report.spectrum.shape[0] >= N
    assert np.all(np.diff(np.abs(report.spectrum)) <= 1e-6 * report.spectrum[0])
    lines = report.summary().splitlines()
    words = ["samples", "evidence", "dimension", "atoms", "spectral", "tried", "weights", "supports", "refinement"]
    assert [line.split()[0] for line in lines] == [*words, "time"]


def test_eps_is_the_norm_of_what_the_atoms_leave(seed):
    r = 5
    data = draw(seed, n=r, m=2000)
    model = SpectralDictionaryLearning(r, refine=False).fit(data.samples)
    Z = model.frame_.whiten(data.samples)
    T = np.einsum("si,sj,sk,sl->ijkl", Z, Z, Z, Z, optimize=True) / len(Z)
    C, eye = Z.T @ Z / len(Z), np.eye(r)
    np.testing.assert_allclose(C, eye, rtol=0, atol=1e-9)
    for pairing in ("ij,kl->ijkl", "ik,jl->ijkl", "il,jk->ijkl"):
        T -= np.einsum(pairing, eye, eye)
    U = model.components_ @ model.frame_.forward
    U /= np.linalg.norm(U, axis=1, keepdims=True)
    values = np.einsum("ijkl,ai,aj,ak,al->a", T, U, U, U, U)
    np.testing.assert_allclose(model.kurtosis_, values, rtol=1e-6)
    weights = np.linalg.solve((U @ U.T) ** 4, values)
    T -= np.einsum("a,ai,aj,ak,al->ijkl", weights, U, U, U, U)
    norm = np.max(np.abs(np.linalg.eigvalsh(T.reshape(r * r, r * r))))
    assert 0.9 * norm <= model.eps_ <= 1.001 * norm  # the iteration errs from below


def test_a_given_frame_is_used(seed):
    data = draw(seed, snr=10)
    frame = Covariance().update(data.samples[:1000]).frame(N)
    model = SpectralDictionaryLearning(N, frame=frame).fit(data.samples)
    assert match(data.components, model.components_).found(0.99) == N
    tall = draw(seed, n=8, d=20, snr=10)
    wide = Covariance().update(tall.samples).frame(10)  # two directions of noise more than there are atoms
    model = SpectralDictionaryLearning(8, frame=wide).fit(tall.samples)
    assert model.report_.dim == 10
    assert match(tall.components, model.components_).found(0.99) == 8


# Samples that outweigh all others


class TestTrim:
    def test_nothing_to_trim(self, rng):
        for X in (
            rng.standard_normal((500, 4)),
            rng.standard_t(5, size=(500, 4)) + 1e6,
            np.zeros((20, 3)),
            np.ones((1, 3)),
        ):
            assert trim(X, None) == (None, 0)
        w = rng.uniform(size=500)
        kept, count = trim(rng.standard_normal((500, 4)), w)
        assert kept is w
        assert count == 0

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_gross_samples_go(self, rng, dtype):
        X = rng.standard_normal((500, 4)).astype(dtype) + 3
        X[[3, 77]] = [[1e6] * 4, [0, 0, -np.finfo(dtype).max, 0]]  # the square of the second overflows
        kept, count = trim(X, None)
        assert count == 2
        np.testing.assert_array_equal(kept, np.isin(np.arange(500), [3, 77], invert=True).astype(float))

    @pytest.mark.parametrize("tails", ["light", "heavy"])
    def test_the_limits(self, rng, tails):
        """By nearly the longest of the others; where these are much longer than most, by the length of most."""
        X = rng.standard_normal((625, 3))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        if tails == "heavy":
            X[10:20] *= 10
        X -= np.median(X, axis=0)
        norms = np.linalg.norm(X - np.median(X, axis=0), axis=1)
        limits = TRIM * 625**0.25 * np.quantile(norms, 0.9), FAR * np.quantile(norms, 0.995)
        assert (limits[0] < limits[1]) == (tails == "heavy")
        for factor, count in ((0.9, 0), (1.1, 1)):
            X[5] = [factor * min(limits), 0, 0]
            assert trim(X, None)[1] == count

    def test_weights_are_respected(self, rng):
        X, w = rng.standard_normal((500, 4)), rng.uniform(1, 2, size=500)
        X[[3, 77]], w[77] = 1e6, 0.0
        before = w.copy()
        kept, count = trim(X, w)
        assert count == 1  # the other was left out already
        np.testing.assert_array_equal(w, before)
        before[3] = 0.0
        np.testing.assert_array_equal(kept, before)


class TestFewerThanThereAre:
    """Principal components cut through atoms: what is found in them need not be any."""

    def draw(self, rng, coefficients="sparse"):
        x = rng.laplace(size=(20_000, 8)) if coefficients == "laplace" else rng.standard_normal((20_000, 8))
        x = x if coefficients == "laplace" else x * (rng.random(x.shape) < 0.1)
        return x, x @ rng.standard_normal((8, 8))

    @pytest.mark.parametrize("kind", [SpectralDictionaryLearning, SpectralICA])
    @pytest.mark.parametrize("refine", [True, False])
    @pytest.mark.parametrize("n", [1, 3])
    def test_they_are_atoms(self, rng, kind, n, refine):
        x, Y = self.draw(rng)
        model = kind(n, refine=refine).fit(Y)
        truth = np.max(np.corrcoef(model.transform(Y).T, x.T)[:n, n:] ** 2, axis=1)
        assert np.all(truth > 0.95)
        assert np.all(model.certificates_ <= truth + 0.01)
        assert model.status_.ok
        assert "8 were looked for" in model.report_.rank_reason
        assert model.components_.shape == (n, 8)
        assert model.frame_.dim == n

    def test_in_batches(self, rng):
        x, Y = self.draw(rng)
        model = SpectralDictionaryLearning(3)
        for batch in np.array_split(Y, 4):
            model.partial_fit(batch)
        truth = np.max(np.corrcoef(model.transform(Y).T, x.T)[:3, 3:] ** 2, axis=1)
        assert np.all(truth > 0.95)
        assert np.all(model.certified_)

    def test_the_largest_are_returned(self, rng):
        x = rng.laplace(size=(20_000, 6)) * np.array([5.0, 4.0, 1.0, 1.1, 0.9, 1.2])
        A = rng.standard_normal((6, 6))
        A /= np.linalg.norm(A, axis=1, keepdims=True)
        model = SpectralDictionaryLearning(2).fit(x @ A)
        assert match(A[:2], model.components_).found(0.95) == 2

    def test_known_ones_are_among_them(self, rng):
        _, Y = self.draw(rng)
        every = SpectralDictionaryLearning().fit(Y)
        smallest = every.components_[-1:]
        model = SpectralDictionaryLearning(2, known_components=smallest).fit(Y)
        assert match(smallest, model.components_).found(0.999) == 1

    def test_groups_are_those_of_what_is_kept(self, rng):
        data = nice_samples(20_000, 8, supports="blocks", group=4, cooccurrence=0.5, random_state=0)
        model = SpectralDictionaryLearning(5).fit(data.samples)
        assert model.groups_
        assert all(np.all(group < 5) and group.size > 1 for group in model.groups_)

    @pytest.mark.parametrize("m", [2000, 20_000])
    def test_gaussian_noise_may_be_cut_off(self, rng, m):
        x = rng.laplace(size=(m, 3))
        Y = 3 * x @ random_orthonormal(20, 3, rng) + 0.3 * rng.standard_normal((m, 20))
        for n in (3, None):
            model = SpectralDictionaryLearning(n).fit(Y)
            assert model.n_components_ == 3
            assert model.report_.dim == 3

    def test_signals_of_equal_variance_are_no_noise(self, rng):
        x = rng.laplace(size=(20_000, 10)) * np.array([3.0] * 3 + [1.0] * 7)
        model = SpectralDictionaryLearning().fit(x @ random_orthonormal(10, 10, rng))
        assert model.n_components_ == 10
        assert np.all(model.certified_)

    def test_signals_of_either_sign_do_not_pass_for_noise(self, rng):
        """Their kurtosis cancels in the norm."""
        x = np.concatenate((rng.laplace(size=(20_000, 3)), 1.5 * rng.choice([-1.0, 1.0], (20_000, 3))), axis=1)
        Y = x @ rng.standard_normal((6, 6))
        model = SpectralDictionaryLearning(2).fit(Y)
        truth = np.max(np.corrcoef(model.transform(Y).T, x.T)[:2, 2:] ** 2, axis=1)
        assert np.all(truth > 0.95)


def test_an_outlier_in_a_feature_of_small_units_is_trimmed(rng):
    x = rng.laplace(size=(20_000, 6))
    Y = (x @ rng.standard_normal((6, 6))) * np.array([1e3, 1, 1, 1, 1, 1])
    Y[5, 2] = 1e3
    model = SpectralDictionaryLearning().fit(Y)
    assert model.report_.trimmed == 1
    codes = np.delete(model.transform(Y), 5, axis=0)
    assert match(np.delete(x, 5, axis=0).T, codes.T).found(0.95) == 6


@pytest.mark.parametrize("count", [100, 2000])
def test_samples_of_weight_zero_count_for_nothing(rng, count):
    Y = nice_samples(100_000, 3, random_state=1).samples
    weight = np.zeros(100_000)
    chosen = rng.choice(100_000, count, replace=False)
    weight[chosen] = 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SpectralDictionaryLearning().fit(Y, sample_weight=weight)
    assert model.report_.subsample == count
