"""The sparse stage: exact dictionaries of exactly sparse data, and no claim of it anywhere else."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from test_lemmas import tilted, unit

from quartic.algorithms import refine
from quartic.algorithms.refine import atoms_of, iterated, orthogonal, sparse, statistics
from quartic.datasets import COEFFICIENTS, SUPPORTS, nice_samples, random_orthonormal
from quartic.moments import Covariance

N = 8
ROUNDING = 1e-11  # of a row, at a floor of 1e-12


def problem(m, seed, n=N, mean=None, **options):
    """Whitened samples ``(m, n)``, and the true rows of the unmixing matrix, unit ``(n, n)``."""
    options = {"group": 4, "random_state": seed} | options
    data = nice_samples(m, n, **options)
    Y = data.samples if mean is None else mean(data.codes) @ data.dictionary
    frame = Covariance().update(Y).frame(n)
    return frame.whiten(Y), unit(np.linalg.inv(data.dictionary @ frame.forward).T)


def error(found, truth):
    """Largest distance of a row from its true one, up to sign."""
    sign = np.where(np.sum(found * truth, axis=1) < 0, -1.0, 1.0)
    return float(np.max(np.linalg.norm(found - sign[:, None] * truth, axis=1)))


CASES = [
    (supports, coefficients, p)
    for supports in SUPPORTS
    for coefficients in COEFFICIENTS
    for p in (0.05, 0.1, 0.2, 0.3, 0.4)
    if not (supports == "exclusive" and p > 0.25) and not (coefficients == "laplace" and p > 0.3)
]


class TestExact:
    @pytest.mark.parametrize(("supports", "coefficients", "p"), CASES)
    def test_from_afar(self, supports, coefficients, p, seed, rng):
        """Squared correlation 0.8 to 0.95 to begin with, rounding in the end.

        The sparser, the larger an active signal, and what leaks of it into other rows.
        """
        options = {} if supports in ("independent", "exclusive") else {"cooccurrence": max(0.3, p)}
        Z, truth = problem(3000, seed, supports=supports, coefficients=coefficients, p=p, **options)
        near = 0.95 if p < 0.1 or supports == "exclusive" else 0.9 if p < 0.2 else 0.8
        found = sparse(Z, tilted(truth, near, rng))
        assert found.exact(1e-12)
        assert error(found.W, truth) < ROUNDING
        np.testing.assert_allclose(np.linalg.norm(found.W, axis=1), 1, atol=1e-12)

    @pytest.mark.parametrize("coefficients", COEFFICIENTS)
    def test_the_truth_stays(self, coefficients, seed):
        Z, truth = problem(2000, seed, coefficients=coefficients)
        found = sparse(Z, truth)
        assert found.exact(1e-12)
        assert error(found.W, truth) < ROUNDING

    def test_what_it_reports(self, seed, rng):
        Z, truth = problem(3000, seed)
        found = sparse(Z, tilted(truth, 0.9, rng))
        S = Z @ found.W.T + found.offset
        active = np.abs(S) > 1e-9
        together = active[:, :, None] & ~active[:, None, :]  # (m, i, j): i is active, and j is not
        np.testing.assert_array_equal(found.separated, np.min(together.sum(axis=0) + 3000 * np.eye(N), axis=0))
        np.testing.assert_allclose(active.mean(axis=0), 0.1, atol=6 * np.sqrt(0.1 / 3000))
        assert np.max(np.abs(S[~active])) < 1e-11
        assert np.all(found.residual < 1e-12)
        assert 1 < found.rounds < 40

    @pytest.mark.parametrize("count", [2, 40])
    def test_two_atoms_that_are_hardly_ever_apart(self, rng, count):
        """One of them is idle where the other is active in two samples only: nothing tells that they are two."""
        codes = (rng.random((3000, 4)) < 0.2) * rng.standard_normal((3000, 4))
        apart = np.flatnonzero((codes[:, 0] == 0) & (codes[:, 1] != 0))
        codes[apart[count:], 1] = 0
        Z = codes / np.sqrt(np.mean(codes**2, axis=0))
        found = sparse(Z, np.eye(4))
        assert found.exact(1e-12) == (count > 10)

    @pytest.mark.parametrize("coefficients", ["gaussian", "laplace"])
    def test_codes_that_are_not_centred(self, coefficients, seed, rng):
        """Codes of one sign: their mean is not the point that they are sparse about, and the offset finds it."""
        options = {"coefficients": coefficients, "p": 0.2, "random_state": seed}
        data = nice_samples(3000, N, **options)
        codes = np.abs(data.codes)
        Y = codes @ data.dictionary + 5.0
        frame = Covariance().update(Y).frame(N)
        truth = unit(np.linalg.inv(data.dictionary @ frame.forward).T)
        Z = frame.whiten(Y)
        found = sparse(Z, tilted(truth, 0.95, rng))
        assert found.exact(1e-12)
        S = Z @ found.W.T + found.offset
        scale = np.sum(S * codes, axis=0) / np.sum(codes**2, axis=0)
        np.testing.assert_allclose(S, codes * scale, atol=1e-10)
        assert np.max(np.abs(found.offset)) > 0.1

    def test_in_chunks(self, seed, rng, monkeypatch):
        Z, truth = problem(2000, seed)
        start = tilted(truth, 0.9, rng)
        one = sparse(Z, start)
        monkeypatch.setattr(refine, "rows_in_a_chunk", lambda n, dtype: 300)
        other = sparse(Z, start)
        assert error(other.W, one.W) < ROUNDING  # any sign: the equations are singular, to rounding
        np.testing.assert_array_equal(other.separated, one.separated)

    def test_single_precision_samples(self, seed, rng):
        """As exact as they are themselves, with the floor that belongs to them."""
        data = nice_samples(3000, N, dtype=np.float32, random_state=seed)
        frame = Covariance().update(data.samples).frame(N)
        truth = unit(np.linalg.inv(data.dictionary @ frame.forward).T)
        floor = 1e-5
        found = sparse(frame.whiten(data.samples, np.float64), tilted(truth, 0.9, rng), floor)
        assert found.exact(floor)
        assert not found.exact(1e-10)
        assert error(found.W, truth) < 1e-4


class TestNotExact:
    @pytest.mark.parametrize("m", [500, 5000])
    def test_gaussian_samples(self, m, rng):
        Z = rng.standard_normal((m, N))
        found = sparse(Z, random_orthonormal(N, N, rng))
        assert not found.exact(1e-6)
        assert np.all(np.isfinite(found.W))

    @pytest.mark.parametrize("law", ["laplace", "uniform", "exponential", "standard_normal"])
    def test_signals_without_mass_at_zero_are_seen_at_once(self, law, rng):
        """Spread evenly below the threshold: what is left of one is ``t / sqrt(3)``, at any threshold."""
        S = getattr(rng, law)(size=(3000, N))
        frame = Covariance().update(S).frame(N)
        found = sparse(frame.whiten(S), unit(np.linalg.inv(frame.forward)))
        assert found.rounds <= refine.IMPROVED
        assert not found.exact(1e-6)

    @pytest.mark.parametrize("snr", [60, 20])
    def test_noisy_samples(self, snr, seed):
        """Thresholds fall below the noise, inactive samples get few, and it ends there: not exactly sparse."""
        Z, truth = problem(3000, seed, snr=snr, dictionary="orthonormal")
        found = sparse(Z, truth)
        assert not found.exact(1e-12)
        noise = np.sqrt(N * 0.1 / N) * 10 ** (-snr / 20) / np.sqrt(0.1)  # of a whitened signal
        assert not found.exact(0.3 * noise)

    @pytest.mark.parametrize("m", [N, N + 1, 2 * N, 3 * N])
    @pytest.mark.parametrize("kind", ["gaussian", "sparse"])
    def test_hardly_more_samples_than_dimensions(self, m, kind, rng):
        """Some n samples can be made inactive in any data."""
        Z = rng.standard_normal((m, N)) if kind == "gaussian" else (rng.random((m, N)) < 0.3) * rng.laplace(size=(m, N))
        assert not sparse(Z, random_orthonormal(N, N, rng)).exact(1e-6)

    @pytest.mark.parametrize("coefficients", COEFFICIENTS)
    @pytest.mark.parametrize("p", [0.03, 0.05, 0.1])
    @pytest.mark.parametrize("m", [100, 200, 400, 3000])
    def test_never_exact_and_wrong(self, m, p, coefficients, seed, rng):
        """Few or very sparse samples: a row may be orthogonal to all idle samples because an atom is missing there.

        Or because it is a sum of two, which cancel in samples where both are active with opposite signs.
        """
        wrong = []
        for k in range(3):
            try:
                Z, truth = problem(m, 100 * seed + k, coefficients=coefficients, p=p, supports="blocks")
            except np.linalg.LinAlgError:  # an atom that never occurs
                continue
            for squared in (0.8, 0.95):
                found = sparse(Z, tilted(truth, squared, rng))
                nearest = np.max((found.W @ truth.T) ** 2, axis=1)
                wrong.append(found.exact(1e-12) and np.min(nearest) < 1 - 1e-9)
        assert not any(wrong)

    def test_two_rows_at_one_atom_are_not_exact(self, seed):
        """Two starts near one row: whatever they converge to, it is no dictionary."""
        Z, truth = problem(3000, seed)
        start = truth.copy()
        start[1] = unit(start[0] + 0.1 * start[1])
        found = sparse(Z, start)
        matched = np.argmax((found.W @ truth.T) ** 2, axis=1)
        assert not found.exact(1e-12) or np.unique(matched).size == N


def test_after_the_orthogonal_stage(seed):
    """As they follow each other: from random noise on the truth to the exact dictionary."""
    Z, truth = problem(3000, seed, supports="blocks", coefficients="gaussian")
    rng = np.random.default_rng(seed)
    half = np.arange(3000) % 2
    start = np.linalg.qr(tilted(truth, 0.8, rng).T)[0].T
    chunks = [(h, Z[half == h], np.ones(1500)) for h in (0, 1)]
    (W,), _, _ = iterated(partial(statistics, chunks), np.eye(N), 30, orthogonal(start))
    found = sparse(Z, W)
    assert found.exact(1e-12)
    assert error(atoms_of(found.W), atoms_of(truth)) < 1e-9
