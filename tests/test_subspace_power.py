"""Subspace power: the fast code against a literal reading, and every component of a span, however they lie."""

import numpy as np
import pytest

from quartic._arrays import pack, pack_rank_one, packed_dim, to_numpy, unpack
from quartic.algorithms import subspace_power as algorithm
from quartic.algorithms.subspace_power import (
    Maxima,
    climb,
    deflated,
    derivatives,
    energies,
    maxima,
    mean_energy,
    normalised,
    polish,
)
from quartic.datasets import random_orthonormal
from quartic.general import certificates
from quartic.metrics import match
from quartic.tensors import FactoredTensor

SIZES = [(12, 8), (12, 12), (12, 30), (16, 40), (16, 95)]  # fewer than dimensions, as many, more, 0.7 N
SPANS = [(1, 1), (4, 1), (7, 5), (6, 12), (6, 21)]  # d, and the dimension of any span


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def generic(d, n, rng):
    """Unit rows in general position."""
    return unit(rng.standard_normal((n, d)))


def leading(xp, S, n, dtype="float64"):
    """The ``n`` eigenvectors of the largest magnitudes of a packed tensor, with their eigenvalues."""
    values, vectors = np.linalg.eigh(S)
    order = np.argsort(-np.abs(values), kind="stable")[:n]
    return FactoredTensor(xp.asarray(values[order], dtype), xp.asarray(vectors[:, order], dtype))


def planted(A, w=1.0):
    """``sum_i w_i a_i^(x4)`` for the rows of ``A``, packed."""
    B = pack_rank_one(A)
    return (B * w) @ B.T


def perturbed(A, share, rng):
    """The same and a Gaussian error: its norm is ``share`` of the smallest eigenvalue of the span."""
    S = planted(A)
    G = rng.standard_normal(S.shape)
    G += G.T
    return S + G * (share * np.linalg.eigvalsh(S)[-len(A)] / np.linalg.norm(G, 2))


def any_span(xp, d, k, rng, dtype="float64"):
    """A random span of dimension ``k``: up to ``N - d`` dimensions, no square of a vector lies in it."""
    Q = np.linalg.qr(rng.standard_normal((packed_dim(d), k)))[0]
    return FactoredTensor(xp.asarray(np.ones(k), dtype), xp.asarray(Q, dtype))


def literal(L, u):
    """``F(u)``, one matrix at a time."""
    return sum(float(u @ U @ u) ** 2 for U in unpack(to_numpy(L.U)))


def beside(u, rng):
    """A unit vector at a right angle to ``u``."""
    v = rng.standard_normal(u.shape)
    return unit(v - (v @ u) * u)


