"""Components in general position: what ``decompose`` finds beyond orthogonal ones, and what it may say about them."""

import warnings
from dataclasses import dataclass

import numpy as np
import pytest

from quartic import DecompositionWarning, PackedTensor, decompose, general
from quartic._arrays import pack, pack_rank_one, packed_dim, unpack
from quartic.algorithms.certify import cap_certificates, own_sine, span_sine, two_behind_one
from quartic.algorithms.subspace_power import Maxima, climb, energies, maxima, polish
from quartic.algorithms.truncate import full_spectrum
from quartic.datasets import ERRORS, random_orthonormal
from quartic.metrics import match

SIZES = [(10, 6), (10, 10), (10, 20), (12, 40)]  # fewer than dimensions, as many, more, half of N
WEIGHTS = {
    "equal": lambda n, rng: np.ones(n),
    "unequal": lambda n, rng: rng.uniform(1, 4, n),
    "signed": lambda n, rng: rng.uniform(1, 3, n) * np.where(np.arange(n) % 2, -1, 1),
    "negative": lambda n, rng: -rng.uniform(1, 3, n),
}
weightings = pytest.mark.parametrize("weights", list(WEIGHTS))


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


@dataclass(frozen=True)
class Planted:
    """``packed = sum_i weights_i components_i^(x4) + error``; ``eps`` is the norm of the error."""

    components: np.ndarray
    weights: np.ndarray
    exact: np.ndarray
    error: np.ndarray

    @property
    def packed(self):
        return self.exact + self.error

    @property
    def eps(self):
        return float(np.linalg.norm(self.error, 2))

    @property
    def tensor(self):
        d = self.components.shape[1]
        return unpack(unpack(self.packed).reshape(-1, d * d)).reshape(d, d, d, d)


def planted(rng, d, n, share=0.0, error="gaussian", weights="equal"):
    """Components in general position; the error is ``share`` of the smallest eigenvalue of their span."""
    A = unit(rng.standard_normal((n, d)))
    w = WEIGHTS[weights](n, rng)
    B = pack_rank_one(A)
    S = (B * w) @ B.T
    E = ERRORS[error](A, rng) if error in ERRORS else ADVERSARIES[error](A, S, rng)
    smallest = np.sort(np.abs(np.linalg.eigvalsh(S)))[-n]
    return Planted(A, w, S, E * (share * smallest / np.linalg.norm(E, 2)))


def halves(A, S):
    """Eigenvectors inside of the span, the largest magnitude first, and outside of it."""
    values, vectors = np.linalg.eigh(S)
    vectors = vectors[:, np.argsort(-np.abs(values), kind="stable")]
    return vectors[:, : len(A)], vectors[:, len(A) :]


def turn(x, y):
    return np.outer(x, y) + np.outer(y, x)


def weakest(A, S, rng):
    """Turns the eigenvector of the smallest eigenvalue out of the span."""
    inside, outside = halves(A, S)
    return turn(inside[:, -1], unit(outside @ rng.standard_normal(outside.shape[1])))


def turned(A, S, rng):
    """Turns one component, in a direction in which a vector may follow: that of ``av' + va'``."""
    _, outside = halves(A, S)
    x = np.linalg.pinv(S, rcond=1e-9) @ pack_rank_one(A[:1])[:, 0]
    v = rng.standard_normal(A.shape[1])
    return turn(unit(x), unit(outside @ (outside.T @ pack(turn(A[0], v)[None])[:, 0])))


def mixture(A, S, rng):
    """A component between two others."""
    x = pack_rank_one(A[:1] + A[1:2])[:, 0]
    return np.outer(x, x)


ADVERSARIES = {"weakest": weakest, "turned": turned, "mixture": mixture}


