"""Every tensor form through one conformance suite; a new form is one line of ``FORMS``."""

import math

import literal
import numpy as np
import pytest

from quartic._arrays import pack_rank_one
from quartic.algorithms.clean import Reshaped
from quartic.tensors import Congruence, FactoredTensor, FourTensor, PackedTensor, Pairings, SampleTensor, Sum, samples
from quartic.tensors.combine import deflate
from quartic.tensors.samples import rows_in_a_chunk

D, N = 4, 10
TOLERANCE = {"float32": 3e-5, "float64": 1e-12}


class Numbers:
    """Random numbers from which forms are built: NumPy arrays of one dtype, brought into a library by ``put``."""

    def __init__(self, seed, put):
        rng = np.random.default_rng(seed)
        G = rng.standard_normal((N, N))
        self.matrix = put(G + G.T)
        self.dense = put(rng.standard_normal((D, D, D, D)))
        self.lam, self.U = put(rng.standard_normal(3)), put(rng.standard_normal((N, 3)))
        self.weights, self.B = put(rng.standard_normal(2)), put(rng.standard_normal((2, D)))
        self.host_weights = rng.standard_normal(2)
        self.Z, self.sample_weights = put(rng.standard_normal((70, D))), rng.uniform(0, 2, 70)
        G = rng.standard_normal((D, D))
        self.C, self.R = put(G + G.T), put(rng.standard_normal((D, D)))


def scaled(build):
    return lambda x: build(x).scaled(-2.5)


FORMS = {
    "packed": lambda x: PackedTensor(x.matrix),
    "packed with a unit": lambda x: PackedTensor(x.matrix, unit=4.0),
    "packed from dense": lambda x: PackedTensor.from_dense(x.dense),
    "factored": lambda x: FactoredTensor(x.lam, x.U),
    "factored from components": lambda x: FactoredTensor.from_components(x.weights, x.B),
    "factored, flattened": lambda x: FactoredTensor(x.lam, x.U).flattened(),
    "factored, no terms": lambda x: FactoredTensor(x.lam[:0], x.U[:, :0]),
    "sum": lambda x: Sum([(2.0, PackedTensor(x.matrix)), (-0.5, FactoredTensor(x.lam, x.U))]),
    "sum of one": lambda x: Sum([(-1.0, PackedTensor(x.matrix))]),
    "sum of sums": lambda x: Sum([(3.0, Sum([(1.0, PackedTensor(x.matrix))])), (1.0, PackedTensor(x.matrix, 2.0))]),
    "deflated": lambda x: deflate(PackedTensor(x.matrix), x.host_weights, x.B),
    "samples": lambda x: SampleTensor(x.Z),
    "samples with weights": lambda x: SampleTensor(x.Z, x.sample_weights),
    "pairings": lambda x: Pairings(x.C),
    "congruence": lambda x: Congruence(PackedTensor(x.matrix), x.R),
    "cumulant": lambda x: Sum([(1.0, SampleTensor(x.Z)), (-1.0, Pairings(x.C))]),
    "reshaped": lambda x: Reshaped(FactoredTensor(x.lam, x.U)),
    "reshaped, no terms": lambda x: Reshaped(FactoredTensor(x.lam[:0], x.U[:, :0])),
}
FORMS |= {f"{name}, scaled": scaled(build) for name, build in FORMS.items()}


@pytest.fixture(params=FORMS)
def build(request):
    return FORMS[request.param]


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    return request.param


@pytest.fixture
def form(build, xp, dtype):
    return build(Numbers(0, lambda x: xp.asarray(x, dtype)))


def unpacked(Y):
    """Packed columns ``(N, k)`` as matrices ``(k, D, D)``, entry by entry."""
    out = np.zeros((Y.shape[1], D, D))
    row = 0
    for i in range(D):
        for j in range(i, D):
            out[:, i, j] = out[:, j, i] = Y[row] / (1.0 if i == j else math.sqrt(2.0))
            row += 1
    return out


