"""Packing a dense tensor: what is read, what is projected away, and what is never held."""

import itertools
import mmap
import tracemalloc

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from quartic import PackedTensor, decompose
from quartic._arrays import packed_dim
from quartic.datasets import planted_tensor
from quartic.metrics import match
from quartic.tensors import packed
from quartic.tensors.packed import as_four_tensor

DTYPES = [np.float32, np.float64, np.int8, np.int32, np.uint16, np.int64, np.bool_]
AXES = list(itertools.permutations(range(4)))


def literal_projection(T):
    """The average over 1<->2, 3<->4 and the transpose of the square flattening."""
    T = np.asarray(T, dtype=np.float64)
    T = (T + T.transpose(1, 0, 2, 3)) / 2
    T = (T + T.transpose(0, 1, 3, 2)) / 2
    return (T + T.transpose(2, 3, 0, 1)) / 2


def assert_packs(T, tolerance=1e-12):
    """``T`` is packed to its projection and told its distance from it, and not touched."""
    before = np.array(T)
    P = PackedTensor.from_dense(T)
    numbers = before.astype(np.float64)
    peak = np.max(np.abs(numbers))  # taken out, so that no square over- or underflows
    literal = literal_projection(numbers / peak)
    whole = np.linalg.norm(numbers / peak)
    np.testing.assert_allclose(P.to_dense() / peak, literal, rtol=0, atol=tolerance * whole)
    distance = np.linalg.norm(numbers / peak - literal) / whole
    assert P.asymmetry == pytest.approx(distance, abs=1e-3 if tolerance > 1e-10 else 1e-6)
    np.testing.assert_array_equal(np.array(T), before)
    return P


@st.composite
def dense_tensors(draw):
    """Tensors of every dtype and memory layout; what is projected to zero is refused elsewhere."""
    d = draw(st.integers(1, 4))
    dtype = draw(st.sampled_from(DTYPES))
    kind = np.dtype(dtype).kind
    if kind == "f":
        width = 8 * np.dtype(dtype).itemsize
        elements = st.floats(-100, 100, width=width, allow_subnormal=False)
    else:
        elements = None
    layout = draw(st.sampled_from(["C", "F", "transposed", "sliced", "reversed", "broadcast"]))
    if layout == "sliced":
        T = draw(hnp.arrays(dtype, (2 * d, d + 1, 2 * d, d), elements=elements))[::2, 1:, 1::2, :]
    elif layout == "broadcast":
        shape = draw(st.tuples(*[st.sampled_from([1, d])] * 4))
        T = np.broadcast_to(draw(hnp.arrays(dtype, shape, elements=elements)), (d, d, d, d))
    else:
        T = draw(hnp.arrays(dtype, (d, d, d, d), elements=elements))
        if layout == "F":
            T = np.asfortranarray(T)
        elif layout == "transposed":
            T = T.transpose(draw(st.sampled_from(AXES)))
        elif layout == "reversed":
            T = T[::-1, :, ::-1, ::-1]
    assume(literal_projection(T).any())
    if draw(st.booleans()):
        T = T.view()
        T.flags.writeable = False
    return T


@given(dense_tensors())
def test_any_dtype_and_layout(T):
    P = assert_packs(T, 1e-5 if T.dtype == np.float32 else 1e-12)
    assert P.like.dtype == (np.float32 if T.dtype == np.float32 else np.float64)


@given(dense_tensors())
def test_the_square_flattening_is_the_same_tensor(T):
    d = T.shape[0]
    flat = T.reshape(d * d, d * d)
    flat.flags.writeable = False
    one, other = PackedTensor.from_dense(T), PackedTensor.from_dense(flat)
    np.testing.assert_array_equal(one.to_packed(), other.to_packed())
    assert one.asymmetry == pytest.approx(other.asymmetry, abs=1e-3 if T.dtype == np.float32 else 1e-6)


def test_every_library(xp, rng):
    T = rng.standard_normal((3, 3, 3, 3))
    expected = PackedTensor.from_dense(T)
    for shape in [(3, 3, 3, 3), (9, 9)]:
        P = PackedTensor.from_dense(xp.asarray(T.reshape(shape)))
        np.testing.assert_allclose(xp.numpy(P.to_packed()), expected.to_packed(), atol=1e-13)
        assert P.asymmetry == pytest.approx(expected.asymmetry, abs=1e-12)


@pytest.mark.parametrize("dtype", [">f8", ">f4", ">i4", "<i2"])
def test_any_byte_order(dtype):
    T = np.random.default_rng(0).integers(-9, 9, (3, 3, 3, 3)).astype(dtype)
    P = assert_packs(T, 1e-5 if dtype == ">f4" else 1e-12)
    assert P.like.dtype == (np.dtype("float32") if dtype == ">f4" else np.dtype("float64"))


def test_progress_is_told():
    told = []
    PackedTensor.from_dense(np.ones((3, 3, 3, 3)), told.append)
    assert told == [1, 2, 3]


def test_lists_are_arrays_too():
    assert PackedTensor.from_dense([[3]]).to_dense().tolist() == [[[[3.0]]]]