class TestLiterally:
    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    @pytest.mark.parametrize(("d", "k"), SPANS)
    def test_energies(self, xp, rng, d, k, dtype):
        L, B = any_span(xp, d, k, rng, dtype), generic(d, 5, rng)
        F = energies(L, xp.asarray(B, dtype))
        assert F.dtype == xp.dtype(dtype)
        np.testing.assert_allclose(xp.numpy(F), [literal(L, u) for u in B], atol=1e-5 if dtype == "float32" else 1e-12)

    @pytest.mark.parametrize(("d", "k"), SPANS)
    def test_energies_are_those_of_a_projection(self, xp, rng, d, k):
        """To the span of the ``U_k``, as vectors of ``d^2`` entries."""
        L, u = any_span(xp, d, k, rng), generic(d, 1, rng)[0]
        V = unpack(to_numpy(L.U)).reshape(k, d * d)
        x = np.outer(u, u).reshape(-1)
        nearest = V.T @ np.linalg.lstsq(V.T, x)[0]
        assert float(energies(L, xp.asarray(u[None]))[0]) == pytest.approx(nearest @ nearest)

    @pytest.mark.parametrize(("d", "k"), SPANS[1:])
    def test_derivatives(self, xp, rng, d, k):
        """Differences of ``F`` along ``u cos t + v sin t``: the slope is ``4 <gradient, v>``, and so on."""
        L, B = any_span(xp, d, k, rng), generic(d, 4, rng)
        F, gradient, second = (xp.numpy(x) for x in derivatives(L, xp.asarray(B)))
        for u, value, g, H in zip(B, F, gradient, second, strict=True):
            assert value == pytest.approx(literal(L, u))
            for _ in range(3):
                v = beside(u, rng)
                t = 1e-4
                before, after = (literal(L, np.cos(s) * u + np.sin(s) * v) for s in (-t, t))
                assert (after - before) / (2 * t) == pytest.approx(4 * g @ v, abs=1e-6)
                assert (after - 2 * value + before) / (2 * t**2) == pytest.approx(v @ H @ v - 2 * value, abs=1e-6)
            np.testing.assert_allclose(g @ u, 0, atol=1e-12)  # both are beside u
            np.testing.assert_allclose(H @ u, 0, atol=1e-12)
            np.testing.assert_allclose(H, H.T, atol=1e-12)

    @pytest.mark.parametrize("rows", [0, 1, 7])
    def test_derivatives_in_blocks(self, xp, rng, rows, monkeypatch):
        L, B = any_span(xp, 6, 9, rng), xp.asarray(generic(6, rows, rng))
        whole = derivatives(L, B)
        assert [tuple(x.shape) for x in whole] == [(rows,), (rows, 6), (rows, 6, 6)]
        monkeypatch.setattr(algorithm, "BLOCK_ENTRIES", 2 * 9 * 6)  # two rows at a time
        for x, y in zip(whole, derivatives(L, B), strict=True):
            np.testing.assert_allclose(xp.numpy(y), xp.numpy(x), atol=1e-12)

    @pytest.mark.parametrize(("d", "k"), SPANS)
    def test_mean_energy(self, xp, rng, d, k):
        """Five standard deviations of 4000 draws."""
        L = any_span(xp, d, k, rng)
        F = xp.numpy(energies(L, xp.asarray(generic(d, 4000, rng))))
        assert mean_energy(L) == pytest.approx(np.mean(F), abs=5 * np.std(F) / np.sqrt(4000) + 1e-12)

    @pytest.mark.parametrize("d", [1, 2, 5])
    def test_mean_energy_of_what_is_the_same_everywhere(self, xp, d):
        N = packed_dim(d)
        everything = FactoredTensor(xp.asarray(np.ones(N)), xp.asarray(np.eye(N)))
        assert mean_energy(everything) == pytest.approx(1)
        one = pack(np.eye(d)[None] / np.sqrt(d))
        assert mean_energy(FactoredTensor(xp.asarray(np.ones(1)), xp.asarray(one))) == pytest.approx(1 / d)

    def test_normalised(self, xp, rng):
        B = np.concatenate((rng.standard_normal((3, 5)), np.zeros((1, 5))))
        rows = xp.numpy(normalised(xp.asarray(B)))
        np.testing.assert_allclose(rows[:3], unit(B[:3]), atol=1e-14)
        np.testing.assert_array_equal(rows[3], 0)


