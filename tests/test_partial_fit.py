"""Batches: ``partial_fit`` in any order, merged accumulators, and one fit of everything give one answer."""

import numpy as np
import pytest

from quartic import Covariance, DecompositionWarning, FourthMoment, SpectralDictionaryLearning, SpectralICA
from quartic._arrays import check_random_state
from quartic.datasets import nice_samples
from quartic.dictionary import learn_from_moment
from quartic.metrics import match

N, M = 8, 5000
CUTS = [1500, 1501, 3000, 4600]  # batches of very different sizes, one of a single sample


@pytest.fixture(params=[SpectralDictionaryLearning, SpectralICA])
def kind(request):
    return request.param


def draw(seed, **options):
    return nice_samples(M, N, dictionary="gaussian", condition=5, snr=20, random_state=seed, **options)


def same(a, b):
    np.testing.assert_allclose(a.components_, b.components_, rtol=0, atol=1e-8)
    np.testing.assert_allclose(a.mean_, b.mean_, rtol=0, atol=1e-8)
    np.testing.assert_allclose(a.kurtosis_, b.kurtosis_, rtol=0, atol=1e-6)
    assert a.n_samples_seen_ == b.n_samples_seen_


@pytest.mark.filterwarnings("ignore::quartic.DecompositionWarning")  # of the first batches
@pytest.mark.parametrize(
    ("kind", "n_components"),
    [(SpectralDictionaryLearning, N), (SpectralDictionaryLearning, None), (SpectralICA, N)],
)
def test_batches_in_any_order_and_one_fit_agree(kind, seed, n_components):
    Y = draw(seed).samples
    frame = Covariance().update(Y).frame(N)
    whole = kind(n_components, frame=frame, refine=False).fit(Y)
    assert whole.status_.ok
    batches = np.split(Y, CUTS)
    for order in (range(5), np.random.default_rng(seed).permutation(5)):
        model = kind(n_components, frame=frame)
        for i in order if len(batches[order[0]]) > 1 else order[::-1]:  # the first needs two samples
            model.partial_fit(batches[i])
        same(model, whole)
    in_order = kind(n_components, frame=frame)
    for batch in batches:
        in_order.partial_fit(batch)
    np.testing.assert_allclose(in_order.certificates_, whole.certificates_, rtol=0, atol=1e-8)  # the same halves


def test_merged_accumulators_agree(seed):
    Y = draw(seed).samples
    parts = list(zip([0, *CUTS], np.split(Y, CUTS), strict=True))
    covariance = Covariance()
    for first, batch in reversed(parts):
        covariance.merge(Covariance().update(batch, index=first))
    frame = covariance.frame(N)
    moment = FourthMoment(frame)
    for first, batch in reversed(parts):
        moment.merge(FourthMoment(frame).update(batch, index=first))
    learned = learn_from_moment(moment, N, rng=check_random_state(0))
    whole = SpectralDictionaryLearning(N, frame=frame, refine=False).fit(Y)
    np.testing.assert_allclose(learned.components, whole.components_, rtol=0, atol=1e-8)
    np.testing.assert_allclose(learned.certificates, whole.certificates_, rtol=0, atol=1e-8)


def test_the_random_start_does_not_matter(seed):
    Y = draw(seed).samples
    a, b = (SpectralDictionaryLearning(N, refine=False, random_state=state).fit(Y) for state in (seed, seed + 50))
    np.testing.assert_allclose(a.components_, b.components_, rtol=0, atol=1e-6)


@pytest.mark.filterwarnings("ignore::quartic.DecompositionWarning")
def test_the_first_batch_fixes_the_frame(seed):
    Y = draw(seed).samples
    model = SpectralDictionaryLearning(N).partial_fit(Y[:1000])
    expected = Covariance().update(Y[:1000]).frame(N)
    assert model.moment_.frame == expected
    model.partial_fit(Y[1000:])
    assert model.moment_.frame == expected
    given = SpectralDictionaryLearning(N, frame=expected, refine=False).fit(Y)
    np.testing.assert_allclose(model.components_, given.components_, rtol=0, atol=1e-8)


