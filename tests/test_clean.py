"""Algorithm 5.4, fast, against the literal reading in ``literal.py``; its bounds are in ``test_section5.py``."""

from __future__ import annotations

import literal
import numpy as np
import pytest

from quartic._arrays import pack, pack_rank_one, packed_dim
from quartic.algorithms.clean import Reshaped, clean
from quartic.datasets import (
    COEFFICIENTS,
    ERRORS,
    SUPPORTS,
    nice_samples,
    planted_tensor,
    population_moment,
    random_orthonormal,
)
from quartic.tensors import FactoredTensor, PackedTensor

D, N = 5, packed_dim(5)
ATOL = 1e-5  # of weights of 1: the eigensolver of `clean` stops at residuals of 1e-6


def on_sym2(T: np.ndarray) -> np.ndarray:
    """The packed matrix of a dense tensor; what it does to antisymmetric matrices is lost."""
    d = T.shape[0]
    half = pack(T.reshape(d * d, d, d))  # (N, d * d)
    return pack(half.reshape(-1, d, d))


def moment(seed: int, supports: str = "blocks", coefficients: str = "sign", d: int = D, **options) -> np.ndarray:
    """A packed population moment with orthonormal atoms, ``E x_i^4 = 1`` for the most frequent."""
    options = {"group": 3, "dictionary": "orthonormal", "random_state": seed} | options
    data = nice_samples(1, d, supports=supports, coefficients=coefficients, **options)
    return population_moment(data.dictionary, data.moments / np.max(data.moments))


def check(T: np.ndarray, eps: float, rng: np.random.Generator) -> FactoredTensor:
    """Assert that the fast algorithm is the literal one on Sym2."""
    fast = clean(PackedTensor(T), eps, rng)
    slow = literal.clean(PackedTensor(T).to_dense(), eps)
    np.testing.assert_allclose(fast.to_packed(), on_sym2(slow), atol=ATOL)
    assert np.all(fast.lam > 0)
    np.testing.assert_allclose(fast.U.T @ fast.U, np.eye(fast.rank), atol=1e-8)
    return fast


@pytest.mark.parametrize("eps", [0.02, 0.1, 0.3])
@pytest.mark.parametrize("coefficients", COEFFICIENTS)
@pytest.mark.parametrize("supports", SUPPORTS)
def test_as_literally(supports, coefficients, eps, seed, rng):
    check(moment(seed, supports, coefficients), eps, rng)


@pytest.mark.parametrize("eps", [0.03, 0.2])
@pytest.mark.parametrize("error", ERRORS)
def test_as_literally_with_an_error(error, eps, seed, rng):
    E = planted_tensor(D, D, 0.15, error, random_state=seed).error
    check(moment(seed, frequencies=np.linspace(2, 1, D)) + E, eps, rng)


def test_as_literally_on_any_symmetric_operator(rng):
    G = rng.standard_normal((N, N))
    kept = check(G + G.T, 0.5, rng)
    assert kept.rank > D  # both steps keep more than a first guess of d eigenpairs


def test_more_equal_eigenvalues_than_vectors_in_a_block(rng):
    """The identity of Sym2: the first step keeps all N of them, and sigma of it is ``(X + tr(X) Id) / 2``."""
    d = 8
    kept = clean(PackedTensor(np.eye(packed_dim(d))), 0.25, rng)
    one = pack(np.eye(d)[None])
    expected = 0.75 * (np.eye(packed_dim(d)) + one @ one.T) / 2 - 0.25 * np.eye(packed_dim(d))
    np.testing.assert_allclose(kept.to_packed(), expected, atol=ATOL)
    assert kept.rank == packed_dim(d)


def test_a_truncation_above_everything_leaves_nothing(seed, rng):
    T = moment(seed)
    kept = clean(PackedTensor(T), 1.01 * np.linalg.eigvalsh(T)[-1], rng)
    assert (kept.rank, kept.dim) == (0, D)
    assert not kept.to_packed().any()


