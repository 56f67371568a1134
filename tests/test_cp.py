"""CP tensors: TensorLy's own, in and out."""

from collections import namedtuple

import numpy as np
import pytest

import quartic
from quartic.metrics import match
from quartic.tensors.cp import packed_cp

Kruskal = namedtuple("Kruskal", ["weights", "factors"])  # what is asked of a CPTensor, and no more


def dense(T):
    return np.einsum("k,ak,bk,ck,dk->abcd", T.weights, *T.factors, optimize=True)


def test_the_pair_symmetric_part_is_that_of_the_dense_tensor(rng):
    d, rank = 5, 3
    T = Kruskal(rng.standard_normal(rank), [rng.standard_normal((d, rank)) for _ in range(4)])
    packed, expected = packed_cp(T), quartic.PackedTensor.from_dense(dense(T))
    np.testing.assert_allclose(packed.to_packed(), expected.to_packed(), atol=1e-12)
    assert packed.asymmetry == pytest.approx(expected.asymmetry, rel=1e-9)
    assert packed.asymmetry > 0.1


def test_a_symmetric_one_is_decomposed(rng):
    A = quartic.datasets.random_orthonormal(8, 5, rng)
    result = quartic.decompose(Kruskal(np.arange(1.0, 6.0), [A.T] * 4), random_state=0)
    assert match(A, result.components).found(1 - 1e-9) == 5
    assert result.weights.tolist() == pytest.approx([5, 4, 3, 2, 1])
    assert result.asymmetry == 0


def test_without_weights_they_are_one(rng):
    A = quartic.datasets.random_orthonormal(6, 3, rng)
    assert quartic.decompose(Kruskal(None, [A.T] * 4), random_state=0).weights.tolist() == pytest.approx([1, 1, 1])


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ([np.eye(3)] * 3, "4 factors of one shape"),
        ([np.eye(3)] * 3 + [np.ones((4, 3))], "4 factors of one shape"),
        ([np.full((3, 2), np.nan)] * 4, "not finite"),
        ([np.zeros((3, 2))] * 4, "nothing to decompose"),
    ],
)
def test_bad_ones(factors, message):
    with pytest.raises(ValueError, match=message):
        quartic.decompose(Kruskal(np.ones(factors[0].shape[1]), factors))


def test_tensorly_and_back():
    pytest.importorskip("tensorly")
    planted = quartic.datasets.planted_tensor(8, 4, 0.05, random_state=0)
    result = quartic.decompose(planted.tensor, random_state=0)
    cp = result.to_tensorly()
    np.testing.assert_allclose(cp.to_tensor(), result.to_tensor(), atol=1e-12)
    again = quartic.decompose(cp, random_state=0)
    assert match(result.components, again.components).found(1 - 1e-12) == 4


def test_tensorly_is_asked_for_by_name(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tensorly.cp_tensor", None)
    result = quartic.decompose(quartic.datasets.planted_tensor(4, 2, 0.0, random_state=0).tensor, random_state=0)
    with pytest.raises(ImportError, match="pip install tensorly"):
        result.to_tensorly()
