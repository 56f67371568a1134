"""The one proof on samples: what it bounds, what it refuses, and that its fast sums are what they say."""

from __future__ import annotations

import numpy as np
import pytest

from quartic import SpectralDictionaryLearning, SpectralICA
from quartic.algorithms.recover import polar
from quartic.certify import Basis, Candidates, Doubt, Proof, Reason, certify, readings
from quartic.certify.contrast import cube, gaussian_error, measure, offsets, remainder, tanh
from quartic.certify.readings import STEPS, beside_all, in_bands, similar_bands, small_norms, together
from quartic.datasets import nice_samples
from quartic.evidence import Evidence
from quartic.evidence.kept import MOST, Kept
from quartic.propose.fixed_point import fixed_point, optimum

QUIET = pytest.mark.filterwarnings("ignore::quartic.DecompositionWarning")


def white(S, atoms=None):
    """Samples ``(m, r)`` in whitened coordinates, and atoms there (the axes, if they are sources): unit rows."""
    S = S - np.mean(S, axis=0)
    values, V = np.linalg.eigh(S.T @ S / S.shape[0])
    root = (V / np.sqrt(values)) @ V.T
    axes = root if atoms is None else atoms @ root
    return S @ root, axes / np.linalg.norm(axes, axis=1, keepdims=True)


def evidence(Z):
    m = Z.shape[0]
    return Evidence.of_rows(Z, np.arange(m), np.ones(m), m)


def proven(S, seed=0):
    """What is proven of the fixed point of sources ``(m, r)``, and the squared correlation with the nearest of them."""
    Z, axes = white(S)
    some = evidence(Z)
    U, halves = fixed_point(some, np.random.default_rng(seed))
    return certify(Candidates(U, halves), some), np.max((U @ axes.T) ** 2, axis=1)


def block(rng, m, k, together, p=0.1, magnitudes=np.ones):
    active = (rng.random((m, 1)) < p / together) & (rng.random((m, k)) < together)
    return active * rng.choice([-1.0, 1.0], (m, k)) * magnitudes((m, k))


