"""The fast, factored forms against the literal reading of the paper in ``literal.py``."""

from __future__ import annotations

import literal
import numpy as np
import pytest

import quartic
from quartic._arrays import pack, pack_rank_one, packed_dim, unpack
from quartic.algorithms.contract import candidates, contract, rectangular_projections
from quartic.algorithms.postprocess import evaluate, postprocess
from quartic.algorithms.project import mode_3_ball, mode_4_ball, project, psd_cone, spectral_ball
from quartic.algorithms.recover import deflate_span, polar, recover
from quartic.algorithms.truncate import leading_spectrum, truncate
from quartic.datasets import ERRORS, planted_tensor, random_orthonormal
from quartic.tensors.combine import deflate
from quartic.tensors.factored import FactoredTensor
from quartic.tensors.packed import PackedTensor

SEEDS = range(3)
seeds = pytest.mark.parametrize("seed", SEEDS)
families = pytest.mark.parametrize("error", list(ERRORS))


def random_factored(d: int, k: int, rng: np.random.Generator) -> FactoredTensor:
    """Orthonormal ``U_k`` and weights of either sign, so large that both clippings are active."""
    U = np.linalg.qr(rng.standard_normal((packed_dim(d), k)))[0]
    return FactoredTensor(rng.uniform(0.5, 2.5, k) * rng.choice([-1.0, 1.0], k), U)


def exact_truncation(T: PackedTensor, n: int, eps: float, seed: int) -> FactoredTensor:
    """Algorithm 4.1 by the library, with residuals at rounding."""
    rng = np.random.default_rng(seed)
    return truncate(leading_spectrum(T, n + 4, rng=rng, wanted=lambda values: n, tolerance=1e-12), eps)


def ball(modes):
    """The projection to the tensors whose reshaping has spectral norm at most 1, literally."""
    return lambda T: literal.fold(literal.clip_singular_values(literal.reshape(T, modes)), modes)


def positive(T: np.ndarray) -> np.ndarray:
    """The projection to the tensors whose square reshaping is positive semidefinite, literally."""
    return literal.fold(literal.positive_part(literal.reshape(T)))


def projected(T: FactoredTensor) -> np.ndarray:
    """``sum_k lam_k U_k (x) (Q U_k P)``, steps 1 and 2 of Algorithm 4.3 by the library."""
    return np.einsum("kij,kab->ijab", T.matrices, rectangular_projections(T).matrices)


