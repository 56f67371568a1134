"""The estimators in every array library: with scikit-learn's array dispatch, results are where the samples are."""

import copy

import numpy as np
import pytest
import sklearn
from conftest import LIBRARIES, library
from sklearn.base import clone

from quartic import Covariance, FourthMoment, SpectralDictionaryLearning, SpectralICA, full_precision
from quartic._arrays import on_host
from quartic.datasets import nice_samples
from quartic.metrics import match
from quartic.views import ImplicitMoment

pytestmark = [
    pytest.mark.filterwarnings("ignore::quartic.DecompositionWarning"),  # where few samples certify little
    pytest.mark.usefixtures("dispatch"),
]

N, M = 8, 4000
BOTH = [SpectralDictionaryLearning, SpectralICA]
ARRAYS = {
    SpectralDictionaryLearning: ("components_", "mean_", "thresholds_"),
    SpectralICA: ("components_", "mixing_", "mean_", "whitening_"),
}
COMMON = ("certificates_", "certified_", "uncertainty_", "stability_", "kurtosis_")


@pytest.fixture(params=BOTH)
def kind(request):
    return request.param


@pytest.fixture(params=[name for name in LIBRARIES if name != "numpy"])  # which the others are compared with
def xp(request):
    return library(request.param)


def draw(seed, **options):
    return nice_samples(M, N, **{"supports": "blocks", "group": 4, **options}, random_state=seed)


def arrays(model):
    """All attributes that are arrays, by name."""
    return {name: getattr(model, name) for name in (*ARRAYS[type(model)], *COMMON)}


def close(xp, model, expected):
    """A model of a library holds the answer of another of NumPy."""
    for name, value in arrays(model).items():
        ours, theirs = xp.numpy(value).astype(np.float64), getattr(expected, name).astype(np.float64)
        if name == "whitening_":  # up to a rotation
            ours, theirs = ours.T @ ours, theirs.T @ theirs
        # The spectral stage works in float32, whatever the samples: certificates are as accurate.
        elsewhere = 0.2 if name == "uncertainty_" else 0.05  # which is that of two halves
        scale = xp.within(1e-4, elsewhere) if name in COMMON else 1e-7
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=scale * max(1, np.max(np.abs(theirs))), err_msg=name)
    assert model.status_ == expected.status_


@pytest.mark.parametrize(
    "options", [{}, {"n_components": N}, {"n_components": N, "moment": "implicit"}, {"refine": False}]
)
def test_all_of_it_in_every_library(seed, xp, kind, options):
    # Plain moments want more samples, or independent supports.
    Y = draw(seed, **({} if options.get("refine", True) else {"supports": "independent", "group": 5})).samples
    model = kind(**options).fit(xp.asarray(Y))
    expected = kind(**options).fit(Y)
    close(xp, model, expected)
    S = model.transform(xp.asarray(Y))
    np.testing.assert_allclose(xp.numpy(S), expected.transform(Y), rtol=0, atol=1e-5)
    np.testing.assert_allclose(xp.numpy(model.inverse_transform(S)), Y, rtol=0, atol=1e-9)


def test_float32(seed, xp, kind):
    data = draw(seed)
    Y = xp.asarray(data.samples, "float32")
    model = kind(N).fit(Y)
    S = model.transform(Y)
    assert S.dtype == xp.dtype("float32")
    assert model.inverse_transform(S).dtype == xp.dtype("float32")
    assert match(data.components, model.to_numpy().learned_.components).found(0.9999) == N
    assert model.status_.ok


@pytest.mark.parametrize("snr", [10.0, 30.0])
def test_with_noise(seed, xp, kind, snr):
    """No exact answer: the refinement ends within a part of the standard error, on another way."""
    Y = nice_samples(10_000, N, dictionary="orthonormal", snr=snr, random_state=seed).samples
    model, expected = kind(N).fit(xp.asarray(Y)), kind(N).fit(Y)
    pairs = match(expected.learned_.components, model.to_numpy().learned_.components)
    assert np.all(1 - pairs.squared < np.max(expected.uncertainty_) ** 2)
    assert model.status_.code == expected.status_.code


def test_tangled_supports(seed, xp):
    data = nice_samples(10_000, 6, supports="blocks", group=3, cooccurrence=0.8, random_state=seed)
    model = SpectralDictionaryLearning(6).fit(xp.asarray(data.samples))
    assert match(data.components, model.to_numpy().components_).found(0.99) == 6
    assert xp.numpy(model.certified_).all()


def test_more_atoms_than_features(seed, xp, kind):
    data = nice_samples(30_000, 12, d=8, p=0.12, random_state=seed)
    Y = xp.asarray(data.samples)
    model, expected = kind(12).fit(Y), kind(12).fit(data.samples)
    assert match(expected.learned_.components, model.to_numpy().learned_.components).found(0.9999) == 12
    S = model.transform(Y[:100, :])
    assert xp.owns(S)
    assert S.shape == (100, 12)
    assert xp.owns(model.components_)


def test_partial_fit(seed, xp, kind):
    Y = nice_samples(6000, N, dictionary="orthonormal", random_state=seed).samples
    model, expected = kind(N), kind(N)
    for batch in np.split(Y, 2):
        model.partial_fit(xp.asarray(batch))
        expected.partial_fit(batch)
    close(xp, model, expected)
    assert xp.owns(model.moment_.fourth)
    host = model.to_numpy()
    assert isinstance(host.moment_.fourth, np.ndarray)
    np.testing.assert_allclose(host.moment_.fourth, expected.moment_.fourth, rtol=1e-10, atol=1e-8)