class TestContrast:
    @pytest.mark.parametrize("local", [False, True])
    @pytest.mark.parametrize("score", [cube, tanh])
    def test_literally(self, rng, score, local):
        m, r = 60, 4
        S = rng.laplace(size=(m, r))
        W = rng.random((m, r if local else 1))
        W /= np.sum(W, axis=0)
        got = measure(S, W, score)
        some = np.array([3, 0, 2])
        rests = dict(zip(some, remainder(S, W, score, some).value, strict=True))
        full = np.broadcast_to(W, (m, r))
        for i in range(r):
            w = full[:, i]
            s, v = S[:, i], w @ S**2
            spread = np.sqrt(v[i])
            psi, slope, phi = score(s / spread)
            slope, phi = slope / spread, phi / spread
            k = w @ (psi * s) - (w @ slope) * v[i]
            assert got.kurtosis.value[i] == pytest.approx(k)
            rest = 0.0
            for j in range(r):
                t = S[:, j]
                assert got.offset.value[i, j] == pytest.approx(w @ (psi * t) - (w @ slope) * (w @ (s * t)))
                coupling = w @ (slope * (t**2 - v[j]))
                assert got.stiffness.value[i, j] == pytest.approx(k - coupling)
                assert got.dependence.value[i, j] == pytest.approx(w @ (phi * (t**2 - v[j])))
                others = [x for x in range(r) if x not in (i, j)] if j != i else []
                rest += sum((w @ (phi * t * S[:, x]) - (w @ phi) * (w @ (t * S[:, x]))) ** 2 for x in others)
            if i in rests:
                assert rests[i] == pytest.approx(rest, rel=1e-9, abs=1e-12)
        for ours, fast in zip((got.offset.value, got.stiffness.value), offsets(S, full, score), strict=True):
            np.testing.assert_allclose(ours, fast, atol=1e-12)

    def test_of_the_cube_they_are_cumulants(self, rng):
        m, r = 500, 3
        S = rng.laplace(size=(m, r)) @ rng.standard_normal((r, r))
        S -= np.mean(S, axis=0)
        C = S.T @ S / m
        got = measure(S, np.full((m, 1), 1 / m), cube)
        T = np.einsum("sa,sb,sc,sd->abcd", S, S, S, S) / m
        T -= np.einsum("ab,cd->abcd", C, C) + np.einsum("ac,bd->abcd", C, C) + np.einsum("ad,bc->abcd", C, C)
        spread = np.diagonal(C) ** 1.5  # psi is of the signal in units of its own spread
        np.testing.assert_allclose(got.kurtosis.value, np.einsum("iiii->i", T) / spread)
        np.testing.assert_allclose(got.offset.value * spread[:, None], np.einsum("iiij->ij", T), atol=1e-9)

    @pytest.mark.parametrize("score", [cube, tanh])
    @pytest.mark.parametrize("name", ["kurtosis", "offset", "stiffness", "dependence"])
    def test_standard_errors_are_those_of_repetitions(self, seed, score, name):
        """Whitened afresh each time, as they are used."""
        rng = np.random.default_rng(seed)
        m, r, repeats = 1000, 3, 200
        figures = [
            getattr(measure(white(rng.uniform(-1, 1, (m, r)))[0], np.full((m, 1), 1 / m), score), name)
            for _ in range(repeats)
        ]
        spread = np.std([figure.value for figure in figures], axis=0)
        error = np.median([figure.error for figure in figures], axis=0)
        mask = np.ones_like(spread, dtype=bool) if spread.ndim == 1 else ~np.eye(r, dtype=bool)
        ratio = (error / spread)[mask]
        assert np.all(ratio > 0.8)  # cautious: that samples are whitened by themselves takes a part of the error
        assert np.all(ratio < 4)

    def test_gaussian_error(self):
        assert gaussian_error(cube) == pytest.approx(np.sqrt(24))

    @pytest.mark.parametrize("radius", [1.0, None])
    def test_no_stiffness_in_a_plane_without_axes(self, seed, radius):
        rng = np.random.default_rng(seed)
        angle = rng.uniform(0, 2 * np.pi, 20_000)
        size = np.ones(20_000) if radius else rng.exponential(size=20_000)
        S = np.stack((np.cos(angle), np.sin(angle)), axis=1) * size[:, None]
        for score in (cube, tanh):
            got = measure(S, np.full((20_000, 1), 1 / 20_000), score)
            assert np.all(got.sharp(10))
            for harmonic in got.harmonics:
                assert abs(harmonic.value[0, 1]) < 5 * harmonic.error[0, 1]


LAWS = {
    "laplace": lambda rng, shape: rng.laplace(size=shape),
    "uniform": lambda rng, shape: rng.uniform(-1, 1, shape),
    "exponential": lambda rng, shape: rng.exponential(size=shape),
    "signs": lambda rng, shape: rng.choice([-1.0, 1.0], shape),
    "sparse": lambda rng, shape: rng.standard_normal(shape) * (rng.random(shape) < 0.2),
    "t": lambda rng, shape: rng.standard_t(3, shape),
}


DEPENDENT = ~np.eye(2, dtype=bool)


