"""Algorithm 4.11 on a span: every component, once, and nothing else."""

import numpy as np
import pytest

from quartic._arrays import pack_rank_one
from quartic.algorithms import recover as algorithm
from quartic.algorithms.postprocess import accepted, evaluate
from quartic.algorithms.recover import deflate_span, distinct, polar, recover
from quartic.datasets import random_orthonormal
from quartic.metrics import match
from quartic.tensors import FactoredTensor


def span(xp, vectors, dtype="float64"):
    """The projector to the span of the columns ``(N, k)``, as the form that ``recover`` takes."""
    Q = np.linalg.qr(vectors)[0]
    return FactoredTensor(xp.asarray(np.ones(Q.shape[1]), dtype), xp.asarray(Q, dtype))


def mixed(rng, A):
    """A random basis of the span of the squares of the rows of ``A``."""
    return pack_rank_one(A) @ np.linalg.qr(rng.standard_normal((len(A), len(A))))[0]


class TestRecover:
    @pytest.mark.parametrize(("d", "n"), [(1, 1), (2, 1), (2, 2), (3, 3), (12, 1), (12, 5), (12, 12), (24, 24)])
    def test_every_component_of_an_exact_span(self, rng, xp, d, n):
        A = random_orthonormal(d, n, rng)
        B = xp.numpy(recover(span(xp, mixed(rng, A)), rng))
        assert B.shape == (n, d)
        np.testing.assert_allclose(np.linalg.norm(B, axis=1), 1, atol=1e-12)
        assert match(A, B).found(1 - 1e-6) == n

    def test_float32(self, rng, xp):
        A = random_orthonormal(12, 12, rng)
        B = recover(span(xp, mixed(rng, A), "float32"), rng)
        assert B.dtype == xp.dtype("float32")
        assert match(A, xp.numpy(B)).found(1 - 1e-4) == 12

    def test_a_perturbed_span(self, rng, xp):
        A = random_orthonormal(16, 16, rng)
        noise = rng.standard_normal((136, 16))
        V = np.linalg.qr(mixed(rng, A))[0] + 0.4 * np.linalg.qr(noise)[0]  # at an angle of some 20 degrees
        B = xp.numpy(recover(span(xp, V), rng))
        assert match(A, B).found(0.9) == 16

    @pytest.mark.parametrize("find", [1, 3, 8])
    def test_stops_when_enough_are_found(self, rng, xp, find):
        A = random_orthonormal(10, 8, rng)
        B = xp.numpy(recover(span(xp, mixed(rng, A)), rng, find=find))
        assert B.shape == (find, 10)
        assert match(A, B).found(0.999) == find

    def test_no_more_than_the_span_holds(self, rng, xp):
        A = random_orthonormal(10, 4, rng)
        assert recover(span(xp, mixed(rng, A)), rng, find=9).shape[0] == 4

    def test_nothing_in_an_empty_span(self, rng, xp):
        L = FactoredTensor(xp.asarray(np.ones(0)), xp.asarray(np.ones((55, 0))))
        assert tuple(recover(L, rng).shape) == (0, 10)

    def test_nothing_in_a_span_without_components(self, rng, xp):
        L = span(xp, rng.standard_normal((210, 2)))
        assert tuple(recover(L, rng).shape) == (0, 20)

    def test_components_beside_a_direction_that_is_none(self, rng, xp):
        A = random_orthonormal(20, 5, rng)
        L = span(xp, np.concatenate((pack_rank_one(A), 0.1 * rng.standard_normal((210, 1))), axis=1))
        B = xp.numpy(recover(L, rng))
        assert match(A, B).found(0.9) == 5
        assert len(B) == 5

    def test_progress_is_told(self, rng, xp):
        told = []
        A = random_orthonormal(10, 7, rng)
        recover(span(xp, mixed(rng, A)), rng, callback=told.append)
        assert told == sorted(set(told))
        assert told[-1] == 7

    def test_what_is_found_leaves_the_working_tensor(self, rng, xp, monkeypatch):
        """One candidate in a round: each round works on a span of one dimension less."""
        ranks = []

        def contract(work, count, rng):
            ranks.append(work.rank)
            return algorithm_contract(work, count, rng)

        algorithm_contract, algorithm_candidates = algorithm.contract, algorithm.candidates
        monkeypatch.setattr(algorithm, "contract", contract)
        monkeypatch.setattr(algorithm, "candidates", lambda M, most: algorithm_candidates(M, 1))
        A = random_orthonormal(10, 6, rng)
        B = xp.numpy(recover(span(xp, mixed(rng, A)), rng))
        assert match(A, B).found(0.999) == 6
        assert sorted(set(ranks), reverse=True) == [6, 5, 4, 3, 2, 1]
        assert ranks == sorted(ranks, reverse=True)

    def test_the_same_generator_gives_the_same_answer(self, seed, xp):
        A = random_orthonormal(10, 7, np.random.default_rng(seed))
        L = span(xp, pack_rank_one(A))
        one, other = (xp.numpy(recover(L, np.random.default_rng(seed))) for _ in range(2))
        np.testing.assert_array_equal(one, other)