def quietly(T, *args, **kwargs):
    """The result, whatever it warns of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DecompositionWarning)
        return decompose(T, *args, **kwargs)


def errors_of(p, B, w):
    """Largest errors of the components, up to order and signs, and of the weights."""
    pairs = match(p.components, B)
    assert pairs.rows.size == len(p.components) == len(B)
    off = pairs.signs[:, None] * B[pairs.columns] - p.components
    return np.max(np.linalg.norm(off, axis=1)), np.max(np.abs(w[pairs.columns] - p.weights))


def assert_honest(p, result):
    """No certificate above the squared correlation with the nearest component."""
    truth = np.max((result.components @ p.components.T) ** 2, axis=1, initial=0.0)
    assert np.all(result.certificates <= truth + 1e-9)


def assert_complete(p, result, squared):
    n = len(p.components)
    assert result.rank == n
    assert result.components.shape == p.components.shape
    assert match(p.components, result.components).found(squared) == n
    assert np.all(result.certified)
    assert result.status.code == "complete"
    assert_honest(p, result)


class TestExact:
    @weightings
    @pytest.mark.parametrize(("d", "n"), SIZES)
    def test_to_rounding(self, rng, seed, d, n, weights):
        p = planted(rng, d, n, weights=weights)
        for rank in (n, None):
            result = decompose(PackedTensor(p.packed), rank, random_state=seed)
            assert_complete(p, result, 1 - 1e-12)
            components, weight = errors_of(p, result.components, result.weights)
            assert components < 1e-9
            assert weight < 1e-8
            assert result.eps < 1e-8
            np.testing.assert_allclose(result.certificates, 1, atol=1e-6)
            assert np.all(np.diff(result.weights) <= 1e-9)  # the largest first, negative ones last

    @pytest.mark.parametrize(("d", "n"), [(3, 3), (4, 5), (5, 7), (6, 9)])
    def test_small_dimensions(self, rng, seed, d, n):
        p = planted(rng, d, n)
        for rank in (n, None):
            assert_complete(p, decompose(PackedTensor(p.packed), rank, random_state=seed), 1 - 1e-9)

    @pytest.mark.parametrize(("d", "n"), [(10, 10), (10, 20), (20, 40)])
    def test_components_that_are_all_alike(self, rng, seed, d, n):
        """All within a cone: their mean is most of each.  Without the rank, it may pass for the only component."""
        A = unit(unit(rng.standard_normal((n, d))) + 1.0 * unit(rng.standard_normal(d)))
        B = pack_rank_one(A)
        p = Planted(A, np.ones(n), B @ B.T, 0 * B @ B.T)
        assert_complete(p, decompose(PackedTensor(p.packed), n, random_state=seed), 1 - 1e-9)

    @pytest.mark.parametrize("scale", [1e-150, 1e150])
    def test_in_any_units(self, rng, seed, scale):
        p = planted(rng, 10, 20, weights="signed")
        result = decompose(PackedTensor(scale * p.packed), random_state=seed)
        assert_complete(p, result, 1 - 1e-12)
        pairs = match(p.components, result.components)
        np.testing.assert_allclose(result.weights[pairs.columns], scale * p.weights, rtol=1e-9)

    @pytest.mark.parametrize("share", [0.5, 0.7])
    def test_nearly_full(self, rng, seed, share):
        """As many as ``0.7 N``, found and counted."""
        p = planted(rng, 14, int(share * packed_dim(14)))
        for rank in (len(p.components), None):
            assert_complete(p, decompose(PackedTensor(p.packed), rank, random_state=seed), 1 - 1e-9)


class TestTwoBehindOne:
    @pytest.mark.parametrize("angle", [0.05, 0.2, 0.4])
    def test_the_bound_is_met_by_two_of_equal_weights(self, angle):
        """And holds for all others, as the mean of their squares is nearer to the heavier one."""
        for share in (0.5, 0.6, 0.9):
            A = np.array([[np.cos(angle), np.sin(angle), 0.0], [np.cos(angle), -np.sin(angle), 0.0]])
            B = pack_rank_one(A)
            values, vectors = np.linalg.eigh((B * np.array([share, 1 - share])) @ B.T)
            top = np.linalg.eigh(unpack(vectors[:, -1:])[0])
            u = top.eigenvectors[:, np.argmax(np.abs(top.eigenvalues))]
            nearest = np.max((A @ u) ** 2)
            bound = two_behind_one(np.ones(1), np.ones(1), values[-2:-1])[0]
            assert bound <= nearest + 1e-9
            assert share != 0.5 or bound == pytest.approx(nearest)

    def test_an_error_that_hides_one_of_two(self, seed):
        """An error that cancels a part of the heavier one leaves a single eigenvalue above it."""
        rng = np.random.default_rng(seed)
        A = unit(np.array([[1.0, 0.0, 0.0, 0.0], [1.0, 0.45, 0.0, 0.0]]) @ random_orthonormal(4, 4, rng))
        B = pack_rank_one(A)
        T = (B * np.array([0.33 - 1.5, -1.4])) @ B.T  # orthogonal components have positive weights
        result = quietly(PackedTensor(T), eps=0.33, random_state=seed)
        assert not result.orthogonal
        truth = np.max((result.components @ A.T) ** 2, axis=1)
        assert np.all(result.certificates <= truth + 1e-9)

    def test_what_is_left_beside(self, rng):
        """Against a literal reading: the remainder, as a form in v."""
        p = planted(rng, 5, 4, 0.2)
        T = p.packed
        B, w = p.components, p.weights * rng.uniform(0.8, 1.2, 4)
        F = pack_rank_one(B)
        R = T - (F * w) @ F.T
        got = general.left_beside(full_spectrum(PackedTensor(T)), B, w)
        for i, u in enumerate(B):
            V = np.linalg.qr(np.column_stack((u, rng.standard_normal((5, 4)))))[0][:, 1:].T
            X = pack(np.stack([np.outer(u, v) + np.outer(v, u) for v in V])) / np.sqrt(2)
            assert got[i] == pytest.approx(np.max(np.linalg.eigvalsh(np.sign(w[i]) * X.T @ R @ X)))


class TestErrors:
    @pytest.mark.parametrize("error", ["gaussian", "gaussian-symmetric", "low-rank"])
    @pytest.mark.parametrize("weights", ["equal", "signed"])
    @pytest.mark.parametrize(("d", "n"), [(12, 10), (14, 30)])
    def test_a_tenth(self, rng, seed, d, n, weights, error):
        p = planted(rng, d, n, 0.1, error, weights)
        for given in ({"rank": n}, {}, {"rank": n, "eps": p.eps}, {"eps": p.eps}):
            result = decompose(PackedTensor(p.packed), random_state=seed, **given)
            assert_complete(p, result, 0.999)
            pairs = match(p.components, result.components)
            np.testing.assert_allclose(result.weights[pairs.columns], p.weights, atol=0.1)
            assert result.eps_assumed == pytest.approx(given.get("eps", max(result.eps_assumed, result.eps)))

    @pytest.mark.parametrize(("d", "n"), [(16, 6), (20, 10)])
    def test_few_of_them(self, rng, seed, d, n):
        """Nearly orthogonal ones, and no less exact for it."""
        p = planted(rng, d, n, 0.1)
        for rank in (n, None):
            assert_complete(p, decompose(PackedTensor(p.packed), rank, random_state=seed), 0.999)

    @pytest.mark.parametrize("given", [{"rank": 100}, {}])
    def test_three_tenths(self, rng, seed, given):
        p = planted(rng, 20, 100, 0.3)
        assert_complete(p, decompose(PackedTensor(p.packed), random_state=seed, **given), 0.999)

    def test_other_seeds_agree(self, rng):
        p = planted(rng, 12, 25, 0.2, weights="unequal")
        results = [decompose(PackedTensor(p.packed), 25, random_state=s) for s in range(3)]
        for other in results[1:]:
            np.testing.assert_allclose(other.components, results[0].components, atol=1e-8)
            np.testing.assert_allclose(other.weights, results[0].weights, atol=1e-8)

    @pytest.mark.parametrize("given", [{"rank": 20}, {}, {"rank": 20, "find": 4}])
    def test_the_same_answer_twice(self, rng, seed, given):
        T = planted(rng, 10, 20, 0.1).tensor
        one, other = (decompose(T, random_state=seed, **given) for _ in range(2))
        for name in ("components", "weights", "certificates", "spectrum"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        assert (one.eps, one.reason, one.sweeps) == (other.eps, other.reason, other.sweeps)


class TestArguments:
    def test_the_reason_of_a_rank(self, rng, seed):
        p = planted(rng, 10, 20)
        assert decompose(PackedTensor(p.packed), 20, random_state=seed).reason == "given"
        figures = "20 of 20 dimensions of the span are certified components in general position"
        assert decompose(PackedTensor(p.packed), random_state=seed).reason == figures

    @pytest.mark.parametrize("find", [1, 7, 20])
    @pytest.mark.parametrize("rank", [20, None])
    def test_find(self, rng, seed, find, rank):
        p = planted(rng, 10, 20, 0.05)
        result = decompose(PackedTensor(p.packed), rank, find=find, random_state=seed)
        assert result.rank == 20
        assert result.components.shape == (find, 10)
        assert np.all(result.certified)
        assert result.status.code == "complete"
        assert match(p.components, result.components).found(0.999) == find
        assert_honest(p, result)

    def test_find_does_not_make_them_orthogonal(self, rng, seed):
        """A few of them are asked for: they are the same that are found with all others."""
        for _ in range(3):
            p = planted(rng, 8, 14, 0.02, weights="unequal")
            result = decompose(PackedTensor(p.packed), find=3, random_state=seed)
            assert match(p.components, result.components).found(0.999) == 3
            assert_honest(p, result)

    @pytest.mark.parametrize("given", [{"rank": 60}, {}, {"eps": 0.005}])
    @pytest.mark.parametrize("m", [5, 20, 30, 60])
    def test_known(self, rng, seed, m, given):
        """Fewer than dimensions, as many, and more."""
        p = planted(rng, 20, 60)
        while np.max((p.components @ p.components.T) ** 2 - np.eye(60)) > 0.6:
            p = planted(rng, 20, 60)
        known = unit(p.components[:m] + 1e-4 * rng.standard_normal((m, 20)))
        result = decompose(PackedTensor(p.packed), known=-2.0 * known, random_state=seed, **given)
        assert result.rank == 60
        assert result.known == m
        assert result.components.shape == (60, 20)
        assert match(p.components, result.components).found(1 - 1e-5) == 60
        assert match(known, result.components).found(1 - 1e-14) == m  # as they are

    def test_known_ones_may_be_near_each_other(self, rng, seed):
        """Orthogonal ones can not; these are forty degrees apart, and nothing says that they are orthogonal."""
        p = planted(rng, 10, 20)
        A = p.components.copy()
        v = unit(A[1] - (A[0] @ A[1]) * A[0])
        A[1] = np.cos(np.radians(40)) * A[0] + np.sin(np.radians(40)) * v
        B = pack_rank_one(A)
        for rank in (20, None):
            result = decompose(PackedTensor(B @ B.T), rank, known=A[:2], random_state=seed)
            assert match(A, result.components).found(1 - 1e-9) == 20

    def test_known_and_sought(self, rng, seed):
        p = planted(rng, 10, 20)
        result = decompose(PackedTensor(p.packed), 20, known=p.components[:4], find=3, random_state=seed)
        assert result.components.shape == (7, 10)
        assert match(p.components[:4], result.components).found(1 - 1e-12) == 4
        assert match(p.components, result.components).found(1 - 1e-12) == 7

    @pytest.mark.parametrize(("d", "n"), [(10, 6), (10, 20)])
    @pytest.mark.parametrize("weights", ["signed", "negative"])
    @pytest.mark.parametrize("given", [{"rank"}, {"eps"}, {"rank", "eps"}])
    def test_weights_below_zero(self, rng, seed, d, n, weights, given):
        p = planted(rng, d, n, 0.05, weights=weights)
        options = {name: value for name, value in {"rank": n, "eps": p.eps}.items() if name in given}
        assert_complete(p, decompose(PackedTensor(p.packed), random_state=seed, **options), 0.999)

    @pytest.mark.parametrize("rank", [25, 55])
    def test_a_rank_that_is_too_large(self, rng, seed, rank):
        """The span holds directions that are no squares, or everything: nothing is certified that is not there."""
        p = planted(rng, 10, 20, 0.05)
        result = quietly(PackedTensor(p.packed), rank, random_state=seed)
        assert not result.status.ok
        assert_honest(p, result)

    @pytest.mark.parametrize("rank", [5, 15])
    def test_a_rank_that_is_too_small(self, rng, seed, rank):
        p = planted(rng, 10, 20, 0.05)
        result = quietly(PackedTensor(p.packed), rank, random_state=seed)
        assert not np.any(result.certified)
        assert not result.status.ok

    def test_an_incomplete_answer_warns(self, rng, seed):
        p = planted(rng, 10, 20)
        with pytest.warns(DecompositionWarning, match=r"of 25 components found"):
            result = decompose(PackedTensor(p.packed), 25, random_state=seed)
        assert result.status.code == "incomplete"

    def test_every_stage_is_told(self, rng):
        told = []
        T = planted(rng, 10, 20).tensor
        decompose(T, 20, random_state=0, callback=lambda stage, done: told.append((stage, done)))
        assert {stage for stage, _ in told} == {"pack", "truncate", "recover", "measure", "certify"}
        assert max(done for stage, done in told if stage == "recover") >= 20


class TestLibraries:
    @pytest.mark.parametrize("given", [{"rank": 14}, {}, {"rank": 14, "find": 3}, {"eps": 0.01}])
    def test_all_of_it_in_every_library(self, rng, seed, xp, given):
        p = planted(rng, 8, 14, 0.02, weights="unequal")
        result = decompose(xp.asarray(p.tensor), random_state=seed, **given)
        expected = decompose(p.tensor, random_state=seed, **given)
        assert result.rank == expected.rank == 14
        for name in ("components", "weights", "certificates"):
            array = getattr(result, name)
            assert array.dtype == xp.dtype("float64")
            np.testing.assert_allclose(xp.numpy(array), getattr(expected, name), atol=xp.within(1e-6))
        assert result.status == expected.status

    @pytest.mark.parametrize("given", [{"rank": 14}, {}])
    def test_float32(self, rng, seed, xp, given):
        p = planted(rng, 8, 14, weights="unequal")
        result = decompose(xp.asarray(p.tensor, "float32"), random_state=seed, **given)
        assert result.components.dtype == result.weights.dtype == xp.dtype("float32")
        assert result.rank == 14
        components, weights = errors_of(p, xp.numpy(result.components), xp.numpy(result.weights))
        assert components < 1e-3
        assert weights < 1e-2
        assert np.all(xp.numpy(result.certified))
        truth = np.max((xp.numpy(result.components) @ p.components.T) ** 2, axis=1)
        assert np.all(xp.numpy(result.certificates) <= truth + 1e-6)

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_full_spectrum(self, rng, xp, dtype):
        T = planted(rng, 6, 9, 0.3, weights="signed").packed
        spectrum = full_spectrum(PackedTensor(xp.asarray(T, dtype)))
        V, lam = xp.numpy(spectrum.vectors), spectrum.values
        assert V.dtype == np.dtype(dtype)
        assert lam.dtype == np.float64
        assert np.all(np.diff(np.abs(lam)) <= 0)
        tolerance = 1e-5 if dtype == "float32" else 1e-12
        np.testing.assert_allclose(V.T @ V, np.eye(21), atol=tolerance)
        np.testing.assert_allclose((V * lam) @ V.T, T, atol=tolerance)


class TestCertificates:
    @pytest.mark.parametrize("share", [0.03, 0.1, 0.3, 0.5])
    @pytest.mark.parametrize("error", ["gaussian", "gaussian-symmetric", "low-rank", *ADVERSARIES])
    @pytest.mark.parametrize("weights", ["unequal", "signed"])
    def test_never_above_the_truth(self, rng, seed, weights, error, share):
        """More components than dimensions, and the eps that holds."""
        for d, n in [(8, 12), (9, 16)]:
            p = planted(rng, d, n, share, error, weights)
            result = quietly(PackedTensor(p.packed), n, p.eps, random_state=seed)
            assert result.eps_assumed == pytest.approx(p.eps)
            assert_honest(p, result)
            if share <= 0.1:
                assert np.all(result.certified)  # zero is never above the truth either

    @pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
    @pytest.mark.parametrize("error", ["gaussian", "low-rank", *ADVERSARIES])
    @pytest.mark.parametrize("weights", ["unequal", "signed"])
    def test_never_above_the_truth_without_orthogonality(self, rng, seed, weights, error, share):
        """No more components than dimensions: those that are not orthogonal are not taken for orthogonal ones."""
        for d, n in [(6, 4), (8, 8)]:
            p = planted(rng, d, n, share, error, weights)
            for rank in (n, None):
                assert_honest(p, quietly(PackedTensor(p.packed), rank, p.eps, random_state=seed))

    @pytest.mark.parametrize("error", ["gaussian", "low-rank"])
    def test_what_explains_the_tensor_wins(self, error):
        """Two of four components have negative weights: orthogonal ones for the others leave far more than eps."""
        p = planted(np.random.default_rng(9), 6, 4, 0.3, error, "signed")
        result = quietly(PackedTensor(p.packed), None, p.eps, random_state=9)
        assert not result.orthogonal
        assert match(p.components, result.components).found(0.99) == 4
        assert_honest(p, result)

    @pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
    @pytest.mark.parametrize("error", ["gaussian", "gaussian-symmetric", "low-rank"])
    def test_never_above_the_truth_with_eps_estimated(self, rng, seed, error, share):
        for d, n in [(8, 8), (8, 14)]:
            p = planted(rng, d, n, share, error, "unequal")
            for rank in (n, None):
                result = quietly(PackedTensor(p.packed), rank, random_state=seed)
                assert_honest(p, result)
                assert share > 0.1 or np.all(result.certified)

    @pytest.mark.parametrize("share", [0.1, 0.3])
    @pytest.mark.parametrize("error", ["weakest", "turned"])
    def test_where_the_estimate_holds(self, rng, seed, error, share):
        """An error that hides is not seen: what is said is meant for the eps that is said with it."""
        for n in (10, 12, 14, 16):
            p = planted(rng, 8, n, share, error, "unequal")
            result = quietly(PackedTensor(p.packed), n, random_state=seed)
            if p.eps <= result.eps_assumed:
                assert_honest(p, result)

    def test_one_more_than_dimensions_and_nothing_is_proven(self, rng, seed, monkeypatch):
        """If two maxima look like one component, the span is not that of components: which is which?"""
        p = planted(rng, 10, 20, 0.02)
        T = PackedTensor(p.packed)
        assert np.all(decompose(T, 20, 5 * p.eps, random_state=seed).certified)

        def one_too_many(L, rng, known, **options):
            extra = unit(p.components[:1] + 0.005 * unit(rng.standard_normal((1, 10))))
            return maxima(L, rng, known, **options).join(Maxima(extra, energies(L, extra)))

        monkeypatch.setattr(general, "maxima", one_too_many)
        assert not np.any(decompose(T, 20, 5 * p.eps, random_state=seed).certified)

    def test_a_smaller_eps_proves_more(self, rng, seed):
        p = planted(rng, 10, 20, 0.05)
        T = PackedTensor(p.packed)
        bounds = [decompose(T, 20, factor * p.eps, random_state=seed).certificates for factor in (1, 2, 3)]
        assert np.all(bounds[0] > bounds[1])
        assert np.all(bounds[1] > bounds[2])


def kept_and_dropped(p):
    """The spectrum of a planted tensor, and the part of its true span that the kept eigenvectors miss."""
    spectrum = full_spectrum(PackedTensor(p.packed))
    U = spectrum.vectors[:, : len(p.components)]
    B = pack_rank_one(p.components)
    return spectrum, lambda X: X - U @ (U.T @ X), B


class TestSines:
    @pytest.mark.parametrize("share", [0.01, 0.1, 0.3, 0.45])
    @pytest.mark.parametrize("error", [*ERRORS, *ADVERSARIES])
    @weightings
    def test_span_sine(self, rng, weights, error, share):
        """The whole true span, and so each square, lies no further from the kept one."""
        for d, n in [(6, 4), (7, 7), (7, 14)]:
            p = planted(rng, d, n, share, error, weights)
            spectrum, missed, B = kept_and_dropped(p)
            bound = span_sine(p.eps, spectrum.values, n)
            assert np.linalg.norm(missed(np.linalg.qr(B)[0]), 2) <= bound + 1e-9
            assert np.max(np.linalg.norm(missed(B), axis=0)) <= bound + 1e-9
            assert share > 0.1 or bound < 1  # by Weyl, the gap is at least 1 - 3 * 0.1

    @weightings
    def test_span_sine_is_attained(self, rng, weights):
        """By an error that turns the weakest eigenvector: to first order, no smaller bound would be right."""
        for d, n in [(6, 4), (7, 14)]:
            p = planted(rng, d, n, 0.01, "weakest", weights)
            spectrum, missed, B = kept_and_dropped(p)
            sine = np.linalg.norm(missed(np.linalg.qr(B)[0]), 2)
            assert sine > 0.98 * span_sine(p.eps, spectrum.values, n)

    def test_span_sine_says_nothing_without_a_gap(self):
        values = np.array([3.0, -2.0, 1.0, 0.5])
        assert span_sine(0.1, values, 2) == pytest.approx(0.1 / 0.9)
        assert span_sine(0.1, values, 4) == pytest.approx(0.1 / 0.4)
        assert span_sine(0.0, values, 2) == 0
        for eps in (0.5, 1.0, 1.5):
            assert span_sine(eps, values, 2) == 1

    @pytest.mark.parametrize("error", ["gaussian", "low-rank", *ADVERSARIES])
    @weightings
    def test_own_sine(self, rng, weights, error):
        """Each component by itself, to first order; never more than the whole span."""
        for d, n in [(6, 4), (7, 7), (7, 12)]:
            p = planted(rng, d, n, 0.01, error, weights)
            spectrum, missed, B = kept_and_dropped(p)
            L = spectrum.head(n)
            found = polish(L, climb(L, p.components)).vectors
            pairs = match(p.components, found)
            assert pairs.found(0.99) == n
            own = own_sine(p.eps, spectrum.values, L.U.T @ pack_rank_one(found[pairs.columns]))
            sines = np.linalg.norm(missed(B), axis=0)
            assert np.all(sines <= 1.05 * own)
            assert np.all(own <= span_sine(p.eps, spectrum.values, n))
            if error == "turned":
                assert sines[0] > 0.95 * own[0]  # made for it

    def test_own_sine_says_nothing_without_a_gap(self, rng):
        c = rng.standard_normal((2, 5))
        np.testing.assert_array_equal(own_sine(1.0, np.array([3.0, -2.0, 1.0]), c), 1)


class TestCap:
    """Certificates from the value and the curvature of ``F``."""

    def test_literally(self):
        """Where ``F(u) - (2 F(u) - second) t^2 / 2`` meets ``1 - sine^2``."""
        F, second, sine = 0.999, 0.8, 0.1
        t = np.arccos(np.sqrt(cap_certificates(np.array([F]), np.array([second]), np.array([sine]))))[0]
        assert F - (2 * F - second) * t**2 / 2 == pytest.approx(1 - sine**2)

    def test_less_for_a_larger_sine_or_a_flatter_maximum(self, rng):
        F, second, sine = rng.uniform(0.9, 1, 200), rng.uniform(0, 2, 200), rng.uniform(0, 1, 200)
        bounds = cap_certificates(F, second, sine)
        assert np.all((bounds >= 0) & (bounds <= 1))
        assert 20 < np.sum(bounds > 0) < 180
        room = 1 - sine**2 <= F  # what may be a component
        for wider in (0.01, 0.1):
            assert np.all(cap_certificates(F, second, sine + wider)[room] <= bounds[room])
            assert np.all(cap_certificates(F, second + wider, sine)[room] <= bounds[room])

    def test_a_component_of_an_exact_span(self):
        assert cap_certificates(np.ones(1), np.ones(1), np.zeros(1)) == 1

    @pytest.mark.parametrize(
        ("F", "second", "sine"),
        [
            (0.98, 0.5, 0.1),  # too far from the span for a component
            (1.0, 2.0, 0.1),  # flat
            (1.0, 2.5, 0.1),  # no maximum
            (1.0, 0.5, 1.0),  # nothing is known of the span
            (0.999, 1.99, 0.9),  # beyond a right angle
        ],
    )
    def test_nothing(self, F, second, sine):
        bound = cap_certificates(np.array([F]), np.array([second]), np.array([sine]))
        np.testing.assert_allclose(bound, 0, atol=1e-30)


def spans_of_matrices(d, rng):
    """A few random matrices, of full rank."""
    k = int(rng.integers(1, packed_dim(d) // 2))
    U = np.linalg.qr(rng.standard_normal((packed_dim(d), k)))[0]
    return (U * rng.choice([-1.0, 1.0], k)) @ U.T


def pairings(d, rng):
    """``Id`` and ``id id'``: the same in every direction."""
    one = pack(np.eye(d)[None])
    a, b = rng.standard_normal(2)
    return a * np.eye(packed_dim(d)) + b * one @ one.T