def squared_correlations(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Squared correlations of two sets of the same size, matched up to order and sign."""
    assert A.shape == B.shape
    return quartic.metrics.match(A, B).squared


# --- the space Sym2 ----------------------------------------------------------------------------------------------


@seeds
def test_packing_is_an_isometry(seed):
    """``<pack X, pack Y> = <X, Y>_F`` for symmetric matrices, and ``pack`` is invertible on them."""
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((2, 4, 7, 7))
    X, Y = X + X.transpose(0, 2, 1), Y + Y.transpose(0, 2, 1)
    np.testing.assert_allclose(pack(X).T @ pack(Y), np.einsum("aij,bij->ab", X, Y), atol=1e-12)
    np.testing.assert_allclose(unpack(pack(X)), X, atol=1e-14)
    b = rng.standard_normal((3, 7))
    np.testing.assert_allclose(unpack(pack_rank_one(b)), b[:, :, None] * b[:, None, :], atol=1e-14)


@seeds
@families
def test_packed_operator_has_the_spectrum_of_the_flattening(error, seed):
    """The packed matrix is the flattening {12}{34} on Sym2, and zero is all there is beside it."""
    p = planted_tensor(6, 4, 0.4, error, random_state=seed)
    packed = np.linalg.eigvalsh(p.packed)
    full = np.linalg.eigvalsh(literal.reshape(p.tensor))
    antisymmetric = np.zeros(6 * 6 - packed_dim(6))
    np.testing.assert_allclose(full, np.sort(np.concatenate((packed, antisymmetric))), atol=1e-12)
    T = PackedTensor.from_dense(p.tensor)
    np.testing.assert_allclose(T.to_packed(), p.packed, atol=1e-13)
    np.testing.assert_allclose(T.to_dense(), p.tensor, atol=1e-13)


@seeds
def test_pair_symmetry_fixes_the_signal_and_never_increases_the_error(seed):
    """Projecting to pair-symmetric tensors: ``S`` stays, and no error without any symmetry grows."""
    rng = np.random.default_rng(seed)
    d = 6
    S = literal.rank_one(random_orthonormal(d, 4, rng))
    gaussian = rng.standard_normal((d, d, d, d))
    x, y = rng.standard_normal((2, d * d))
    errors = {
        "gaussian": gaussian,
        "orthogonal": literal.fold(np.linalg.qr(literal.reshape(gaussian))[0]),
        "rank one": literal.fold(np.outer(x, y)),
        "swap of modes 1 and 2": literal.fold(np.eye(d * d)).transpose(1, 0, 2, 3),
    }
    for name, E in errors.items():
        projection = PackedTensor.from_dense(S + E).to_dense()
        np.testing.assert_allclose(projection, literal.symmetrise_pairs(S + E), atol=1e-13)
        np.testing.assert_allclose(literal.symmetrise_pairs(S), S, atol=1e-14)
        assert literal.norm(projection - S) <= literal.norm(E) * (1 + 1e-12), name
    # The swap acts on Sym2 as the identity does: there the bound is attained.
    swap = errors["swap of modes 1 and 2"]
    assert literal.norm(literal.symmetrise_pairs(swap)) == pytest.approx(literal.norm(swap))


@pytest.mark.parametrize("d", [3, 5, 8])
def test_averaging_over_all_permutations_is_not_safe(d):
    """The average of ``eps Id`` over all 24 permutations has norm ``eps (d + 2) / 3``, on the direction ``vec(I)``."""
    eps = 0.1
    E = literal.fold(eps * np.eye(d * d))
    average = literal.symmetrise_all(E)
    assert literal.norm(average) == pytest.approx(eps * (d + 2) / 3, rel=1e-12)
    direction = np.eye(d).ravel() / np.sqrt(d)
    assert direction @ literal.reshape(average) @ direction == pytest.approx(eps * (d + 2) / 3, rel=1e-12)
    assert literal.norm(literal.symmetrise_pairs(E)) == pytest.approx(eps, rel=1e-12)


# --- Algorithm 4.1 -----------------------------------------------------------------------------------------------


@seeds
@families
@pytest.mark.parametrize("eps", [0.05, 0.3])
def test_truncation(error, eps, seed):
    """``truncate`` of the leading Ritz pairs is ``(T - eps Id)_+``."""
    p = planted_tensor(7, 5, eps, error, random_state=seed)
    fast = exact_truncation(PackedTensor.from_dense(p.tensor), 5, eps, seed)
    np.testing.assert_allclose(fast.to_dense(), literal.preprocess(p.tensor, eps), atol=1e-7)


# --- Algorithm 4.3 -----------------------------------------------------------------------------------------------


@seeds
@pytest.mark.parametrize(("d", "k"), [(5, 3), (7, 7), (6, 12)])
def test_rectangular_projections(d, k, seed):
    """``sum_k lam_k U_k (x) (Q U_k P)`` is the tensor whose two reshapings have been clipped by full SVDs."""
    T = random_factored(d, k, np.random.default_rng(seed))
    sided, dense = rectangular_projections(T), T.to_dense()
    if k >= d:  # neither clipping is idle
        assert np.linalg.eigvalsh(sided.P)[0] < 0.9
        assert np.linalg.eigvalsh(sided.Q)[0] < 0.999
    np.testing.assert_allclose(np.einsum("ijka,ab->ijkb", dense, sided.P), ball(literal.MODE_4)(dense), atol=1e-12)
    np.testing.assert_allclose(projected(T), literal.project(dense), atol=1e-12)


@seeds
@families
def test_rectangular_projections_of_a_truncation(error, seed):
    """The same on what Algorithm 4.1 leaves, where the weights are near 1."""
    p = planted_tensor(7, 6, 0.4, error, weights=np.full(6, 1.5), random_state=seed)
    T = exact_truncation(PackedTensor(p.packed), 6, 0.4, seed)
    assert np.linalg.eigvalsh(rectangular_projections(T).P)[0] < 0.999
    np.testing.assert_allclose(projected(T), literal.project(T.to_dense()), atol=1e-12)


@seeds
@pytest.mark.parametrize(("d", "k"), [(5, 4), (6, 9)])
def test_contraction(d, k, seed):
    """``contract`` is ``M_g`` for every ``g = sum_k h_k U_k + anything orthogonal to the U_k``."""
    rng = np.random.default_rng(seed)
    T = random_factored(d, k, rng)
    fast = contract(T, 3, np.random.default_rng(seed))
    h = np.random.default_rng(seed).standard_normal((k, 3), dtype=np.float32).astype(float)  # the same draws
    tensor = literal.project(T.to_dense())
    for c in range(3):
        rest = rng.standard_normal((d, d))  # its antisymmetric part is orthogonal to every U_k as well
        rest -= np.einsum("k,kij->ij", np.einsum("kij,ij->k", T.matrices, rest), T.matrices)
        g = np.einsum("k,kij->ij", h[:, c], T.matrices) + rest
        np.testing.assert_allclose(fast[c], literal.contract(tensor, g), atol=1e-11)


@seeds
def test_contraction_is_distributed_as_with_a_gaussian(seed):
    """``E[M_g (x) M_g]`` is the same for ``h`` in ``R^k`` and ``g`` in ``R^(d^2)``."""
    d, count = 4, 40_000
    T = random_factored(d, 3, np.random.default_rng(seed))
    M = contract(T, count, np.random.default_rng(seed)).reshape(count, d * d)
    flat = literal.reshape(literal.project(T.to_dense()))  # rows g, columns M_g
    exact = flat.T @ flat
    # Each entry is a mean of products of Gaussians: its variance is at most 2 v^2 / count, v the largest variance.
    sigma = np.sqrt(2 / count) * np.max(np.diag(exact))
    assert np.max(np.abs(M.T @ M / count - exact)) < 6 * sigma


@seeds
def test_candidates_without_error(seed):
    """Without error every eigenvector of ``M_g`` is a component, as Jennrich has it, or orthogonal to all of them."""
    p = planted_tensor(6, 4, 0.0, random_state=seed)
    T = FactoredTensor.from_components(np.ones(4), p.components)
    found = candidates(contract(T, 1, np.random.default_rng(seed)), 6) @ p.components.T
    np.testing.assert_allclose(np.sort(np.sum(found**2, axis=1)), [0, 0, 1, 1, 1, 1], atol=1e-9)
    np.testing.assert_allclose(np.max(found**2, axis=0), 1, atol=1e-9)


# --- Algorithm 4.8 -----------------------------------------------------------------------------------------------


@seeds
@families
def test_postprocessing(error, seed):
    """One pass of ``postprocess`` is Algorithm 4.8, and ``evaluate`` gives the number of its acceptance test."""
    eps = 0.05
    p = planted_tensor(7, 5, eps, error, random_state=seed)
    rng = np.random.default_rng(seed)
    w = rng.standard_normal((5, 7))
    w -= np.sum(w * p.components, axis=1, keepdims=True) * p.components
    B = np.sqrt(0.99) * p.components + 0.1 * w / np.linalg.norm(w, axis=1, keepdims=True)
    T = PackedTensor.from_dense(p.tensor)
    fast = postprocess(T, B)
    evaluation = evaluate(T, fast)
    for i in range(5):
        slow = literal.postprocess(p.tensor, B[i], eps)
        assert slow is not None
        assert (slow @ fast[i]) ** 2 > 1 - 1e-12
        image = np.einsum("ijkl,k,l->ij", p.tensor, fast[i], fast[i])
        np.testing.assert_allclose(unpack(evaluation.packed)[i], image, atol=1e-12)
        assert evaluation.values[i] == pytest.approx(literal.value(p.tensor, fast[i]), abs=1e-12)
        assert evaluation.lengths[i] == pytest.approx(np.linalg.norm(image), abs=1e-12)


def test_postprocessing_rejects_what_is_no_component():
    """An even mixture of two components is a fixed point of step 2, and only the acceptance test rejects it."""
    A = np.eye(4)
    mixture = (A[0] + A[1]) / np.sqrt(2)
    T = literal.rank_one(A) + literal.fold(0.01 * np.outer(*2 * [np.outer(mixture, mixture).ravel()]))
    assert literal.postprocess(T, mixture, 0.01) is None
    assert literal.postprocess(T, A[0], 0.01) is not None


# --- Algorithm 4.11 ----------------------------------------------------------------------------------------------


@seeds
def test_polar_is_the_corrected_step_b(seed):
    """``polar`` is ``U V'`` for the rows ``B = U Sigma V'``."""
    B = np.random.default_rng(seed).standard_normal((4, 7))
    np.testing.assert_allclose(polar(B), literal.orthonormalise(B), atol=1e-10)


@seeds
def test_deflation(seed):
    """``deflate`` is step (e); on a span, the part orthogonal to the ``b b'`` is left."""
    rng = np.random.default_rng(seed)
    p = planted_tensor(6, 5, 0.2, random_state=seed)
    B, w = random_orthonormal(6, 3, rng), rng.standard_normal(3)
    slow = p.tensor - literal.rank_one(B, w)
    np.testing.assert_allclose(deflate(PackedTensor(p.packed), w, B).to_dense(), slow, atol=1e-12)
    # The span of all components, in a basis that does not show them.
    U = pack_rank_one(p.components) @ random_orthonormal(5, 5, rng)
    left = deflate_span(FactoredTensor(np.ones(5), U), p.components[:2])
    assert left.rank == 3
    np.testing.assert_allclose(left.to_dense(), literal.rank_one(p.components[2:]), atol=1e-12)


@seeds
@families
def test_recovery(error, seed):
    """``recover`` and ``decompose`` find the components that Algorithm 4.11 finds, up to order and sign.

    Lemma 4.9 allows each of them a squared sine of ``3 eps``; what is asserted is the sharper ``(4 eps)^2``.
    """
    d, n, eps = 6, 4, 0.03
    p = planted_tensor(d, n, eps, error, random_state=seed)
    slow = literal.decompose(p.tensor, n, eps, np.random.default_rng(seed))
    result = quartic.decompose(p.tensor, rank=n, eps=eps, random_state=seed)
    span = FactoredTensor(np.ones(n), np.linalg.eigh(p.packed)[1][:, -n:])
    rough = recover(span, np.random.default_rng(seed))
    for found in (slow, result.components, rough):
        assert np.all(squared_correlations(p.components, found) > 1 - (2 * eps) ** 2)
        assert np.all(squared_correlations(slow, found) > 1 - (4 * eps) ** 2)
    np.testing.assert_allclose(slow @ slow.T, np.eye(n), atol=20 * eps**2)


# --- the general scheme ------------------------------------------------------------------------------------------


@seeds
@families
def test_general_scheme(error, seed):
    """Projections to convex sets that hold ``S``, one after the other: each step is no farther from ``S``.

    The shift by ``eps`` before the first of them is not a projection; Lemma 4.2 answers for it.  The fast form of
    the whole sequence is ``truncate`` followed by ``P`` and ``Q``.
    """
    n, eps = 5, 0.3
    p = planted_tensor(7, n, eps, error, random_state=seed)
    S = literal.rank_one(p.components)
    sets = [positive, ball(literal.MODE_4), ball(literal.MODE_3)]
    shifted = p.tensor - literal.fold(eps * np.eye(49))
    steps = literal.project_in_sequence(shifted, sets)
    distances = [np.linalg.norm(T - S) for T in (shifted, *steps)]
    assert np.all(np.diff(distances) <= 1e-12)
    assert distances[1] < distances[0]
    np.testing.assert_allclose(projected(exact_truncation(PackedTensor(p.packed), n, eps, seed)), steps[-1], atol=1e-7)


@seeds
def test_projections_of_a_factored_tensor(seed):
    """Each projection of ``project.py``, alone and in sequence, against full decompositions of the reshapings."""
    T = random_factored(6, 8, np.random.default_rng(seed))
    dense = T.to_dense()

    def opened(sided):
        return np.einsum("kij,kab->ijab", T.matrices, sided.matrices)

    np.testing.assert_allclose(psd_cone(T).to_dense(), positive(dense), atol=1e-12)
    np.testing.assert_allclose(spectral_ball(T).to_dense(), ball(literal.PAIRS)(dense), atol=1e-12)
    np.testing.assert_allclose(opened(mode_4_ball(T)), ball(literal.MODE_4)(dense), atol=1e-12)
    np.testing.assert_allclose(opened(mode_3_ball(T)), ball(literal.MODE_3)(dense), atol=1e-12)
    sets = (spectral_ball, psd_cone, mode_3_ball, mode_4_ball)
    slow = (ball(literal.PAIRS), positive, ball(literal.MODE_3), ball(literal.MODE_4))
    np.testing.assert_allclose(opened(project(T, *sets)), literal.project_in_sequence(dense, slow)[-1], atol=1e-12)
    # Lemma 4.5: the second clipping leaves the first one done, so a third changes nothing.
    twice = project(T, mode_4_ball, mode_3_ball)
    np.testing.assert_allclose(opened(mode_4_ball(twice)), opened(twice), atol=1e-12)
