"""The certificate is never above the truth, whatever the error does, and there are errors that attain it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import quartic
from quartic._arrays import pack_rank_one
from quartic.algorithms.certify import (
    angle_bound,
    certificates,
    contradicted,
    coordinates,
    correlation_from_energy,
    is_certified,
    residual_bound,
    span_bound,
    tilt_error,
)
from quartic.algorithms.postprocess import evaluate, postprocess
from quartic.algorithms.truncate import Spectrum, leading_spectrum
from quartic.datasets import ERRORS, planted_tensor, random_orthonormal
from quartic.tensors.packed import PackedTensor

SEEDS = range(3)
# The residual ||T(uu')||^2 - v^2 is a difference of squares: its root is rounded at 1e-8.
ROUNDING = 1e-7
seeds = pytest.mark.parametrize("seed", SEEDS)
families = pytest.mark.parametrize("error", list(ERRORS))
levels = pytest.mark.parametrize("eps", [0.01, 0.1, 0.3, 0.5, 0.7])
WEIGHTS = {
    "equal": np.ones(5),
    "unequal": np.array([3.0, 1.5, 1.0, 0.7, 0.3]),
    "signed": np.array([2.0, -1.0, 1.0, -0.5, 0.8]),
}
weightings = pytest.mark.parametrize("weights", list(WEIGHTS))


def unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def truth(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """``max_i <b, a_i>^2`` for each row of ``B``."""
    return np.max((B @ A.T) ** 2, axis=1)


def energy(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """``G = sum_i <b, a_i>^4`` for each row of ``B``."""
    return np.sum((B @ A.T) ** 4, axis=1)


def exact_spectrum(T: np.ndarray) -> Spectrum:
    """All eigenpairs of a packed tensor, the largest first, as if a Krylov iteration had converged to rounding."""
    values, vectors = np.linalg.eigh(T)
    N = values.size
    return Spectrum(values[::-1], vectors[:, ::-1], np.zeros(N), np.zeros((N, N)), 1, True)


def candidates(A: np.ndarray, T: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Good, bad and indifferent: components, near ones, mixtures of two and of all, random, and what T prefers."""
    n, d = A.shape
    t = rng.uniform(0, 1, (20, 1))
    i, j = rng.integers(n, size=(2, 20))
    mixtures = np.sqrt(t) * A[i] + np.sqrt(1 - t) * A[(i + 1 + j % (n - 1)) % n]
    anything = unit(rng.standard_normal((20, d)))
    near = unit(A + 0.3 * rng.standard_normal((n, d)) / np.sqrt(d))
    # Local maxima of <T, u^(x4)>: with a large error they are not components, and they look like them to T.
    preferred = postprocess(PackedTensor(T), np.concatenate((anything, mixtures)), passes=8)
    return np.concatenate((A, unit(A.sum(axis=0, keepdims=True)), near, mixtures, anything, unit(preferred)))


def check(T: np.ndarray, A: np.ndarray, eps: float, B: np.ndarray, spectra, ranks) -> None:
    """No bound, alone or with the others, exceeds the truth for any row of ``B``."""
    G, best = energy(A, B), truth(A, B)
    evaluation = evaluate(PackedTensor(T), B)
    assert np.all(residual_bound(evaluation.scores, evaluation.lengths, eps) <= G + ROUNDING)
    assert np.all(certificates(eps, B, evaluation=evaluation) <= best + ROUNDING)
    for spectrum in spectra:
        for rank in ranks:
            c = coordinates(spectrum, rank, B)
            for mu in (0.0, eps / 2, 2 * eps, 1.0):
                assert np.all(span_bound(spectrum, eps, c, mu) <= G + ROUNDING)
            assert np.all(certificates(eps, B, (spectrum, rank), evaluation) <= best + ROUNDING)


