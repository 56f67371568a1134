"""More atoms than dimensions, from samples: the spectral stage, the estimators, and what they say."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from sklearn.decomposition import sparse_encode

import quartic
from quartic import SpectralDictionaryLearning, SpectralICA
from quartic._progress import Stages
from quartic.algorithms.certify import is_certified
from quartic.certify.beyond import Spans, has_mirrors
from quartic.datasets import nice_samples
from quartic.frame import Frame
from quartic.halves import half_of, row_hash
from quartic.metrics import match
from quartic.moments import Covariance, FourthMoment
from quartic.overcomplete import (
    COUNTING,
    SHARES,
    Ladder,
    leaves_more,
    looks_overcomplete,
    overcomplete_stage,
    uncontradicted,
)
from quartic.propose.span import Certified
from quartic.samples import Held

D, N = 12, 20


def draw(seed, m=12_000, coefficients="gaussian", n=N, **options):
    return nice_samples(m, n, D, p=1.3 / n, coefficients=coefficients, random_state=seed, **options)


def stage(Y, n, seed=0, beta=None):
    """The spectral stage alone: what it found, and the atoms in whitened coordinates."""
    frame = Covariance().update(Y).frame()
    data = Held(Y)
    nobody = np.zeros((0, frame.dim))
    ladder = Ladder(data, frame, Stages(None), COUNTING if n is None else SHARES, beta)
    return overcomplete_stage(ladder, n, nobody, np.random.default_rng(seed)), frame


def mirrored(A, bounds=None):
    """Whether a law of atoms ``A (n, r)`` of these lengths has mirrors, as its cumulant tells."""
    length = np.linalg.norm(A, axis=1)
    return has_mirrors(A / length[:, None], Spans(np.full(len(A), 0.9) if bounds is None else bounds, length**4))


def quietly(model, Y, sample_weight=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(Y, sample_weight=sample_weight)


class TestStage:
    @pytest.mark.parametrize("coefficients", ["sign", "gaussian"])
    @pytest.mark.parametrize("n", [N, None])
    def test_every_atom_is_found_and_certified(self, seed, n, coefficients):
        data = draw(seed, coefficients=coefficients)
        found, frame = stage(data.samples, n, seed)
        truth = true_atoms(data, frame)
        assert found.certified == N == found.found.atoms.shape[0]
        squared = np.max((found.found.atoms @ truth.T) ** 2, axis=1)
        assert match(truth, found.found.atoms).found(0.9) == N
        assert np.all(found.found.bounds <= squared)
        for half in found.halves:
            assert np.min(np.sum(half * found.found.atoms, axis=1)) > 0.8

    def test_fewer_samples_do_with_weights_than_without(self, seed):
        data = draw(seed, m=4000)
        with_weights, _ = stage(data.samples, N, seed)
        without, _ = stage(data.samples, N, seed, beta=0.0)
        assert with_weights.certified == N > without.certified

    def test_a_first_look(self, seed):
        for data, more in ((draw(seed), True), (nice_samples(12_000, D, p=0.1, random_state=seed), False)):
            frame = Covariance().update(data.samples).frame()
            ladder = Ladder(Held(data.samples), frame, Stages(None))
            assert looks_overcomplete(ladder, np.random.default_rng(seed)) == more

    @pytest.mark.parametrize("kind", ["gaussian", "scale mixture", "student"])
    @pytest.mark.parametrize("n", [15, None])
    def test_samples_without_structure_have_no_atoms(self, seed, kind, n):
        rng = np.random.default_rng(seed)
        Y = rng.standard_normal((3000, 8))
        if kind == "scale mixture":
            Y *= rng.exponential(size=(3000, 1))
        if kind == "student":
            Y /= np.sqrt(rng.chisquare(3, size=(3000, 1)) / 3)
        found, _ = stage(Y, n, seed)
        assert found is None or found.certified == 0

    @pytest.mark.parametrize(("d", "n"), [(2, 3), (3, 6), (4, 10)])
    @pytest.mark.parametrize("m", [4, 100, 2000])
    def test_a_span_that_is_everything_proves_nothing(self, seed, d, n, m):
        Y = np.random.default_rng(seed).standard_normal((m, d))
        found, _ = stage(Y, n, seed)
        assert found.certified == 0

    def test_one_half_alone_certifies_nothing(self, seed):
        data = nice_samples(4000, 8, 5, p=0.15, coefficients="gaussian", random_state=seed)
        weight = (half_of(row_hash(np.arange(4000))) == 0).astype(float)
        for refine in (True, False):
            model = quietly(SpectralDictionaryLearning(8, refine=refine, random_state=seed), data.samples, weight)
            assert model.components_.shape == (8, 5)
            assert not np.any(model.certified_)

    def test_what_it_says_is_what_it_certifies(self, seed):
        data = draw(seed, coefficients="sign")
        for n in (N, None):
            found, _ = stage(data.samples, n, seed, beta=0.0)
            if found is not None:
                assert found.reason.startswith(f"{found.certified} of {found.found.atoms.shape[0]} atoms")


def true_atoms(data, frame):
    """In whitened coordinates, unit rows."""
    A = data.dictionary @ frame.forward
    return A / np.linalg.norm(A, axis=1, keepdims=True)


def ladder_of(data, shares=COUNTING):
    frame = Covariance().update(data.samples).frame()
    return Ladder(Held(data.samples), frame, Stages(None), shares)


def random_unit(n, seed):
    A = np.random.default_rng(seed).standard_normal((n, D))
    return A / np.linalg.norm(A, axis=1, keepdims=True)


class TestLadder:
    def test_moments_are_made_when_they_are_asked_for(self, seed, monkeypatch):
        rows = []
        add = FourthMoment._add
        monkeypatch.setattr(
            FourthMoment,
            "_add",
            lambda self, Y, *args: rows.append(len(Y)) or add(self, Y, *args),
        )
        ladder = ladder_of(draw(seed, m=3000))
        rungs = ladder.upto(0.5)
        assert not rows
        first = next(rungs)
        assert ladder.at(COUNTING[0], 0.25) is first
        assert ladder.at(COUNTING[0], 1.0).samples == sum(rows) == 3000
        assert len(rows) == 2

    def test_many_features_are_not_looked_at(self, rng, monkeypatch):
        monkeypatch.setattr(Held, "squared_norms", None)
        frame = Frame(np.zeros(50), np.eye(50), np.eye(50), np.ones(50), "")
        assert not looks_overcomplete(Ladder(Held(np.zeros((9, 50))), frame, Stages(None)), rng)

    def test_a_moment_stays_what_it_was(self, seed):
        ladder = ladder_of(draw(seed, m=3000))
        given = ladder.at(0.5, 0.4)
        before = given.moment.cumulant().to_packed(), given.moment.effective.sum()
        ladder.at(0.5, 1.0)
        np.testing.assert_array_equal(given.moment.cumulant().to_packed(), before[0])
        assert given.moment.effective.sum() == before[1]

    def test_parts_add_up(self, seed):
        data = draw(seed, m=3000)
        at_once, grown = ladder_of(data).at(0.5, 1.0), ladder_of(data)
        for part in (0.2, 0.6, 1.0):
            given = grown.at(0.5, part)
        np.testing.assert_allclose(given.spectrum.values, at_once.spectrum.values, rtol=1e-5, atol=1e-5)


class TestRest:
    @pytest.mark.parametrize("coefficients", ["sign", "gaussian"])
    def test_all_atoms_leave_sampling_error_and_all_but_one_leave_more(self, seed, coefficients):
        data = draw(seed, m=60_000, coefficients=coefficients)
        ladder = ladder_of(data)
        A = true_atoms(data, ladder.frame)
        assert not leaves_more(ladder, 1.0, A)
        assert leaves_more(ladder, 1.0, A[1:])

    def test_weights_of_samples_are_no_more_error_than_they_make(self, seed):
        """A part of the samples counts a tenth: what one atom leaves is seen all the same."""
        data = draw(seed, m=60_000)
        frame = Covariance().update(data.samples).frame()
        weight = np.where(np.random.default_rng(seed).random(60_000) < 0.7, 0.1, 1.0)
        ladder = Ladder(Held(data.samples, weight), frame, Stages(None), COUNTING)
        A = true_atoms(data, frame)
        assert not leaves_more(ladder, 1.0, A)
        assert leaves_more(ladder, 1.0, A[1:])

    def test_sums_of_atoms_that_occur_together_lose_their_certificates(self, seed):
        data = draw(seed, m=20_000, supports="blocks", group=4, cooccurrence=0.3)
        ladder = ladder_of(data)
        A = true_atoms(data, ladder.frame)
        span = ladder.at(0.5, 1.0).spectrum.head(N)
        sums = A[::4] + A[1::4]
        sums /= np.linalg.norm(sums, axis=1, keepdims=True)
        np.testing.assert_array_equal(uncontradicted(Certified(A, np.full(N, 0.9)), span).bounds, 0.9)
        np.testing.assert_array_equal(uncontradicted(Certified(sums, np.full(len(sums), 0.9)), span).bounds, 0.0)

    @pytest.mark.parametrize("size", [2, 3, 5])
    def test_sums_of_orthonormal_axes_have_mirrors(self, rng, size):
        """With the axes themselves where sums alone are no more than these: four in a plane."""
        signs = np.array(list(itertools.product([1.0], *([[1.0, -1.0]] * (size - 1))))) / np.sqrt(size)
        signs = signs if size > 2 else np.concatenate((signs, np.eye(2)))
        r = 3 * size
        Q = np.linalg.qr(rng.standard_normal((r, r)))[0]
        U = np.kron(np.eye(3), signs) @ Q + 0.01 * rng.standard_normal((3 * len(signs), r))
        assert mirrored(U)
        oblique = U @ (np.eye(r) + 0.15 * rng.standard_normal((r, r)))  # as noise that is not white leaves them
        assert mirrored(oblique)
        # Beside a vector that is no atom, and is not certified; and where one of the sums is not.
        beside = np.concatenate((U, 0.5 * rng.standard_normal((1, r)) / np.sqrt(r)))
        assert mirrored(beside, np.append(np.full(len(U), 0.9), 0.0))
        assert mirrored(U, np.where(np.arange(len(U)) == 1, 0.0, 0.9))

    def test_mirrors_of_one_group_are_enough(self, rng):
        """Of the other sums errors leave only some: those span dimensions, and no atoms."""
        signs = np.array(list(itertools.product([1.0], [1.0, -1.0], [1.0, -1.0]))) / np.sqrt(3)
        errors = np.kron(np.diag([0.01] + [0.14] * 7), np.ones((4, 3))) * rng.standard_normal((32, 24))
        assert mirrored((np.kron(np.eye(8), signs) + errors) @ np.linalg.qr(rng.standard_normal((24, 24)))[0])

    def test_orthonormal_axes_are_no_more_than_dimensions(self, rng):
        """They are mapped to each other, but nothing simpler explains them; nor beside vectors that are no atoms."""
        axes = np.linalg.qr(rng.standard_normal((8, 8)))[0]
        beside = 0.5 * rng.standard_normal((4, 8)) / np.sqrt(8)
        assert not mirrored(np.concatenate((axes, beside)), np.repeat([0.9, 0.0], [8, 4]))

    @pytest.mark.parametrize(("n", "r"), [(12, 8), (32, 16), (64, 16)])
    def test_atoms_in_general_position_have_none(self, rng, n, r):
        U = rng.standard_normal((n, r))
        assert not mirrored(U / np.linalg.norm(U, axis=1, keepdims=True))

    def test_plain_moments_are_not_believed_alone(self, seed):
        """Sums of two atoms are certified by plain moments, at tau = 1/2."""
        data = draw(seed, m=60_000, coefficients="sign", supports="blocks", group=4, cooccurrence=0.5)
        found, frame = stage(data.samples, N, seed, beta=0.0)
        assert np.all(found.found.bounds <= np.max((found.found.atoms @ true_atoms(data, frame).T) ** 2, axis=1))


class TestDictionary:
    def test_exact_on_exactly_sparse_samples(self, seed):
        data = draw(seed)
        model = SpectralDictionaryLearning(random_state=seed).fit(data.samples)
        assert model.n_components_ == N
        assert model.status_.code == "complete"
        assert np.all(is_certified(model.certificates_))
        squared = match(data.components, model.components_).squared
        assert np.min(squared) >= 1 - 1e-10
        assert np.all(model.uncertainty_ < 1e-6)
        assert model.tau_ == pytest.approx(data.tau, abs=0.05)
        np.testing.assert_allclose(np.linalg.norm(model.components_, axis=1), 1, atol=1e-12)
        np.testing.assert_allclose(model.mean_, 0, atol=1e-7)

    def test_noise(self, seed):
        data = draw(seed, m=20_000, snr=20)
        model = quietly(SpectralDictionaryLearning(N, random_state=seed), data.samples)
        assert match(data.components, model.components_).found(0.98) == N

    def test_codes(self, seed):
        data = draw(seed)
        model = SpectralDictionaryLearning(N, random_state=seed).fit(data.samples)
        codes = model.transform(data.samples[:500])
        assert codes.shape == (500, N)
        np.testing.assert_allclose(model.inverse_transform(codes), data.samples[:500], atol=1e-4)
        truly = np.count_nonzero(data.codes[:500], axis=1)
        few = truly <= 1
        np.testing.assert_array_equal(np.count_nonzero(codes, axis=1)[few], truly[few])
        assert model.transform(data.samples[:5].astype(np.float32)).dtype == np.float32

    def test_other_encoders_are_those_of_scikit_learn(self, seed):
        data = draw(seed)
        chosen = {"transform_algorithm": "lasso_lars", "transform_alpha": 0.01}
        model = SpectralDictionaryLearning(N, random_state=seed, **chosen).fit(data.samples)
        expected = sparse_encode(data.samples[:20] - model.mean_, model.components_, algorithm="lasso_lars", alpha=0.01)
        np.testing.assert_allclose(model.transform(data.samples[:20]), expected)

    def test_known_atoms_stay(self, seed):
        data = draw(seed)
        known = data.components[[3, 7]]
        model = SpectralDictionaryLearning(N, known_components=known, random_state=seed).fit(data.samples)
        table = match(known, model.components_)
        assert table.found(1 - 1e-12) == 2
        np.testing.assert_array_equal(model.certificates_[table.columns], 1)
        np.testing.assert_array_equal(model.uncertainty_[table.columns], 0)
        assert match(data.components, model.components_).found(0.99) == N

    @pytest.mark.parametrize("refine", [True, False])
    def test_known_atoms_that_are_nearly_parallel_stay(self, seed, refine):
        D1 = random_unit(N, seed)
        D1[1] = 0.995 * D1[0] + 0.1 * D1[2]
        D1 /= np.linalg.norm(D1, axis=1, keepdims=True)
        rng = np.random.default_rng(seed)
        Y = ((rng.random((12_000, N)) < 1.3 / N) * rng.standard_normal((12_000, N))) @ D1
        model = quietly(SpectralDictionaryLearning(N, known_components=D1[:2], refine=refine, random_state=seed), Y)
        table = match(D1[:2], model.components_)
        assert table.found(1 - 1e-9) == 2
        np.testing.assert_array_equal(model.certificates_[table.columns], 1)
        assert np.sum(model.uncertainty_ == 0) == 2

    def test_more_than_there_are(self, seed):
        """One too many is not certified; the others are."""
        data = draw(seed)
        model = quietly(SpectralDictionaryLearning(N + 1, random_state=seed), data.samples)
        assert model.certified_.sum() <= N
        assert not model.status_.ok
        assert match(data.components, model.components_).found(0.95) == N

    def test_saved_and_loaded(self, seed, tmp_path):
        data = draw(seed)
        model = SpectralDictionaryLearning(N, random_state=seed).fit(data.samples)
        model.save(tmp_path / "m.npz")
        again = SpectralDictionaryLearning.load(tmp_path / "m.npz")
        np.testing.assert_array_equal(again.transform(data.samples[:50]), model.transform(data.samples[:50]))

    def test_the_same_again(self, seed):
        data = draw(seed)
        one, two = (SpectralDictionaryLearning(N, random_state=seed).fit(data.samples) for _ in range(2))
        np.testing.assert_array_equal(one.components_, two.components_)
        np.testing.assert_array_equal(one.certificates_, two.certificates_)

    def test_moments_alone(self, seed):
        data = draw(seed, m=60_000)
        model = quietly(SpectralDictionaryLearning(N, refine=False, random_state=seed), data.samples)
        streamed = SpectralDictionaryLearning(N, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for part in np.array_split(data.samples, 3):
                streamed.partial_fit(part)
        for each in (model, streamed):
            assert match(data.components, each.components_).found(0.9) >= N - 2
            assert each.transform(data.samples[:10]).shape == (10, N)


class TestCount:
    @pytest.mark.parametrize(("d", "n", "least"), [(5, 8, 7), (6, 9, 8), (8, 12, 12)])
    def test_few_features(self, seed, d, n, least):
        """The first d eigenvectors are nearly full of orthogonal axes in few dimensions; the drop comes after n."""
        data = nice_samples(30_000, n, d, p=1.2 / n, coefficients="gaussian", random_state=seed)
        model = quietly(SpectralDictionaryLearning(random_state=seed), data.samples)
        frame = Covariance().update(data.samples).frame()
        U = model.components_ @ frame.forward
        squared = (U @ true_atoms(data, frame).T) ** 2 / np.sum(U * U, axis=1)[:, None]
        assert np.all(model.certificates_ <= np.max(squared, axis=1) + 1e-9)
        assert least <= model.n_components_ <= n


class TestSources:
    def test_more_sources_than_sensors(self, seed):
        data = draw(seed)
        model = SpectralICA(N, random_state=seed).fit(data.samples)
        assert model.mixing_.shape == (D, N)
        assert match(data.components, model.mixing_.T).found(1 - 1e-9) == N
        sources = model.transform(data.samples)
        np.testing.assert_allclose(np.std(sources, axis=0), 1, atol=0.25)
        np.testing.assert_allclose(model.inverse_transform(sources), data.samples, atol=1e-4)


def test_the_number_may_exceed_the_dimension_of_a_tensor():
    assert quartic.decompose(np.eye(9).reshape(3, 3, 3, 3), 1, random_state=0).rank == 1
