"""The spectral stage on samples: what is proven of it, what must not be, windows, known atoms, how many there are."""

from __future__ import annotations

import numpy as np
import pytest
from test_lemmas import tilted, unit

from quartic._arrays import pack, pack_rank_one
from quartic._progress import Stages
from quartic.algorithms.certify import CERTIFIED, DETERMINED, is_certified, pair_energy, split_certificates
from quartic.algorithms.temper import tempering
from quartic.certify import Candidates, Reason, certify
from quartic.datasets import COEFFICIENTS, SUPPORTS, nice_samples, random_orthonormal
from quartic.evidence.parts import Evidence
from quartic.evidence.units import dealt
from quartic.frame import Frame
from quartic.halves import half_of, row_hash
from quartic.learn.attempts import Plan
from quartic.learn.plan import counted, first_look, spectral_stage, top_and_window
from quartic.metrics import match
from quartic.moments import Covariance, FourthMoment
from quartic.propose.fixed_point import complete
from quartic.propose.span import TOP, search, search_window
from quartic.samples import Held
from quartic.tensors import FactoredTensor
from quartic.views import ImplicitMoment


def nobody(r):
    """No known atoms."""
    return np.zeros((0, r))


def whitened(Y, tempered=True):
    """Frame and fourth moment of samples, in two halves."""
    frame = Covariance().update(Y).frame(Y.shape[1])
    Z = frame.whiten(Y)
    squares = np.sum(Z**2, axis=1)
    w = tempering(squares).weights(squares) if tempered else np.ones(Y.shape[0])
    return frame, ImplicitMoment(Z, half_of(row_hash(np.arange(Y.shape[0]))), w)


def evidence_of(Y, frame):
    """All samples, in two parts."""
    m = Y.shape[0]
    return Evidence.of_rows(frame.whiten(Y), np.arange(m), np.ones(m), m)


def proofs(Y, rng, tempered=True):
    """What is proven of the top of the spectrum, and of a window of it; and the coordinates."""
    frame, moment = whitened(Y, tempered)
    evidence, r = evidence_of(Y, frame), frame.dim
    searches = list(top_and_window(moment, r, nobody(r), rng, None, halves=True))
    return frame, [(found, certify(Candidates(found.atoms), evidence)) for found in searches]


def staged(Y, rng, form="auto"):
    """Frame, evidence, and what the whole stage makes of samples."""
    r = Y.shape[1]
    data, frame, stages = Held(Y), Covariance().update(Y).frame(r), Stages(None)
    evidence = Evidence.of(data, frame)
    plan = Plan()
    first = first_look(data, frame, nobody(r), evidence, rng, stages, plan)
    return frame, evidence, spectral_stage(data, frame, nobody(r), form, evidence, first, rng, stages, plan)


def true_atoms(data, frame):
    """Unit rows in the coordinates of a frame."""
    return unit(data.dictionary @ frame.forward)


def nearest(U, A):
    """Squared correlation of each row of ``U`` with the nearest of ``A``."""
    return np.max((U @ A.T) ** 2, axis=1)


def span_of(*columns):
    """The projector to the span of packed columns."""
    basis = np.linalg.qr(np.concatenate(columns, axis=1))[0]
    return FactoredTensor(np.ones(basis.shape[1]), basis)


class TestPairEnergy:
    def test_literally(self, rng):
        L = span_of(rng.standard_normal((15, 4)))
        B = random_orthonormal(5, 3, rng)
        P = L.to_packed()
        expected = np.zeros((3, 3))
        for i in range(3):
            for j in range(3):
                if i != j:
                    mixed = pack((np.outer(B[i], B[j]) + np.outer(B[j], B[i]))[None])[:, 0] / np.sqrt(2)
                    expected[i, j] = mixed @ P @ mixed
        np.testing.assert_allclose(pair_energy(L, B), np.max(expected, axis=1), atol=1e-12)

    def test_of_atoms_is_zero_and_of_a_plane_is_one(self, rng):
        A = random_orthonormal(6, 6, rng)
        mixed = pack(A[0][None, :, None] * A[1][None, None, :])
        np.testing.assert_allclose(pair_energy(span_of(pack_rank_one(A)), A), 0, atol=1e-12)
        np.testing.assert_allclose(pair_energy(span_of(pack_rank_one(A), mixed), A), [1, 1, 0, 0, 0, 0], atol=1e-12)

    def test_fewer_than_two(self, rng):
        L = span_of(rng.standard_normal((6, 2)))
        np.testing.assert_array_equal(pair_energy(L, np.eye(3)[:1]), [0])
        assert pair_energy(L, np.eye(3)[:0]).shape == (0,)