class TestDeflated:
    @pytest.mark.parametrize("known", [1, 3, 11])
    @pytest.mark.parametrize("weights", ["equal", "unequal", "signed"])
    def test_exactly_the_others_are_left(self, xp, rng, weights, known):
        """As many dimensions as there are others, and their squares are in it."""
        A = generic(7, 12, rng)
        w = {"equal": np.ones(12), "unequal": rng.uniform(0.5, 3, 12), "signed": rng.choice([-1.0, 1.0, 2.0], 12)}
        L = leading(xp, planted(A, w[weights]), 12)
        left = deflated(L, xp.asarray(A[:known]))
        U = xp.numpy(left.U)
        assert left.rank == 12 - known
        np.testing.assert_allclose(U.T @ U, np.eye(12 - known), atol=1e-10)
        np.testing.assert_allclose(xp.numpy(energies(left, xp.asarray(A[known:]))), 1, atol=1e-9)
        assert np.all(xp.numpy(energies(left, xp.asarray(A[:known]))) < 1 - 1e-6)

    def test_eigenvalues_make_the_dual_basis(self, xp, rng):
        """Without them, what is left is at a right angle to the known squares; the others are not in it."""
        A = generic(7, 12, rng)
        L = leading(xp, planted(A), 12)
        left = deflated(L.flattened(), xp.asarray(A[:6]))
        assert np.min(xp.numpy(energies(left, xp.asarray(A[6:])))) < 0.99

    def test_nothing_known(self, xp, rng):
        L = any_span(xp, 6, 4, rng)
        assert deflated(L, xp.asarray(np.zeros((0, 6)))) is L

    @pytest.mark.parametrize("known", [12, 14])
    def test_nothing_left(self, xp, rng, known):
        A = generic(7, 14, rng)
        left = deflated(leading(xp, planted(A[:12]), 12), xp.asarray(A[:known]))
        assert left.rank == 0
        np.testing.assert_array_equal(xp.numpy(energies(left, xp.asarray(A))), 0)

    def test_float32(self, xp, rng):
        A = generic(7, 5, rng)
        left = deflated(leading(xp, planted(A), 5, "float32"), xp.asarray(A[:2], "float32"))
        assert left.U.dtype == xp.dtype("float32")
        np.testing.assert_allclose(xp.numpy(energies(left, xp.asarray(A[2:], "float32"))), 1, atol=1e-4)


def spans(rng):
    """Exact spans, spans with an error, and one of no components at all."""
    for d, n, share in [(8, 5, 0.0), (8, 8, 0.3), (8, 20, 0.3), (12, 54, 0.1)]:
        yield leading(Plain, perturbed(generic(d, n, rng), share, rng), n)
    yield any_span(Plain, 8, 10, rng)


class Plain:
    """NumPy, where the library does not matter."""

    asarray = staticmethod(np.asarray)


class TestClimb:
    def test_the_proven_shift_never_falls(self, rng):
        """``F`` of ``A(u) u + s u``, normalised, is no less than ``F(u)`` for ``s >= sqrt(F (1 - F))``."""
        for L in spans(rng):
            B = generic(L.dim, 200, rng)
            for _ in range(5):
                F, gradient, _ = derivatives(L, B)
                for factor in (1.0, 3.0):
                    s = factor * np.sqrt(np.maximum(F * (1 - F), 0))
                    step = normalised(gradient + (F + s)[:, None] * B)
                    assert np.all(energies(L, step) >= F - 1e-12)
                B = step

    def test_a_shift_of_minus_f_does_fall(self, rng):
        """So the test above can fail, and going back is needed."""
        fell = 0
        for L in spans(rng):
            B = generic(L.dim, 200, rng)
            F, gradient, _ = derivatives(L, B)
            fell += np.sum(energies(L, normalised(gradient + 0.05 * F[:, None] * B)) < F - 1e-3)
        assert fell > 0

    @pytest.mark.parametrize("most", [1, 2, 3, 5, 10, 300])
    def test_never_ends_below_its_start(self, rng, most):
        for L in spans(rng):
            B = generic(L.dim, 60, rng)
            assert np.all(energies(L, climb(L, B, most)) >= energies(L, B) - 1e-12)

    def test_never_falls_on_the_way(self, rng):
        for L in spans(rng):
            B = generic(L.dim, 60, rng)
            path = np.stack([energies(L, climb(L, B, most)) for most in range(1, 16)])
            assert np.min(np.diff(path, axis=0)) >= -1e-12

    def test_ends_where_steps_are_small(self, rng):
        for L in spans(rng):
            _, gradient, _ = derivatives(L, climb(L, generic(L.dim, 60, rng)))
            assert np.max(np.linalg.norm(gradient, axis=1)) < 0.01

    def test_each_row_by_itself(self, xp, rng):
        """Rows end in the order in which they began, though they leave the batch as they converge."""
        L = leading(xp, planted(generic(8, 12, rng)), 12)
        B = generic(8, 20, rng)
        together = xp.numpy(climb(L, xp.asarray(B)))
        alone = [xp.numpy(climb(L, xp.asarray(u[None])))[0] for u in B]
        np.testing.assert_allclose(together, alone, atol=1e-6)
        np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-12)

    def test_a_component_stays(self, xp, rng):
        A = generic(8, 12, rng)
        B = xp.numpy(climb(leading(xp, planted(A), 12), xp.asarray(A)))
        np.testing.assert_allclose(B, A, atol=1e-9)

    def test_no_starts(self, xp, rng):
        assert tuple(climb(any_span(xp, 6, 4, rng), xp.asarray(np.zeros((0, 6)))).shape) == (0, 6)


