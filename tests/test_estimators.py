"""The estimators: scikit-learn's conventions, and what their attributes promise."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.callback import ProgressBar
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from quartic import Covariance, SpectralDictionaryLearning, SpectralICA
from quartic.certify import Reason
from quartic.datasets import nice_samples
from quartic.metrics import match

N, M = 8, 2500
BOTH = [SpectralDictionaryLearning, SpectralICA]
REPEATED = (
    "Halves and subsamples go by a hash of the row's index, which repeating or removing rows changes; with the 15 "
    "samples of the check nothing is certified, and the local optimum depends on the start."
)


@pytest.mark.filterwarnings("ignore::quartic.DecompositionWarning")  # the checks have a handful of samples
@parametrize_with_checks(
    [kind() for kind in BOTH],
    expected_failed_checks=lambda estimator: {"check_sample_weight_equivalence_on_dense_data": REPEATED},
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.fixture(params=BOTH)
def kind(request):
    return request.param


def draw(seed, m=M, n=N, **options):
    return nice_samples(m, n, **{"dictionary": "orthonormal", **options}, random_state=seed)


def same(a, b, tolerance=0.0):
    """Two fitted models hold the same answer."""
    for name in ("components_", "mean_", "certificates_", "uncertainty_", "stability_", "kurtosis_"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=0, atol=tolerance, err_msg=name)


# With the rest of scikit-learn


def test_in_a_pipeline(kind, seed):
    Y = draw(seed).samples
    pipe = make_pipeline(StandardScaler(), kind()).fit(Y)
    S = pipe.transform(Y)
    assert S.shape == (M, N)
    np.testing.assert_allclose(pipe.inverse_transform(S), Y, rtol=0, atol=1e-9)
    assert list(pipe.get_feature_names_out()) == [f"{kind.__name__.lower()}{i}" for i in range(N)]


@pytest.mark.filterwarnings("ignore::quartic.DecompositionWarning")  # for fewer components than there are
def test_in_a_grid_search(kind, seed):
    def certified(model, X):
        return int(np.sum(model.certified_))

    search = GridSearchCV(kind(), {"n_components": np.array([2, N])}, scoring=certified, cv=2)
    search.fit(draw(seed, 2 * M).samples)
    assert search.best_params_ == {"n_components": N}
    assert search.best_score_ == N
    assert search.best_estimator_.components_.shape == (N, N)


def test_clones_are_not_fitted(kind, seed):
    Y = draw(seed).samples
    frame = Covariance().update(Y).frame()
    model = kind(N, refine=False, moment="accumulated", frame=frame, known_components=[[1.0] * N], random_state=3)
    copy = clone(model)
    assert copy.get_params().keys() == model.get_params().keys()
    assert copy.frame == frame
    assert copy.n_components == N
    fitted = kind().fit(Y)
    assert not hasattr(clone(fitted), "components_")


def test_data_frames(kind, seed):
    Y = draw(seed).samples
    names = [f"feature {i}" for i in range(N)]
    table = pd.DataFrame(Y, columns=names, index=np.arange(M)[::-1])
    model = kind().set_output(transform="pandas").fit(table)
    plain = kind().fit(Y)
    same(model, plain, 1e-9)  # pandas has another layout
    assert list(model.feature_names_in_) == names
    S = model.transform(table)
    assert list(S.columns) == list(model.get_feature_names_out()) == [f"{kind.__name__.lower()}{i}" for i in range(N)]
    assert list(S.index) == list(table.index)
    np.testing.assert_allclose(S.to_numpy(), plain.transform(Y), rtol=0, atol=1e-9)
    with pytest.raises(ValueError, match="feature names"):
        model.transform(table.rename(columns={names[0]: "other"}))


def test_pickles(kind, seed):
    Y = draw(seed).samples
    model = kind().fit(Y)
    again = pickle.loads(pickle.dumps(model))
    same(model, again)
    assert again.frame_ == model.frame_
    assert again.status_ == model.status_
    np.testing.assert_array_equal(again.transform(Y), model.transform(Y))


def test_shown_in_a_notebook(kind):
    model = kind(N, refine=False)
    assert kind.__name__ in model._repr_html_()
    assert repr(model) == f"{kind.__name__}(n_components=8, refine=False)"
    assert kind.__name__ in model.fit(draw(0).samples)._repr_html_()


class Recorder:
    """A callback that writes down what happens, and may stop it."""

    def __init__(self, stop=None):
        self.seen, self.stop = [], stop

    def note(self, *event):
        self.seen.append(event)
        if event == self.stop:
            raise KeyboardInterrupt

    def setup(self, estimator, context):
        self.note("setup", context.task_name)

    def on_fit_task_begin(self, estimator, context, *, X=None):
        assert X.shape == (M, N)
        self.note("begin", context.task_name)

    def on_fit_task_end(self, estimator, context):
        self.note("end", context.task_name)

    def teardown(self, estimator, context):
        self.note("teardown", context.task_name)


def test_callbacks_see_the_stages_in_order(kind, seed):
    Y, recorder = draw(seed).samples, Recorder()
    model = kind().set_callbacks(recorder).fit(Y)
    same(model, kind().fit(Y))
    assert recorder.seen[:2] == [("setup", "fit"), ("begin", "fit")]
    assert recorder.seen[-2:] == [("end", "fit"), ("teardown", "fit")]
    inside = recorder.seen[2:-2]
    begun = [name for what, name in inside if what == "begin"]
    assert inside == [(what, name) for name in begun for what in ("begin", "end")]  # one ends before the next begins
    order = ["trim", "covariance", "evidence", "search", "certify", "refine", "measure"]
    assert sorted(set(begun), key=begun.index) == order
    assert begun[-2:] == ["refine", "measure"]


def test_scikit_learns_progress_bar(kind, capsys):
    pytest.importorskip("rich")
    kind().set_callbacks(ProgressBar()).fit(draw(0).samples)
    assert kind.__name__ in capsys.readouterr().out


# The input


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_is_kept(kind, seed, dtype):
    data = draw(seed, dtype=dtype)
    model = kind().fit(data.samples)
    S = model.transform(data.samples)
    assert S.dtype == model.inverse_transform(S).dtype == dtype
    atoms = model.mixing_.T if kind is SpectralICA else model.components_
    assert model.components_.dtype == np.float64
    assert match(data.components, atoms).found(1 - 1e-9) == N
    np.testing.assert_allclose(model.inverse_transform(S), data.samples, rtol=0, atol=100 * np.finfo(dtype).eps)


@pytest.mark.parametrize(
    "form",
    [
        np.asfortranarray,
        lambda Y: np.repeat(Y, 2, axis=1)[:, ::2],
        lambda Y: Y.astype(Y.dtype.newbyteorder()),
        np.ndarray.tolist,
        lambda Y: np.lib.stride_tricks.as_strided(Y, writeable=False),
    ],
    ids=["Fortran", "strided", "other byte order", "list", "read-only"],
)
def test_any_layout_gives_the_same_answer(kind, seed, form):
    Y = draw(seed).samples
    kept = Y.copy()
    same(kind().fit(form(Y)), kind().fit(Y), 1e-9)
    np.testing.assert_array_equal(Y, kept)  # and nothing is written to


def test_whole_numbers(kind, seed):
    rng = np.random.default_rng(seed)
    codes = rng.choice([-2, 0, 2], size=(M, 6), p=[0.1, 0.8, 0.1])
    Y = codes @ (9 * np.eye(6, dtype=int) + rng.integers(1, 4, (6, 6)))
    model = kind().fit(Y.astype(np.int8))
    same(model, kind().fit(Y.astype(np.float64)))
    assert model.transform(Y).dtype == np.float64


@pytest.mark.filterwarnings("ignore::quartic.DecompositionWarning")
def test_features_of_three_values(kind, seed):
    """Nothing tells whether they are sources as they are, or rounded sums of others."""
    model = kind().fit(np.random.default_rng(seed).choice([-2, 0, 2], size=(M, 6), p=[0.1, 0.8, 0.1]))
    assert not np.any(model.certified_)
    assert {doubt.reason for doubt in model.doubts_} == {Reason.LOST}


# Codes


@pytest.mark.filterwarnings("ignore::quartic.DecompositionWarning")  # noise that is far from white in these coordinates
def test_round_trip(kind, seed):
    data = draw(seed, m=6000, snr=15, dictionary="gaussian", condition=10, n=N)
    model = kind(N).fit(data.samples)
    np.testing.assert_allclose(model.inverse_transform(model.transform(data.samples)), data.samples, rtol=0, atol=1e-9)
    S = np.random.default_rng(seed).standard_normal((5, N))
    if kind is SpectralICA or not np.any(model.thresholds_):
        np.testing.assert_allclose(model.transform(model.inverse_transform(S)), S, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(model.fit_transform(data.samples), model.transform(data.samples))


@pytest.mark.parametrize("shift", [0.0, 100.0])
def test_exact_zeros_for_exactly_sparse_data(seed, shift):
    data = draw(seed, coefficients="gaussian", dictionary="gaussian", condition=10)
    model = SpectralDictionaryLearning(N).fit(data.samples + shift)
    codes = model.transform(data.samples + shift)
    matched = match(data.components, model.components_)
    true = data.codes[:, matched.rows] * matched.signs * np.linalg.norm(data.dictionary, axis=1)
    order = np.argsort(matched.columns)
    true, found = true[:, order], codes[:, np.sort(matched.columns)]
    # Coefficients as small as the rounding of shifted samples are lost, and no others.
    np.testing.assert_array_equal(found == 0, np.abs(true) <= np.where(found == 0, 1e-9, 0.0))
    np.testing.assert_allclose(found, true, rtol=0, atol=1e-9)
    np.testing.assert_allclose(model.mean_, shift, rtol=0, atol=1e-9)  # what they are sparse about


def test_no_zeros_for_other_data(seed):
    data = draw(seed, m=6000, snr=20)
    model = SpectralDictionaryLearning(N).fit(data.samples)
    assert not np.any(model.thresholds_)
    assert np.all(model.transform(data.samples) != 0)


def test_bad_codes_are_refused(kind):
    model = kind().fit(draw(0).samples)
    for codes in (np.ones((3, N + 1)), np.ones(N), np.ones((1, 2, N))):
        with pytest.raises(ValueError, match=f"X must have {N} columns"):
            model.inverse_transform(codes)


# One answer


@pytest.mark.parametrize("snr", [None, 10])
def test_the_same_answer_twice(kind, seed, snr):
    Y = draw(seed, snr=snr).samples
    for state in (0, 7):
        same(kind(N, random_state=state).fit(Y), kind(N, random_state=state).fit(Y))
    model = kind(N, random_state=np.random.default_rng(seed))
    model.fit(Y)
    same(model, kind(N, random_state=np.random.default_rng(seed)).fit(Y))


def test_another_seed_gives_the_same_atoms(kind, seed):
    Y = draw(seed).samples
    a, b = (kind(random_state=state).fit(Y) for state in (seed, seed + 100))
    np.testing.assert_allclose(a.components_, b.components_, rtol=0, atol=1e-9)


@pytest.mark.parametrize("snr", [None, 20])
def test_order_and_sign_are_canonical(seed, snr):
    data = draw(seed, m=4000, snr=snr, dictionary="gaussian", condition=10)
    Y, rng = data.samples, np.random.default_rng(seed)
    model = SpectralDictionaryLearning(N).fit(Y)
    A = model.components_
    np.testing.assert_allclose(np.linalg.norm(A, axis=1), 1, rtol=1e-12)
    assert np.all(np.max(A, axis=1) > -np.min(A, axis=1))
    energy = np.var(model.transform(Y), axis=0)
    assert np.all(np.diff(energy) < 1e-3 * energy[0])  # codes that are exact zeros are about another point
    tolerance = 1e-9 if snr is None else 1e-4  # iterations stop far below the statistical error, not at rounding
    for Z, sign, scale, shift in ((-Y, -1, 1, 0), (1e3 * Y, 1, 1e3, 0), (Y - 3, 1, 1, -3)):
        other = SpectralDictionaryLearning(N).fit(Z)
        np.testing.assert_allclose(other.components_, A, rtol=0, atol=tolerance)
        codes = sign * scale * model.transform(Y)
        np.testing.assert_allclose(other.transform(Z), codes, rtol=0, atol=100 * scale * tolerance)
        np.testing.assert_allclose(other.mean_, sign * scale * model.mean_ + shift, rtol=0, atol=1e-8 * scale)
    columns = rng.permutation(N)
    other = SpectralDictionaryLearning(N).fit(Y[:, columns])
    np.testing.assert_allclose(other.components_, A[:, columns], rtol=0, atol=10 * tolerance)
    if snr is None:  # with noise another order of the samples is another choice of halves and subsamples
        other = SpectralDictionaryLearning(N).fit(Y[rng.permutation(Y.shape[0])])
        np.testing.assert_allclose(other.components_, A, rtol=0, atol=tolerance)


# Arguments


def test_the_number_of_components_is_found(kind, seed):
    square = draw(seed)
    assert kind().fit(square.samples).n_components_ == N
    tall = draw(seed, m=4000, d=20, snr=10)  # atoms in a floor of noise
    model = kind().fit(tall.samples)
    assert model.n_components_ == N
    assert model.components_.shape == (N, 20)
    assert f"{N} eigenvalues of the covariance stand above a floor" in model.report_.frame_reason
    assert match(tall.components, model.mixing_.T if kind is SpectralICA else model.components_).found(0.99) == N


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_known_components_are_kept(seed, noise):
    data = draw(seed, m=4000, dictionary="gaussian", condition=5, snr=25 if noise else None)
    rng = np.random.default_rng(seed)
    known = data.components[[2, 5]] + noise / np.sqrt(N) * rng.standard_normal((2, N))
    given = known.copy()
    model = SpectralDictionaryLearning(N, known_components=-3 * known).fit(data.samples)
    np.testing.assert_array_equal(known, given)
    matched = match(known, model.components_)
    np.testing.assert_allclose(matched.squared, 1, rtol=1e-9)  # as they were given, right or not
    assert np.all(model.uncertainty_[matched.columns] == 0)
    assert match(data.components, model.components_).found(0.99 if noise else 1 - 1e-9) >= N - (2 if noise else 0)


@pytest.mark.filterwarnings("ignore::quartic.DecompositionWarning")
def test_known_components_appear_once_however_few_samples_there_are(seed):
    for m in (100, 300):
        data = draw(seed, m=m, n=10, snr=20)
        known = data.components[:3]
        model = SpectralDictionaryLearning(10, known_components=known).fit(data.samples)
        cosine = np.sort(np.abs(model.components_ @ known.T), axis=0)
        np.testing.assert_allclose(cosine[-1], 1, rtol=1e-9)
        assert np.all(cosine[-2] < 0.7)  # nothing else in the place of a true atom
        assert np.count_nonzero(model.uncertainty_ == 0) == 3


def test_weights_of_zero_leave_samples_out(kind, seed):
    Y = draw(seed).samples
    spoilt, w = Y.copy(), np.ones(M)
    spoilt[::5], w[::5] = 10 * np.random.default_rng(seed).standard_normal((M // 5, N)), 0.0
    model = kind(N).fit(spoilt, sample_weight=w)
    np.testing.assert_allclose(model.components_, kind(N).fit(Y, sample_weight=w).components_, rtol=0, atol=1e-9)
    assert model.status_.ok


def test_the_scale_of_weights_does_not_matter(kind, seed):
    Y, w = draw(seed, snr=20).samples, np.random.default_rng(seed).uniform(1, 2, M)
    small = kind(N).fit(Y, sample_weight=2.0**-20 * w)  # a power of 16, whose fourth root rounds alike
    same(small, kind(N).fit(Y, sample_weight=w), 1e-9)
    assert small.status_.ok


def test_one_weight_for_all_is_none(kind, seed):
    Y = draw(seed).samples
    same(kind(N).fit(Y, sample_weight=2.0), kind(N).fit(Y, sample_weight=np.full(M, 2.0)))