class TestAccepted:
    """Algorithm 4.8's test for vectors that are known to be components, mixtures, or neither."""

    @staticmethod
    def mask(xp, weights, vectors, eps, dtype="float64"):
        """The mask for vectors given by their entries in the basis of the components."""
        d = len(weights)
        T = FactoredTensor.from_components(xp.asarray(weights, dtype), xp.asarray(np.eye(d), dtype))
        B = np.asarray(vectors, dtype=float)
        B /= np.linalg.norm(B, axis=1, keepdims=True)
        return xp.numpy(accepted(evaluate(T, xp.asarray(B, dtype)), eps)).tolist()

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    @pytest.mark.parametrize("eps", [None, 0.0, 1e-20, 0.01, 0.05, 0.3, 0.9, 5.0])
    def test_components_of_any_weight_always_pass(self, xp, eps, dtype):
        assert self.mask(xp, [1.0, 1.0, 1.0], np.eye(3), eps, dtype) == [True] * 3
        assert self.mask(xp, [30.0, 1.0, 0.5], np.eye(3), eps, dtype) == [True] * 3

    @pytest.mark.parametrize("eps", [None, 0.0, 0.01, 0.05, 0.3, 0.9])
    def test_mixtures_never_do(self, xp, eps):
        mixtures = [[1, 1, 1, 0], [1, -1, 1, 1], [1, 1.1, -0.8, 0.1]]
        assert self.mask(xp, np.ones(4), mixtures, eps) == [False] * 3

    def test_a_small_eps_asks_for_more(self, xp):
        near = [[1.0, 0.3, 0.0]]  # squared correlation 0.917
        assert self.mask(xp, np.ones(3), near, None) == [True]
        assert self.mask(xp, np.ones(3), near, 0.3) == [True]
        assert self.mask(xp, np.ones(3), near, 1e-4) == [False]

    def test_what_the_tensor_does_not_hold(self, xp):
        assert self.mask(xp, [1.0, 1.0, 0.0], [[0, 0, 1.0]], None) == [False]
        assert self.mask(xp, [1.0, 1.0, 0.0], [[0, 0, 1.0]], 0.1) == [False]