NOTHING = {
    "gaussian": lambda d, rng: ERRORS["gaussian"](np.zeros((1, d)), rng),
    "symmetric": lambda d, rng: ERRORS["gaussian-symmetric"](np.zeros((1, d)), rng),
    "pairings": pairings,
    "matrices": spans_of_matrices,
}


class TestNothing:
    @pytest.mark.parametrize("kind", NOTHING)
    def test_is_certified_where_nothing_is(self, rng, seed, kind):
        for d in (6, 10):
            T = PackedTensor(NOTHING[kind](d, rng))
            for rank in (None, d // 2, d, 2 * d):
                assert not np.any(quietly(T, rank, random_state=seed).certified)

    def test_beside_components_that_are_there(self, rng, seed):
        """An error as large as the components, of random matrices: those are certified, and nothing else is."""
        p = planted(rng, 12, 20)
        V = np.linalg.qr(rng.standard_normal((packed_dim(12), 3)))[0]
        T = p.packed + 3 * V @ V.T
        result = quietly(PackedTensor(T), 23, random_state=seed)
        assert_honest(p, result)

    @pytest.mark.parametrize("k", [2, 3, 5])
    def test_where_every_vector_of_a_subspace_would_do(self, rng, seed, k):
        """All symmetric matrices on a subspace, alike: no vector of it is more of a component than the others.

        Which are found is a matter of rounding, hence several draws.
        """
        i, j = np.triu_indices(k)
        for draw in range(10):
            V = random_orthonormal(8, k, rng)
            Q = np.linalg.qr(pack(V[i][:, :, None] * V[j][:, None, :]))[0]
            for rank in (None, k, Q.shape[1]):
                assert not np.any(quietly(PackedTensor(Q @ Q.T), rank, random_state=seed + draw).certified)