class TestSplitCertificates:
    def test_the_truth_in_both_halves(self, rng):
        A = random_orthonormal(6, 4, rng)
        halves = 2 * [(A, span_of(pack_rank_one(A)))]
        np.testing.assert_allclose(split_certificates(A, halves), 1, atol=1e-7)

    @pytest.mark.parametrize("squared", [0.99, 0.8, 0.55])
    def test_the_angle_to_an_atom_is_added(self, rng, squared):
        A = random_orthonormal(6, 4, rng)
        halves = 2 * [(A, span_of(pack_rank_one(A)))]
        outside = np.linalg.svd(A)[2][4]
        U = np.sqrt(squared) * A + np.sqrt(1 - squared) * outside
        np.testing.assert_allclose(split_certificates(U[:1], halves), squared, atol=1e-6)

    def test_a_half_is_tested_on_the_other(self, rng):
        """What lies in its own span only proves nothing."""
        A, B = random_orthonormal(8, 4, rng), random_orthonormal(8, 4, rng)
        halves = [(A, span_of(pack_rank_one(A))), (B, span_of(pack_rank_one(B)))]
        assert np.all(split_certificates(A, halves) < CERTIFIED)
        assert np.all(split_certificates(B, halves) < CERTIFIED)
        good = [(A, span_of(pack_rank_one(A))), (A, span_of(pack_rank_one(A)))]
        for order in (good, good[::-1]):
            assert np.all(split_certificates(A, order) > 0.99)

    def test_the_smaller_of_two_bounds_counts(self, rng):
        A = random_orthonormal(8, 4, rng)
        span = span_of(pack_rank_one(A))
        rough = tilted(A, 0.9, rng)
        one, other = (
            split_certificates(A, order) for order in ([(A, span), (rough, span)], [(rough, span), (A, span)])
        )
        np.testing.assert_allclose(one, other, atol=1e-9)
        assert np.all(one < 0.95)

    def test_nothing_found_in_a_half(self, rng):
        A = random_orthonormal(6, 4, rng)
        span = span_of(pack_rank_one(A))
        assert not np.any(split_certificates(A, [(A[:0], span), (A, span)]))

    @pytest.mark.parametrize("angle", [0.0, 0.3, np.pi / 4])
    def test_a_plane_is_never_certified(self, rng, angle):
        """A span with Sym2 of a plane holds every rotation in it: F is 1 there, and nothing is known."""
        A = random_orthonormal(6, 5, rng)
        span = span_of(pack_rank_one(A), pack(A[0][None, :, None] * A[1][None, None, :]))
        c, s = np.cos(angle), np.sin(angle)
        U = A.copy()
        U[:2] = np.array([[c, s], [-s, c]]) @ A[:2]
        np.testing.assert_allclose(np.diagonal(pack_rank_one(U).T @ span.to_packed() @ pack_rank_one(U)), 1)
        bounds = split_certificates(U, 2 * [(U, span)])
        assert np.all(bounds[:2] < CERTIFIED)
        assert np.all(bounds[2:] > 0.99)

    def test_half_a_plane(self, rng):
        """A mixed product that lies in the span by a part: from a half on it counts as undetermined."""
        A = random_orthonormal(6, 4, rng)
        mixed = np.sqrt(2) * pack(A[0][None, :, None] * A[1][None, None, :])
        other = np.sqrt(2) * pack(A[2][None, :, None] * np.linalg.svd(A)[2][4][None, None, :])
        for part in (0.8 * DETERMINED, 1.2 * DETERMINED):
            span = span_of(pack_rank_one(A), np.sqrt(part) * mixed + np.sqrt(1 - part) * other)
            assert np.all((split_certificates(A, 2 * [(A, span)])[:2] > CERTIFIED) == (part < DETERMINED))

    @pytest.mark.parametrize(("cosine", "fine"), [(0.1, True), (0.3, False), (1 / 3, False)])
    def test_atoms_that_contradict_each_other(self, rng, cosine, fine):
        """Two that are certain and not orthogonal: at least one of them is wrong, and neither is certified.

        Empirically whitened atoms are not quite orthogonal either; the rank-one elements of a block of three beyond
        the tie, ``(a_1 +- a_2 +- a_3) / sqrt(3)``, have a cosine of 1/3.
        """
        A = random_orthonormal(6, 4, rng)
        A[1] = cosine * A[0] + np.sqrt(1 - cosine**2) * A[1]
        span = span_of(pack_rank_one(A))
        assert np.all(pair_energy(span, A) < DETERMINED)
        bounds = split_certificates(A, 2 * [(A, span)])
        assert np.all((bounds[:2] > CERTIFIED) == fine)
        assert np.all(bounds[2:] > 0.99)