def loose(T: np.ndarray, width: int, seed: int, tolerance: float) -> Spectrum:
    """A spectrum whose iteration was stopped early: its residuals have to answer for that."""
    rng = np.random.default_rng(seed)
    return leading_spectrum(PackedTensor(T), width, rng=rng, wanted=lambda _: width - 2, tolerance=tolerance)


# --- from the energy to the correlation --------------------------------------------------------------------------


@seeds
def test_correlation_from_energy(seed):
    """``max_i t_i`` is at least the bound for every ``t >= 0`` of sum at most 1."""
    rng = np.random.default_rng(seed)
    for concentration in (0.02, 0.1, 0.5, 2.0):
        for size in (2, 3, 8):
            t = rng.dirichlet(np.full(size, concentration), 500) * rng.uniform(0.5, 1, (500, 1)) ** 0.3
            bound = correlation_from_energy(np.sum(t**2, axis=1))
            assert np.all(bound <= np.max(t, axis=1) + 1e-12)


def test_correlation_from_energy_is_attained():
    """By two components from ``G = 1/2`` on, and by ``k`` equal ones at ``G = 1/k``."""
    t = np.linspace(0.5, 1, 50)
    np.testing.assert_allclose(correlation_from_energy(t**2 + (1 - t) ** 2), t, atol=1e-7)
    k = np.arange(1, 9)
    np.testing.assert_allclose(correlation_from_energy(1 / k), 1 / k, atol=1e-12)
    G = np.linspace(0, 1, 1001)
    assert np.all(np.diff(correlation_from_energy(G)) >= 0)


# --- the two bounds on the energy --------------------------------------------------------------------------------


@seeds
def test_angle_bound_is_the_triangle_inequality(seed):
    """The angle of ``x`` with a subspace is at most that of ``x`` with ``y`` plus that of ``y`` with the subspace."""
    rng = np.random.default_rng(seed)
    for d, k in ((2, 1), (3, 1), (6, 3)):
        x, y = unit(rng.standard_normal((2, 500, d)))
        y = unit(x + rng.uniform(0, 1.5, (500, 1)) * y)
        F, leak = np.sum(x * y, axis=1) ** 2, np.linalg.norm(y[:, k:], axis=1)
        assert np.all(angle_bound(F, leak) <= np.sum(x[:, :k] ** 2, axis=1) + ROUNDING)


def test_angle_bound_is_attained_in_a_plane():
    """Angles add up exactly when the three directions lie in one plane; beyond a right angle nothing is left."""
    angle, tilt = np.meshgrid(np.linspace(0, np.pi / 2, 20), np.linspace(0, np.pi / 2 - 1e-3, 20))
    bound = angle_bound(np.cos(angle) ** 2, np.sin(tilt))
    expected = np.where(angle + tilt < np.pi / 2, np.cos(angle + tilt) ** 2, 0.0)
    np.testing.assert_allclose(bound, expected, atol=1e-9)
    np.testing.assert_array_equal(angle_bound(np.ones(3), np.array([1.0, 2.0, np.inf])), 0.0)


@seeds
def test_reported_residuals_are_the_true_ones(seed):
    """``gram`` is ``R' R`` for ``R = T V - V diag(lam)``, also of an iteration that was stopped early."""
    T = planted_tensor(8, 5, 0.4, random_state=seed).packed
    for tolerance in (1.0, 0.1, 1e-3):
        spectrum = loose(T, 7, seed, tolerance)
        V = spectrum.vectors
        np.testing.assert_allclose(V.T @ V, np.eye(7), atol=1e-9)
        R = T @ V - V * spectrum.values[:7]
        np.testing.assert_allclose(spectrum.gram, R.T @ R, atol=1e-9)
        np.testing.assert_allclose(spectrum.residuals, np.linalg.norm(R, axis=0), atol=1e-7)
        assert tolerance < 1 or np.max(spectrum.residuals) > 0.05


# --- never above the truth ---------------------------------------------------------------------------------------