def assert_close(x, y, dtype):
    scale = max(1.0, float(np.max(np.abs(y), initial=0.0)))
    np.testing.assert_allclose(x, y, rtol=0, atol=TOLERANCE[dtype] * scale)


def test_is_a_form(form, xp, dtype):
    assert isinstance(form, FourTensor)
    assert form.dim == D
    assert form.pair_dim == N
    assert xp.owns(form.like)
    assert form.like.dtype == xp.dtype(dtype)
    assert f"dim={D}" in repr(form)
    assert dtype in repr(form)


@pytest.mark.parametrize("k", [0, 1, 3])
def test_apply_contracts_the_dense_tensor(form, xp, dtype, k):
    X = np.random.default_rng(1).standard_normal((N, k)).astype(dtype)
    Y = form.apply(xp.asarray(X))
    assert Y.dtype == xp.dtype(dtype)
    assert tuple(Y.shape) == (N, k)
    expected = np.einsum("abcd,kcd->kab", xp.numpy(form.to_dense()), unpacked(X))
    assert_close(unpacked(xp.numpy(Y)), expected, dtype)


@pytest.mark.parametrize("k", [0, 1, 3])
def test_rank_one_blocks(form, xp, dtype, k):
    B = np.random.default_rng(2).standard_normal((k, D)).astype(dtype)
    Y = form.apply(pack_rank_one(xp.asarray(B)))
    assert Y.dtype == xp.dtype(dtype)
    expected = np.einsum("abcd,kc,kd->kab", xp.numpy(form.to_dense()), B, B)
    assert_close(unpacked(xp.numpy(Y)), expected, dtype)


@pytest.mark.parametrize("k", [0, 1, 3])
def test_on_squares_is_what_one_application_says(form, xp, dtype, k):
    B = np.random.default_rng(7).standard_normal((k, D)).astype(dtype)
    G = form.on_squares(xp.asarray(B))
    assert G.dtype == xp.dtype(dtype)
    assert tuple(G.shape) == (k, k)
    expected = np.einsum("abcd,ia,ib,jc,jd->ij", xp.numpy(form.to_dense()), B, B, B, B)
    assert_close(xp.numpy(G), expected, dtype)


def test_self_adjoint(form, xp, dtype):
    rng = np.random.default_rng(3)
    X, Y = (rng.standard_normal((N, 2)).astype(dtype) for _ in range(2))
    left = Y.T @ xp.numpy(form.apply(xp.asarray(X)))
    right = xp.numpy(form.apply(xp.asarray(Y))).T @ X
    assert_close(left, right, dtype)


def test_linear(form, xp, dtype):
    rng = np.random.default_rng(4)
    X, Y = (rng.standard_normal((N, 2)).astype(dtype) for _ in range(2))
    both = xp.numpy(form.apply(xp.asarray(2 * X - 3 * Y)))
    apart = 2 * xp.numpy(form.apply(xp.asarray(X))) - 3 * xp.numpy(form.apply(xp.asarray(Y)))
    assert_close(both, apart, dtype)


def test_to_packed_is_the_operator(form, xp, dtype):
    M = form.to_packed()
    assert M.dtype == xp.dtype(dtype)
    X = np.random.default_rng(5).standard_normal((N, 2)).astype(dtype)
    Y = xp.numpy(form.apply(xp.asarray(X)))
    assert_close(xp.numpy(M) @ X, Y, dtype)


def test_to_dense_is_pair_symmetric(form, xp, dtype):
    T = form.to_dense()
    assert tuple(T.shape) == (D, D, D, D)
    assert T.dtype == xp.dtype(dtype)
    T = xp.numpy(T)
    for order in [(1, 0, 2, 3), (0, 1, 3, 2), (2, 3, 0, 1)]:
        assert_close(T, T.transpose(order), dtype)