class TestReadings:
    def test_small_norms_have_the_opposite_sign_in_turned_axes(self, seed):
        S = block(np.random.default_rng(seed), 5000, 2, 0.8)
        turned = S @ np.array([[1, 1], [1, -1]]) / np.sqrt(2)
        assert small_norms(S, DEPENDENT).sparse[0, 1] < 1e-3
        assert small_norms(turned, DEPENDENT).against[0, 1] < 1e-3

    def test_the_smallest_norms_are_looked_at_first(self, seed):
        """Magnitudes of 0.5 to 1.5, nearly always together: of all samples below a sixteenth most speak for the sum."""
        rng = np.random.default_rng(seed)
        S = block(rng, 60_000, 2, 0.95, 0.2, lambda shape: rng.uniform(0.5, 1.5, shape))
        turned = small_norms(S @ np.array([[1, 1], [1, -1]]) / np.sqrt(2), DEPENDENT)
        assert turned.all[0, 1] > 10
        assert turned.against[0, 1] < 1e-3

    def test_sums_are_not_sparser_where_norms_are_small(self, seed):
        """Noise hides the smallest norms, which speak for atoms; but of sums the sparse samples are the long ones."""
        rng = np.random.default_rng(seed)

        def denser(together, Q):
            S = block(rng, 8_000, 2, together, 0.2, lambda shape: rng.uniform(0.5, 1.5, shape))
            S = S / np.std(S, axis=0) + 0.35 * rng.standard_normal(S.shape)
            return small_norms(S @ Q, DEPENDENT).denser[0, 1]

        assert np.median([denser(0.95, np.array([[1, 1], [1, -1]]) / np.sqrt(2)) for _ in range(5)]) < 1e-2
        assert np.median([denser(0.8, np.eye(2)) for _ in range(5)]) > 0.5

    def test_both_axes_are_seen_among_the_smallest_norms(self, seed):
        """However rare atoms alone are: fewer, or more, than the part of the samples whose norms are the smallest."""
        rng = np.random.default_rng(seed)
        for often in (0.7, 0.8, 0.9):
            S = block(rng, 10_000, 3, often)
            assert np.max(small_norms(S, ~np.eye(3, dtype=bool)).weaker[np.triu_indices(3, 1)]) < 1e-3
        S = block(rng, 10_000, 2, 0.8) * [1.0, 0.0] + 0.1 * rng.standard_normal((10_000, 2)) * [1.0, 0.3]
        assert small_norms(S, DEPENDENT).sparse[0, 1] < 1e-3  # one axis, and noise along it
        assert small_norms(S, DEPENDENT).weaker[0, 1] > 0.05

    def test_what_is_active_together_is_so_in_any_axes(self, seed):
        """Where fourth cumulants of the turned axes cancel: Pr[j | i] = 1 - 2 p."""
        S = block(np.random.default_rng(seed), 20_000, 2, 0.8, 0.1, lambda shape: np.full(shape, 1.0))
        turned = S @ np.array([[1, 1], [1, -1]]) / np.sqrt(2)
        Z = turned / np.std(turned, axis=0)
        k, c = np.mean(Z**4, axis=0) - 3, np.mean(Z[:, 0] ** 2 * Z[:, 1] ** 2) - 1
        assert np.all(k > 0.5)
        assert abs(c) < 0.1 * np.min(k) + 0.2
        assert together(Z, 2.0)[0][0, 1] < 1e-3
        assert together(S, 2.0)[0][0, 1] < 1e-3

    @pytest.mark.parametrize("law", ["laplace", "exponential", "signs", "sparse", "t"])
    def test_independent_magnitudes_do_not_occur_together(self, seed, law):
        S = LAWS[law](np.random.default_rng(seed), (5000, 12))
        often, ever, crooked = together(S - np.mean(S, axis=0), 2.0)
        above = np.triu_indices(12, 1)
        p = np.concatenate((often[above], ever[above]))
        assert np.mean(p < 0.05) < 0.15
        assert np.min(p) > 1e-3 / p.size  # of 132 p-values some are small
        assert not np.any(crooked) or law in ("exponential", "signs")  # magnitudes about the mean tell the sign

    def test_bands_of_magnitudes(self, rng):
        """Octaves that advance by half of one, then all above: ``bands[a]`` are the half octaves that are in it."""
        bands = in_bands(np.eye(STEPS), 1).T  # (b, STEPS)
        octaves, above = bands[: STEPS - 1], bands[STEPS - 1 :]
        for a in range(STEPS - 1):
            np.testing.assert_array_equal(np.flatnonzero(octaves[a]), [a, a + 1])
            np.testing.assert_array_equal(np.flatnonzero(above[a]), np.arange(a, STEPS))
        X = rng.integers(100, size=(3, STEPS, 2)).astype(float)
        np.testing.assert_array_equal(in_bands(X, 1), np.einsum("iaj,ba->ibj", X, bands))
        similar = similar_bands()
        assert np.sum(similar) == 5 * (STEPS - 1) - 6
        np.testing.assert_array_equal(np.flatnonzero(similar[0]), [0, 1, 2])
        assert not np.any(similar[STEPS - 1 :])

    @pytest.mark.parametrize("pr", [0.3, 0.6])
    def test_what_common_counts_say_is_not_asked(self, seed, pr, monkeypatch):
        """Tails of counts that one in fifty exceeds are not computed: no p-value that could count is another one."""
        S = np.concatenate([block(np.random.default_rng((seed, k)), 4000, 2, pr) for k in range(4)], axis=1)
        S += 0.05 * np.random.default_rng(seed).standard_normal(S.shape)
        fast = together(S, 2.0)
        monkeypatch.setattr(readings, "COMMON", 0.0)
        for quick, literal in zip(fast[:2], together(S, 2.0)[:2], strict=True):
            rare = literal < 0.05
            np.testing.assert_array_equal(quick[rare], literal[rare])
            assert np.all(quick[~rare] >= 0.05)

    @pytest.mark.parametrize(("together_", "m"), [(0.95, 1217), (0.9, 693)])
    def test_a_dozen_samples_of_one_atom_alone_are_seen(self, seed, together_, m):
        """Nearly always together: sum and difference exclude each other, and look independent but for a few samples."""
        rng = np.random.default_rng(seed)
        draws = [block(rng, m, 2, together_, 0.1, lambda shape: np.full(shape, 1.0)) for _ in range(5)]
        assert np.median([np.sum(np.sum(S != 0, axis=1) == 1) for S in draws]) < 25
        turn = np.array([[1, 1], [1, -1]]) / np.sqrt(2)
        assert np.median([together(S @ turn, 2.0)[1][0, 1] for S in draws]) < 0.05

    def test_a_sum_whose_other_half_is_smeared(self, seed):
        """The difference lies across three axes that are not determined, so no plane of two axes shows the sum."""
        rng, m = np.random.default_rng(seed), 3000
        half, loose = np.arange(m) % 2, np.array([False, True, True, True])
        turn, smear = np.eye(4), np.eye(4)
        turn[:2, :2] = np.array([[1, 1], [1, -1]]) / np.sqrt(2)
        sums, atoms = [], []
        for _ in range(5):
            size = lambda shape: rng.uniform(0.5, 1.5, shape)  # noqa: E731
            parts = block(rng, m, 2, 0.7, 0.2, size), block(rng, m, 2, 0.7, 0.1, size)
            S = np.concatenate(parts, axis=1)
            S /= np.std(S, axis=0)
            smear[1:, 1:] = polar(rng.standard_normal((3, 3)))
            sums.append(beside_all(S @ turn @ smear, half, loose)[0])
            atoms.append(beside_all(S @ smear, half, loose)[0])
        assert np.median(sums) < 1e-3
        assert np.median(atoms) > 0.1
        assert np.all(beside_all(S @ turn, half, np.array([False, True, False, False])) == 1)  # that plane is asked

    @pytest.mark.parametrize("law", ["laplace", "sparse", "t"])
    def test_nothing_speaks_against_atoms_beside_a_mixture(self, seed, law):
        rng, p = np.random.default_rng(seed), []
        half, loose, smear = np.arange(3000) % 2, np.array([False, True, True, True]), np.eye(4)
        for _ in range(5):
            S = LAWS[law](rng, (3000, 4))
            smear[1:, 1:] = polar(rng.standard_normal((3, 3)))
            p.append(beside_all(S / np.std(S, axis=0) @ smear, half, loose)[0])
        assert np.median(p) > 0.05

    def test_an_atom_beside_the_axes_has_one_sign(self, seed):
        """Three atoms in a plane: along two of them the third one's signs are not independent."""
        x = LAWS["sparse"](np.random.default_rng(seed), (6000, 3))
        S = x[:, :2] + x[:, 2:] * np.array([0.6, 0.8])
        assert together(S, 2.0)[2][0, 1]

    def test_norms_of_a_group_are_those_of_all_of_it(self, seed):
        """Three that are nearly always together: turned by a reflection most corners of the cube lie near the axes."""
        S = block(np.random.default_rng(seed), 12_000, 3, 0.95) @ (np.eye(3) - 2 / 3)
        planes, other = small_norms(S, np.zeros((3, 3), dtype=bool)), ~np.eye(3, dtype=bool)
        assert np.median(planes.sparse[other]) < 0.1 * np.median(small_norms(S, other).sparse[other])
        Z, axes = white(S @ (np.eye(3) - 2 / 3))
        assert certify(Candidates(polar((np.eye(3) - 2 / 3) @ axes)), evidence(Z)).count == 0

    def test_rest_is_gaussian_by_the_reasons(self):
        axes, none = np.eye(3), np.zeros((3, 3), dtype=bool)
        bases = (Basis.INDEPENDENCE,) * 3
        gaussian, rival = Doubt(Reason.GAUSSIAN), Doubt(Reason.RIVAL)
        bounds = np.array([0.9, 0.0, 0.0])
        assert Proof(axes, bounds, (None, gaussian, gaussian), bases, none).rest_is_gaussian
        assert not Proof(axes, bounds, (None, gaussian, rival), bases, none).rest_is_gaussian
        assert not Proof(axes, 0 * bounds, (gaussian,) * 3, bases, none).rest_is_gaussian