class TestPolish:
    @pytest.mark.parametrize("share", [0.0, 0.3])
    def test_to_stationary_points(self, xp, rng, share):
        for d, n in [(8, 5), (8, 12), (12, 54)]:
            L = leading(xp, perturbed(generic(d, n, rng), share, rng), n)
            some = polish(L, climb(L, xp.asarray(generic(d, 40, rng))))
            _, gradient, _ = derivatives(L, some.vectors)
            assert some.vectors.shape[0] >= 38  # the rest, if any, lies on a flat ridge
            assert np.max(np.linalg.norm(xp.numpy(gradient), axis=1)) < 1e-10
            np.testing.assert_allclose(xp.numpy(some.values), xp.numpy(energies(L, some.vectors)), atol=1e-14)
            np.testing.assert_allclose(np.linalg.norm(xp.numpy(some.vectors), axis=1), 1, atol=1e-14)

    @pytest.mark.parametrize("share", [0.0, 0.3])
    def test_does_not_depend_on_the_start(self, xp, rng, share):
        A = generic(12, 30, rng)
        L = leading(xp, perturbed(A, share, rng), 30)
        ends = []
        for _ in range(3):
            some = polish(L, climb(L, xp.asarray(unit(A + 0.02 * rng.standard_normal(A.shape)))))
            pairs = match(A, xp.numpy(some.vectors))
            assert pairs.found(0.99) == 30
            ends.append(pairs.signs[:, None] * xp.numpy(some.vectors)[pairs.columns])
        for end in ends[1:]:
            np.testing.assert_allclose(end, ends[0], atol=1e-9)

    def test_exact_components(self, xp, rng):
        A = generic(12, 30, rng)
        some = polish(leading(xp, planted(A), 30), xp.asarray(unit(A + 0.01 * rng.standard_normal(A.shape))))
        pairs = match(A, xp.numpy(some.vectors))
        np.testing.assert_allclose(pairs.signs[:, None] * xp.numpy(some.vectors)[pairs.columns], A, atol=1e-11)

    def test_never_falls(self, rng):
        """Starts on the way up, where a plain step of Newton's method may lead down again."""
        for L in spans(rng):
            for u in climb(L, generic(L.dim, 40, rng), 3):
                some = polish(L, u[None])
                assert np.all(some.values >= literal(L, u) - 1e-12)

    @pytest.mark.parametrize("tilt", [0.0, 1e-3])
    def test_a_saddle_is_no_maximum(self, rng, tilt):
        """Between two orthogonal components ``F`` is 1/2: it rises towards both, and falls to all other sides."""
        A = random_orthonormal(6, 4, rng)
        L = leading(Plain, planted(A), 4)
        away = np.linalg.svd(A)[2][4:5]  # beside all components
        some = polish(L, unit(A[:1] + A[1:2] + tilt * away))
        assert np.all(some.values > 0.99)

    def test_of_none_none(self, xp, rng):
        some = polish(any_span(xp, 6, 4, rng), xp.asarray(np.zeros((0, 6))))
        assert tuple(some.vectors.shape) == (0, 6)
        assert tuple(some.values.shape) == (0,)