def test_packing_the_dense_tensor_again_gives_the_same_operator(form, xp, dtype):
    T = form.to_dense()
    M = xp.numpy(form.to_packed())
    if not M.any():
        with pytest.raises(ValueError, match="zero tensor"):
            PackedTensor.from_dense(T)
        return
    again = PackedTensor.from_dense(T)
    assert again.asymmetry < {"float32": 1e-3, "float64": 1e-7}[dtype]
    assert_close(xp.numpy(again.to_packed()), M, dtype)


@pytest.mark.parametrize("factor", [3.0, -0.25, 0.0])
def test_scaled(form, xp, dtype, factor):
    M = xp.numpy(form.to_packed())
    other = form.scaled(factor)
    assert other.dim == D
    assert other.like.dtype == xp.dtype(dtype)
    assert_close(xp.numpy(other.to_packed()), factor * M, dtype)


def test_read_only_arrays_will_do(build):
    given = []

    def put(x):
        x = np.array(x)
        x.flags.writeable = False
        given.append((x, x.copy()))
        return x

    form = build(Numbers(0, put))
    X = put(np.random.default_rng(6).standard_normal((N, 2)))
    np.testing.assert_allclose(form.to_packed() @ X, form.apply(X), atol=1e-12)
    assert form.to_dense().shape == (D, D, D, D)
    for x, before in given:
        np.testing.assert_array_equal(x, before)


# What each form is, against einsum on the numbers it was made of.


def test_packed_is_unit_times_matrix(xp, rng):
    G = rng.standard_normal((N, N))
    np.testing.assert_allclose(xp.numpy(PackedTensor(xp.asarray(G + G.T), 0.5).to_packed()), (G + G.T) / 2, atol=1e-14)


def test_packed_from_dense_is_the_projection(xp, rng):
    T = rng.standard_normal((D, D, D, D))
    P = (T + T.transpose(1, 0, 2, 3)) / 2
    P = (P + P.transpose(0, 1, 3, 2)) / 2
    P = (P + P.transpose(2, 3, 0, 1)) / 2
    np.testing.assert_allclose(xp.numpy(PackedTensor.from_dense(xp.asarray(T)).to_dense()), P, atol=1e-14)


def test_factored_is_the_sum_of_its_terms(xp, rng):
    lam, U = rng.standard_normal(3), rng.standard_normal((N, 3))
    form = FactoredTensor(xp.asarray(lam), xp.asarray(U))
    matrices = unpacked(U)
    np.testing.assert_allclose(xp.numpy(form.matrices), matrices, atol=1e-14)
    expected = np.einsum("k,kab,kcd->abcd", lam, matrices, matrices)
    np.testing.assert_allclose(xp.numpy(form.to_dense()), expected, atol=1e-12)
    expected = np.einsum("kab,kcd->abcd", matrices, matrices)
    np.testing.assert_allclose(xp.numpy(form.flattened().to_dense()), expected, atol=1e-12)
    assert form.rank == 3


def test_factored_from_components(xp, rng):
    w, B = rng.standard_normal(2), rng.standard_normal((2, D))
    form = FactoredTensor.from_components(xp.asarray(w), xp.asarray(B))
    expected = np.einsum("k,ka,kb,kc,kd->abcd", w, B, B, B, B)
    np.testing.assert_allclose(xp.numpy(form.to_dense()), expected, atol=1e-12)


def test_deflating_subtracts_the_components(xp, rng):
    w, B = rng.standard_normal(2), rng.standard_normal((2, D))
    T = PackedTensor(xp.asarray(np.eye(N)))
    expected = xp.numpy(T.to_dense()) - np.einsum("k,ka,kb,kc,kd->abcd", w, B, B, B, B)
    np.testing.assert_allclose(xp.numpy(deflate(T, w, xp.asarray(B)).to_dense()), expected, atol=1e-12)


def test_deflating_nothing_is_the_tensor_itself(xp):
    T = PackedTensor(xp.asarray(np.eye(N)))
    assert deflate(T, np.zeros(0), xp.asarray(np.zeros((0, D)))) is T


