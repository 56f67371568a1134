"""Sym2 and the few things that depend on the array library."""

import builtins
import io
import math
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from quartic import _arrays as qa

finite = st.floats(-1e3, 1e3)
matrices = st.tuples(st.integers(0, 4), st.integers(1, 6)).flatmap(
    lambda kd: hnp.arrays(np.float64, (kd[0], kd[1], kd[1]), elements=finite)
)


def literal_pack(X):
    """The upper triangle row by row, entries off the diagonal times sqrt(2), one matrix after the other."""
    k, d, _ = X.shape
    columns = []
    for n in range(k):
        S = (X[n] + X[n].T) / 2
        columns.append([S[i, j] * (1.0 if i == j else math.sqrt(2)) for i in range(d) for j in range(i, d)])
    return np.array(columns).T.reshape(d * (d + 1) // 2, k)


@given(st.integers(0, 10**6))
def test_unpacked_dim_inverts_packed_dim(d):
    assert qa.unpacked_dim(qa.packed_dim(d)) == d


def test_packed_dim_counts_the_upper_triangle():
    for d in range(12):
        assert qa.packed_dim(d) == sum(1 for i in range(d) for j in range(i, d))


@pytest.mark.parametrize("N", [2, 4, 5, 7, 100])
def test_unpacked_dim_refuses_other_numbers(N):
    with pytest.raises(ValueError, match=rf"{N} is not d \(d \+ 1\) / 2"):
        qa.unpacked_dim(N)


@given(matrices)
def test_pack_is_the_literal_packing_of_the_symmetric_part(X):
    np.testing.assert_allclose(qa.pack(X), literal_pack(X), rtol=1e-14, atol=1e-300)


@given(matrices)
def test_unpack_inverts_pack(X):
    S = (X + X.transpose(0, 2, 1)) / 2
    np.testing.assert_allclose(qa.unpack(qa.pack(X)), S, rtol=1e-14, atol=1e-300)


@given(matrices)
def test_pack_is_an_isometry(X):
    S = (X + X.transpose(0, 2, 1)) / 2
    inner = np.einsum("kij,mij->km", S, S)
    Y = qa.pack(X)
    np.testing.assert_allclose(Y.T @ Y, inner, rtol=1e-12, atol=1e-12 * max(1.0, np.max(np.abs(inner), initial=0)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("k", [0, 1, 3])
def test_packing_in_every_library(xp, rng, dtype, k):
    X = rng.standard_normal((k, 4, 4)).astype(dtype)
    tolerance = 1e-6 if dtype == "float32" else 1e-14
    Y = qa.pack(xp.asarray(X))
    assert Y.dtype == xp.dtype(dtype)
    np.testing.assert_allclose(xp.numpy(Y), literal_pack(X), atol=tolerance)
    back = qa.unpack(Y)
    assert back.dtype == xp.dtype(dtype)
    np.testing.assert_allclose(xp.numpy(back), (X + X.transpose(0, 2, 1)) / 2, atol=tolerance)


@pytest.mark.parametrize("k", [0, 1, 3])
def test_pack_rank_one(xp, rng, k):
    B = rng.standard_normal((k, 5))
    packed = qa.pack_rank_one(xp.asarray(B))
    np.testing.assert_allclose(xp.numpy(packed), literal_pack(np.einsum("ki,kj->kij", B, B)), atol=1e-14)


class TestConversion:
    def test_from_numpy_keeps_values_and_takes_the_dtype(self, xp, rng):
        x = rng.standard_normal((3, 2))
        like = xp.asarray(np.zeros(1, dtype=np.float32))
        assert qa.from_numpy(x, like).dtype == xp.dtype("float64")
        cast = qa.from_numpy(x, like, like.dtype)
        np.testing.assert_array_equal(xp.numpy(cast), x.astype(np.float32))

    def test_to_numpy(self, xp, rng):
        x = rng.standard_normal((3, 2))
        back = qa.to_numpy(xp.asarray(x))
        assert type(back) is np.ndarray
        np.testing.assert_array_equal(back, x)

    @pytest.mark.parametrize(("kind", "steps"), [("torch", ["detach", "cpu"]), ("cupy", ["get"])])
    def test_to_numpy_moves_to_the_host_first(self, monkeypatch, kind, steps):
        taken = []

        class OnDevice:
            def __getattr__(self, name):
                if name not in ("detach", "cpu", "get"):
                    raise AttributeError(name)
                taken.append(name)
                return lambda: np.arange(3) if taken == steps else self

        monkeypatch.setattr(qa, f"is_{kind}_array", lambda x: True)
        assert qa.to_numpy(OnDevice()).tolist() == [0, 1, 2]
        assert taken == steps

    def test_to_numpy_by_dlpack_where_nothing_else_is_offered(self):
        class OnlyDLPack:
            def __init__(self):
                self.x = np.arange(3.0)

            def __dlpack__(self, **kwargs):
                return self.x.__dlpack__(**kwargs)

            def __dlpack_device__(self):
                return self.x.__dlpack_device__()

        assert qa.to_numpy(OnlyDLPack()).tolist() == [0, 1, 2]

    @pytest.mark.parametrize(
        ("dtype", "expected"),
        [("bool", "float64"), ("int32", "float64"), ("uint8", "float64"), ("float32", "float32")],
    )
    def test_working_dtype(self, xp, dtype, expected):
        assert qa.working_dtype(xp.asarray(np.ones(2), dtype)) == xp.dtype(expected)

    def test_no_rows(self, xp):
        like = xp.asarray(np.zeros(1, dtype=np.float32))
        empty = qa.no_rows(like, 7)
        assert tuple(empty.shape) == (0, 7)
        assert empty.dtype == like.dtype
        assert xp.owns(empty)

    def test_floor_is_the_machine_precision(self, xp):
        assert qa.floor_of(xp.dtype("float32"), xp.xp) == 2.0**-23
        assert qa.floor_of(xp.dtype("float64"), xp.xp) == 2.0**-52

    def test_write(self, xp):
        out = xp.asarray(np.zeros((3, 4)))
        out = qa.write(out, (slice(1, 3), slice(2, None)), xp.asarray(np.ones((2, 2))))
        expected = np.zeros((3, 4))
        expected[1:3, 2:] = 1
        np.testing.assert_array_equal(xp.numpy(out), expected)

    def test_descending_is_stable(self, xp):
        order = qa.descending(xp.asarray(np.array([1.0, 3.0, 1.0, 2.0, 3.0])))
        assert xp.numpy(order).tolist() == [1, 4, 3, 0, 2]


class TestRandomness:
    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_the_same_gaussians_in_every_library_and_dtype(self, xp, seed, dtype):
        like = xp.asarray(np.zeros(1), dtype)
        drawn = qa.standard_normal(np.random.default_rng(seed), (4, 3), like)
        assert drawn.dtype == like.dtype
        if not qa.on_host(like):  # a device draws its own, the same again from the same seed
            again = qa.standard_normal(np.random.default_rng(seed), (4, 3), like)
            np.testing.assert_array_equal(xp.numpy(drawn), xp.numpy(again))
            return
        expected = qa.standard_normal(np.random.default_rng(seed), (4, 3), np.zeros(1))
        assert np.unique(expected).shape == (12,)
        np.testing.assert_allclose(xp.numpy(drawn), expected, rtol=1e-7)

    def test_gaussians(self, rng):
        """Mean, variance and fourth moment: five standard deviations of 4000 draws."""
        x = qa.standard_normal(rng, (4000,), np.zeros(1))
        for power, moment, variance in [(1, 0, 1), (2, 1, 2), (4, 3, 96)]:
            assert np.mean(x**power) == pytest.approx(moment, abs=5 * np.sqrt(variance / 4000))

    def test_a_whole_number_gives_the_same_numbers_again(self, seed):
        first, second = (qa.check_random_state(seed).standard_normal(3) for _ in range(2))
        np.testing.assert_array_equal(first, second)

    def test_a_generator_is_used_itself(self, rng):
        assert qa.check_random_state(rng) is rng

    def test_a_random_state_is_drawn_from(self, seed):
        state = np.random.RandomState(seed)
        first, second = (qa.check_random_state(state).standard_normal(3) for _ in range(2))
        assert not np.array_equal(first, second)
        again = qa.check_random_state(np.random.RandomState(seed)).standard_normal(3)
        np.testing.assert_array_equal(first, again)

    def test_none_gives_other_numbers_each_time(self):
        first, second = (qa.check_random_state(None).standard_normal(3) for _ in range(2))
        assert not np.array_equal(first, second)


class TestOrthonormalise:
    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_an_orthonormal_basis_of_the_same_span(self, xp, rng, dtype):
        X = rng.standard_normal((30, 7)) * 10.0 ** rng.uniform(-1, 1, 7)
        Q = xp.numpy(qa.orthonormalise(xp.asarray(X, dtype)))
        tolerance = 1e-5 if dtype == "float32" else 1e-12
        assert Q.shape == (30, 7)
        np.testing.assert_allclose(Q.T @ Q, np.eye(7), atol=tolerance)
        columns = X / np.linalg.norm(X, axis=0)
        np.testing.assert_allclose(Q @ (Q.T @ columns), columns, atol=100 * tolerance)

    def test_dependent_columns_are_dropped(self, xp, rng):
        X = rng.standard_normal((20, 3)) @ rng.standard_normal((3, 8))
        Q = xp.numpy(qa.orthonormalise(xp.asarray(X)))
        assert Q.shape == (20, 3)
        np.testing.assert_allclose(Q.T @ Q, np.eye(3), atol=1e-10)

    def test_directions_below_the_floor_are_dropped(self, xp, rng):
        frame = np.linalg.qr(rng.standard_normal((20, 4)))[0]
        Q = xp.numpy(qa.orthonormalise(xp.asarray(frame * [1.0, 1.0, 1e-3, 1e-3]), floor=1e-2))
        assert Q.shape == (20, 2)
        np.testing.assert_allclose(np.linalg.norm(Q.T @ frame[:, :2]) ** 2, 2, atol=1e-10)

    def test_nothing_is_left_of_zero(self, xp):
        assert tuple(qa.orthonormalise(xp.asarray(np.zeros((5, 2)))).shape) == (5, 0)


class TestMemory:
    def test_available_memory_is_a_plausible_number_of_bytes(self):
        free = qa.available_memory()
        assert free is None or 2**20 < free < 2**60

    @staticmethod
    def _meminfo(monkeypatch, content):
        def fake(path, *args, **kwargs):
            if content is None:
                raise OSError(path)
            return io.StringIO(content)

        monkeypatch.setattr(builtins, "open", fake)

    def test_what_the_system_calls_available(self, monkeypatch):
        self._meminfo(monkeypatch, "MemTotal: 9 kB\nMemAvailable:     7 kB\n")
        assert qa.available_memory() == 7 * 1024

    @pytest.mark.parametrize("content", [None, "MemTotal: 9 kB\n"])
    def test_otherwise_the_physical_memory_counts(self, monkeypatch, content):
        self._meminfo(monkeypatch, content)
        sizes = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1000}
        monkeypatch.setattr(os, "sysconf", sizes.__getitem__, raising=False)
        assert qa.available_memory() == 4096000

    def test_none_where_the_system_does_not_say(self, monkeypatch):
        self._meminfo(monkeypatch, None)
        monkeypatch.delattr(os, "sysconf", raising=False)
        assert qa.available_memory() is None


class TestWhereTheStandardHasNoWord:
    """Each function gives what NumPy's own does, in every library."""

    def test_quantiles_and_medians(self, seed, xp):
        x = np.random.default_rng(seed).standard_normal((37, 5))
        for q in (0.0, 0.3, 0.5, 0.99, 1.0):
            np.testing.assert_allclose(xp.numpy(qa.quantile(xp.asarray(x), q)), np.quantile(x, q, axis=0), rtol=1e-12)
        assert float(qa.median(xp.asarray(x))) == pytest.approx(np.median(x), rel=1e-12)
        np.testing.assert_allclose(xp.numpy(qa.median(xp.asarray(x), axis=0)), np.median(x, axis=0), rtol=1e-12)

    def test_elementwise(self, seed, xp):
        rng = np.random.default_rng(seed)
        x, t = rng.standard_normal((20, 4)), rng.random(4)
        there = xp.asarray(t)
        np.testing.assert_array_equal(xp.numpy(qa.clip(xp.asarray(x), -there, there)), np.clip(x, -t, t))
        np.testing.assert_array_equal(xp.numpy(qa.maximum(xp.asarray(x), 0.1)), np.maximum(x, 0.1))
        np.testing.assert_allclose(xp.numpy(qa.squared_norms(xp.asarray(x))), np.sum(x * x, axis=1), rtol=1e-12)
        G = rng.standard_normal((3, 20, 4))
        expected = np.einsum("kmi,lmi->ikl", G, G)
        np.testing.assert_allclose(xp.numpy(qa.gram_of_each(xp.asarray(G))), expected, rtol=1e-12, atol=1e-12)

    def test_rows_and_sums(self, seed, xp):
        x = np.random.default_rng(seed).standard_normal((9, 3))
        np.testing.assert_array_equal(xp.numpy(qa.take_rows(xp.asarray(x), np.array([4, 0, 4]))), x[[4, 0, 4]])
        out = qa.add_to(xp.asarray(np.ones((2, 9, 3))), 1, xp.asarray(x))
        np.testing.assert_array_equal(xp.numpy(out), np.stack((np.ones((9, 3)), 1 + x)))
        assert qa.typed(xp.asarray(x), np.float32).dtype == xp.dtype("float32")

    def test_products(self, seed, xp):
        """Where nothing may be rounded, or the host multiplies, a product is the product."""
        rng = np.random.default_rng(seed)
        a, b = (xp.asarray(rng.standard_normal((30, 30)), "float32") for _ in range(2))
        exact = xp.numpy(a).astype(np.float64) @ xp.numpy(b)
        for allowed in (False, True):
            with qa.reduced_precision(allowed):
                close = 1e-5 if not allowed or qa.on_host(a) else 2e-2
                np.testing.assert_allclose(xp.numpy(qa.product(a, b)), exact, atol=close * 30)
                assert (qa.rough(a) is a) == (not allowed or xp.name != "torch" or qa.on_host(a))
                with qa.full_precision():
                    assert qa.rough(a) is a
                    with qa.reduced_precision(True):
                        assert qa.rough(a) is a, "what the user asks for is stronger than what a stage allows"

    def test_memory(self, xp):
        like = xp.asarray(np.zeros((4, 8)))
        assert qa.free_memory(like) > 1e6
        assert qa.rows_of(like, np.float64) >= qa.CHUNK

    def test_packing_to_another_dtype(self, seed, xp):
        for m in (7, 300):  # below and above what goes through gathers
            B = np.random.default_rng(seed).standard_normal((m, 60))
            there = qa.pack_rank_one(xp.asarray(B), xp.dtype("float32") if m == 300 else None)
            np.testing.assert_allclose(
                xp.numpy(there), literal_pack(np.einsum("mi,mj->mij", B, B)), rtol=1e-5, atol=1e-5
            )
