"""Bad samples and bad parameters: what is wrong is said, and the estimator stays as it was."""

import copy
import functools
import re

import numpy as np
import pytest
import scipy.sparse

import quartic
from quartic import Covariance, DecompositionWarning, FourthMoment, SpectralDictionaryLearning, SpectralICA
from quartic.datasets import nice_samples
from quartic.metrics import match

N, M = 8, 2500
DATA = nice_samples(M, N, dictionary="orthonormal", random_state=0)
Y = DATA.samples


@pytest.fixture(params=[SpectralDictionaryLearning, SpectralICA])
def kind(request):
    return request.param


@functools.cache
def fitted_on(kind, method, features):
    samples = Y if features == N else nice_samples(M, features, dictionary="orthonormal", random_state=0).samples
    return getattr(kind(), method)(samples)


def fitted(kind, method="fit", features=N):
    """A fitted estimator of its own."""
    return copy.copy(fitted_on(kind, method, features))


def state(model):
    return dict(vars(model))


def unchanged(model, before):
    """Whether the attributes are the very same objects."""
    after = vars(model)
    return after.keys() == before.keys() and all(after[name] is before[name] for name in before)


def refused(kind, message, X=Y, error=ValueError, sample_weight=None, later=True, **parameters):
    """An error that says so, from fit and from partial_fit, fitted or not, which changes nothing.

    ``later`` is whether a batch after others is refused, too.
    """
    fresh = kind(**parameters)
    for method in (fresh.fit, fresh.partial_fit):
        before = state(fresh)
        with pytest.raises(error, match=message):
            method(X, sample_weight=sample_weight)
        assert unchanged(fresh, before)
    for model in (fitted(kind), fitted(kind, "partial_fit")):
        model.set_params(**parameters)
        for method in (model.fit, model.partial_fit)[: 1 + (later or not hasattr(model, "moment_"))]:
            before = state(model)
            kept = {name: np.copy(value) for name, value in before.items() if isinstance(value, np.ndarray)}
            with pytest.raises(error, match=message):
                method(X, sample_weight=sample_weight)
            assert unchanged(model, before)
            for name, value in kept.items():
                np.testing.assert_array_equal(getattr(model, name), value)


def with_value(value):
    X = Y.copy()
    X[17, 3] = value
    return X


class TestSamples:
    @pytest.mark.parametrize(
        ("X", "message"),
        [
            (with_value(np.nan), "X contains NaN"),
            (with_value(np.inf), "X contains infinity"),
            (with_value(-np.inf), "X contains infinity"),
            (Y[:0], r"0 sample\(s\)"),
            (Y[:, :0], r"0 feature\(s\)"),
            (Y[0], "Expected 2D array, got 1D array"),
            (Y[None], "dim 3"),
            (3.0, "Expected 2D array"),
            (Y.astype(complex), "Complex data not supported"),
            (np.full((20, N), "word"), "could not convert string"),
            (np.full((20, N), None), "NaN|None|float"),
            ([[1.0, 2.0], [3.0]], "inhomogeneous"),
        ],
        ids=lambda x: x if isinstance(x, str) else "",
    )
    def test_no_samples(self, kind, X, message):
        refused(kind, message, X)

    def test_one_sample(self, kind):
        for method in (kind().fit, kind().partial_fit):
            with pytest.raises(ValueError, match=r"1 sample\(s\).*minimum of 2 is required"):
                method(Y[:1])

    @pytest.mark.parametrize("form", [scipy.sparse.csr_matrix, scipy.sparse.csr_array, scipy.sparse.coo_array])
    def test_sparse_matrices(self, kind, form):
        refused(kind, "dense", form(Y), TypeError)
        with pytest.raises(TypeError, match="dense"):
            fitted(kind).transform(form(Y))

    @pytest.mark.parametrize("value", [0.0, 3.0, -1e8])
    def test_samples_that_do_not_vary(self, kind, value):
        for method in (kind().fit, kind().partial_fit):
            with pytest.raises(ValueError, match="samples do not vary"):
                method(np.full((100, N), value))

    @pytest.mark.parametrize("magnitude", [1e-300, 1e-200, 1e200, 1e300])
    def test_magnitudes_whose_moments_overflow(self, kind, magnitude):
        refused(kind, "magnitude.*rescale", magnitude * Y)

    def test_another_width_than_before(self, kind):
        model = fitted(kind)
        with pytest.raises(ValueError, match=rf"X has 5 features, but {kind.__name__} is expecting {N}"):
            model.transform(Y[:, :5])
        model = fitted(kind, "partial_fit")
        before = state(model)
        with pytest.raises(ValueError, match=rf"X has 5 features, but {kind.__name__} is expecting {N}"):
            model.partial_fit(Y[:, :5])
        assert unchanged(model, before)

    def test_not_fitted(self, kind):
        for method in ("transform", "inverse_transform"):
            with pytest.raises(ValueError, match="not fitted yet"):
                getattr(kind(), method)(Y)