@pytest.mark.parametrize("feature_bytes", [1, 1 << 25])
def test_samples_are_the_mean_of_their_fourth_powers(xp, rng, monkeypatch, feature_bytes):
    monkeypatch.setattr(samples, "FEATURE_BYTES", feature_bytes)  # chunks of 64
    Z, w = rng.standard_normal((150, D)), rng.uniform(0, 2, 150)
    form = SampleTensor(xp.asarray(Z), w)
    np.testing.assert_allclose(xp.numpy(form.to_dense()), literal.fourth_moment(Z, w), atol=1e-12)
    np.testing.assert_allclose(xp.numpy(form.covariance), (Z.T * w) @ Z / w.sum(), atol=1e-12)
    plain = SampleTensor(xp.asarray(Z))
    np.testing.assert_allclose(xp.numpy(plain.to_dense()), literal.fourth_moment(Z), atol=1e-12)
    np.testing.assert_allclose(xp.numpy(plain.covariance), Z.T @ Z / 150, atol=1e-12)
    cumulant = Sum([(1.0, form), (-1.0, Pairings(form.covariance))])
    np.testing.assert_allclose(xp.numpy(cumulant.to_dense()), literal.fourth_cumulant(Z, w), atol=1e-12)


@pytest.mark.parametrize("row_bytes", [1, 1 << 19])
def test_few_matrices_need_no_features(xp, rng, monkeypatch, dtype, row_bytes):
    """A block of at most ``r / NARROW`` matrices is multiplied by the samples themselves, to the same result."""
    monkeypatch.setattr(samples, "ROW_BYTES", row_bytes)  # blocks of 64 rows
    r = 2 * samples.NARROW
    Z, w = rng.standard_normal((150, r)).astype(dtype), rng.uniform(0, 2, 150)
    form = SampleTensor(xp.asarray(Z), w)
    X = rng.standard_normal((form.pair_dim, 3)).astype(dtype)
    features = xp.numpy(pack_rank_one(xp.asarray(Z)))
    expected = (features * w) @ (features.T @ X) / w.sum()
    formed = []
    original = samples.pack_rank_one
    monkeypatch.setattr(samples, "pack_rank_one", lambda *args: formed.append(1) or original(*args))
    for k in (1, 2, 3):
        assert_close(xp.numpy(form.apply(xp.asarray(X[:, :k]))), expected[:, :k], dtype)
        assert bool(formed) == (k == 3)


def test_the_covariance_of_single_precision_samples_is_double(xp, rng):
    Z = rng.standard_normal((150, D)).astype("float32")
    C = SampleTensor(xp.asarray(Z)).covariance
    assert C.dtype == xp.dtype("float64")
    exact = Z.astype("float64").T @ Z.astype("float64") / 150
    np.testing.assert_allclose(xp.numpy(C), exact, atol=1e-14)


@pytest.mark.parametrize("weights", [np.zeros(3), None])
def test_samples_without_weight(weights):
    with pytest.raises(ValueError, match="the samples have no weight"):
        SampleTensor(np.ones((0 if weights is None else 3, 2)), weights)


def test_pairings_are_the_moment_of_a_gaussian(xp, rng):
    G = rng.standard_normal((D, D))
    C = G @ G.T
    pairings = [np.einsum(f"{a},{b}->ijkl", C, C) for a, b in (("ij", "kl"), ("ik", "jl"), ("il", "jk"))]
    np.testing.assert_allclose(xp.numpy(Pairings(xp.asarray(C)).to_dense()), sum(pairings), atol=1e-12)


def test_congruence_multiplies_every_mode(xp, rng):
    B, R = rng.standard_normal((2, D)), rng.standard_normal((D, D))
    form = Congruence(FactoredTensor.from_components(xp.asarray(np.ones(2)), xp.asarray(B)), xp.asarray(R))
    np.testing.assert_allclose(xp.numpy(form.to_dense()), literal.rank_one(B @ R.T), atol=1e-11)


