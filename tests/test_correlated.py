"""End to end on strongly correlated supports: what is learned, what is said about it, and other temperatures."""

import functools
import warnings

import numpy as np
import pytest
from sklearn.decomposition import FastICA

from quartic import DecompositionWarning, SpectralDictionaryLearning, SpectralICA
from quartic.algorithms.temper import Tempering, effective, tempering
from quartic.datasets import nice_samples
from quartic.metrics import match

N, GROUP, M = 15, 5, 16_000
NAMES = ("temperature_", "effective_samples_", "tau_")


@functools.cache
def data_of(seed):
    """Blocks far beyond the third up to which plain moments and local methods find the axes."""
    return nice_samples(M, N, supports="blocks", group=GROUP, cooccurrence=0.6, random_state=seed)


@functools.cache
def model_of(seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DecompositionWarning)  # in some seeds an atom is not certified
        return SpectralDictionaryLearning().fit(data_of(seed).samples)


def small(seed, **options):
    """Two blocks of four."""
    settings = {"supports": "blocks", "group": 4, "cooccurrence": 0.6, "dictionary": "orthonormal", **options}
    return nice_samples(5000, 8, **settings, random_state=seed)


def excess(model, data):
    """By how much the largest certificate exceeds the truth, in whitened coordinates."""
    found, true = (A @ model.frame_.forward for A in (model.components_, data.components))
    return np.max(model.certificates_ - np.max(match(found, true).table, axis=1))


# What is found, and what is said about it


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_blocks_are_learned_where_a_local_method_fails(seed):
    data, model = data_of(seed), model_of(seed)
    assert match(data.components, model.components_).found(1 - 1e-9) == N
    assert np.sum(model.certified_) >= N - 2
    assert excess(model, data) <= 0
    assert model.report_.local >= N - GROUP
    assert "untangle" in model.report_.timings
    peer = FastICA(random_state=seed, max_iter=100, whiten="unit-variance").fit(data.samples)
    assert match(data.components, peer.mixing_.T).found(0.95) < N / 2


def test_groups_are_the_blocks(seed):
    data, model = data_of(seed), model_of(seed)
    matched = match(model.components_, data.components)
    block = np.empty(N, dtype=int)
    block[matched.rows] = matched.columns // GROUP
    assert len(model.groups_) == N // GROUP
    assert sorted(np.concatenate(model.groups_).tolist()) == list(range(N))
    for group in model.groups_:
        assert np.unique(block[group]).size == 1


def test_tau_and_weights(seed):
    data, model = data_of(seed), model_of(seed)
    assert model.tau_ == pytest.approx(data.tau, abs=0.12)  # the largest of 105, from some thousand samples
    assert model.temperature_ > 0
    squares = np.sum(model.frame_.whiten(data.samples) ** 2, axis=1)
    w = Tempering(model.temperature_, tempering(squares).least).weights(squares)
    assert model.effective_samples_ / model.report_.subsample == pytest.approx(effective(w) / M, rel=0.1)
    report = model.report_
    assert (report.temperature, report.effective, report.tau) == tuple(getattr(model, name) for name in NAMES)
    text = report.summary()
    assert f"tau {model.tau_:.2f}, 3 groups" in text
    assert f"temperature {model.temperature_:.3g}, {model.effective_samples_:.0f} effective samples" in text


def test_independent_atoms_are_in_no_group(seed):
    data = nice_samples(6000, 8, dictionary="orthonormal", random_state=seed)
    model = SpectralDictionaryLearning().fit(data.samples)
    assert model.groups_ == []
    assert model.tau_ == pytest.approx(0.1, abs=0.08)
    assert model.report_.local == 0
    assert "untangle" not in model.report_.timings


def test_a_single_atom(seed):
    model = SpectralDictionaryLearning(1).fit(nice_samples(500, 1, d=1, random_state=seed).samples)
    assert model.tau_ == 0
    assert model.groups_ == []


def test_files_keep_it(tmp_path, seed):
    model = model_of(seed)
    model.save(tmp_path / "a.npz")
    again = SpectralDictionaryLearning.load(tmp_path / "a.npz")
    for name in NAMES:
        assert getattr(again, name) == getattr(model, name)
    assert [group.tolist() for group in again.groups_] == [group.tolist() for group in model.groups_]
    assert all(isinstance(group, np.ndarray) for group in again.groups_)
    assert again.temperature is None
    assert again.report_.local == model.report_.local
    forced = SpectralDictionaryLearning(temperature=np.float32(0.25)).fit(small(seed).samples)
    forced.save(tmp_path / "b.npz")
    assert SpectralDictionaryLearning.load(tmp_path / "b.npz").temperature == 0.25