@seeds
@families
@pytest.mark.parametrize("eps", [0.01, 0.3, 0.7])
@weightings
def test_never_above_the_truth(weights, eps, error, seed):
    """Every family of errors, every size of error, any weights, good and bad candidates, spans right and wrong."""
    p = planted_tensor(6, 5, eps, error, random_state=seed)
    B = pack_rank_one(p.components)
    T = (B * WEIGHTS[weights]) @ B.T + p.error
    spectra = exact_spectrum(T), loose(T, 8, seed, 0.5)
    check(T, p.components, eps, candidates(p.components, T, np.random.default_rng(seed)), spectra, ranks=(1, 3, 5, 8))


@seeds
@pytest.mark.parametrize("eps", [0.0, 0.1, 0.5])
def test_never_above_the_truth_on_any_span(eps, seed):
    """``V`` need not be close to eigenvectors, nor ``lam`` to Ritz values: the residual block answers for all of it.

    The spans hold wrong candidates exactly, ``F = 1``, which is what an iteration that has gone astray might report.
    """
    rng = np.random.default_rng(seed)
    p = planted_tensor(6, 5, eps, random_state=seed)
    wrong = np.concatenate((unit(rng.standard_normal((3, 6))), unit(p.components[:2] + p.components[2:4])))
    V = np.linalg.qr(np.concatenate((pack_rank_one(wrong), rng.standard_normal((21, 3))), axis=1))[0]
    for lam in (np.einsum("ij,ij->j", V, p.packed @ V), np.ones(8), rng.uniform(0.5, 2, 8), np.full(8, 100.0)):
        R = p.packed @ V - V * lam
        spectrum = Spectrum(lam, V, np.linalg.norm(R, axis=0), R.T @ R, 1, False)
        np.testing.assert_allclose(np.sum((V.T @ pack_rank_one(wrong)) ** 2, axis=0), 1, atol=1e-9)  # F
        assert np.all(span_bound(spectrum, eps, coordinates(spectrum, 8, wrong)) < 1)
        B = np.concatenate((wrong, candidates(p.components, p.packed, rng)))
        check(p.packed, p.components, eps, B, (spectrum,), ranks=(5, 8))


def rotations(S: np.ndarray, A: np.ndarray, u: np.ndarray, eps: float):
    """Errors of norm eps that are made for a wrong candidate ``u``: they turn something of ``S`` towards ``uu'``."""
    x = pack_rank_one(u[None])[:, 0]
    B = pack_rank_one(A)
    z = B @ (B.T @ x)
    for start in (B[:, 0], z / np.linalg.norm(z)):
        rest = x - (x @ start) * start
        plane = np.stack((start, rest / np.linalg.norm(rest)), axis=1)
        for angle in np.linspace(0, np.pi, 6):
            c, s = np.cos(angle), np.sin(angle)
            yield eps * plane @ np.array([[c, s], [s, -c]]) @ plane.T  # a reflection of the plane, nothing else
            yield eps * (np.eye(x.size) + plane @ np.array([[c - 1, s], [s, -c - 1]]) @ plane.T)  # and Id outside
    yield eps * np.outer(x, x)  # raises it
    v, residual = x @ S @ x, S @ x - (x @ S @ x) * x
    if np.linalg.norm(residual) > 1e-9:  # cancels as much of the residual as it can
        y = residual / np.linalg.norm(residual)
        yield -eps * (np.outer(x, y) + np.outer(y, x))
        yield eps * (np.sign(v) * (np.outer(x, x) - np.outer(y, y)) - np.outer(x, y) - np.outer(y, x)) / np.sqrt(2)


