"""``SpectralICA`` as a drop-in for ``FastICA``."""

import numpy as np
import pytest
from sklearn.decomposition import FastICA

import quartic
from quartic import SpectralDictionaryLearning, SpectralICA
from quartic.metrics import match

M = 6000
SOURCES = {  # of variance 1, and their excess kurtosis
    "laplace": (lambda rng, m: rng.laplace(scale=np.sqrt(0.5), size=m), 3.0),
    "uniform": (lambda rng, m: rng.uniform(-np.sqrt(3), np.sqrt(3), size=m), -1.2),
    "sign": (lambda rng, m: rng.choice([-1.0, 1.0], size=m), -2.0),
    "sparse": (lambda rng, m: rng.choice([-1.0, 1.0], size=m) * (rng.random(m) < 0.2) / np.sqrt(0.2), 2.0),
    "triangular": (lambda rng, m: rng.triangular(-np.sqrt(6), 0, np.sqrt(6), size=m), -0.6),
}


def mixed(rng, names, d=None, noise=0.0):
    """Sources, mixing matrix and samples ``S @ A.T + noise + a shift``."""
    S = np.column_stack([SOURCES[name][0](rng, M) for name in names])
    d = len(names) if d is None else d
    U, _, V = np.linalg.svd(rng.standard_normal((d, len(names))), full_matrices=False)
    A = (U * np.linspace(1, 3, len(names))) @ V
    return S, A, S @ A.T + noise * rng.standard_normal((M, d)) + 5.0


@pytest.mark.parametrize(
    "names",
    [
        ["laplace"] * 5,
        ["uniform"] * 5,
        ["sign", "sign", "sign"],
        ["laplace", "uniform", "sign", "sparse", "triangular"],
        ["sparse", "sparse", "uniform", "uniform"],
    ],
    ids=[
        "-".join(sorted(set(names))) for names in (["laplace"], ["uniform"], ["sign"], SOURCES, ["sparse", "uniform"])
    ],
)
def test_sources_of_either_kind_are_found(rng, names):
    S, A, X = mixed(rng, names)
    model = SpectralICA().fit(X)
    assert model.status_.ok
    assert np.all(model.certified_)
    found = model.transform(X)
    matched = match(S.T - S.mean(axis=0)[:, None], found.T)
    assert matched.found(0.99) == len(names)
    assert match(A.T, model.mixing_.T).found(0.99) == len(names)
    # Heavy tails have a kurtosis that itself has heavy tails; it is that of the samples, so compare with theirs.
    true = np.mean(S**4, axis=0) / np.mean(S**2, axis=0) ** 2 - 3
    found = model.kurtosis_[matched.columns]
    assert np.array_equal(np.sign(found), np.sign(true))
    np.testing.assert_allclose(found, true, rtol=0.5, atol=0.1)


@pytest.mark.filterwarnings("ignore::quartic.DecompositionWarning")  # three principal components mix five sources
@pytest.mark.parametrize("k", [3, 5])
def test_attributes_and_shapes_are_those_of_fastica(rng, k):
    sources, _, X = mixed(rng, list(SOURCES), d=5, noise=0.01)
    model = SpectralICA(k).fit(X)
    fast = FastICA(k, whiten="unit-variance", random_state=0, max_iter=1000, tol=1e-3).fit(X)
    assert {name for name in vars(fast) if name.endswith("_") and name != "_unmixing"} <= set(vars(model))
    for name in ("components_", "mixing_", "mean_", "whitening_"):
        assert getattr(model, name).shape == getattr(fast, name).shape, name
        assert getattr(model, name).dtype == getattr(fast, name).dtype, name
    assert isinstance(model.n_iter_, int)
    np.testing.assert_allclose(model.mean_, fast.mean_, rtol=0, atol=1e-9)
    S = model.transform(X)
    assert S.shape == fast.transform(X).shape
    np.testing.assert_allclose(model.components_ @ model.mixing_, np.eye(S.shape[1]), rtol=0, atol=1e-6)
    if k is None or k == 5:
        expected = fast.inverse_transform(fast.transform(X))
        np.testing.assert_allclose(model.inverse_transform(S), expected, rtol=0, atol=1e-6)
    else:  # not the principal components, which mix all sources, but some of these
        assert match(sources.T, S.T).found(0.95) == k


