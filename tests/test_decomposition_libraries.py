"""``decompose`` in every array library, precision and form of a tensor."""

import dataclasses

import numpy as np
import pytest
from test_decomposition import assert_honest, planted

from quartic import FactoredTensor, PackedTensor, decompose
from quartic._arrays import on_host
from quartic.metrics import match
from quartic.tensors import Sum


@pytest.mark.parametrize("shape", [(8, 8, 8, 8), (64, 64)])
@pytest.mark.parametrize("given", [{"rank": 5}, {"eps": 0.2}, {"find": 2}, {}])
def test_all_of_it_in_every_library(seed, xp, shape, given):
    p = planted(seed, 8, 5, weights=[5.0, 4.0, 3.0, 2.0, 1.0])
    T = p.tensor.reshape(shape)
    # Eigenvectors come with other signs from another LAPACK: the same limit, on another way.
    tolerance = 1e-10 if xp.exact else xp.within(1e-5)
    result = decompose(xp.asarray(T), random_state=seed, **given)
    expected = decompose(T, random_state=seed, **given)
    for name in ("components", "weights", "certificates"):
        array = getattr(result, name)
        assert array.dtype == xp.dtype("float64")
        np.testing.assert_allclose(xp.numpy(array), getattr(expected, name), atol=tolerance)
    assert xp.numpy(result.certified).all()
    np.testing.assert_allclose(xp.numpy(result.to_tensor()), expected.to_tensor(), atol=10 * tolerance)
    assert isinstance(result.spectrum, np.ndarray)
    assert result.status == expected.status
    assert result.reason == expected.reason or not on_host(result.components)  # it holds the figures
    assert result.eps == pytest.approx(expected.eps, rel=10 * tolerance)
    assert result.summary().splitlines()[:2] == expected.summary().splitlines()[:2]


@pytest.mark.parametrize("given", [{"rank": 5}, {}])
def test_float32(seed, xp, given):
    p = planted(seed, 8, 5, weights=[5.0, 4.0, 3.0, 2.0, 1.0])
    result = decompose(xp.asarray(p.tensor, "float32"), random_state=seed, **given)
    expected = decompose(p.tensor, random_state=seed, **given)
    assert result.components.dtype == xp.dtype("float32")
    assert result.weights.dtype == xp.dtype("float32")
    assert result.rank == expected.rank == 5
    np.testing.assert_allclose(xp.numpy(result.components), expected.components, atol=xp.within(1e-4))
    np.testing.assert_allclose(xp.numpy(result.weights), expected.weights, rtol=xp.within(1e-4))
    assert_honest(
        p.components,
        dataclasses.replace(
            result, **{name: xp.numpy(getattr(result, name)) for name in ("components", "certificates")}
        ),
    )


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "uint16"])
def test_integers_are_converted(xp, dtype):
    T = np.zeros((4, 4, 4, 4))
    T[1, 1, 1, 1] = T[3, 3, 3, 3] = 1
    result = decompose(xp.asarray(T, dtype), random_state=0)
    assert result.components.dtype == xp.dtype("float64")
    np.testing.assert_allclose(np.sort(xp.numpy(result.components), axis=0)[-1], [0, 1, 0, 1], atol=1e-12)
    np.testing.assert_allclose(xp.numpy(result.weights), 1)


@pytest.mark.parametrize("form", ["packed", "factored", "sum", "scaled"])
def test_forms(seed, xp, form):
    p = planted(seed, 8, 4, 0.0 if form == "factored" else 0.1)
    packed = PackedTensor(xp.asarray(p.packed))
    components = FactoredTensor.from_components(xp.asarray(p.weights), xp.asarray(p.components))
    rest = PackedTensor(xp.asarray(p.error))
    forms = {
        "packed": packed,
        "factored": components,
        "sum": Sum([(1.0, components), (1.0, rest)]),
        "scaled": packed.scaled(1e100),
    }
    result = decompose(forms[form], random_state=seed)
    assert xp.owns(result.components)
    assert result.rank == 4
    assert match(p.components, xp.numpy(result.components)).found(0.99) == 4
    np.testing.assert_allclose(xp.numpy(result.weights), 1e100 if form == "scaled" else 1.0, rtol=0.2)


def test_the_input_is_not_touched(seed):
    T = planted(seed, 8, 4).tensor
    before = T.copy()
    T.flags.writeable = False
    decompose(T, random_state=seed)
    np.testing.assert_array_equal(T, before)