class TestMaxima:
    @pytest.mark.parametrize("share", [0.0, 0.1, 0.3])
    @pytest.mark.parametrize(("d", "n"), SIZES)
    def test_every_component(self, xp, rng, d, n, share):
        A = generic(d, n, rng)
        L = leading(xp, perturbed(A, share, rng), n)
        some = maxima(L, rng)
        assert match(A, xp.numpy(some.vectors)).found(1 - max(share**2 / 30, 1e-12)) == n
        np.testing.assert_allclose(xp.numpy(some.values), xp.numpy(energies(L, some.vectors)), atol=1e-12)
        np.testing.assert_allclose(np.linalg.norm(xp.numpy(some.vectors), axis=1), 1, atol=1e-12)

    @pytest.mark.parametrize(("d", "n"), [(12, 12), (12, 30), (12, 54)])
    def test_every_component_whatever_the_starts(self, seed, d, n):
        A = generic(d, n, np.random.default_rng(seed))
        L = leading(Plain, planted(A), n)
        for start in range(5):
            some = maxima(L, np.random.default_rng([seed, start]))
            assert match(A, some.vectors).found(1 - 1e-12) == n

    @pytest.mark.parametrize("weights", ["unequal", "signed"])
    def test_weights_of_any_kind(self, xp, rng, weights):
        A = generic(12, 25, rng)
        w = rng.uniform(0.5, 3, 25) * (rng.choice([-1.0, 1.0], 25) if weights == "signed" else 1.0)
        some = maxima(leading(xp, planted(A, w), 25), rng)
        assert match(A, xp.numpy(some.vectors)).found(1 - 1e-12) == 25

    @pytest.mark.parametrize(("d", "n"), [(2, 1), (2, 2), (3, 3), (5, 1), (9, 9)])
    def test_orthogonal_ones_and_small_dimensions(self, xp, rng, d, n):
        A = random_orthonormal(d, n, rng)
        some = maxima(leading(xp, planted(A), n), rng)
        assert some.vectors.shape[0] == n
        assert match(A, xp.numpy(some.vectors)).found(1 - 1e-12) == n

    def test_near_ones(self, xp, rng):
        """Twenty degrees apart; what is one is told from two at six degrees."""
        A = generic(10, 12, rng)
        A[1] = np.cos(np.radians(20)) * A[0] + np.sin(np.radians(20)) * beside(A[0], rng)
        some = maxima(leading(xp, planted(A), 12), rng)
        assert match(A, xp.numpy(some.vectors)).found(1 - 1e-9) == 12

    def test_float32(self, xp, rng):
        A = generic(12, 25, rng)
        some = maxima(leading(xp, planted(A), 25, "float32"), rng)
        assert some.vectors.dtype == some.values.dtype == xp.dtype("float32")
        assert match(A, xp.numpy(some.vectors)).found(1 - 1e-4) == 25

    @pytest.mark.parametrize("known", [1, 13, 25])
    def test_the_known_come_first_and_as_they_are(self, xp, rng, known):
        A = generic(12, 25, rng)
        rough = unit(A[:known] + 0.003 * rng.standard_normal((known, 12)))
        some = maxima(leading(xp, planted(A), 25), rng, xp.asarray(rough))
        B = xp.numpy(some.vectors)
        np.testing.assert_array_equal(B[:known], rough)
        assert B.shape == (25, 12)  # none is found again
        assert match(A, B).found(0.999) == 25
        assert match(A[known:], B[known:]).found(1 - 1e-9) == 25 - known

    def test_progress_is_told(self, xp, rng):
        told = []
        maxima(leading(xp, planted(generic(12, 25, rng)), 25), rng, callback=told.append)
        assert told == sorted(told)
        assert told[-1] == 25

    def test_the_same_generator_gives_the_same_answer(self, seed, xp):
        L = leading(xp, planted(generic(10, 15, np.random.default_rng(seed))), 15)
        one, other = (xp.numpy(maxima(L, np.random.default_rng(seed)).vectors) for _ in range(2))
        np.testing.assert_array_equal(one, other)

    def test_other_starts_agree_to_rounding(self, seed):
        A = generic(12, 25, np.random.default_rng(seed))
        L = leading(Plain, perturbed(A, 0.2, np.random.default_rng(seed)), 25)
        one, other = (maxima(L, np.random.default_rng([seed, start])).vectors for start in range(2))
        assert match(one, other).found(1 - 1e-12) == len(one) == len(other)

    def test_each_wave_works_on_what_is_left(self, rng, monkeypatch):
        """So few starts that they cannot find all: spans of fewer dimensions follow, and the whole one at the end."""
        worked = []

        def spy(L, B, *args):
            worked.append(L.rank)
            return climb(L, B[:8], *args)

        monkeypatch.setattr(algorithm, "climb", spy)
        A = generic(12, 25, rng)
        some = maxima(leading(Plain, planted(A), 25), rng)
        assert match(A, some.vectors).found(1 - 1e-12) == 25
        assert min(worked) < 20
        assert worked[-1] == 25