def test_nothing_is_left_after_the_second_step(rng):
    """A single pair term: of norm 0.8 in {12}{34}, and 0.4 in {13}{24}."""
    a, b = random_orthonormal(D, 2, rng)
    U = pack((np.outer(a, b) + np.outer(b, a))[None]) / np.sqrt(2)
    first = FactoredTensor(np.array([0.8]), U)
    assert np.linalg.norm(Reshaped(first).to_packed(), 2) == pytest.approx(0.4)
    kept = clean(PackedTensor(first.to_packed()), 0.3, rng)
    assert kept.rank == 0


def antisymmetric_part(T: np.ndarray) -> float:
    """Norm of the square flattening on antisymmetric matrices, which must not be coupled to symmetric ones."""
    M = literal.reshape(T)
    swap = np.eye(D * D).reshape(D, D, -1).transpose(1, 0, 2).reshape(D * D, -1)
    np.testing.assert_allclose(swap @ M, M @ swap, atol=1e-10)
    return float(np.linalg.norm(M - swap @ M, 2) / 2)


@pytest.mark.parametrize("supports", SUPPORTS)
def test_antisymmetric_matrices_may_be_left_out(supports, seed):
    """Literally, ``sigma`` acts on them as well.  A moment has nothing there: it is symmetric in all modes.

    An error may have something there, which is no atom: left out, it does not count.
    """
    T = PackedTensor(moment(seed, supports)).to_dense()
    for eps in (0.01, 0.1, 0.3):
        assert antisymmetric_part(literal.clean(T, eps)) < 1e-12
    E = planted_tensor(D, D, 0.5, random_state=seed).error
    assert antisymmetric_part(literal.clean(T + PackedTensor(E).to_dense(), 0.01)) > 0.01


def test_atoms_are_kept_and_pair_terms_are_not(seed, rng):
    """Blocks with ``tau = 0.15``, no error: ``sum_i (1 - 2 eps) a_i^(x4)`` for eps from ``2 tau`` on, exactly."""
    options = {"supports": "blocks", "group": 3, "cooccurrence": 0.15, "dictionary": "orthonormal"}
    data = nice_samples(1, 9, **options, random_state=seed)
    T = population_moment(data.dictionary, data.moments / np.max(data.moments))
    B = pack_rank_one(data.dictionary)
    kept = clean(PackedTensor(T), 0.3, rng)
    np.testing.assert_allclose(kept.to_packed(), 0.4 * B @ B.T, atol=ATOL)
    assert kept.rank == 9


def test_no_more_than_most(seed, rng):
    """The leading ones of each step."""
    weights = np.array([3.0, 2.0, 1.5, 1.2, 1.0])
    p = planted_tensor(D, D, 0.0, weights=weights, random_state=seed)
    kept = clean(PackedTensor(p.packed), 0.1, rng, most=3)
    assert kept.rank == 3
    B = pack_rank_one(p.components[:3])
    np.testing.assert_allclose(kept.to_packed(), (B * (weights[:3] - 0.2)) @ B.T, atol=ATOL)
    assert clean(PackedTensor(p.packed), 0.1, rng, most=40).rank == 5


def test_the_generator_does_not_matter(seed):
    T = PackedTensor(moment(seed, "hubs") + planted_tensor(D, D, 0.1, random_state=seed).error)
    one, other = (clean(T, 0.05, np.random.default_rng(s)).to_packed() for s in (1, 2))
    np.testing.assert_allclose(one, other, atol=ATOL)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_in_any_library(xp, dtype, seed, rng):
    T = moment(seed)
    kept = clean(PackedTensor(xp.asarray(T, dtype)), 0.1, rng)
    assert kept.like.dtype == xp.dtype(dtype)
    expected = on_sym2(literal.clean(PackedTensor(T).to_dense(), 0.1))
    np.testing.assert_allclose(xp.numpy(kept.to_packed()), expected, atol={"float32": 1e-3, "float64": ATOL}[dtype])