def test_a_form_is_taken_as_it_is():
    T = PackedTensor(np.eye(3))
    assert as_four_tensor(T) is T


def test_integers_beyond_float32_are_kept():
    T = np.zeros((2, 2, 2, 2), dtype=np.int64)
    T[0, 0, 0, 0] = 2**52 + 1
    assert PackedTensor.from_dense(T).to_dense()[0, 0, 0, 0] == 2**52 + 1


class TestAsymmetry:
    def test_none_for_a_pair_symmetric_tensor(self, seed):
        p = planted_tensor(5, 3, 0.3, random_state=seed)
        assert PackedTensor.from_dense(p.tensor).asymmetry == 0.0

    def test_nearly_one_for_a_tensor_that_is_projected_to_nearly_nothing(self, rng):
        T = rng.standard_normal((4, 4, 4, 4))
        T = T - T.transpose(1, 0, 2, 3)
        T[0, 0, 0, 0] += 1e-3
        assert 1 - 1e-6 < PackedTensor.from_dense(T).asymmetry <= 1

    @pytest.mark.parametrize("size", [1e-6, 1e-3, 1.0])
    def test_is_the_literal_distance(self, rng, seed, size):
        T = planted_tensor(5, 3, 0.1, random_state=seed).tensor + size * rng.standard_normal((5, 5, 5, 5))
        literal = np.linalg.norm(T - literal_projection(T)) / np.linalg.norm(T)
        assert PackedTensor.from_dense(T).asymmetry == pytest.approx(literal, rel=1e-2)

    def test_is_reported_by_the_decomposition(self, rng, seed):
        p = planted_tensor(8, 4, 0.1, random_state=seed)
        noise = rng.standard_normal((8, 8, 8, 8)) * 1e-3
        T = p.tensor + noise - literal_projection(noise)
        result = decompose(T, random_state=seed)
        assert result.asymmetry == pytest.approx(
            np.linalg.norm(T - literal_projection(T)) / np.linalg.norm(T), rel=1e-3
        )
        assert "not pair-symmetric" in result.summary()
        clean = decompose(p.tensor, random_state=seed)
        assert clean.asymmetry == 0.0
        assert "not pair-symmetric" not in clean.summary()
        np.testing.assert_allclose(result.components, clean.components, atol=1e-8)


class TestMagnitude:
    @pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e-3, 1e150, 1e300])
    @pytest.mark.parametrize("rank", [4, None])
    def test_a_scaled_tensor_has_the_same_components(self, seed, scale, rank):
        p = planted_tensor(8, 4, 0.1, weights=[4.0, 3.0, 2.0, 1.0], random_state=seed)
        plain, scaled = (decompose(T, rank, random_state=seed) for T in (p.tensor, scale * p.tensor))
        assert scaled.status.code == plain.status.code == "complete"
        np.testing.assert_allclose(scaled.components, plain.components, atol=1e-8)
        np.testing.assert_allclose(scaled.weights, scale * plain.weights, rtol=1e-8)
        assert scaled.eps == pytest.approx(scale * plain.eps, rel=1e-6)
        assert scaled.eps_assumed == pytest.approx(scale * plain.eps_assumed, rel=1e-6)
        np.testing.assert_allclose(scaled.certificates, plain.certificates, atol=1e-6)
        np.testing.assert_allclose(scaled.spectrum[:4], scale * plain.spectrum[:4], rtol=1e-8)

    @pytest.mark.parametrize("scale", [1e-30, 1e30])
    def test_float32(self, seed, scale):
        T = planted_tensor(8, 4, 0.1, weights=[4.0, 3.0, 2.0, 1.0], random_state=seed).tensor.astype(np.float32)
        plain, scaled = (decompose(x, random_state=seed) for x in (T, T * np.float32(scale)))
        np.testing.assert_allclose(scaled.components, plain.components, atol=1e-4)
        np.testing.assert_allclose(scaled.weights / scale, plain.weights, rtol=1e-4)

    @pytest.mark.parametrize("scale", [1e-150, 1e150])
    def test_a_packed_matrix_of_any_magnitude(self, seed, scale):
        p = planted_tensor(8, 4, 0.1, random_state=seed)
        result = decompose(PackedTensor(scale * p.packed), random_state=seed)
        assert result.rank == 4
        assert match(p.components, result.components).found(0.999) == 4

    @pytest.mark.parametrize("value", [1.7e308, -1.7e308, 5e-324, 1e-310])
    def test_the_ends_of_the_range(self, value):
        result = decompose(np.full((1, 1), value), 1, random_state=0)
        assert result.components.tolist() == [[1.0]]
        assert result.weights[0] == pytest.approx(value, rel=1e-12)

    def test_a_coordinate_that_is_tiny_might_as_well_be_zero(self, seed):
        """Also the first one, where the reading begins."""
        tiny, zero = (planted_tensor(8, 4, 0.1, random_state=seed).tensor for _ in range(2))
        for axis in range(4):
            first = (slice(None),) * axis + (0,)
            tiny[first] *= 1e-200
            zero[first] = 0
        P, Q = (PackedTensor.from_dense(T) for T in (tiny, zero))
        np.testing.assert_allclose(P.to_packed(), Q.to_packed(), rtol=1e-14, atol=1e-180)
        np.testing.assert_allclose(
            decompose(tiny, 3, random_state=seed).components,
            decompose(zero, 3, random_state=seed).components,
            atol=1e-8,
        )