def test_reshaped_exchanges_modes_2_and_3(xp, rng):
    lam, U = rng.standard_normal(3), rng.standard_normal((N, 3))
    T = FactoredTensor(xp.asarray(lam), xp.asarray(U))
    moved = literal.fold(literal.reshape(xp.numpy(T.to_dense()), literal.CROSS))
    np.testing.assert_allclose(xp.numpy(Reshaped(T).to_dense()), literal.symmetrise_pairs(moved), atol=1e-12)


def test_a_sum_wants_one_dimension():
    with pytest.raises(ValueError, match=r"terms of a sum must have one dimension; got \[2, 3\]"):
        Sum([(1.0, PackedTensor(np.eye(3))), (1.0, PackedTensor(np.eye(6)))])


def test_factors_want_one_weight_each():
    with pytest.raises(ValueError, match=r"lam must have one weight for each of the 2 columns of U; got \(3,\)"):
        FactoredTensor(np.ones(3), np.ones((3, 2)))


@pytest.mark.parametrize("shape", [(3, 6), (3,), (3, 3, 3)])
def test_a_packed_matrix_is_square(shape):
    with pytest.raises(ValueError, match="matrix must be square"):
        PackedTensor(np.ones(shape))


def test_a_packed_matrix_has_a_side_of_d_d_plus_1_over_2():
    with pytest.raises(ValueError, match=r"4 is not d \(d \+ 1\) / 2"):
        PackedTensor(np.eye(4))


def test_a_form_must_say_how_it_is_applied():
    class Idle(FourTensor):
        pass

    with pytest.raises(TypeError, match="apply"):
        Idle()


class TestOnADevice:
    """What is only done there, tried on the host."""

    @pytest.fixture(autouse=True)
    def elsewhere(self, monkeypatch):
        monkeypatch.setattr("quartic.tensors.samples.on_host", lambda x: False)

    def test_rows_of_zeros_change_nothing(self, rng):
        Z, w = rng.standard_normal((77, 5)), rng.random(77)
        X = rng.standard_normal((15, 4))
        tensor = SampleTensor(Z, w)
        assert tensor.Z.shape[0] == 128
        expected = np.einsum("s,si,sj,sk,sl->ijkl", w / w.sum(), Z, Z, Z, Z)
        np.testing.assert_allclose(tensor.to_dense(), expected, atol=1e-12)
        np.testing.assert_allclose(tensor.apply(X), PackedTensor.from_dense(expected).apply(X), atol=1e-12)
        np.testing.assert_allclose(tensor.covariance, (Z * w[:, None]).T @ Z / w.sum(), atol=1e-12)

    def test_chunks_take_a_part_of_the_memory_that_is_free(self, rng, monkeypatch):
        Z = rng.standard_normal((1000, 5))
        monkeypatch.setattr(
            "quartic.tensors.samples.free_memory", lambda x: 15 * 8 * 8 * 64
        )  # a quarter of it: two chunks of 64 rows
        assert rows_in_a_chunk(5, Z) == 64
        X = rng.standard_normal((15, 4))
        np.testing.assert_allclose(SampleTensor(Z).apply(X), sampled(Z).apply(X), atol=1e-12)

    def test_too_little_memory_is_refused(self, rng, monkeypatch):
        monkeypatch.setattr("quartic.tensors.samples.free_memory", lambda x: 1e4)
        with pytest.raises(MemoryError, match=r"64 samples of dimension 5 need .* GB of the device"):
            SampleTensor(rng.standard_normal((100, 5))).apply(rng.standard_normal((15, 4)))


def sampled(Z):
    """The fourth moment, literally."""
    return PackedTensor.from_dense(np.einsum("si,sj,sk,sl->ijkl", Z, Z, Z, Z) / Z.shape[0])