class TestCertify:
    @pytest.mark.parametrize("law", ["laplace", "uniform", "exponential", "signs", "sparse", "t"])
    def test_independent_sources(self, seed, law):
        proof, truth = proven(LAWS[law](np.random.default_rng(seed), (20_000, 5)), seed)
        assert np.all(proof.certified)
        assert np.all(proof.bounds <= truth)
        assert proof.doubts == (None,) * 5
        assert set(proof.bases) == {Basis.INDEPENDENCE}

    def test_few_samples_say_why(self, rng):
        proof, _ = proven(rng.laplace(size=(30, 6)))
        assert {doubt.reason for doubt in proof.doubts} == {Reason.FEW_SAMPLES}

    def test_gaussian_directions_take_no_certificate_from_the_others(self, seed):
        rng = np.random.default_rng(seed)
        S = np.concatenate((rng.uniform(-1, 1, (20_000, 3)), rng.standard_normal((20_000, 3))), axis=1)
        proof, truth = proven(S, seed)
        assert proof.count == 3
        assert np.all(truth[proof.certified] > 0.99)
        assert {doubt.reason for doubt in proof.doubts if doubt} <= {Reason.GAUSSIAN, Reason.NO_AXES}

    @pytest.mark.parametrize("kind", ["circle", "disc", "t"])
    def test_planes_without_axes(self, seed, kind):
        rng = np.random.default_rng(seed)
        m = 10_000
        plane = rng.standard_normal((m, 2))
        plane /= np.linalg.norm(plane, axis=1, keepdims=True)
        plane *= {"circle": 1.0, "disc": np.sqrt(rng.random((m, 1))), "t": rng.standard_t(5, (m, 1))}[kind]
        proof, _ = proven(np.concatenate((plane, rng.laplace(size=(m, 3))), axis=1), seed)
        inside = np.sum((proof.axes[:, :2]) ** 2, axis=1) > 0.5
        assert np.sum(inside) == 2
        assert not np.any(proof.certified & inside)
        assert np.all(proof.certified[~inside])  # what has no axes takes no certificate from the others

    @pytest.mark.parametrize("magnitudes", ["constant", "uniform"])
    @pytest.mark.parametrize("k", [2, 3])
    @pytest.mark.parametrize("together", [0.5, 0.8, 0.95])
    def test_sums_of_atoms_that_occur_together_are_never_certified(self, seed, k, together, magnitudes):
        """Whatever proposes them: here the fixed point, and the turned axes themselves."""
        rng = np.random.default_rng(seed)
        size = np.ones if magnitudes == "constant" else lambda shape: rng.uniform(0.5, 1.5, shape)
        Z, axes = white(np.concatenate([block(rng, 6000, k, together, magnitudes=size) for _ in range(2)], axis=1))
        some = evidence(Z)
        U, halves = fixed_point(some, rng)
        turn = np.eye(2 * k)
        turn[:2, :2] = np.array([[1, 1], [1, -1]]) / np.sqrt(2)
        for proof in (certify(Candidates(U, halves), some), certify(Candidates(turn @ polar(axes)), some)):
            truth = np.max((proof.axes @ axes.T) ** 2, axis=1)
            assert np.all(proof.bounds <= truth)

    def test_atoms_that_occur_together_rest_on_signs(self, seed):
        Z, axes = white(block(np.random.default_rng(seed), 20_000, 3, 0.6))
        proof = certify(Candidates(polar(axes)), evidence(Z))
        assert np.all(proof.certified)
        assert set(proof.bases) == {Basis.SIGNS}
        assert np.all(proof.tangled)

    def test_two_atoms_in_nearly_one_direction_beside_noise(self, seed):
        # Noise that is not white: whitened, two atoms that occur together lie at +-angle, and noise fills the plane.
        rng = np.random.default_rng(seed)
        m, angle = 8_000, 0.22
        S = block(rng, m, 2, 0.95, magnitudes=rng.standard_normal)
        S /= np.std(S, axis=0) * np.sqrt(2)
        B = np.array([[np.cos(angle), np.sin(angle)], [np.cos(angle), -np.sin(angle)]])
        left = np.maximum(1 - np.sum(B * B, axis=0) / 2, 0.0)
        Z, axes = white(S @ B + np.sqrt(left) * rng.standard_normal((m, 2)), B)
        some = evidence(Z)
        U, halves = fixed_point(some, np.random.default_rng(seed))
        proof = certify(Candidates(U, halves), some)
        truth = np.max((U @ axes.T) ** 2, axis=1)
        assert np.all(proof.bounds[proof.certified] <= truth[proof.certified])

    def test_doubts_name_the_other_axis_by_its_place(self, seed):
        rng = np.random.default_rng(seed)
        phi = rng.uniform(0, 2 * np.pi, 4_000)
        proof, _ = proven(np.column_stack((np.cos(phi), rng.laplace(size=(4_000, 2)), np.sin(phi))), seed)
        pair = [i for i, doubt in enumerate(proof.doubts) if doubt is not None]
        assert [proof.doubts[i].other for i in pair] == pair[::-1]
        alone = [i for i in range(4) if i not in pair]
        moved = proof.at(np.array([*pair, *alone]))
        assert [doubt and doubt.other for doubt in moved.doubts] == [1, 0, None, None]
        assert [doubt and doubt.other for doubt in moved.about(moved.axes[::-1]).doubts] == [None, None, 3, 2]
        assert proof.at(np.array([pair[0], *alone])).doubts[0].other is None

    def test_rows_that_hardly_count_say_nothing(self, seed):
        """Blocks, and among them rows of small weight that are sparse along sums and differences."""
        rng = np.random.default_rng(seed)
        A = np.kron(np.eye(2), np.array([[1, 1], [1, -1]]) / np.sqrt(2))
        blocks = np.concatenate([block(rng, 5_000, 2, 0.9, 0.2) for _ in range(2)], axis=1)
        light = block(rng, 15_000, 1, 1.0, 0.1) * np.eye(4)[rng.integers(4, size=15_000)] @ A
        samples, w = np.concatenate((blocks, light)), np.repeat([1.0, 1e-6], [5_000, 15_000])
        order = rng.permutation(20_000)
        Z, axes = white(blocks)
        root = np.linalg.lstsq(blocks - np.mean(blocks, axis=0), Z, rcond=None)[0]
        some = Evidence.of_rows((samples @ root)[order], np.arange(20_000), w[order], 5_000)
        assert some.Z.shape[0] <= 5_100
        assert np.all(some.weights == 1)
        U, halves = fixed_point(some, rng)
        proof = certify(Candidates(U, halves), some)
        assert np.all(proof.bounds[proof.certified] <= np.max((U @ axes.T) ** 2, axis=1)[proof.certified])

    def test_one_axis_is_certified_once(self):
        proof = Proof(np.eye(2), np.array([0.55, 0.9]), (None, None), (Basis.INDEPENDENCE,) * 2, np.zeros((2, 2)) > 0)
        again = proof.about(np.array([[1.0, 0.0], [1.0, 0.0]]))
        assert again.certified.tolist() == [True, False]
        assert again.doubts[1].reason is Reason.CONTRADICTED

    def test_a_group_stands_and_falls_together(self):
        together = np.array([[False, True, False], [True, False, False], [False, False, False]])
        proof = Proof(np.eye(3), np.full(3, 0.6), (None,) * 3, (Basis.SIGNS,) * 3, together)
        turned = np.array([[np.cos(0.3), 0.0, np.sin(0.3)], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
        reasons = [doubt and doubt.reason for doubt in proof.about(turned).doubts]
        assert reasons == [Reason.INACCURATE, Reason.GROUP, None]

    def test_what_it_proves_of_other_rows(self, seed):
        rng = np.random.default_rng(seed)
        proof, _ = proven(rng.laplace(size=(20_000, 4)), seed)
        same = proof.about(proof.axes)
        np.testing.assert_allclose(same.bounds, proof.bounds, atol=1e-12)
        off = proof.about(polar(proof.axes + 0.1 * rng.standard_normal((4, 4))))
        assert np.all(off.bounds < proof.bounds)
        both = proof.about(proof.axes[[0, 0, 1, 2]])  # one axis twice
        assert both.doubts[0].reason is both.doubts[1].reason is Reason.CONTRADICTED

    def test_a_half_is_whitened_by_itself(self, seed):
        """Otherwise the iteration ends anywhere: the error of the covariance is larger than what it looks for."""
        rng, worst = np.random.default_rng(seed), []
        for _ in range(5):  # a start may lead to another optimum
            Z, axes = white(rng.uniform(-1, 1, (600, 8)))
            B = optimum(evidence(Z).part(0), polar(rng.standard_normal((8, 8))))
            worst.append(np.min(np.max((B @ axes.T) ** 2, axis=1)))
        assert np.median(worst) > 0.9


class TestKept:
    def test_the_same_however_the_rows_come(self, rng):
        m = 2 * MOST
        Z, w = rng.standard_normal((m, 2)), rng.random(m)
        index = np.arange(m)
        whole = Kept.none(2).with_rows(Z, index, w)
        parts = Kept.none(2)
        for rows in np.array_split(rng.permutation(m), 7):
            parts = parts.with_rows(Z[rows], index[rows], w[rows])
        assert whole.index.shape == (MOST,)
        for name in ("Z", "index", "weights"):
            np.testing.assert_array_equal(getattr(whole, name), getattr(parts, name))


@QUIET
class TestPaths:
    """Every path goes through the same proof."""

    def fitted(self, Y, path):
        model = SpectralDictionaryLearning(refine=path != "moments")
        if path == "partial_fit":
            for batch in np.array_split(Y, 3):
                model.partial_fit(batch)
            return model
        return model.fit(Y)

    @pytest.mark.parametrize("path", ["fit", "moments", "partial_fit"])
    @pytest.mark.parametrize("k", [2, 3])
    def test_blocks(self, seed, path, k):
        data = nice_samples(8000, 6, supports="blocks", group=k, cooccurrence=0.8, random_state=seed)
        model = self.fitted(data.samples, path)
        A, C = data.components, np.cov(data.samples, rowvar=False)
        F, G = np.linalg.solve(C, A.T), np.linalg.solve(C, model.components_.T)
        scale = np.outer(np.sum(A.T * F, axis=0), np.sum(model.components_.T * G, axis=0))
        truth = np.max((A @ G) ** 2 / scale, axis=0)
        assert np.all(model.certificates_ <= truth + 1e-9)
        assert [doubt is None for doubt in model.doubts_] == model.certified_.tolist()

    def test_moments_without_rows_certify_nothing(self, seed):
        data = nice_samples(4000, 4, random_state=seed)
        model = SpectralDictionaryLearning(4).partial_fit(data.samples)
        assert np.all(model.certified_)
        moment = model.moment_
        moment.kept = Kept.none(4)
        bare = SpectralDictionaryLearning(4).fit_moment(moment)
        assert not np.any(bare.certified_)
        assert {doubt.reason for doubt in bare.doubts_} == {Reason.NO_SAMPLES}

    def test_reasons_are_kept_in_files(self, seed, tmp_path):
        model = SpectralICA(4).fit(np.random.default_rng(seed).standard_normal((500, 4)))
        model.save(tmp_path / "model.npz")
        again = SpectralICA.load(tmp_path / "model.npz")
        assert again.doubts_ == model.doubts_
        assert again.bases_ == model.bases_
        assert all(str(doubt) for doubt in model.doubts_)