def certified(L, some, eps):
    """Certificates above 1/2 of what was found in a span whose complement holds nothing but an error."""
    values = np.concatenate((np.asarray(L.lam), np.full(L.pair_dim - L.rank, eps)))
    return np.sum(certificates(L, some.vectors, values, eps) > 0.5)


class TestNothing:
    @pytest.mark.parametrize("k", [1, 4, 12])
    def test_in_a_span_without_squares(self, xp, rng, k):
        assert tuple(maxima(any_span(xp, 12, k, rng), rng).vectors.shape) == (0, 12)

    def test_in_an_empty_span(self, xp, rng):
        L = FactoredTensor(xp.asarray(np.ones(0)), xp.asarray(np.ones((55, 0))))
        some = maxima(L, rng)
        assert tuple(some.vectors.shape) == (0, 10)
        assert tuple(some.values.shape) == (0,)

    @pytest.mark.parametrize("k", [20, 39, 60])
    def test_is_certified_in_fuller_ones(self, rng, k):
        """Up to ``N - d`` dimensions there is no square in a random span; what comes near one does not look like it."""
        L = any_span(Plain, 12, k, rng)
        for eps in (0.0, 0.1, 0.3):
            assert certified(L, maxima(L, rng), eps) < k

    @pytest.mark.parametrize("k", [2, 5, 8])
    def test_is_certified_where_every_vector_is_a_maximum(self, rng, k):
        """All symmetric matrices on a subspace: squares are everywhere in it, and none is isolated."""
        V = random_orthonormal(8, k, rng)
        i, j = np.triu_indices(k)
        Q = np.linalg.qr(pack(V[i][:, :, None] * V[j][:, None, :]))[0]
        L = FactoredTensor(np.ones(Q.shape[1]), Q)
        anywhere = unit(rng.standard_normal((12, k)) @ V)
        np.testing.assert_allclose(energies(L, anywhere), 1, atol=1e-9)
        for some in (Maxima(anywhere, np.ones(12)), maxima(L, rng)):
            for eps in (0.0, 0.1, 0.3):
                assert certified(L, some, eps) == 0

    def test_is_certified_of_a_mixture(self, rng):
        """A direction that is no square, beside components: they are found, and it brings nothing with it."""
        A = generic(12, 20, rng)
        V = rng.standard_normal((packed_dim(12), 1))
        L = leading(Plain, planted(A) + 0.5 * V @ V.T / (V.T @ V), 21)
        some = maxima(L, rng)
        pairs = match(A, some.vectors)
        assert pairs.found(0.999) == 20
        bounds = certificates(L, some.vectors, np.asarray(L.lam), 1e-6)
        right = np.max(pairs.table, axis=0) > 0.999
        assert np.all(bounds[right] > 0.999)
        assert np.all(bounds[~right] == 0)