@seeds
@levels
@weightings
def test_never_above_the_truth_with_errors_made_for_the_candidate(weights, eps, seed):
    """Errors that make the most of one wrong candidate: it may look perfect to ``T``, and is still not overrated."""
    rng = np.random.default_rng(seed)
    w = WEIGHTS[weights][:4]
    A = random_orthonormal(5, 4, rng)
    S = (pack_rank_one(A) * w) @ pack_rank_one(A).T
    wrong = np.concatenate(
        (
            np.sqrt([[0.5], [0.7]]) * A[:1] + np.sqrt([[0.5], [0.3]]) * A[1:2],
            unit(rng.standard_normal((1, 5))),
            unit(A[:1] + 0.5 * rng.standard_normal((1, 5))),
        )
    )
    perfect = 0
    for u in wrong:
        for E in rotations(S, A, u, eps):
            assert np.linalg.norm(E, 2) <= eps * (1 + 1e-9)
            T = S + E
            check(T, A, eps, u[None], (exact_spectrum(T),), ranks=(4,))
            perfect += evaluate(PackedTensor(T), u[None]).scores[0] > 0.99
    if eps >= 0.5 and weights == "equal":
        assert perfect > 0  # T itself cannot tell: uu' is an eigenvector to 1%


@seeds
@families
@pytest.mark.parametrize("eps", [0.01, 0.3, 0.7])
def test_decompose_is_never_above_the_truth(eps, error, seed):
    """The certificates that a user sees, for the eps that holds: right, wrong and unknown rank, unequal weights."""
    for weights, rank in ((None, None), (None, 6), (WEIGHTS["unequal"], None), (WEIGHTS["unequal"], 4)):
        p = planted_tensor(7, 5, eps, error, weights=weights, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", quartic.DecompositionWarning)
            result = quartic.decompose(p.tensor, rank=rank, eps=eps, random_state=seed)
        assert result.eps_assumed == pytest.approx(eps)
        best = truth(p.components, result.components)
        assert np.all(result.certificates <= best + ROUNDING)
        np.testing.assert_array_equal(result.certified, is_certified(result.certificates))
        assert np.all(best[result.certified] > 0.5)


# --- as large as can be ------------------------------------------------------------------------------------------


def two_components(A: np.ndarray, t: float) -> np.ndarray:
    """A vector with squared correlations ``t`` and ``1 - t``."""
    return np.sqrt(t) * A[0] + np.sqrt(1 - t) * A[1]


def between_two(t, seed):
    """A vector ``u`` between two atoms, ``x = uu'``, its projection ``z`` to their span ``B``, and ``m`` beside it."""
    A = random_orthonormal(6, 5, np.random.default_rng(seed))
    B = pack_rank_one(A)
    u = two_components(A, t)
    x = pack_rank_one(u[None])[:, 0]
    theta = np.arccos(np.sqrt(energy(A, u[None])[0]))
    z = B @ (B.T @ x) / np.cos(theta)
    return u, B, x, z, (x - np.cos(theta) * z) / np.sin(theta), theta


@seeds
@pytest.mark.parametrize("w", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("t", [0.55, 0.7, 0.95])
def test_span_certificate_is_attained(t, w, seed):
    """An error for which the span bound is the truth, to rounding: no larger certificate would be right.

    ``uu'`` lies in the plane of its projection ``z`` to the true span and a unit vector ``m`` orthogonal to that span.
    The error ``eps R``, with the reflection ``R`` that takes ``y = cos(phi) z + sin(phi) m`` to ``m``, makes ``y`` an
    eigenvector of ``T`` if ``sin(phi) = eps / w``.  It lies between ``z`` and ``uu'``, so the angles add up.
    """
    u, B, x, z, m, theta = between_two(t, seed)
    for share in (0.3, 0.9):
        phi = share * theta
        eps = w * np.sin(phi)
        if eps >= w / 2:  # y is no longer among the first n eigenvectors
            continue
        y = np.cos(phi) * z + np.sin(phi) * m
        p = (y - m) / np.linalg.norm(y - m)
        T = w * B @ B.T + eps * (np.eye(x.size) - 2 * np.outer(p, p))
        np.testing.assert_allclose(T @ y, w * y, atol=1e-12)
        bound = certificates(eps, u[None], (exact_spectrum(T), 5))[0]
        assert bound == pytest.approx(t, abs=1e-6)
        # For a smaller error than the one that is there the certificate would be wrong.
        assert certificates(0.9 * eps, u[None], (exact_spectrum(T), 5))[0] > t + 1e-3


@seeds
@pytest.mark.parametrize("w", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("t", [0.55, 0.7, 0.95])
def test_residual_certificate_is_attained(t, w, seed):
    """The same for the residual bound: ``uu'`` itself is an eigenvector of ``T``, and ``eps = w sin(theta)``."""
    u, B, x, _, m, theta = between_two(t, seed)
    eps = w * np.sin(theta)
    p = (x - m) / np.linalg.norm(x - m)
    T = w * B @ B.T + eps * (np.eye(x.size) - 2 * np.outer(p, p))
    evaluation = evaluate(PackedTensor(T), u[None])
    assert evaluation.values[0] == pytest.approx(w)
    assert evaluation.scores[0] == pytest.approx(1)
    assert certificates(eps, u[None], evaluation=evaluation)[0] == pytest.approx(t, abs=1e-5)
    assert certificates(0.9 * eps, u[None], evaluation=evaluation)[0] > t + 1e-3


@seeds
@families
@pytest.mark.parametrize(("eps", "least"), [(0.01, 0.999), (0.1, 0.98), (0.3, 0.8)])
def test_good_candidates_are_certified(error, eps, least, seed):
    """Zero is never above the truth either: what ``decompose`` finds has certificates of about ``1 - eps^2 / 2``."""
    p = planted_tensor(8, 5, eps, error, random_state=seed)
    result = quartic.decompose(p.tensor, rank=5, eps=eps, random_state=seed)
    assert np.all(result.certificates >= least)
    assert np.all(result.certified)


@seeds
def test_residuals_of_the_solver_count(seed):
    """An iteration that was stopped after a sweep or two certifies less than one that has converged."""
    p = planted_tensor(8, 5, 0.2, random_state=seed)
    B = postprocess(PackedTensor(p.packed), p.components)
    rough, sharp = (certificates(0.2, B, (loose(p.packed, 7, seed, tolerance), 5)) for tolerance in (2.0, 1e-6))
    assert np.mean(sharp) > 0.9
    assert np.mean(rough) < np.mean(sharp) - 0.1


# --- what certified means ----------------------------------------------------------------------------------------


def test_certified_is_above_one_half():
    np.testing.assert_array_equal(is_certified(np.array([0.4, 0.5, 0.5000001, 1.0])), [False, False, True, True])


@seeds
def test_certified_candidates_that_share_a_component(seed):
    """Two certified candidates share a component only if their angle is below the sum of ``arccos(sqrt(certificate))``.

    So orthogonal ones never do; ones that are 80 degrees apart can, at certificates of 0.587.
    """
    A = random_orthonormal(5, 4, np.random.default_rng(seed))
    T = pack_rank_one(A) @ pack_rank_one(A).T
    turned = np.cos(np.deg2rad(40)) * A[0], np.sin(np.deg2rad(40)) * A[1]
    B = np.stack((turned[0] + turned[1], turned[0] - turned[1]))
    bounds = certificates(0.0, B, (exact_spectrum(T), 4))
    assert np.all(is_certified(bounds))
    assert np.all(np.argmax((B @ A.T) ** 2, axis=1) == 0)
    angle = np.arccos(abs(B[0] @ B[1]))
    assert angle == pytest.approx(np.deg2rad(80))
    assert angle <= np.sum(np.arccos(np.sqrt(bounds))) + 1e-6


class TestTilt:
    """Whether certificates of orthogonal components can all be true."""

    def test_an_error_of_its_own(self, seed):
        """Literally: the norm of the difference of two sums of rank-ones."""
        rng = np.random.default_rng(seed)
        B, weights = rng.standard_normal((5, 8)), rng.uniform(1, 30, 5) * np.array([1, -1, 1, 1, -1])
        B /= np.linalg.norm(B, axis=1, keepdims=True)
        left, _, right = np.linalg.svd((weights**2)[:, None] * B, full_matrices=False)
        both = pack_rank_one(np.concatenate((B, left @ right)))
        difference = (both * np.concatenate((weights, -weights))) @ both.T
        assert tilt_error(B, weights) == pytest.approx(np.linalg.norm(difference, 2))

    def test_nothing_for_orthonormal_rows(self, seed):
        B = random_orthonormal(8, 5, np.random.default_rng(seed))
        assert tilt_error(B, np.arange(1.0, 6.0)) < 1e-6  # the root of rounding
        assert tilt_error(B[:0], np.zeros(0)) == 0

    def test_the_strong_stay(self):
        """A component of weight 30 hardly moves for one of weight 1: less than if both moved alike."""
        angle = 0.1
        B = np.array([[1.0, 0.0], [np.sin(angle), np.cos(angle)]])
        assert tilt_error(B, np.array([30.0, 1.0])) < 2 * angle
        assert tilt_error(B, np.array([30.0, 30.0])) > 30 * angle / 2

    def test_angles_add_up(self):
        B = np.array([[1.0, 0.0, 0.0], [np.sin(0.3), np.cos(0.3), 0.0], [0.0, 0.0, 1.0]])
        bounds = np.cos([0.1, 0.15, 0.0]) ** 2
        assert contradicted(B, bounds, 0.0).tolist() == [True, True, False]
        assert not np.any(contradicted(B, bounds, 0.06))
        assert not np.any(contradicted(B, np.cos([0.15, 0.16, 0.0]) ** 2, 0.0))
        assert not np.any(contradicted(B, np.array([1.0, 0.0, 1.0]), 0.0))  # what is not certified claims nothing

    def test_three_in_a_plane(self):
        """Any two may be within 16 degrees of two axes at a right angle; three axes are near no plane."""
        turns = np.radians([0.0, 60.0, 120.0])
        B = np.column_stack((np.cos(turns), np.sin(turns), np.zeros(3)))
        bounds = np.full(3, np.cos(np.radians(16)) ** 2)
        assert not np.any(contradicted(B[:2], bounds[:2], 0.0))
        assert np.all(contradicted(B, bounds, 0.0))

    @seeds
    @pytest.mark.parametrize("angle", [1e-3, 0.1, 0.3])
    def test_claims_with_some_room_are_believed(self, angle, seed):
        """Near orthonormal vectors, each by its own angle, and half as much again is claimed."""
        rng = np.random.default_rng(seed)
        A = random_orthonormal(12, 9, rng)
        away = rng.standard_normal(A.shape)
        away -= np.sum(away * A, axis=1, keepdims=True) * A
        angles = angle * rng.uniform(0.1, 1, 9)
        B = np.cos(angles)[:, None] * A + np.sin(angles)[:, None] * away / np.linalg.norm(away, axis=1, keepdims=True)
        assert not np.any(contradicted(B, np.cos(1.5 * angles) ** 2, 0.0))

    @seeds
    def test_more_than_dimensions_are_not(self, seed):
        B = np.random.default_rng(seed).standard_normal((6, 4))
        B /= np.linalg.norm(B, axis=1, keepdims=True)
        assert np.any(contradicted(B, np.full(6, 0.7), 0.0))

    @seeds
    @pytest.mark.parametrize("eta", [0.003, 0.03])
    def test_components_that_are_nearly_orthogonal_are_not_taken_for_orthogonal_ones(self, eta, seed):
        """Exact, without an error: only components that are not orthogonal explain it."""
        rng = np.random.default_rng(seed)
        A = random_orthonormal(9, 6, rng) + eta * rng.standard_normal((6, 9))
        A /= np.linalg.norm(A, axis=1, keepdims=True)
        T = PackedTensor(pack_rank_one(A) @ pack_rank_one(A).T)
        for rank in (6, None):
            result = quartic.decompose(T, rank, random_state=seed)
            assert result.status.code == "complete"
            np.testing.assert_allclose(truth(A, result.components), 1, atol=1e-9)
            assert result.eps < 1e-9