def elliptical(freedom):
    """Spherical directions with Student's tails, in other units: no axes."""

    def draw(m, r, rng):
        radius = np.ones(m) if freedom is None else np.sqrt(freedom / rng.chisquare(freedom, m))
        return rng.standard_normal((m, r)) * radius[:, None] @ rng.standard_normal((r, r))

    return draw


class TestNoise:
    @pytest.mark.parametrize("m", [100, 400, 3000])
    @pytest.mark.parametrize(
        ("freedom", "tempered"), [(None, False), (5, False), (3, False), (None, True), (5, True), (3, True), (1, True)]
    )
    def test_nothing_is_certified_without_structure(self, freedom, tempered, m, rng):
        r = 8
        for found, proof in proofs(elliptical(freedom)(m, r, rng), rng, tempered)[1]:
            assert proof.count == 0
            assert not np.any(is_certified(found.likely))

    @pytest.mark.parametrize("r", [1, 2, 3, 8])
    @pytest.mark.parametrize("tempered", [False, True])
    def test_gaussian_samples_in_any_dimension(self, r, tempered, rng):
        """In a line or a plane the two halves agree by chance; there the size of the cumulant has to tell."""
        for found, proof in proofs(rng.standard_normal((2000, r)) @ rng.standard_normal((r, r)), rng, tempered)[1]:
            assert proof.count == 0
            assert not np.any(is_certified(found.likely))

    @pytest.mark.parametrize("freedom", [None, 3])
    def test_nor_by_the_whole_stage(self, freedom, rng):
        r = 8
        _, _, stage = staged(elliptical(freedom)(3000, r, rng), rng)
        assert stage.proof.count == 0
        assert not stage.settled
        assert stage.rank == r
        assert counted(stage, nobody(r)).rank == r