class TestDegenerate:
    """Samples of which something can be learned all the same."""

    def test_constant_columns(self, kind, seed):
        data = nice_samples(M, N, dictionary="orthonormal", random_state=seed)
        X = np.insert(data.samples, [0, 4], [5.0, 0.0], axis=1)
        model = kind().fit(X)
        assert model.status_.ok
        assert f"{N} of {N + 2} directions vary" in model.report_.frame_reason
        atoms = model.mixing_.T if kind is SpectralICA else model.components_
        np.testing.assert_allclose(atoms[:, [0, 5]], 0, rtol=0, atol=1e-9)
        assert match(data.components, np.delete(atoms, [0, 5], axis=1)).found(1 - 1e-9) == N
        np.testing.assert_allclose(model.inverse_transform(model.transform(X)), X, rtol=0, atol=1e-9)

    def test_duplicate_columns(self, kind, seed):
        data = nice_samples(M, N, dictionary="orthonormal", random_state=seed)
        X = np.column_stack((data.samples, data.samples[:, :3], -2 * data.samples[:, :1]))
        model = kind().fit(X)
        assert model.status_.ok
        assert model.n_components_ == N
        atoms = model.mixing_.T if kind is SpectralICA else model.components_
        assert match(data.components, atoms[:, :N]).found(1 - 1e-9) == N
        np.testing.assert_allclose(atoms[:, N : N + 3], atoms[:, :3], rtol=0, atol=1e-9)
        np.testing.assert_allclose(model.inverse_transform(model.transform(X)), X, rtol=0, atol=1e-8)

    def test_one_feature(self, kind, seed):
        x = nice_samples(M, 1, p=0.2, random_state=seed).samples
        model = kind().fit(x)
        assert model.components_.shape == (1, 1)
        assert abs(model.transform(x)).max() > 0

    @pytest.mark.parametrize("m", [2, 3, 5, 8, 20])
    @pytest.mark.parametrize("gaussian", [True, False])
    def test_about_as_few_samples_as_features(self, kind, rng, seed, m, gaussian):
        few = rng.standard_normal((m, 10)) if gaussian else nice_samples(m, 10, p=0.5, random_state=seed).samples
        model = kind()
        with pytest.warns(DecompositionWarning, match="too few rows"):
            model.fit(few)
        assert not np.any(model.certified_)
        assert 1 <= model.n_components_ <= min(m - 1, 10)
        assert np.all(np.isfinite(model.components_))
        assert np.all(np.isfinite(model.transform(few)))

    @pytest.mark.parametrize("norm", [1e5, 1e9, 1e12, 1e100, 1e300])
    @pytest.mark.parametrize("method", ["fit", "partial_fit"])
    def test_one_gross_sample(self, seed, norm, method):
        data = nice_samples(M, N, dictionary="orthonormal", random_state=seed)
        X = data.samples.copy()
        X[seed] = norm / np.sqrt(N)
        model = SpectralDictionaryLearning(N)
        getattr(model, method)(X)
        assert model.report_.trimmed == 1
        assert model.report_.summary().splitlines()[0] == f"samples     {M}, 1 trimmed"
        assert "1 sample was left out" in str(model.status_)
        assert model.status_.ok
        assert match(data.components, model.components_).found(1 - 1e-9 if method == "fit" else 0.9) == N