class TestDistinct:
    @staticmethod
    def pick(xp, B, scores, accepted, known=None):
        known = np.zeros((0, np.shape(B)[1])) if known is None else known
        rows = distinct(xp.asarray(B), xp.asarray(scores), xp.asarray(accepted), xp.asarray(known))
        return xp.numpy(rows).tolist()

    def test_the_best_first(self, xp):
        assert self.pick(xp, np.eye(4), np.array([0.6, 0.9, 0.7, 0.8]), np.ones(4, bool)) == [1, 3, 2, 0]

    def test_what_is_not_accepted_goes_however_good(self, xp):
        accepted = np.array([True, False, True, False])
        assert self.pick(xp, np.eye(4), np.array([0.6, 0.9, 0.7, 0.8]), accepted) == [2, 0]

    def test_one_of_a_cluster_whatever_its_sign(self, xp):
        B = np.array([[1, 0, 0], [0.99, 0.14, 0], [-1, 0.01, 0], [0, 0, 1]])
        B /= np.linalg.norm(B, axis=1, keepdims=True)
        assert self.pick(xp, B, np.array([0.7, 0.9, 0.8, 0.6]), np.ones(4, bool)) == [1, 3]

    def test_a_bad_neighbour_that_is_not_accepted_does_no_harm(self, xp):
        B = np.array([[1.0, 0], [1.0, 0]])
        assert self.pick(xp, B, np.array([0.7, 0.9]), np.array([True, False])) == [0]

    @pytest.mark.parametrize(("degrees", "expected"), [(44, [0]), (46, [0, 1])])
    def test_two_are_one_within_45_degrees(self, xp, degrees, expected):
        angle = np.radians(degrees)
        B = np.array([[1.0, 0], [np.cos(angle), np.sin(angle)]])
        assert self.pick(xp, B, np.array([0.9, 0.8]), np.ones(2, bool)) == expected

    def test_the_known_are_left_out(self, xp):
        known = np.array([[0, -1.0, 0]])
        assert self.pick(xp, np.eye(3), np.array([0.6, 0.9, 0.7]), np.ones(3, bool), known) == [2, 0]

    def test_of_none_none(self, xp):
        assert self.pick(xp, np.eye(3)[:0], np.zeros(0), np.zeros(0, bool)) == []
        assert self.pick(xp, np.eye(3), np.ones(3), np.zeros(3, bool)) == []


class TestPolar:
    @pytest.mark.parametrize("m", [1, 4, 9])
    def test_is_the_polar_factor(self, rng, xp, m):
        B = random_orthonormal(9, m, rng) + 0.3 * rng.standard_normal((m, 9)) / 3
        U, _, Vh = np.linalg.svd(B, full_matrices=False)
        P = xp.numpy(polar(xp.asarray(B)))
        np.testing.assert_allclose(P, U @ Vh, atol=1e-10)
        np.testing.assert_allclose(P @ P.T, np.eye(m), atol=1e-10)

    def test_is_closest(self, rng):
        B = random_orthonormal(9, 5, rng) + 0.1 * rng.standard_normal((5, 9))
        nearest = np.linalg.norm(B - polar(B))
        for _ in range(20):
            other = random_orthonormal(9, 5, rng)
            assert np.linalg.norm(B - other) >= nearest
        turned = polar(B + 1e-3 * rng.standard_normal((5, 9)))
        assert np.linalg.norm(B - turned) >= nearest

    def test_orthonormal_rows_stay(self, rng, xp):
        A = random_orthonormal(9, 6, rng)
        np.testing.assert_allclose(xp.numpy(polar(xp.asarray(A))), A, atol=1e-12)


class TestDeflateSpan:
    def test_the_known_leave_and_the_others_stay(self, rng, xp):
        A = random_orthonormal(10, 7, rng)
        L = span(xp, mixed(rng, A))
        left = deflate_span(L, xp.asarray(A[:3]))
        U = xp.numpy(left.U)
        assert left.rank == 4
        np.testing.assert_allclose(U.T @ U, np.eye(4), atol=1e-10)
        np.testing.assert_allclose(U.T @ pack_rank_one(A[:3]), 0, atol=1e-10)
        np.testing.assert_allclose(np.sum((U.T @ pack_rank_one(A[3:])) ** 2, axis=0), 1, atol=1e-10)
        np.testing.assert_allclose(xp.numpy(left.lam), 1)

    def test_nothing_is_left_of_all(self, rng, xp):
        A = random_orthonormal(6, 6, rng)
        assert deflate_span(span(xp, mixed(rng, A)), xp.asarray(A)).rank == 0

    def test_inside_the_span_also_for_rough_components(self, rng, xp):
        A = random_orthonormal(10, 7, rng)
        L = span(xp, mixed(rng, A))
        rough = polar(A[:2] + 0.05 * rng.standard_normal((2, 10)))
        left = deflate_span(L, xp.asarray(rough))
        U, V = xp.numpy(left.U), xp.numpy(L.U)
        assert left.rank == 5
        np.testing.assert_allclose(V @ (V.T @ U), U, atol=1e-10)
        np.testing.assert_allclose(U.T @ (V @ (V.T @ pack_rank_one(rough))), 0, atol=1e-10)