class TestFiles:
    @pytest.fixture
    def planted(self, seed):
        return planted_tensor(6, 3, 0.1, random_state=seed)

    @pytest.mark.parametrize("flat", [False, True])
    @pytest.mark.parametrize("mode", ["r", "r+", "c"])
    def test_memory_maps(self, tmp_path, planted, mode, flat):
        path = tmp_path / "T.npy"
        T = planted.tensor
        np.save(path, T.reshape(36, 36) if flat else T)
        content = path.read_bytes()
        mapped = np.load(path, mmap_mode=mode)
        assert isinstance(mapped, np.memmap)
        np.testing.assert_allclose(PackedTensor.from_dense(mapped).to_dense(), T, atol=1e-14)
        result = decompose(mapped, random_state=0)
        assert match(planted.components, result.components).found(0.99) == 3
        np.testing.assert_array_equal(np.array(mapped).reshape(T.shape), T)
        assert path.read_bytes() == content

    @pytest.mark.parametrize("view", [lambda x: x, np.asarray, lambda x: x.T, lambda x: x.reshape(36, 36)])
    @pytest.mark.parametrize("mode", ["r+", "c"])
    def test_changes_that_are_not_saved_are_seen_and_kept(self, tmp_path, planted, mode, view):
        path = tmp_path / "T.npy"
        np.save(path, planted.tensor)
        content = path.read_bytes()
        mapped = np.load(path, mmap_mode=mode)
        mapped *= 2
        np.testing.assert_allclose(PackedTensor.from_dense(view(mapped)).to_dense(), 2 * planted.tensor, atol=1e-14)
        np.testing.assert_array_equal(mapped, 2 * planted.tensor)
        if mode == "c":
            assert path.read_bytes() == content

    @pytest.mark.parametrize("private", ["anonymous", "copy-on-write"])
    def test_private_mappings_keep_their_content(self, tmp_path, planted, private):
        T = planted.tensor
        if private == "anonymous":
            memory = mmap.mmap(-1, T.nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        else:
            path = tmp_path / "T.bin"
            path.write_bytes(bytes(T.nbytes))
            with path.open("r+b") as file:
                memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        mapped = np.ndarray(T.shape, buffer=memory)
        mapped[...] = T
        np.testing.assert_allclose(PackedTensor.from_dense(mapped).to_dense(), T, atol=1e-14)
        np.testing.assert_array_equal(mapped, T)


class TestMemory:
    @pytest.mark.parametrize("form", ["array", "map"])
    def test_only_slabs_are_held(self, tmp_path, monkeypatch, form):
        d = 40
        monkeypatch.setattr(packed, "TILE", 128)
        T = np.random.default_rng(0).standard_normal((d, d, d, d))
        if form == "map":
            np.save(tmp_path / "T.npy", T)
            T = np.load(tmp_path / "T.npy", mmap_mode="r")
        slab, result = 8 * d**3, 8 * packed_dim(d) ** 2
        tracemalloc.start()
        PackedTensor.from_dense(T)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert result < peak < result + 8 * slab < 8 * d**4 / 2

    def test_tiles_do_not_change_the_result(self, monkeypatch, rng):
        T = rng.standard_normal((6, 6, 6, 6))
        whole = PackedTensor.from_dense(T).to_packed()
        for tile in (1, 5, 20, 21):
            monkeypatch.setattr(packed, "TILE", tile)
            np.testing.assert_array_equal(PackedTensor.from_dense(T).to_packed(), whole)

    @pytest.mark.parametrize("shape", [(2000,) * 4, (2000**2,) * 2])
    def test_what_does_not_fit_is_refused_before_anything_is_allocated(self, shape):
        T = np.broadcast_to(1.0, shape)
        tracemalloc.start()
        with pytest.raises(MemoryError, match=r"dimension 2000 needs 32\d{3}\.\d GB packed, and .* GB are free: use "):
            decompose(T)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 1e6

    def test_the_limit_is_what_is_free(self, monkeypatch):
        T = np.broadcast_to(1.0, (6, 6, 6, 6))
        N = packed_dim(6)
        monkeypatch.setattr(packed, "free_memory", lambda like: 8 * N * N)
        with pytest.raises(MemoryError, match=r"dimension 6 needs 0\.0 GB"):
            PackedTensor.from_dense(T)
        monkeypatch.setattr(packed, "free_memory", lambda like: 40 * 8 * N * N)
        assert PackedTensor.from_dense(T).dim == 6
        monkeypatch.setattr(packed, "free_memory", lambda like: np.inf)
        assert PackedTensor.from_dense(T).dim == 6