@pytest.mark.filterwarnings("ignore::quartic.DecompositionWarning")  # batches differ: rows are not alike
def test_later_batches_may_vary_otherwise(seed):
    # The same atoms, far more energy in some of them: the whitener is completed each time.
    data = draw(seed)
    stretch = np.geomspace(1, 10, N)
    later = (data.codes * stretch) @ data.dictionary
    model = SpectralDictionaryLearning(N).partial_fit(data.samples[:1500]).partial_fit(later)
    both = np.concatenate((data.samples[:1500], later))
    np.testing.assert_allclose(model.mean_, both.mean(axis=0), rtol=0, atol=1e-8)
    S = model.transform(both)
    correlation = np.corrcoef(S.T)
    np.testing.assert_allclose(correlation, np.eye(N), rtol=0, atol=1e-8)  # white again
    order = np.argsort(-np.linalg.norm(data.dictionary, axis=1) * stretch)
    np.testing.assert_array_equal(match(model.components_, data.components).columns[:3], order[:3])


def test_there_is_no_refinement(seed):
    model = SpectralDictionaryLearning(N).partial_fit(draw(seed).samples)
    assert model.report_.refinement.startswith("none")
    assert model.n_iter_ == 0
    assert not np.any(model.thresholds_)


def test_counts_go_up_and_more_samples_are_better(seed):
    data = draw(seed)
    model, errors = SpectralDictionaryLearning(N), []
    for batch in np.split(data.samples, 2):
        model.partial_fit(batch)
        errors.append(1 - match(data.components, model.components_).squared.mean())
    assert model.n_samples_seen_ == model.report_.samples == model.moment_.count == M
    assert errors[1] < errors[0] < 0.02


def test_fit_forgets_the_batches_and_batches_forget_the_fit(kind, seed):
    Y = draw(seed).samples
    other = nice_samples(M, 5, random_state=seed).samples  # of another width, too
    model = kind(refine=False).partial_fit(other).fit(Y)
    assert not hasattr(model, "moment_")
    np.testing.assert_array_equal(model.components_, kind(refine=False).fit(Y).components_)
    model.partial_fit(other)
    assert (model.n_samples_seen_, model.n_features_in_) == (M, 5)
    np.testing.assert_array_equal(model.components_, kind().partial_fit(other).components_)


def test_gross_samples_are_trimmed_in_each_batch(seed):
    data = draw(seed)
    Y = data.samples.copy()
    Y[[10, 3000]] = 1e7
    model = SpectralDictionaryLearning(N)
    for number, batch in enumerate(np.split(Y, 2), 1):
        model.partial_fit(batch)
        assert model.report_.trimmed == number
    assert "2 samples were left out" in str(model.status_)
    assert match(data.components, model.components_).found(0.98) == N


@pytest.mark.filterwarnings("ignore::quartic.DecompositionWarning")  # of the first batch
def test_weights_count_samples(seed):
    Y = draw(seed).samples
    frame = Covariance().update(Y).frame(N)
    w = np.random.default_rng(seed).choice([0.0, 1.0, 2.0], size=M)
    whole = SpectralDictionaryLearning(N, frame=frame, refine=False).fit(Y, sample_weight=w)
    model = SpectralDictionaryLearning(N, frame=frame)
    for part in np.split(np.arange(M), [1234]):
        model.partial_fit(Y[part], sample_weight=w[part])
    np.testing.assert_allclose(model.components_, whole.components_, rtol=0, atol=1e-8)


def test_data_frames_must_have_the_same_names(seed):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(draw(seed).samples, columns=list("abcdefgh"))
    model = SpectralDictionaryLearning(N).partial_fit(table[:2500]).partial_fit(table[2500:])
    assert list(model.feature_names_in_) == list("abcdefgh")
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(table.rename(columns={"a": "z"}))


def test_few_samples_are_warned_of_and_then_enough(seed):
    Y = draw(seed).samples
    model = SpectralDictionaryLearning(N)
    with pytest.warns(DecompositionWarning, match="certified"):
        model.partial_fit(Y[:40])
    assert not model.status_.ok
    model.partial_fit(Y[40:])
    assert model.status_.ok