class TestSamples:
    @pytest.mark.parametrize("coefficients", COEFFICIENTS)
    @pytest.mark.parametrize("supports", SUPPORTS)
    def test_certificates_bound_the_correlation(self, supports, coefficients, seed):
        """From samples that are too few to ample ones; estimated from halves, so now and then a little too high."""
        n = 8
        excess, certified = [], 0
        for k, m in enumerate((200, 500, 3000)):
            options = {"supports": supports, "coefficients": coefficients, "p": 0.15, "group": 4, "snr": 20}
            data = nice_samples(m, n, condition=5, random_state=10 * seed + k, **options)
            frame, both = proofs(data.samples, np.random.default_rng(seed))
            found, proof = max(both, key=lambda pair: pair[1].count)
            excess += list((proof.bounds - nearest(found.atoms, true_atoms(data, frame)))[proof.certified])
            certified += proof.count
        assert np.count_nonzero(np.array(excess) > 0.01) <= max(1, 0.05 * certified)
        assert max(excess, default=0) < 0.1
        assert certified > 0

    @pytest.mark.parametrize("form", ["accumulated", "implicit"])
    @pytest.mark.parametrize("supports", SUPPORTS)
    def test_ample_samples_certify_every_atom(self, supports, form, seed, rng):
        n = 8
        data = nice_samples(6000, n, supports=supports, group=4, random_state=seed)
        frame, _, stage = staged(data.samples, rng, form)
        assert stage.form == form
        assert stage.proof.count == n
        assert stage.settled
        assert match(true_atoms(data, frame), stage.axes).found(0.98) == n

    def test_known_atoms_come_first(self, seed, rng):
        n, k = 8, 3
        data = nice_samples(6000, n, supports="blocks", group=4, random_state=seed)
        frame, moment = whitened(data.samples)
        A = true_atoms(data, frame)
        known = A[[5, 0, 2]]
        found = search(moment, n, known, rng, halves=True)
        np.testing.assert_array_equal(found.atoms[:k], known)
        assert found.atoms.shape == (n, n)
        assert match(A, found.atoms).found(0.95) == n
        assert np.all(is_certified(found.likely))
        assert certify(Candidates(found.atoms), evidence_of(data.samples, frame)).count == n
        assert len(found.halves) == 2
        for atoms, _ in found.halves:
            np.testing.assert_array_equal(atoms[:k], known)
        everything = search(moment, n, A, rng)
        np.testing.assert_array_equal(everything.atoms, A)

    def test_few_samples_certify_less_than_many(self, seed, rng):
        n = 8
        for m, enough in ((60, False), (6000, True)):
            found, proof = proofs(nice_samples(m, n, random_state=seed).samples, rng)[1][0]
            assert np.all(is_certified(found.likely)) == enough
            assert (proof.count == n) == enough

    def test_a_half_with_too_few_samples_certifies_nothing(self, seed, rng):
        n = 4
        data = nice_samples(4000, n, dictionary="orthonormal", random_state=seed)
        Z = data.samples / np.sqrt(0.1)
        half = np.ones(4000, dtype=int)
        half[:10] = 0
        found = search(ImplicitMoment(Z, half, np.ones(4000)), n, nobody(n), rng, halves=True)
        assert match(data.dictionary, found.atoms).found(0.95) == n
        assert found.halves == []
        np.testing.assert_array_equal(found.likely, 0)
        proof = certify(Candidates(found.atoms), Evidence(Z, dealt(half), np.ones(4000), 4000))
        np.testing.assert_array_equal(proof.bounds, 0)
        assert {doubt.reason for doubt in proof.doubts} == {Reason.FEW_SAMPLES}

    def test_nothing_is_proven_where_nothing_was_found(self, seed):
        data = nice_samples(4000, 4, dictionary="orthonormal", random_state=seed)
        proof = certify(Candidates(nobody(4)), evidence_of(data.samples, Covariance().update(data.samples).frame(4)))
        assert proof.bounds.shape == (0,)
        assert proof.count == 0

    def test_halves_are_asked_only_where_they_are_wanted(self, seed):
        """And the answer of all samples does not depend on it."""
        _, moment = whitened(nice_samples(4000, 6, random_state=seed).samples)
        without, asked = (search(moment, 6, nobody(6), np.random.default_rng(0), halves=h) for h in (False, True))
        assert without.halves == []
        np.testing.assert_array_equal(without.likely, 0)
        np.testing.assert_array_equal(without.atoms, asked.atoms)
        assert np.all(is_certified(asked.likely))

    def test_the_scale_of_weights_does_not_matter(self, seed):
        data = nice_samples(4000, 6, random_state=seed)
        frame = Covariance().update(data.samples).frame(6)
        one, other = (
            search(
                FourthMoment(frame).update(data.samples, np.full(4000, w)),
                6,
                nobody(6),
                np.random.default_rng(0),
                halves=True,
            )
            for w in (1.0, 1e-6)
        )
        assert np.all(is_certified(one.likely) & is_certified(other.likely))
        np.testing.assert_allclose(one.likely, other.likely, atol=1e-3)
        Z, index = frame.whiten(data.samples), np.arange(4000)
        one, other = (
            certify(Candidates(one.atoms), Evidence.of_rows(Z, index, np.full(4000, w), 4000)) for w in (1.0, 1e-6)
        )
        assert one.count == other.count == 6
        np.testing.assert_allclose(one.bounds, other.bounds, atol=1e-3)