def test_weights_and_known_atoms_from_the_library(seed, xp, kind):
    data = draw(seed, dictionary="orthonormal", supports="independent", group=5)
    w = np.random.default_rng(seed).integers(0, 3, M)
    known = data.components[:2]
    model = kind(N, known_components=xp.asarray(known)).fit(xp.asarray(data.samples), sample_weight=xp.asarray(w))
    expected = kind(N, known_components=known).fit(data.samples, sample_weight=w)
    close(xp, model, expected)


def test_to_numpy(seed, xp, kind, tmp_path):
    Y = draw(seed).samples
    model = kind(N).fit(xp.asarray(Y))
    host = model.to_numpy()
    assert xp.owns(model.components_), "the model itself stays where it is"
    for name, value in arrays(host).items():
        assert isinstance(value, np.ndarray), name
        np.testing.assert_array_equal(value, xp.numpy(getattr(model, name)))
    np.testing.assert_allclose(host.transform(Y), xp.numpy(model.transform(xp.asarray(Y))), rtol=0, atol=1e-12)
    model.save(tmp_path / "model.npz")
    for name, value in arrays(kind.load(tmp_path / "model.npz")).items():
        np.testing.assert_array_equal(value, getattr(host, name), err_msg=name)
    with pytest.raises(sklearn.exceptions.NotFittedError):
        clone(model).to_numpy()


def test_samples_of_another_library_are_refused(seed, xp, kind):
    Y = draw(seed).samples
    model = kind(N).fit(xp.asarray(Y))
    for method in (model.transform, model.inverse_transform):
        with pytest.raises(ValueError, match="must use the same namespace and the same device"):
            method(Y)


def test_without_dispatch_samples_become_those_of_numpy(seed, xp, kind):
    if not on_host(xp.asarray([0.0])):
        pytest.skip("arrays of a device do not become NumPy's unasked")
    Y = draw(seed).samples
    with sklearn.config_context(array_api_dispatch=False):
        model = kind(N).fit(xp.asarray(Y))
        assert isinstance(model.components_, np.ndarray)
        assert isinstance(model.inverse_transform(model.transform(xp.asarray(Y))), np.ndarray)


def test_full_precision_is_what_the_host_does_anyway(seed, xp, kind):
    Y = xp.asarray(draw(seed, dictionary="orthonormal", supports="independent", group=5).samples, "float32")
    with full_precision():
        exact = kind(N, moment="implicit").fit(Y)
    model = kind(N, moment="implicit").fit(Y)
    if on_host(Y):
        np.testing.assert_array_equal(xp.numpy(model.components_), xp.numpy(exact.components_))
    assert match(exact.to_numpy().learned_.components, model.to_numpy().learned_.components).found(0.9999) == N


# The accumulators


def test_moments_of_any_library_are_those_of_numpy(seed, xp):
    Y = draw(seed).samples
    w = np.random.default_rng(seed).random(M)
    covariance = Covariance().update(xp.asarray(Y), xp.asarray(w))
    np.testing.assert_allclose(covariance.covariance, Covariance().update(Y, w).covariance, rtol=1e-12)
    frame = Covariance().update(Y, w).frame()
    moment = FourthMoment(frame, like=xp.asarray(Y)).update(xp.asarray(Y[:1000]), xp.asarray(w[:1000]))
    moment.update(xp.asarray(Y[1000:]), w[1000:])
    expected = FourthMoment(frame).update(Y, w)
    assert xp.owns(moment.fourth)
    np.testing.assert_allclose(moment.to_numpy().fourth, expected.fourth, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(moment.covariance(), expected.covariance(), rtol=1e-10, atol=1e-12)
    Z = frame.whiten(xp.asarray(Y))
    half = (np.arange(M) % 2).astype(np.intp)
    implicit, theirs = ImplicitMoment(Z, half, w), ImplicitMoment(frame.whiten(Y), half, w)
    for h in (None, 0, 1):
        packed = xp.numpy(implicit.cumulant(h).to_packed())
        np.testing.assert_allclose(packed, theirs.cumulant(h).to_packed(), rtol=1e-9, atol=1e-9)


def test_what_was_moved_has_sums_of_its_own(seed, xp):
    Y = draw(seed).samples
    frame = Covariance().update(Y).frame()
    moment = FourthMoment(frame, like=xp.asarray(Y)).update(xp.asarray(Y))
    for original in (moment, moment.to_numpy()):
        before = {name: value.copy() for name, value in original._saved().items()}
        original.to_numpy().update(Y)
        for name, value in original._saved().items():
            np.testing.assert_array_equal(value, before[name], err_msg=name)


def test_moments_of_another_library_are_moved(seed, xp):
    Y = draw(seed).samples
    frame = Covariance().update(Y).frame()
    moment = FourthMoment(frame).update(xp.asarray(Y))
    assert isinstance(moment.fourth, np.ndarray)
    np.testing.assert_allclose(moment.fourth, FourthMoment(frame).update(Y).fourth, rtol=1e-12)


def test_moments_of_two_libraries_merge(seed, xp):
    Y = draw(seed).samples
    frame = Covariance().update(Y).frame()
    here, there = FourthMoment(frame), FourthMoment(frame, like=xp.asarray(Y))
    here.update(Y[:1500])
    there.update(xp.asarray(Y[1500:]), index=1500)
    expected = FourthMoment(frame).update(Y)
    for merged in (there.to_numpy().merge(here), copy.deepcopy(here).merge(there), there.merge(here)):
        np.testing.assert_allclose(merged.to_numpy().fourth, expected.fourth, rtol=1e-9, atol=1e-9)
        assert merged.count == M


@pytest.mark.parametrize("bad", ["complex64", "complex128"])
def test_complex_samples_are_refused(xp, bad):
    with pytest.raises(ValueError, match="batch must hold real numbers"):
        Covariance().update(xp.asarray(np.ones((5, 2)), bad))