def test_the_other_estimator_has_the_same(seed):
    data = small(seed)
    models = [kind(random_state=3).fit(data.samples) for kind in (SpectralDictionaryLearning, SpectralICA)]
    for name in NAMES:
        one, two = (getattr(model, name) for model in models)
        assert one == two
    assert [g.tolist() for g in models[0].groups_] == [g.tolist() for g in models[1].groups_]
    assert len(models[0].groups_) == 2


@pytest.mark.filterwarnings("ignore::quartic.DecompositionWarning")  # plain moments certify nothing here
def test_moments_alone_say_it_too(seed):
    data = nice_samples(6000, 8, supports="blocks", group=4, cooccurrence=0.25, random_state=seed)
    model = SpectralDictionaryLearning().partial_fit(data.samples)
    assert model.temperature_ == 0
    assert model.effective_samples_ == pytest.approx(6000)
    assert model.tau_ == pytest.approx(0.25, abs=0.1)
    assert sorted(len(group) for group in model.groups_) == [4, 4]


# Other temperatures


@pytest.mark.filterwarnings("ignore::quartic.DecompositionWarning")
def test_plain_moments(seed):
    model = SpectralDictionaryLearning(8, temperature=0).fit(small(seed).samples)
    assert model.report_.temperature == model.temperature_ == 0
    assert "untangle" not in model.report_.timings
    assert model.report_.local == 0
    assert model.effective_samples_ == pytest.approx(model.report_.subsample)
    easy = nice_samples(5000, 8, dictionary="orthonormal", random_state=seed)
    assert np.all(SpectralDictionaryLearning(8, temperature=0.0).fit(easy.samples).certified_)


@pytest.mark.filterwarnings("ignore::quartic.DecompositionWarning")
@pytest.mark.parametrize(("temperature", "snr"), [(3.0, None), (1e4, None), (3.0, 10)])
def test_far_too_strong_weights_certify_nothing_wrong(seed, temperature, snr):
    data = small(seed, snr=snr)
    model = SpectralDictionaryLearning(8, temperature=temperature).fit(data.samples)
    assert excess(model, data) < 0.02  # halves may agree by chance, where many axes are known well
    assert model.temperature_ in (temperature, 0)  # 0 where plain moments did better


@pytest.mark.filterwarnings("ignore::quartic.DecompositionWarning")
def test_nor_on_gaussian_samples(seed):
    Y = np.random.default_rng(seed).standard_normal((2000, 4))
    for temperature in (None, 1.0, 100.0):
        assert not np.any(SpectralICA(4, temperature=temperature).fit(Y).certified_)


@pytest.mark.parametrize("kind", [SpectralDictionaryLearning, SpectralICA])
@pytest.mark.parametrize("value", [-1.0, -1e-300, np.inf, np.nan, "1", [1.0], np.ones(1), True, 1j])
def test_temperatures_that_are_refused(kind, value):
    with pytest.raises(ValueError, match="temperature must be a number, finite and not negative, or None; got"):
        kind(temperature=value).fit(small(0).samples)


@pytest.mark.parametrize("value", [0, 1, np.float32(0.25), np.int64(1)])
def test_numbers_of_any_type(value):
    data = nice_samples(3000, 6, dictionary="orthonormal", random_state=0)
    model = SpectralDictionaryLearning(temperature=value).fit(data.samples)
    assert model.temperature_ == value
    assert match(data.components, model.components_).found(0.99) == 6


# Outliers


@pytest.mark.parametrize("options", [{"dictionary": "gaussian"}, {"dictionary": "orthonormal", "snr": 15}], ids=str)
@pytest.mark.parametrize("supports", ["independent", "blocks"])
def test_one_outlier_in_a_thousand_changes_nothing(seed, supports, options):
    squared = []
    for share in (0.0, 0.001):
        data = nice_samples(6000, 8, supports=supports, group=4, outliers=share, **options, random_state=seed)
        model = SpectralDictionaryLearning(8).fit(data.samples)
        assert model.report_.trimmed == np.count_nonzero(data.outliers) == round(6000 * share)
        squared.append(match(data.components, model.components_).squared)
    np.testing.assert_allclose(squared[1], squared[0], rtol=0, atol=1e-3)
