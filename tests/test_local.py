"""Evidence, and local tempering: single groups, what may not be certified, and all atoms of tangled supports."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quartic.algorithms.certify import CERTIFIED
from quartic.algorithms.recover import polar
from quartic.datasets import nice_samples, random_orthonormal
from quartic.evidence.parts import Evidence
from quartic.evidence.units import dealt
from quartic.metrics import match
from quartic.propose import untangle as local
from quartic.propose.span import Certified
from quartic.propose.untangle import asymmetric, doubtful, solve, tangled, untangle

# Bounds come from two halves of the samples: where the axes of a small group differ by a single angle, halves may agree
# by chance better than either does with the truth.  Measured over some thousand groups: by 0.007 at most.
CHANCE = 0.02


def scattered(m, n, seed, **options):
    """Samples in whitened coordinates, rotated at random, and the atoms there as orthonormal rows ``(n, n)``."""
    data = nice_samples(m, n, dictionary="orthonormal", **options, random_state=seed)
    scale = np.sqrt(data.pair[0, 0] + data.noise_std**2)
    half = np.random.default_rng(seed).integers(2, size=m)
    return Evidence(data.samples / scale, dealt(half), np.ones(m), m), data.dictionary


def nothing(r):
    """No certified atoms."""
    return Certified(np.zeros((0, r)), np.zeros(0))


def nearest(U, A):
    """Squared correlation of each row of ``U`` with the nearest of ``A``."""
    return np.max((U @ A.T) ** 2, axis=1, initial=0.0)


def turned(A, i=0, j=1):
    """Orthonormal rows of which two are turned by 45 degrees in their plane."""
    B = A.copy()
    B[i], B[j] = (A[i] + A[j]) / np.sqrt(2), (A[i] - A[j]) / np.sqrt(2)
    return B


class TestEvidence:
    def test_in_other_coordinates(self, rng):
        cloud, _ = scattered(200, 6, 0)
        Q = random_orthonormal(6, 3, rng)
        inside = cloud.seen_in(Q)
        np.testing.assert_allclose(inside.Z, cloud.Z @ Q.T, atol=1e-12)
        assert inside.dim == 3
        assert inside.half is cloud.half
        assert inside.total == cloud.total
        np.testing.assert_allclose(inside.squares, np.sum(inside.Z**2, axis=1))

    def test_in_two_halves(self):
        cloud, _ = scattered(200, 4, 0)
        cloud = Evidence(cloud.Z, dealt(cloud.half), np.arange(200.0), 200)
        (first, Z, w), (second, Y, v) = cloud.first(150).chunks()
        assert (first, second) == (0, 1)
        assert Z.shape[0] + Y.shape[0] == 150
        np.testing.assert_array_equal(np.sort(np.concatenate((w, v))), np.arange(150))
        np.testing.assert_array_equal(Z, cloud.Z[w.astype(int)])
        for h, rows, weights in ((0, Z, w), (1, Y, v)):
            part = cloud.first(150).part(h)
            np.testing.assert_array_equal(part.Z, rows)
            np.testing.assert_array_equal(part.weights, weights)
            np.testing.assert_array_equal(part.half, h)
            assert part.total == 200

    def test_of_rows_in_any_order(self, rng):
        """What is there depends on the places of the rows, not on the order in which they came."""
        Z, index, w = rng.standard_normal((300, 3)), np.arange(1000, 1300), rng.uniform(size=300)
        one = Evidence.of_rows(Z.astype(np.float32), index, w, 5000)
        shuffled = rng.permutation(300)
        two = Evidence.of_rows(Z[shuffled].astype(np.float32), index[shuffled], w[shuffled], 5000)
        for name in ("Z", "half", "weights"):
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
        assert one.Z.dtype == np.float64
        assert one.total == 5000
        assert set(one.half) == {0, 1}

    def test_enough_of_each_half(self, rng):
        Z, half = rng.standard_normal((100, 5)), np.repeat([0, 1], [20, 80])
        assert Evidence(Z, dealt(half), np.ones(100), 100).enough
        assert not Evidence(Z[1:], dealt(half[1:]), np.ones(99), 99).enough
        assert not Evidence(Z, dealt(half), np.arange(100.0), 100).enough  # one counts nothing
        assert not Evidence(Z, dealt(0 * half), np.ones(100), 100).enough


class TestSolve:
    @pytest.mark.parametrize("snr", [None, 10])
    @pytest.mark.parametrize("cooccurrence", [0.4, 0.6, 0.8])
    @pytest.mark.parametrize(("k", "m"), [(2, 4000), (3, 20_000), (5, 8000), (10, 14_000)])
    def test_every_atom_of_a_block(self, seed, k, m, cooccurrence, snr):
        cloud, A = scattered(m, k, seed, supports="blocks", group=k, cooccurrence=cooccurrence, snr=snr)
        found = solve(cloud, np.random.default_rng(seed))
        atoms, bounds = found.atoms, found.bounds
        assert atoms.shape == (k, k)
        np.testing.assert_allclose(np.linalg.norm(atoms, axis=1), 1, atol=1e-6)
        assert match(A, atoms).found(0.95) == k
        assert np.all(bounds > CERTIFIED)
        assert np.all(bounds <= nearest(atoms, A) + CHANCE)

    @pytest.mark.parametrize("coefficients", ["gaussian", "laplace"])
    def test_other_coefficients(self, seed, coefficients):
        options = {"supports": "blocks", "group": 4, "cooccurrence": 0.6, "coefficients": coefficients}
        cloud, A = scattered(20_000, 4, seed, **options)
        found = solve(cloud, np.random.default_rng(seed))
        atoms, bounds = found.atoms, found.bounds
        assert match(A, atoms).found(0.95) == 4
        assert np.all(bounds <= nearest(atoms, A) + CHANCE)

    @pytest.mark.parametrize("cooccurrence", [0.5, 0.8])
    def test_strong_weights_decide_which_axes_are_meant(self, seed, cooccurrence):
        """The plain moment of two signs that occur together has its top in the axes turned by 45 degrees.

        ``E x_1^2 x_2^2 > E x_1^4 / 3``: from a third on the mixtures have the larger fourth moments.
        """
        cloud, A = scattered(8000, 2, seed, supports="blocks", group=2, cooccurrence=cooccurrence)
        fourth = [np.mean((cloud.Z @ B.T) ** 4) for B in (A, turned(A))]
        assert fourth[1] > fourth[0]
        found = solve(cloud, np.random.default_rng(seed))
        atoms, bounds = found.atoms, found.bounds
        assert match(A, atoms).found(0.99) == 2
        assert np.all(bounds > 0.9)

    @pytest.mark.parametrize("k", [4, 5, 6])
    def test_gaussian_samples_have_no_atoms(self, seed, k):
        for run in range(2):
            rng = np.random.default_rng((seed, run))
            cloud = Evidence(rng.standard_normal((2000, k)), dealt(rng.integers(2, size=2000)), np.ones(2000), 2000)
            found = solve(cloud, rng)
            assert found is None or np.all(found.bounds <= CERTIFIED)

    def test_weights_count_samples(self, seed):
        """Of weight 0 as if they were not there."""
        cloud, A = scattered(8000, 4, seed, supports="blocks", group=4, cooccurrence=0.6)
        noise = np.random.default_rng(seed).standard_normal((4000, 4))
        Z, w = np.concatenate((cloud.Z, noise)), np.concatenate((np.ones(8000), np.zeros(4000)))
        half = np.concatenate((cloud.half, cloud.half[:4000]))
        found = solve(Evidence(Z, dealt(half), w, 12_000), np.random.default_rng(seed))
        atoms, bounds = found.atoms, found.bounds
        assert match(A, atoms).found(0.95) == 4
        assert np.all(bounds > CERTIFIED)

    def test_too_few_samples(self, rng):
        """No temperature has enough effective samples in each half."""
        cloud = Evidence(rng.laplace(size=(30, 5)), dealt(np.arange(30) % 2), np.ones(30), 30)
        assert solve(cloud, rng) is None
        one_half = Evidence(rng.laplace(size=(500, 3)), dealt(np.zeros(500, dtype=int)), np.ones(500), 500)
        assert solve(one_half, rng) is None


TANGLES = {
    "independent": {"supports": "independent"},
    "blocks 0.4": {"supports": "blocks", "group": 4, "cooccurrence": 0.4},
    "blocks 0.8": {"supports": "blocks", "group": 4, "cooccurrence": 0.8},
    "chain": {"supports": "markov", "cooccurrence": 0.6},
    "hubs": {"supports": "hubs", "group": 4, "cooccurrence": 0.6},
}


class TestDoubtful:
    @pytest.mark.parametrize("snr", [None, 10])
    @pytest.mark.parametrize("tangle", TANGLES)
    def test_atoms_are_not(self, seed, tangle, snr):
        cloud, A = scattered(16_000, 12, seed, **TANGLES[tangle], snr=snr)
        assert not np.any(doubtful(cloud, A))
        assert not np.any(doubtful(cloud, -A[:5]))

    @pytest.mark.parametrize("snr", [None, 10])
    @pytest.mark.parametrize("tangle", [name for name in TANGLES if name != "independent"])
    def test_mixtures_of_two_are(self, seed, tangle, snr):
        cloud, A = scattered(16_000, 12, seed, **TANGLES[tangle], snr=snr)
        found = doubtful(cloud, turned(A))
        assert np.all(found[:2])
        assert not np.any(found[2:])

    @pytest.mark.parametrize("snr", [None, 10])
    @pytest.mark.parametrize("cooccurrence", [0.6, 0.8])
    def test_mixtures_of_three_are(self, seed, cooccurrence, snr):
        """Axes reflected at the plane across ``a + b + c``, which planes of two may not tell from the right ones."""
        cloud, A = scattered(8000, 9, seed, supports="blocks", group=3, cooccurrence=cooccurrence, snr=snr)
        B = A.copy()
        B[:3] = (np.eye(3) - 2 / 3) @ A[:3]
        found = doubtful(cloud, B)
        assert np.all(found[:3])
        assert not np.any(found[3:])
        sums = np.array([[1, 1, 1], [1, -1, 0], [1, 1, -2]]) / np.sqrt([[3], [2], [6]])
        B[:3] = sums @ A[:3]
        assert asymmetric(cloud.seen_in(B), np.array([0]))[0]
        assert not np.any(asymmetric(cloud.seen_in(A), np.arange(9)))

    def test_signals_that_are_not_sparse_are_left_alone(self, rng):
        """Uniform ones, and signs: in no axes are they sparse."""
        for draw in (lambda size: rng.uniform(-1.7, 1.7, size), lambda size: rng.choice([-1.0, 1.0], size)):
            cloud = Evidence(draw((4000, 4)), dealt(np.arange(4000) % 2), np.ones(4000), 4000)
            assert not np.any(doubtful(cloud, np.eye(4)))

    def test_none_and_one(self, seed):
        cloud, A = scattered(2000, 4, seed)
        assert doubtful(cloud, A[:0]).shape == (0,)
        assert not np.any(doubtful(cloud, A[:1]))


class TestUntangle:
    def check_bounds(self, result, A):
        """The result is orthonormal, certified atoms come first, and their bounds hold."""
        np.testing.assert_allclose(result.atoms @ result.atoms.T, np.eye(A.shape[0]), atol=1e-6)
        sure = result.certified
        assert np.all(sure.bounds <= nearest(sure.atoms, A) + CHANCE)
        np.testing.assert_allclose(result.atoms[: len(sure.atoms)], sure.axes, atol=1e-9)

    def check(self, result, A):
        """And every atom is found and certified."""
        self.check_bounds(result, A)
        assert match(A, result.atoms).found(0.95) == A.shape[0] == result.certified.atoms.shape[0]

    @pytest.mark.parametrize("snr", [None, 10])
    @pytest.mark.parametrize(("n", "group", "cooccurrence"), [(12, 2, 0.6), (12, 4, 0.6), (15, 5, 0.8)])
    def test_blocks(self, seed, n, group, cooccurrence, snr):
        cloud, A = scattered(10_000, n, seed, supports="blocks", group=group, cooccurrence=cooccurrence, snr=snr)
        self.check(untangle(cloud, nothing(n), np.random.default_rng(seed)), A)

    @pytest.mark.parametrize("snr", [None, 10])
    def test_a_chain(self, seed, snr):
        cloud, A = scattered(10_000, 12, seed, supports="markov", cooccurrence=0.6, snr=snr)
        self.check(untangle(cloud, nothing(12), np.random.default_rng(seed)), A)

    @pytest.mark.parametrize("snr", [None, 10])
    def test_hubs(self, seed, snr):
        cloud, A = scattered(16_000, 13, seed, supports="hubs", group=4, cooccurrence=0.6, snr=snr)
        self.check(untangle(cloud, nothing(13), np.random.default_rng(seed)), A)

    @pytest.mark.parametrize("snr", [None, 10])
    def test_what_is_too_tangled_is_not_certified_wrongly(self, seed, snr):
        """Three that are mostly all active: not always found, never mistaken."""
        cloud, A = scattered(6000, 9, seed, supports="blocks", group=3, cooccurrence=0.8, snr=snr)
        self.check_bounds(untangle(cloud, nothing(9), np.random.default_rng(seed)), A)

    @pytest.mark.parametrize("common", [True, False])
    def test_what_belongs_together_with_most_others_has_no_neighbourhood(self, seed, common, monkeypatch):
        """Sources under one envelope, as patches of an image are; without it no two belong together."""
        rng = np.random.default_rng(seed)
        S = rng.uniform(-1, 1, (6000, local.MOST + 4))
        Z = S * rng.exponential(size=(6000, 1)) if common else S
        cloud = Evidence(Z / np.std(Z, axis=0), dealt(rng.integers(2, size=6000)), np.ones(6000), 6000)
        assert tangled(cloud) == common
        monkeypatch.setattr(local, "solve", None)  # would raise
        np.testing.assert_array_equal(local._neighbourhoods(cloud, rng), np.eye(local.MOST + 4))

    def test_known_atoms_stay(self, seed):
        cloud, A = scattered(10_000, 12, seed, supports="blocks", group=4, cooccurrence=0.6)
        known = Certified(A[[0, 1, 6]], np.array([0.99, 0.98, 0.97]))
        counts = []
        result = untangle(cloud, known, np.random.default_rng(seed), counts.append)
        self.check_bounds(result, A)
        assert match(A, result.atoms).found(0.95) == 12
        np.testing.assert_array_equal(result.certified.atoms[:3], known.atoms)
        np.testing.assert_array_equal(result.certified.bounds[:3], known.bounds)
        assert counts[-1] == result.certified.atoms.shape[0] > 3

    def test_all_are_known(self, seed):
        cloud, A = scattered(500, 5, seed)
        known = Certified(A, np.full(5, 0.9))
        result = untangle(cloud, known, np.random.default_rng(seed))
        np.testing.assert_allclose(result.atoms, A, atol=1e-12)
        assert result.certified is known

    def test_wrong_ones_are_given_up(self, seed):
        """Two that are turned by 45 degrees, in a block."""
        cloud, A = scattered(10_000, 8, seed, supports="blocks", group=4, cooccurrence=0.6)
        result = untangle(cloud, Certified(turned(A)[:2], np.full(2, 0.99)), np.random.default_rng(seed))
        self.check_bounds(result, A)

    def test_a_block_is_solved_without_a_wrong_one(self, seed):
        cloud, A = scattered(10_000, 3, seed, supports="blocks", group=3, cooccurrence=0.8)
        result = untangle(cloud, Certified(turned(A)[:1], np.full(1, 0.99)), np.random.default_rng(seed))
        self.check_bounds(result, A)
        assert match(A, result.atoms).found(0.95) == 3

    def test_whatever_is_doubted_axes_stay_orthonormal(self, seed, monkeypatch):
        cloud, A = scattered(5000, 6, seed, supports="blocks", group=3, cooccurrence=0.6)
        monkeypatch.setattr(local, "doubtful", lambda cloud, U: np.arange(U.shape[0]) == 0)
        self.check_bounds(untangle(cloud, nothing(6), np.random.default_rng(seed)), A)

    def test_not_thorough_is_enough_for_closed_groups(self, seed):
        cloud, A = scattered(10_000, 12, seed, supports="blocks", group=4, cooccurrence=0.6)
        self.check(untangle(cloud, nothing(12), np.random.default_rng(seed), thorough=False), A)

    def test_not_thorough_has_still_all_dimensions(self, seed):
        cloud, A = scattered(4000, 10, seed, supports="hubs", group=4, cooccurrence=0.7, snr=10)
        self.check_bounds(untangle(cloud, nothing(10), np.random.default_rng(seed), thorough=False), A)

    @pytest.mark.parametrize("k", [4, 6])
    def test_gaussian_samples_have_no_atoms(self, seed, k):
        for run in range(2):
            rng = np.random.default_rng((seed, run))
            cloud = Evidence(rng.standard_normal((2000, k)), dealt(rng.integers(2, size=2000)), np.ones(2000), 2000)
            result = untangle(cloud, nothing(k), rng)
            assert result.certified.atoms.shape == (0, k)
            np.testing.assert_allclose(result.atoms @ result.atoms.T, np.eye(k), atol=1e-6)

    def test_one_dimension(self, rng):
        cloud = Evidence(rng.laplace(size=(500, 1)), dealt(np.arange(500) % 2), np.ones(500), 500)
        result = untangle(cloud, nothing(1), rng)
        np.testing.assert_allclose(np.abs(result.atoms), [[1]], atol=1e-6)
        assert result.certified.atoms.shape == (0, 1)

    def test_the_same_again(self, seed):
        cloud, _ = scattered(6000, 8, seed, supports="blocks", group=4, cooccurrence=0.6)
        one, two = (untangle(cloud, nothing(8), np.random.default_rng(seed)) for _ in range(2))
        np.testing.assert_array_equal(one.atoms, two.atoms)
        np.testing.assert_array_equal(one.certified.bounds, two.certified.bounds)


class TestCertified:
    @given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.integers(1, 6), st.floats(0, 1))
    def test_what_they_prove_is_true(self, seed, r, m, spread):
        """The triangle inequality of angles: if the bounds hold, so do those of any other unit rows."""
        rng = np.random.default_rng(seed)
        truth = random_orthonormal(r, r, rng)
        rough = truth[rng.integers(r, size=m)] + spread * rng.standard_normal((m, r))
        atoms = rough / np.linalg.norm(rough, axis=1, keepdims=True)
        known = Certified(atoms, nearest(atoms, truth) * rng.uniform(0.5, 1, m))
        U = np.concatenate(
            (atoms[rng.integers(m, size=4)] + 0.3 * rng.standard_normal((4, r)), rng.standard_normal((4, r)))
        )
        U /= np.linalg.norm(U, axis=1, keepdims=True)
        proven = known.prove(U)
        assert np.all((proven >= 0) & (proven <= 1))
        assert np.all(proven <= nearest(U, truth) + 1e-9)

    def test_of_themselves_they_prove_their_bounds(self, rng):
        A = random_orthonormal(6, 4, rng)
        bounds = rng.uniform(0.5, 1, 4)
        known = Certified(A, bounds)
        np.testing.assert_allclose(known.prove(-A), bounds, atol=1e-7)
        half = np.deg2rad(20)
        tilted = np.cos(half) * A[0] + np.sin(half) * A[1]
        by_each = np.cos(np.array([half, np.pi / 2 - half]) + np.arccos(np.sqrt(bounds[:2]))) ** 2
        expected = by_each[0] if half + np.arccos(np.sqrt(bounds[0])) < np.pi / 2 - half else np.max(by_each)
        assert known.only(np.arange(4) < 1).prove(tilted[None])[0] == pytest.approx(by_each[0])
        assert known.prove(tilted[None])[0] == pytest.approx(expected, abs=1e-7)

    def test_nothing_proves_nothing(self, rng):
        np.testing.assert_array_equal(nothing(5).prove(random_orthonormal(5, 3, rng)), 0)
        assert nothing(5).axes.shape == (0, 5)
        far = Certified(np.eye(3)[:1], np.array([0.3]))
        np.testing.assert_allclose(far.prove(np.eye(3)[1:]), 0, atol=1e-12)

    def test_some_and_both(self, rng):
        A, bounds = random_orthonormal(5, 4, rng), rng.uniform(size=4)
        known = Certified(A, bounds)
        again = known.only(bounds > 0.5).and_also(known.only(bounds <= 0.5))
        order = np.concatenate((np.flatnonzero(bounds > 0.5), np.flatnonzero(bounds <= 0.5)))
        np.testing.assert_array_equal(again.atoms, A[order])
        np.testing.assert_array_equal(again.bounds, bounds[order])

    def test_axes_are_the_nearest_orthonormal_rows(self, rng):
        rows = random_orthonormal(5, 3, rng) + 0.1 * rng.standard_normal((3, 5))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        axes = Certified(rows, np.ones(3)).axes
        np.testing.assert_allclose(axes @ axes.T, np.eye(3), atol=1e-12)
        np.testing.assert_allclose(axes, polar(rows), atol=1e-12)
        other = axes @ random_orthonormal(5, 5, rng)
        assert np.linalg.norm(axes - rows) < np.linalg.norm(other - rows)