class TestParameters:
    @pytest.mark.parametrize("value", [0, -1, N * (N + 1) // 2 + 1, 10**30])
    def test_n_components_out_of_range(self, kind, value):
        message = rf"n_components must lie between 1 and {N * (N + 1) // 2}, so many squares .*; got {value}"
        refused(kind, message, n_components=value)

    @pytest.mark.parametrize("value", [2.0, 2.5, "2", True, np.True_, np.ones(2), [2], np.nan])
    def test_n_components_of_another_type(self, kind, value):
        refused(kind, rf"n_components must be a whole number or None; got {re.escape(repr(value))}", n_components=value)

    def test_n_components_above_the_rank(self, kind):
        twice = np.column_stack((Y[:, :4], Y[:, :4]))
        refused(
            kind,
            r"n_components must be at most 10: .*4 of 8 directions vary.*got 11",
            twice,
            n_components=11,
            later=False,
        )

    @pytest.mark.parametrize("value", ["dense", "", None, 3, np.ones(2), ["auto"]])
    def test_moment(self, kind, value):
        refused(kind, "moment must be one of auto, accumulated, implicit", moment=value)

    @pytest.mark.parametrize("value", ["lasso", "", 3, True])
    def test_transform_algorithm(self, kind, value):
        refused(kind, "transform_algorithm must be None or one of omp, lars, lasso_lars", transform_algorithm=value)

    @pytest.mark.parametrize("name", ["transform_n_nonzero_coefs", "transform_alpha"])
    def test_parameters_of_no_algorithm(self, kind, name):
        refused(kind, f"{name} belongs to a transform_algorithm", **{name: 2})

    def test_a_frame_of_another_width(self, kind):
        refused(kind, rf"frame is for 5 features; the samples have {N}", frame=Covariance().update(Y[:, :5]).frame())

    @pytest.mark.parametrize("value", ["frame", 3, np.eye(N), Covariance().update(Y)])
    def test_a_frame_of_another_type(self, kind, value):
        refused(kind, f"frame must be a quartic.Frame or None; got {type(value).__name__}", frame=value)

    @pytest.mark.parametrize(
        "value",
        [
            np.ones(N),
            np.ones((1, N + 1)),
            np.ones((1, 1, N)),
            np.zeros((1, N)),
            np.full((1, N), np.nan),
            np.full((1, N), np.inf),
            "text",
            [["a"] * N],
            [[1.0] * N, [2.0]],
            np.ones((1, N)) + 1j,
            5.0,
        ],
        ids=["1-d", "width", "3-d", "zero", "NaN", "infinite", "text", "texts", "ragged", "complex", "number"],
    )
    def test_known_components(self, kind, value):
        refused(kind, "known_components must", known_components=value)

    def test_too_many_known_components(self, kind):
        message = "known_components holds 3 atoms, more than the 2"
        refused(kind, message, known_components=DATA.components[:3], n_components=2)

    def test_known_components_that_depend_on_each_other(self, kind):
        refused(kind, "known_components", known_components=DATA.components[[0, 1, 0]])
        refused(
            kind, "known_components", known_components=[*DATA.components[:2], DATA.components[0] + DATA.components[1]]
        )

    def test_known_components_outside_of_the_span(self, kind):
        flat = Y.copy()
        flat[:, 0] = 0.0
        message = "known_components holds atoms outside of the span"
        refused(kind, message, flat, known_components=np.eye(N)[:1], later=False)

    @pytest.mark.parametrize("value", ["seed", -1, 1.5, np.ones(3)])
    def test_random_state(self, kind, value):
        refused(kind, "random_state must", random_state=value)

    @pytest.mark.parametrize(
        ("weights", "message"),
        [
            (np.ones(5), r"sample_weight.shape == \(5,\)"),
            (np.ones((M, 1)), "1D array"),
            (-np.ones(M), "Negative values in data passed to `sample_weight`"),
            (np.full(M, np.nan), "sample_weight contains NaN"),
            (np.full(M, np.inf), "sample_weight contains infinity"),
            (np.zeros(M), "weight"),
            (np.eye(M)[0], "sample_weight must be positive for at least two samples"),
            ("heavy", "could not convert"),
        ],
        ids=lambda x: x if isinstance(x, str) else "",
    )
    def test_sample_weight(self, kind, weights, message):
        refused(kind, message, sample_weight=weights)


class Interrupting:
    """A callback that interrupts the fit at one of its hooks."""

    def __init__(self, hook, task):
        self.hook, self.task, self.done = hook, task, False

    def at(self, hook, context):
        if (hook, context.task_name) == (self.hook, self.task):
            self.done = True
            raise KeyboardInterrupt

    def setup(self, estimator, context):
        self.at("setup", context)

    def on_fit_task_begin(self, estimator, context):
        self.at("begin", context)

    def on_fit_task_end(self, estimator, context):
        self.at("end", context)

    def teardown(self, estimator, context):
        pass


HOOKS = [("setup", "fit"), ("begin", "fit")] + [
    (hook, task) for task in ("trim", "evidence", "search", "certify", "refine", "measure") for hook in ("begin", "end")
]


class TestInterrupted:
    @pytest.mark.parametrize(("hook", "task"), [*HOOKS, ("end", "fit")])
    def test_by_a_callback(self, kind, hook, task):
        for model in (kind(), fitted(kind, features=5)):
            callback = Interrupting(hook, task)
            model.set_callbacks(callback)
            before = state(model)
            with pytest.raises(KeyboardInterrupt):
                model.fit(Y)
            assert callback.done
            assert unchanged(model, before)

    @pytest.mark.parametrize("where", ["trim", "learn_from_moment", "frame_for"])
    def test_in_a_batch(self, kind, monkeypatch, where):
        models = [kind(), fitted(kind, features=5), fitted(kind, "partial_fit")]

        def interrupt(*args, **options):
            raise KeyboardInterrupt

        monkeypatch.setattr(f"quartic.estimators.{where}", interrupt)
        for model in models[:2] if where == "frame_for" else models:  # the frame is fixed by the first batch
            before = state(model)
            with pytest.raises(KeyboardInterrupt):
                model.partial_fit(Y)
            assert unchanged(model, before)

    @pytest.mark.filterwarnings("ignore::quartic.DecompositionWarning")  # later rows are larger: they are not alike
    def test_in_the_middle_of_the_moments(self, kind, monkeypatch):
        model, straight = kind(N).partial_fit(Y), kind(N).partial_fit(Y).partial_fit(2 * Y)
        before, kept = state(model), model.moment_.fourth.copy()
        real = FourthMoment._add

        def add(self, *args):
            real(self, *args)  # the sums are changed, and then
            raise KeyboardInterrupt

        monkeypatch.setattr(FourthMoment, "_add", add)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(2 * Y)
        assert unchanged(model, before)
        np.testing.assert_array_equal(model.moment_.fourth, kept)
        monkeypatch.setattr(FourthMoment, "_add", real)
        np.testing.assert_array_equal(
            model.partial_fit(2 * Y).components_, straight.components_
        )  # as if nothing happened


class TestIgnored:
    """No option is accepted and ignored."""

    @pytest.mark.parametrize("method", ["fit", "partial_fit"])
    def test_weights_need_the_samples(self, kind, method):
        with pytest.raises(ValueError, match="temperature must be None or 0 where moments are accumulated"):
            getattr(kind(refine=False, temperature=0.5), method)(Y)

    @pytest.mark.parametrize("method", ["fit", "partial_fit"])
    def test_moments_that_are_accumulated(self, kind, method):
        with pytest.raises(ValueError, match="moment='implicit' is for fit with refine=True"):
            getattr(kind(refine=False, moment="implicit"), method)(Y)

    def test_more_atoms_than_features(self, kind):
        with pytest.raises(ValueError, match="no more components than features"):
            kind(Y.shape[1] + 1, moment="implicit").fit(Y)


def test_no_known_components_are_none(kind):
    with_none = kind(known_components=np.zeros((0, Y.shape[1]))).fit(Y)
    np.testing.assert_array_equal(with_none.components_, kind().fit(Y).components_)


def test_columns_of_a_dataframe_that_are_to_blame_are_named(kind):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(np.random.default_rng(0).standard_normal((50, 3)), columns=["a", "b", "c"])
    missing = table.mask(table == table.loc[4, "b"])
    with pytest.raises(ValueError, match="X contains NaN, in the columns b: fill in"):
        kind().fit(missing)
    dated = table.assign(day=pd.Timestamp("2020-01-01"), label="x")
    for name, refused in (("X", kind().fit), ("Y", quartic.diagnose)):
        with pytest.raises(ValueError, match=f"{name} has columns that hold no numbers: day, label; leave them out"):
            refused(dated)


def test_a_path_is_no_table(kind):
    for name, refused in (("X", kind().fit), ("Y", quartic.diagnose)):
        with pytest.raises(ValueError, match=f"{name} is a path, table.csv: read it first"):
            refused("table.csv")


def test_an_argument_that_is_not_there_is_refused_without_private_names():
    with pytest.raises(TypeError, match=r"^SpectralEstimator.__init__\(\) got an unexpected keyword argument 'whiten'"):
        quartic.SpectralICA(whiten="unit-variance")
