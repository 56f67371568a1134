"""``decompose`` end to end: what it finds, what it says about it, and what it keeps."""

import inspect
import re
import warnings

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import quartic
from quartic import DecompositionWarning, PackedTensor, Status, decompose
from quartic._arrays import pack_rank_one, packed_dim
from quartic.datasets import ERRORS, planted_tensor, random_orthonormal
from quartic.metrics import match

# The competing basis and the trap are exact low-rank tensors themselves: without a rank they may be found as well.
UNAMBIGUOUS = [error for error in ERRORS if error not in ("basis", "trap")]


def planted(seed, d=16, n=8, eps=0.1, **options):
    return planted_tensor(d, n, eps, random_state=seed, **options)


def quietly(T, *args, **kwargs):
    """The result, and the warnings that came with it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = decompose(T, *args, **kwargs)
    return result, caught


def assert_honest(A, result):
    """No certificate above the squared correlation with the nearest planted component."""
    if result.components.shape[0]:
        truth = match(result.components, A).table.max(axis=1)
        assert np.all(result.certificates <= truth + 1e-12)


def assert_all_found(p, result, squared):
    n = len(p.components)
    assert result.components.shape == p.components.shape
    assert result.rank == n
    assert match(p.components, result.components).found(squared) == n
    assert_honest(p.components, result)


class TestRecovery:
    @pytest.mark.parametrize("eps", [0.0, 0.1, 0.3, 0.5])
    @pytest.mark.parametrize(("d", "n"), [(16, 16), (20, 7)])
    @pytest.mark.parametrize("error", ERRORS)
    def test_rank_given(self, seed, error, d, n, eps):
        p = planted(seed, d, n, eps, error=error)
        result = decompose(PackedTensor(p.packed), n, random_state=seed)
        # eps^2 / 10 at larger d; in so few dimensions a vector of the competing basis may lie near a component.
        assert_all_found(p, result, 1 - max(eps**2 / 8, 1e-12))
        assert result.reason == "given"
        if eps <= 0.1:
            assert result.status.code == "complete"

    @pytest.mark.parametrize("eps", [0.0, 0.1, 0.3])
    @pytest.mark.parametrize(("d", "n"), [(16, 16), (20, 7), (16, 1)])
    @pytest.mark.parametrize("error", UNAMBIGUOUS)
    def test_nothing_given(self, seed, error, d, n, eps):
        p = planted(seed, d, n, eps, error=error)
        result = decompose(PackedTensor(p.packed), random_state=seed)
        assert_all_found(p, result, 1 - max(eps**2 / 10, 1e-12))
        # The spectral norm of T minus its best fit on the planted components
        B = pack_rank_one(p.components)
        best = np.linalg.norm(p.packed - (B * np.diagonal(B.T @ p.packed @ B)) @ B.T, 2)
        assert result.eps == pytest.approx(best, rel=0.2, abs=0.01)

    @pytest.mark.parametrize("error", ERRORS)
    def test_eps_given(self, seed, error):
        p = planted(seed, 16, 8, 0.2, error=error)
        result = decompose(PackedTensor(p.packed), eps=0.2, random_state=seed)
        assert_all_found(p, result, 1 - 0.2**2 / 10)
        assert result.eps_assumed == pytest.approx(0.2)
        assert result.status.code == "complete"
        assert "exceed the eps that was given" in result.reason

    @pytest.mark.parametrize("given", [{"rank": 10}, {"eps": 0.33}, {}])
    @pytest.mark.parametrize("error", ERRORS)
    def test_weights_of_three_times_eps(self, seed, rng, error, given):
        if not given and error not in UNAMBIGUOUS:
            given = {"rank": 10, "eps": 0.33}
        w = 10.0 ** rng.uniform(0, 1, 10)
        p = planted(seed, 16, 10, 0.33, error=error, weights=w)
        result = decompose(PackedTensor(p.packed), random_state=seed, **given)
        assert_all_found(p, result, 0.98)
        m = match(p.components, result.components)
        np.testing.assert_allclose(result.weights[m.columns], w, atol=0.4)

    @pytest.mark.parametrize("error", ERRORS)
    def test_weights_from_1_to_30(self, seed, rng, error):
        w = 30.0 ** rng.uniform(0, 1, 12)
        p = planted(seed, 16, 12, 0.01, error=error, weights=w)
        result = decompose(PackedTensor(p.packed), random_state=seed)
        assert_all_found(p, result, 0.9999)
        assert result.status.code == "complete"

    @pytest.mark.parametrize("d", [1, 2, 3, 4])
    def test_small_dimensions(self, seed, d):
        p = planted(seed, d, d, 0.05)
        for given in [{"rank": d}, {"eps": 0.05}, {}]:
            result = decompose(p.tensor, random_state=seed, **given)
            assert result.rank == d
            assert match(p.components, result.components).found(0.98) == d
            assert result.status.ok
            if "eps" in given:  # in so few dimensions most of the error hides in the span: its estimate is too low
                assert_honest(p.components, result)

    def test_a_wide_gap_below_a_negative_error(self, seed, rng):
        p = planted(seed, 16, 6, 0.0)
        V = np.linalg.qr(rng.standard_normal((packed_dim(16), 4)))[0]
        result = decompose(PackedTensor(p.packed - 0.3 * V @ V.T), random_state=seed)
        assert result.rank == 6
        assert match(p.components, result.components).found(0.99) == 6
        assert result.eps == pytest.approx(0.3, rel=0.1)

    @pytest.mark.parametrize("eta", [0.05, 0.1])
    @pytest.mark.parametrize(("d", "n"), [(16, 16), (20, 10)])
    def test_nearly_orthonormal_components(self, seed, rng, eta, d, n):
        """Fact 4.10 promises 1 - O(sqrt(eta)); the iteration reaches far more."""
        G = rng.standard_normal((n, d))
        A = random_orthonormal(d, n, rng) + eta * G / np.linalg.norm(G, 2)
        A /= np.linalg.norm(A, axis=1, keepdims=True)
        B = pack_rank_one(A)
        for rank in (n, None):
            result = decompose(PackedTensor(B @ B.T), rank, random_state=seed)
            assert result.rank == n
            m = match(A, result.components)
            assert m.found(1 - eta**2 / 100) == n
            np.testing.assert_allclose(result.weights, 1, atol=eta**2)
            assert_honest(A, result)

    def test_nearly_orthonormal_components_with_an_error(self, seed, rng):
        G = rng.standard_normal((10, 16))
        A = random_orthonormal(16, 10, rng) + 0.1 * G / np.linalg.norm(G, 2)
        A /= np.linalg.norm(A, axis=1, keepdims=True)
        B = pack_rank_one(A)
        M = B @ B.T + planted(seed, 16, 1, 0.1).error
        result = decompose(PackedTensor(M), 10, random_state=seed)
        assert match(A, result.components).found(1 - 0.1**2 / 5) == 10

    def test_a_tensor_times_minus_one(self):
        tensor = PackedTensor.from_dense(planted_tensor(8, 4, 0.05, random_state=0).tensor)
        result = decompose(tensor.scaled(-1.0), random_state=0)
        expected = decompose(tensor, random_state=0)
        assert result.status.code == "complete"
        assert result.eps == pytest.approx(expected.eps, rel=0.05)
        np.testing.assert_allclose(np.sort(-result.weights), np.sort(expected.weights), atol=0.01)
        with pytest.raises(ValueError, match="zero tensor"):
            decompose(tensor.scaled(0.0))


class TestRank:
    @pytest.mark.parametrize("error", ["gaussian", "gaussian-symmetric", "identity", "low-rank"])
    def test_too_large(self, seed, error):
        p = planted(seed, error=error)
        with pytest.warns(DecompositionWarning, match=r"8 of 10 components found.* smaller rank"):
            result = decompose(PackedTensor(p.packed), 10, random_state=seed)
        assert result.status.code == "incomplete"
        assert not result.status.ok
        assert result.rank == 10
        assert result.components.shape == (8, 16)
        assert match(p.components, result.components).found() == 8
        assert_honest(p.components, result)

    @pytest.mark.parametrize("error", ERRORS)
    def test_too_small_for_components_of_one_weight(self, seed, error):
        """The span of fewer eigenvectors mixes them all: what comes out may be less, never wrong, never certified."""
        p = planted(seed, error=error)
        result, caught = quietly(PackedTensor(p.packed), 5, random_state=seed)
        assert result.components.shape[0] <= 5
        assert match(p.components, result.components).found() == result.components.shape[0]
        assert not np.any(result.certified)
        assert not result.status.ok
        assert [w.category for w in caught] == [DecompositionWarning] * (result.status.code != "uncertified")

    def test_too_small_for_distinct_weights_takes_the_largest(self, seed):
        p = planted(seed, 16, 4, 0.1, weights=[9.0, 6.0, 2.0, 1.0])
        result = decompose(PackedTensor(p.packed), 2, random_state=seed)
        assert match(p.components[:2], result.components).found() == 2
        assert result.eps == pytest.approx(2.0, rel=0.1)
        assert_honest(p.components, result)

    def test_a_direction_that_is_no_component_counts_as_error(self, seed, rng):
        """With a rank that takes it into the span, nothing beyond the span shows the error; the fit does."""
        p = planted(seed, 16, 8, 0.0)
        V = rng.standard_normal(136) + 4 * pack_rank_one(p.components) @ rng.standard_normal(8)
        V /= np.linalg.norm(V)
        result, caught = quietly(PackedTensor(p.packed + 0.5 * np.outer(V, V)), 9, random_state=seed)
        assert result.status.code == "incomplete"
        assert len(caught) == 1
        assert match(p.components, result.components).found() == 8
        assert_honest(p.components, result)


class TestCertificates:
    @pytest.mark.parametrize("eps", [0.05, 0.2, 0.4, 0.6])
    @pytest.mark.parametrize("error", ERRORS)
    def test_below_the_truth_however_asked(self, seed, error, eps):
        p = planted(seed, 12, 6, eps, error=error)
        T = PackedTensor(p.packed)
        for arguments in [{"rank": 6}, {"rank": 6, "eps": eps}, {"rank": 4}, {"rank": 8}, {}, {"rank": 6, "find": 2}]:
            result, _ = quietly(T, random_state=seed, **arguments)
            if result.rank > 12:
                # More than can be orthogonal: an error that is a sum of components itself, and all of it is found.
                assert error == "basis"
                assert result.eps < 1e-6
            else:
                assert_honest(p.components, result)

    def test_certified_is_above_one_half(self, seed):
        result, _ = quietly(PackedTensor(planted(seed, 12, 6, 0.4).packed), 6, random_state=seed)
        np.testing.assert_array_equal(result.certified, result.certificates > 0.5)
        assert result.certified.dtype == bool

    def test_a_smaller_eps_proves_more(self, seed):
        T = PackedTensor(planted(seed, 16, 8, 0.1).packed)
        bounds = [decompose(T, 8, eps, random_state=seed).certificates for eps in (0.1, 0.2, 0.3)]
        assert np.all(bounds[0] > bounds[1])
        assert np.all(bounds[1] > bounds[2])

    def test_exact_tensors_are_fully_certified(self, seed):
        result = decompose(PackedTensor(planted(seed, eps=0.0).packed), random_state=seed)
        np.testing.assert_allclose(result.certificates, 1, atol=1e-6)
        assert result.eps < 1e-12


class TestFind:
    @pytest.mark.parametrize("find", [1, 3])
    @pytest.mark.parametrize("given", [{"rank": 8}, {}, {"eps": 0.1}])
    @pytest.mark.parametrize("error", UNAMBIGUOUS)
    def test_so_many_certified_components(self, seed, error, given, find):
        p = planted(seed, error=error)
        result = decompose(PackedTensor(p.packed), find=find, random_state=seed, **given)
        assert result.components.shape == (find, 16)
        assert np.all(result.certified)
        assert result.status.code == "complete"
        assert result.rank == 8
        assert match(p.components, result.components).found(1 - 0.1**2 / 10) == find
        assert_honest(p.components, result)

    def test_all_of_them(self, seed):
        p = planted(seed)
        result = decompose(PackedTensor(p.packed), 8, find=8, random_state=seed)
        assert match(p.components, result.components).found() == 8

    def test_more_than_there_are(self, seed):
        p = planted(seed)
        result = decompose(PackedTensor(p.packed), find=12, random_state=seed)
        assert result.components.shape[0] == 8
        assert result.status.code == "complete"

    def test_the_rest_counts_as_error(self, seed):
        result = decompose(PackedTensor(planted(seed).packed), 8, find=1, random_state=seed)
        assert result.eps == pytest.approx(1.0, rel=0.15)


class TestKnown:
    @pytest.mark.parametrize("given", [{"rank": 8}, {}, {"eps": 0.1}])
    def test_deflated_and_counted(self, seed, given):
        p = planted(seed)
        known = -3.0 * p.components[2:5]
        result = decompose(PackedTensor(p.packed), known=known, random_state=seed, **given)
        assert_all_found(p, result, 0.99)
        assert result.status.code == "complete"
        # They are taken as they are given, up to length and sign.
        assert match(p.components[2:5], result.components).found(1 - 1e-12) == 3
        assert result.eps == pytest.approx(0.1, rel=0.2)

    @pytest.mark.parametrize("given", [{"rank": 6}, {}, {"eps": 0.1}])
    def test_all_known(self, seed, given):
        p = planted(seed, n=6)
        result = decompose(PackedTensor(p.packed), known=p.components, random_state=seed, **given)
        assert result.rank == 6
        assert result.status.code == "complete"
        assert match(p.components, result.components).found(1 - 1e-12) == 6

    def test_a_whole_basis_known(self, seed):
        p = planted(seed, 6, 6)
        result = decompose(PackedTensor(p.packed), known=p.components, random_state=seed)
        assert result.rank == 6
        assert result.components.shape == (6, 6)

    def test_known_and_sought(self, seed):
        p = planted(seed)
        result = decompose(PackedTensor(p.packed), 8, known=p.components[:2], find=3, random_state=seed)
        assert result.components.shape == (5, 16)
        assert match(p.components[:2], result.components).found(1 - 1e-12) == 2
        assert match(p.components, result.components).found(0.99) == 5
        assert result.status.code == "complete"

    def test_none_known(self, seed):
        T = PackedTensor(planted(seed).packed)
        plain, empty = (decompose(T, known=known, random_state=seed) for known in (None, np.zeros((0, 16))))
        np.testing.assert_array_equal(plain.components, empty.components)

    @pytest.mark.parametrize("scale", [1e-200, 1e200])
    def test_of_any_length(self, seed, scale):
        p = planted(seed)
        result = decompose(PackedTensor(p.packed), known=scale * p.components[:2], random_state=seed)
        assert match(p.components, result.components).found() == 8

    def test_weights_are_not_asked_for(self, seed):
        p = planted(seed, weights=np.linspace(5, 1, 8))
        result = decompose(PackedTensor(p.packed), known=p.components[[0, 7]], random_state=seed)
        assert match(p.components, result.components).found() == 8
        np.testing.assert_allclose(result.weights, np.linspace(5, 1, 8), atol=0.15)

    def test_in_every_library(self, seed, xp):
        p = planted(seed, 8, 4)
        result = decompose(xp.asarray(p.tensor), known=xp.asarray(p.components[:2]), random_state=seed)
        assert match(p.components, xp.numpy(result.components)).found() == 4


class TestCanonical:
    def test_the_largest_weight_first(self, seed, rng):
        w = rng.permutation(np.arange(1.0, 9.0))
        p = planted(seed, weights=w)
        result = decompose(PackedTensor(p.packed), random_state=seed)
        assert np.all(np.diff(result.weights) <= 0)
        assert match(result.components, p.components).columns.tolist() == np.argsort(-w).tolist()

    def test_unit_rows_with_a_positive_peak(self, seed):
        C = decompose(PackedTensor(planted(seed).packed), random_state=seed).components
        np.testing.assert_allclose(np.linalg.norm(C, axis=1), 1, atol=1e-12)
        assert np.all(C[np.arange(8), np.argmax(np.abs(C), axis=1)] > 0)

    def test_equal_weights_in_a_fixed_order(self, seed):
        A = random_orthonormal(10, 10, np.random.default_rng(seed))
        B = pack_rank_one(A)
        results = [decompose(PackedTensor(B @ B.T), random_state=s).components for s in range(3)]
        for other in results[1:]:
            np.testing.assert_allclose(other, results[0], atol=1e-6)

    def test_the_same_whole_number_gives_the_same_answer(self, seed):
        T = planted(seed).tensor
        one, other = (decompose(T, random_state=seed) for _ in range(2))
        for name in ("components", "weights", "certificates", "spectrum"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        assert (one.eps, one.eps_assumed, one.reason, one.sweeps) == (
            other.eps,
            other.eps_assumed,
            other.reason,
            other.sweeps,
        )

    @pytest.mark.parametrize("eps", [0.0, 0.1, 0.5])
    def test_other_seeds_agree_to_the_accuracy_of_convergence(self, seed, eps):
        T = PackedTensor(planted(seed, 16, 12, eps, weights=np.linspace(4, 1.5, 12)).packed)
        results = [decompose(T, 12, random_state=s) for s in range(4)]
        for other in results[1:]:
            np.testing.assert_allclose(other.components, results[0].components, atol=0.03 * eps + 1e-10)
            np.testing.assert_allclose(other.weights, results[0].weights, atol=1e-3 * eps + 1e-10)


class TestRandomState:
    @pytest.mark.parametrize(
        "make", [lambda: None, lambda: 3, lambda: np.int64(3), np.random.default_rng, lambda: np.random.RandomState(1)]
    )
    def test_kinds(self, make):
        p = planted(0)
        assert_all_found(p, decompose(PackedTensor(p.packed), random_state=make()), 0.99)

    def test_a_generator_is_advanced(self):
        T = PackedTensor(planted(0, eps=0.3).packed)
        rng = np.random.default_rng(0)
        one, other = (decompose(T, 8, random_state=rng) for _ in range(2))
        assert not np.array_equal(one.components, other.components)

    def test_the_global_state_is_left_alone(self):
        T = PackedTensor(planted(0).packed)
        before = np.random.get_state()[1].copy()  # noqa: NPY002
        decompose(T, random_state=None)
        np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def results_by_status():
    """For each status code an input that leads to it."""
    p = planted(0, 12, 6, 0.1)
    noise = planted(0, 12, 1, 1.0).error
    blurred = PackedTensor(planted(0, 16, 8, 0.5).packed)
    return {
        "complete": lambda: decompose(PackedTensor(p.packed), random_state=0),
        "uncertified": lambda: decompose(PackedTensor(p.packed), 6, eps=0.9, random_state=0),
        "incomplete": lambda: decompose(PackedTensor(p.packed), 8, random_state=0),
        "contradiction": lambda: decompose(PackedTensor(p.packed), 6, eps=0.01, random_state=0),
        "no-gap": lambda: decompose(blurred, random_state=0),
        "nothing": lambda: decompose(PackedTensor(noise), random_state=0),
    }


class TestStatus:
    @pytest.mark.parametrize("code", results_by_status())
    def test_each_is_reached(self, code):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = results_by_status()[code]()
        status = result.status
        assert status.code == code
        assert status.ok == (code == "complete")
        assert bool(status.remedy) != status.ok
        assert str(status) in result.summary()
        assert status.message in str(status)
        assert status.remedy in str(status)
        loud = code in ("incomplete", "nothing")
        assert [str(w.message) for w in caught if w.category is DecompositionWarning] == [str(status)] * loud

    def test_a_warning_points_at_the_caller(self):
        with pytest.warns(DecompositionWarning) as caught:
            results_by_status()["incomplete"]()
        assert caught[0].filename == __file__

    def test_noise_alone_gives_nothing(self, seed):
        noise = planted(seed, 16, 1, 1.0).error
        with pytest.warns(DecompositionWarning, match="no component found"):
            result = decompose(PackedTensor(noise), random_state=seed)
        assert result.components.shape == (0, 16)
        assert result.weights.shape == result.certificates.shape == result.certified.shape == (0,)
        assert result.eps == pytest.approx(1.0, rel=0.2)
        assert not result.to_tensor().any()
        assert "0 components" in result.summary()

    def test_an_eps_that_cannot_be_is_told(self):
        result = results_by_status()["contradiction"]()
        assert result.eps_assumed == pytest.approx(0.01)
        assert result.eps > 0.05
        assert "eps = 0.01 was given" in result.status.message

    @pytest.mark.parametrize("given", [{}, {"rank": 4}])
    def test_no_error_at_all(self, given):
        """An eps of zero is met to rounding."""
        planted = planted_tensor(8, 4, 0.0, random_state=0)
        result = decompose(planted.tensor, eps=0.0, random_state=0, **given)
        assert result.status.code == "complete"
        assert result.rank == 4
        assert result.eps_assumed == 0
        np.testing.assert_allclose(result.certificates, 1, atol=1e-6)

    @pytest.mark.parametrize("sign", [-1, 1])
    def test_one_dimension(self, sign):
        result = decompose(np.full((1, 1, 1, 1), sign * 3), 1, random_state=0)
        assert result.components.tolist() == [[1.0]]
        assert result.weights.tolist() == [sign * 3.0]
        assert result.status.ok


class TestProgress:
    def test_every_stage_is_told(self):
        told = []
        decompose(planted(0).tensor, random_state=0, callback=lambda stage, done: told.append((stage, done)))
        stages = [stage for stage, _ in told]
        assert set(stages) == {"pack", "truncate", "recover", "postprocess", "certify", "measure"}
        assert stages[0] == "pack"
        for stage in set(stages):
            assert (stage, 0) in told
        assert max(done for stage, done in told if stage == "recover") >= 8
        sweeps = [done for stage, done in told if stage == "truncate"]
        assert sweeps == list(range(len(sweeps)))

    @pytest.mark.parametrize("stage", ["pack", "truncate", "recover", "postprocess", "certify", "measure"])
    def test_an_interruption_goes_through(self, stage):
        p = planted(0, 8, 4)
        T = p.tensor
        before = decompose(T, random_state=0)

        def interrupt(current, done):
            if current == stage:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            decompose(T, random_state=0, callback=interrupt)
        after = decompose(T, random_state=0)
        np.testing.assert_array_equal(T, p.tensor)
        np.testing.assert_array_equal(before.components, after.components)


@st.composite
def questions(draw):
    """Small tensors of no structure at all, and whatever may be asked about them."""
    d = draw(st.integers(1, 4))
    width = draw(st.sampled_from([32, 64]))
    entries = st.one_of(st.sampled_from([0.0, 1.0, -1.0]), st.floats(-(2.0**100), 2.0**100, width=width))
    T = draw(hnp.arrays(f"float{width}", (d, d, d, d), elements=entries, fill=st.just(0.0)))
    rank = draw(st.none() | st.integers(1, d))
    known = random_orthonormal(d, d, np.random.default_rng(draw(st.integers(0, 9))))
    given = {
        "rank": rank,
        "eps": draw(st.none() | st.floats(0, 1e30)),
        "find": draw(st.none() | st.integers(1, rank or d)),
        "known": draw(st.none() | st.integers(0, rank or d).map(lambda m: known[:m])),
        "random_state": draw(st.integers(0, 9)),
    }
    return T, given


@hypothesis.given(questions())
@hypothesis.settings(max_examples=100)
@hypothesis.example((np.full((1, 1, 1, 1), 3.0), {"known": [[1.0]]}))
@hypothesis.example((np.full((1, 1, 1, 1), 1e-200), {"known": [[1.0]], "eps": 1.0}))
@hypothesis.example((np.full((1, 1, 1, 1), 5e-324), {"eps": 0.0}))
@hypothesis.example((-np.eye(4).reshape(2, 2, 2, 2), {"rank": 2}))
def test_any_question_has_an_answer(question):
    """A result that makes sense or a refusal that says why, and never a warning of NumPy's."""
    T, given = question
    try:
        result, caught = quietly(T, **given)
    except ValueError as refusal:
        if re.match(r"T is |the pair-symmetric part of T |eps must ", str(refusal)):
            return
        raise
    assert {w.category for w in caught} <= {DecompositionWarning}
    n, d = result.components.shape
    assert d == T.shape[0]
    assert n <= result.rank <= d
    np.testing.assert_allclose(np.linalg.norm(result.components, axis=1), 1, atol=1e-5)
    assert np.all(np.isfinite(result.weights))
    assert np.all((result.certificates >= 0) & (result.certificates <= 1))
    assert np.isfinite(result.eps)
    assert result.status.code in results_by_status()


def test_the_public_names():
    for name in quartic.__all__:
        assert getattr(quartic, name) is not None
    assert Status("complete", "done.").ok
    assert str(Status("no-gap", "no.", "yes.")) == "no. yes."


def test_the_tensor_may_be_named():
    p = planted(0, 6, 3)
    result = decompose(T=p.tensor, rank=3, random_state=0)
    np.testing.assert_array_equal(result.components, decompose(p.tensor, 3, random_state=0).components)
    assert list(inspect.signature(decompose).parameters)[:3] == ["T", "rank", "eps"]