def test_both_find_the_same_sources(rng):
    _, _, X = mixed(rng, ["laplace", "uniform", "sparse", "sign"])
    ours = SpectralICA(4).fit_transform(X)
    theirs = FastICA(4, whiten="unit-variance", random_state=0, max_iter=1000).fit_transform(X)
    assert match(ours.T, theirs.T).found(0.99) == 4


@pytest.mark.parametrize("n_components", [None, 4])
def test_mixing_is_the_pseudo_inverse_of_the_components(rng, n_components):
    _, _, X = mixed(rng, ["laplace", "uniform", "sparse", "sign"])
    model = SpectralICA(n_components).fit(X)
    np.testing.assert_allclose(model.mixing_, np.linalg.pinv(model.components_), rtol=0, atol=1e-9)


def test_sources_have_variance_one(rng):
    _, _, X = mixed(rng, ["laplace", "uniform", "sparse", "sign"])
    model = SpectralICA(refine=False).fit(X)  # the refined ones are uncorrelated only where the sources are
    np.testing.assert_allclose(np.cov(model.transform(X).T, bias=True), np.eye(4), rtol=0, atol=1e-9)
    np.testing.assert_allclose(np.mean(model.transform(X), axis=0), 0, rtol=0, atol=1e-9)
    white = (X - model.mean_) @ model.whitening_.T
    np.testing.assert_allclose(np.cov(white.T, bias=True), np.eye(4), rtol=0, atol=1e-9)
    refined = np.var(SpectralICA().fit(X).transform(X), axis=0)
    np.testing.assert_allclose(refined, 1, rtol=0, atol=0.05)


@pytest.mark.filterwarnings("ignore::quartic.DecompositionWarning")
def test_in_a_space_of_more_dimensions(rng):
    _, A, X = mixed(rng, ["laplace", "sparse", "uniform"], d=6)
    model = SpectralICA(3).fit(X)
    assert model.components_.shape == (3, 6)
    np.testing.assert_allclose(model.components_ @ model.mixing_, np.eye(3), rtol=0, atol=1e-9)
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)), X, rtol=0, atol=1e-8)
    assert match(A.T, model.mixing_.T).found(0.99) == 3


def test_the_same_fit_as_that_of_the_dictionary(rng):
    _, _, X = mixed(rng, ["laplace", "uniform", "sparse", "sign"])
    ica, atoms = SpectralICA().fit(X), SpectralDictionaryLearning().fit(X)
    lengths = np.linalg.norm(ica.mixing_, axis=0)
    np.testing.assert_allclose(ica.mixing_.T / lengths[:, None], atoms.components_, rtol=0, atol=1e-12)
    np.testing.assert_allclose(ica.transform(X) * lengths, atoms.transform(X), rtol=0, atol=1e-9)
    np.testing.assert_array_equal(ica.certificates_, atoms.certificates_)


def test_gaussian_sources_are_not_certified(rng):
    with pytest.warns(quartic.DecompositionWarning, match="0 of 4 sources certified"):
        model = SpectralICA().fit(rng.standard_normal((3000, 4)))
    assert not np.any(model.certified_)
    assert not model.status_.ok


def test_noise_that_is_not_white(rng):
    _, A, X = mixed(rng, ["laplace", "uniform", "sparse", "sign"])
    X = X + rng.standard_normal((M, 1)) * rng.standard_normal(4) / 10
    model = SpectralICA(4).fit(X)
    assert match(A.T, model.mixing_.T).found(0.95) == 4


def test_sparse_codes_of_whole_numbers_are_no_whole_numbers(rng):
    X = np.round(30 * mixed(rng, ["laplace", "uniform", "sparse", "sign"])[2]).astype(np.int64)
    model = SpectralICA(transform_algorithm="omp", transform_n_nonzero_coefs=3).fit(X)
    codes = model.transform(X)
    assert codes.dtype == np.float64
    np.testing.assert_allclose(codes, model.transform(X.astype(np.float64)))