class TestWindow:
    def test_on_samples_beyond_the_tie(self, seed, rng):
        """Blocks of 5 at tau = 0.5, no weights: below the cluster of the 40 pair terms are the atoms."""
        n = 20
        data = nice_samples(20_000, n, supports="blocks", group=5, cooccurrence=0.5, random_state=seed)
        frame = Covariance().update(data.samples).frame(n)
        moment = FourthMoment(frame, np.float32).update(data.samples)
        A = true_atoms(data, frame)
        top = search(moment, n, nobody(n), rng)
        assert match(A, top.atoms).found(0.9) == 0
        _, found = top_and_window(moment, n, nobody(n), rng, None)
        assert found.window == (4, 44)
        assert match(A, found.atoms).found(0.9) == n
        evidence = evidence_of(data.samples, frame)
        proof = certify(Candidates(found.atoms), evidence)
        assert proof.count >= n - 2
        assert np.all(proof.bounds <= nearest(found.atoms, A) + 0.02)
        assert certify(Candidates(top.atoms), evidence).count == 0

    def test_no_window_of_a_large_problem(self, rng, monkeypatch):
        monkeypatch.setattr("quartic.propose.span.DENSE_LIMIT", 10)
        _, moment = whitened(rng.standard_normal((500, 5)))
        assert search_window(moment, 5, nobody(5), rng) is None

    def test_the_top_is_called_so(self, seed, rng):
        data = nice_samples(3000, 5, random_state=seed)
        _, moment = whitened(data.samples)
        found = next(top_and_window(moment, 5, nobody(5), rng, None))
        assert found.window == TOP
        assert found.sweeps > 0


class TestCount:
    @pytest.mark.parametrize("gaussian", [0, 3, 5])
    def test_gaussian_directions_are_no_atoms(self, gaussian, seed, rng):
        n = 6
        data = nice_samples(8000, n, supports="blocks", group=3, dictionary=np.eye(n), random_state=seed)
        X = np.column_stack((data.samples / np.sqrt(0.1), rng.standard_normal((8000, gaussian))))
        r = n + gaussian
        mixing = rng.standard_normal((r, r))
        Y = X @ mixing
        frame, _, stage = staged(Y, rng)
        result = counted(stage, nobody(r))
        assert result.rank == n
        assert result.proof.count == n
        assert (
            "all are certified" if gaussian == 0 else f"{n} certified atoms in {r} directions"
        ) in result.rank_reason
        assert match(unit(mixing[:n] @ frame.forward), result.axes).found(0.95) == n


class TestPieces:
    def test_complete_keeps_what_it_was_given(self, rng):
        B = random_orthonormal(7, 3, rng)
        full = complete(B, 7)
        np.testing.assert_allclose(full @ full.T, np.eye(7), atol=1e-10)
        np.testing.assert_allclose(full[:3], B, atol=1e-10)
        np.testing.assert_allclose(complete(full, 7), full, atol=1e-10)
        nothing = complete(nobody(4), 4)
        np.testing.assert_allclose(nothing @ nothing.T, np.eye(4), atol=1e-10)
        rough = tilted(B, 0.95, rng)
        assert np.all(nearest(complete(rough, 7)[:3], rough) > 0.97)

    def test_frames_of_a_search_are_orthonormal(self, seed):
        """Atoms are unit rows in whitened coordinates, and nearly orthogonal."""
        data = nice_samples(5000, 6, random_state=seed)
        frame, moment = whitened(data.samples)
        assert isinstance(frame, Frame)
        found = search(moment, 6, nobody(6), np.random.default_rng(0))
        np.testing.assert_allclose(np.linalg.norm(found.atoms, axis=1), 1, atol=1e-6)
        assert np.linalg.norm(found.atoms @ found.atoms.T - np.eye(6), 2) < 0.2
