"""``stability_``: whether each half of the samples alone gives an atom again."""

import dask.array as da
import numpy as np
import pytest

from quartic import Covariance, FourthMoment, SpectralDictionaryLearning, SpectralICA
from quartic.algorithms.certify import stability
from quartic.datasets import nice_samples
from quartic.metrics import match

N = 6


def test_the_nearest_of_each_half_and_the_smaller_of_both():
    def at(*degrees):
        t = np.deg2rad(degrees)
        return np.stack((np.cos(t), np.sin(t)), axis=1)

    U, halves = at(0, 90), [at(10, 75), -at(60, 5)]
    np.testing.assert_allclose(stability(U, halves), np.cos(np.deg2rad([10, 30])) ** 2)
    np.testing.assert_allclose(stability(U, halves[::-1]), stability(U, halves))


def test_nothing_where_a_half_has_nothing():
    U = np.eye(3)
    np.testing.assert_array_equal(stability(U, []), 0)
    np.testing.assert_array_equal(stability(U, [U, U[:0]]), 0)
    np.testing.assert_array_equal(stability(U, [U, np.where(np.arange(3)[:, None] == 1, np.nan, U)]), [1, 0, 1])


@pytest.mark.parametrize("kind", [SpectralDictionaryLearning, SpectralICA])
@pytest.mark.parametrize("refine", [True, False])
def test_atoms_of_a_model_are_stable(kind, refine, seed):
    model = kind(N, refine=refine).fit(nice_samples(8000, N, random_state=seed).samples)
    assert model.stability_.shape == (N,)
    assert np.all((model.stability_ > 0.95) & (model.stability_ <= 1))


@pytest.mark.filterwarnings("ignore::quartic.DecompositionWarning")  # half of the directions are no atoms
def test_it_tells_what_returns_from_other_samples(seed):
    """Sparse sources return; axes of a Gaussian subspace are those of the sample, though their errors look small."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((2 * N, 2 * N))

    def fitted(random_state):
        sparse = rng.standard_normal((20_000, N)) * (rng.random((20_000, N)) < 0.2)
        Y = np.concatenate((sparse / np.sqrt(0.2), rng.standard_normal((20_000, N))), axis=1) @ A
        return SpectralDictionaryLearning(2 * N, random_state=random_state).fit(Y)

    one, other = fitted(0), fitted(1)
    again = match(one.components_, other.components_).squared > 0.9
    mine = match(A[:N], one.components_).columns
    noise = np.setdiff1d(np.arange(2 * N), mine)
    assert np.all(again[mine])
    assert np.all(one.stability_[mine] > 0.9)
    assert np.median(one.stability_[noise]) < 0.8 < np.min(one.stability_[mine])
    assert np.max(one.uncertainty_) < 0.6


@pytest.mark.filterwarnings("ignore::quartic.DecompositionWarning")
def test_too_few_samples_to_say(seed):
    Y = nice_samples(6 * N, N, random_state=seed).samples
    np.testing.assert_array_equal(SpectralDictionaryLearning(N).fit(Y).stability_, 0)


def test_batches_moments_and_collections_have_it(seed):
    Y = nice_samples(6000, N, random_state=seed).samples
    frame = Covariance().update(Y).frame()
    whole = SpectralDictionaryLearning(N, refine=False, frame=frame).fit(Y).stability_
    streamed = SpectralDictionaryLearning(N, frame=frame)
    for start in range(0, 6000, 2000):
        streamed.partial_fit(Y[start : start + 2000])
    given = SpectralDictionaryLearning(N).fit_moment(FourthMoment(frame).update(Y))
    cut = SpectralDictionaryLearning(N, refine=False, frame=frame).fit(da.from_array(Y, chunks=(1000, N)))
    for model in (streamed, given, cut):
        np.testing.assert_allclose(model.stability_, whole, rtol=0, atol=1e-6)


def test_known_components_are_stable(seed):
    data = nice_samples(4000, N, random_state=seed)
    model = SpectralDictionaryLearning(N, known_components=data.components[:2]).fit(data.samples)
    known = match(data.components[:2], model.components_)
    assert np.all(model.stability_[known.columns] > 0.95)


@pytest.mark.filterwarnings("ignore::quartic.DecompositionWarning")  # an atom or two may go without a certificate
def test_more_atoms_than_dimensions(seed):
    data = nice_samples(20_000, 16, d=8, p=0.08, random_state=seed)
    model = SpectralDictionaryLearning(16).fit(data.samples)
    assert np.sum(model.certified_) >= 12
    assert np.all(model.stability_[model.certified_] > 0.9)


def test_fewer_components_than_there_are_keep_their_own(seed):
    Y = nice_samples(8000, N, random_state=seed).samples
    model = SpectralDictionaryLearning(3).fit(Y)
    whole = SpectralDictionaryLearning(N).fit(Y)
    partner = match(model.components_, whole.components_)
    np.testing.assert_allclose(model.stability_, whole.stability_[partner.columns], rtol=0, atol=1e-3)
