"""Bad input: an error of the right type that names the argument, what was found and what to do."""

import re

import numpy as np
import pytest

from quartic import FactoredTensor, PackedTensor, decompose
from quartic.datasets import planted_tensor

D = 4
GOOD = planted_tensor(D, 2, 0.1, random_state=0).tensor
EXPECTED = r"expected an array of shape \(d, d, d, d\), or \(d\*d, d\*d\) for its square flattening"


def refused(message, T=GOOD, error=ValueError, **arguments):
    with pytest.raises(error, match=message):
        decompose(T, random_state=0, **arguments)


class TestShape:
    @pytest.mark.parametrize("shape", [(), (3,), (3, 3, 3), (2, 2, 2, 2, 2)])
    def test_wrong_number_of_modes(self, xp, shape):
        refused(rf"T has {len(shape)} modes?, shape {re.escape(str(shape))}; {EXPECTED}", xp.asarray(np.ones(shape)))

    @pytest.mark.parametrize("shape", [(2, 2, 2, 3), (3, 2, 2, 2), (2, 3, 2, 3), (4, 9)])
    def test_unequal_modes(self, xp, shape):
        message = rf"T has modes of unequal length, shape {re.escape(str(shape))}; {EXPECTED}"
        refused(message, xp.asarray(np.ones(shape)))

    @pytest.mark.parametrize("side", [2, 3, 8, 15])
    def test_not_a_square_number(self, xp, side):
        message = rf"T has shape \({side}, {side}\), and {side} is not a square d\*d; {EXPECTED}"
        refused(message, xp.asarray(np.ones((side, side))))

    @pytest.mark.parametrize("shape", [(0, 0, 0, 0), (0, 0), (2, 2, 0, 2), (0, 4)])
    def test_empty(self, xp, shape):
        refused(rf"T is empty, shape {re.escape(str(shape))}; {EXPECTED}", xp.asarray(np.ones(shape)))

    def test_ragged(self):
        refused("T is not an array: .*inhomogeneous", [[1.0, 2.0], [3.0]])


class TestEntries:
    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    @pytest.mark.parametrize("where", [(0, 0, 0, 0), (1, 2, 3, 0), (3, 1, 0, 2), (3, 3, 3, 3)])
    def test_not_finite_says_where(self, xp, value, where):
        T = GOOD.copy()
        T[where] = value
        message = rf"T is not finite: T\[{', '.join(map(str, where))}\] is {value}; remove or replace"
        refused(message, xp.asarray(T))
        refused(message, xp.asarray(T.reshape(D * D, D * D)))

    @pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool"])
    def test_zero(self, xp, dtype):
        refused("T is the zero tensor: there is nothing to decompose", xp.asarray(np.zeros((3, 3, 3, 3)), dtype))

    def test_a_pair_symmetric_part_of_zero(self):
        refused(
            "the pair-symmetric part of T is zero",
            GOOD * np.sign(np.arange(D)[:, None] - np.arange(D))[:, :, None, None],
        )

    @pytest.mark.parametrize("dtype", ["complex64", "complex128"])
    def test_complex(self, xp, dtype):
        refused("T must hold real numbers; got dtype .*complex", xp.asarray(GOOD, dtype))

    def test_complex_has_a_remedy(self):
        refused("take its real part", GOOD.astype(complex))

    def test_object(self):
        refused(r"T must hold real numbers; got dtype object: convert it with .*dtype=float", GOOD.astype(object))

    def test_string(self):
        refused(r"T must hold real numbers; got dtype <U\d+: pass numbers", GOOD.astype(str))

    @pytest.mark.parametrize("T", ["tensor.npy", None, {"T": 1}, b"abc"])
    def test_no_array_at_all(self, T):
        refused("T must hold real numbers; got dtype", T)

    def test_masked(self):
        refused(r"T is masked, .*filled", np.ma.masked_greater(GOOD, 0.5))

    @pytest.mark.parametrize("dtype", ["datetime64[s]", "timedelta64[s]"])
    def test_times(self, dtype):
        refused("T must hold real numbers; got dtype", np.ones((2, 2, 2, 2), int).astype(dtype))

    @pytest.mark.parametrize("dtype", [np.float16, np.longdouble])
    def test_other_precisions(self, dtype):
        refused(r"T must be float32 or float64; got (float16|longdouble|float128).*convert it", GOOD.astype(dtype))


class TestForms:
    def test_zero(self):
        refused("T is the zero tensor", PackedTensor(np.zeros((6, 6))))
        refused("T is the zero tensor", FactoredTensor(np.zeros(1), np.ones((6, 1))))

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_not_finite(self, value):
        M = np.eye(6)
        M[2, 3] = M[3, 2] = value
        refused("T is not finite", PackedTensor(M))


class TestRank:
    @pytest.mark.parametrize("name", ["rank", "find"])
    @pytest.mark.parametrize("value", [0, -1, -100])
    def test_below_one(self, name, value):
        refused(f"{name} must be at least 1; got {value}", **{name: value})

    @pytest.mark.parametrize("name", ["rank", "find"])
    def test_above_the_dimension_of_sym2(self, name):
        refused(rf"{name} must be at most 10; got 11: so many squares of vectors of dimension 4", **{name: 11})

    @pytest.mark.parametrize("name", ["rank", "find"])
    @pytest.mark.parametrize("value", [2.0, 2.5, "2", np.nan, [2], True, np.ones(2)])
    def test_no_whole_number(self, name, value):
        refused(f"{name} must be a whole number or None; got ", **{name: value})

    def test_find_beyond_rank(self):
        refused("find must be at most rank = 2; got 3", rank=2, find=3)

    def test_whole_numbers_of_numpy_will_do(self):
        assert decompose(GOOD, np.int32(2), random_state=0).rank == 2


class TestEps:
    @pytest.mark.parametrize("value", [-1.0, -1e-300, np.nan, np.inf, -np.inf])
    def test_out_of_range(self, value):
        refused(f"eps must be finite and not negative; got {value}", eps=value)

    @pytest.mark.parametrize("value", ["0.1", "small", [0.1], 1j, True, object()])
    def test_no_number(self, value):
        refused("eps must be a number or None; got ", eps=value)

    @pytest.mark.parametrize("value", [1.2, 5.0, 1e300])
    @pytest.mark.parametrize("rank", [2, None])
    def test_above_the_largest_eigenvalue(self, value, rank):
        refused(
            r"eps must lie below the largest eigenvalue of T, 1\.\d+; got .*: nothing would be left",
            eps=value,
            rank=rank,
        )

    def test_in_the_units_of_the_tensor(self):
        refused(r"eps must lie below the largest eigenvalue of T, 1\.\d+e\+100; got 5e\+100", 1e100 * GOOD, eps=5e100)
        assert decompose(1e100 * GOOD, eps=1e99, random_state=0).rank == 2

    @pytest.mark.parametrize("value", [0, 0.2, np.float32(0.2), np.array(0.2)])
    def test_numbers_of_any_kind_will_do(self, value):
        with np.errstate(all="raise"):
            result = decompose(planted_tensor(D, 2, 0.0, random_state=0).tensor, 2, eps=value, random_state=0)
        assert result.eps_assumed == pytest.approx(float(value))


class TestKnown:
    @pytest.mark.parametrize("known", [np.ones(4), np.ones((2, 3)), np.ones((1, 1, 4)), 1.0, np.zeros((0, 3))])
    def test_shape(self, known):
        message = rf"known must hold .*components as rows, shape \(m, 4\); got shape {re.escape(str(np.shape(known)))}"
        refused(message, known=known)

    @pytest.mark.parametrize("known", ["abc", np.eye(4)[:1].astype(complex), np.eye(4)[:1].astype(str), [[1, 2], [3]]])
    def test_dtype(self, known):
        refused("known must hold real components as rows", known=known)

    @pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
    def test_rows_that_are_no_directions(self, value):
        known = np.eye(4)[:2]
        known[1, 1] = value
        refused("known must hold finite rows that are not zero", known=known)

    def test_more_than_the_rank(self):
        refused("known holds 3 components, more than rank = 2", rank=2, known=np.eye(4)[:3])

    def test_twice_the_same(self):
        known = np.array([[1.0, 0, 0, 0], [0, 1, 0, 0], [-1, 0.1, 0, 0]])
        refused("known holds one component twice: rows 0 and 2 are less than 6 degrees apart", known=known)


class TestRandomState:
    @pytest.mark.parametrize("value", [-1, 1.5, "seed", object()])
    def test_bad_values(self, value):
        with pytest.raises(ValueError, match=r"random_state must be None, a whole number of at least 0, or .*; got "):
            decompose(GOOD, random_state=value)


class TestMemory:
    def test_too_large(self):
        T = np.broadcast_to(np.float32(1), (1500,) * 4)
        message = (
            r"a tensor of dimension 1500 needs 5\d{3}\.\d GB packed, and [\d.]+ GB are free: use float32, a machine"
        )
        refused(message, T, MemoryError)


class TestOrder:
    @pytest.mark.parametrize(
        "arguments",
        [
            {"rank": 0},
            {"find": 11},
            {"eps": -1.0},
            {"known": np.ones((1, 3))},
            {"random_state": "x"},
            {"rank": 2, "find": 3},
        ],
    )
    def test_arguments_are_checked_before_a_large_tensor_is_read(self, monkeypatch, arguments):
        monkeypatch.setattr(PackedTensor, "from_dense", lambda *args: pytest.fail("the tensor was read"))
        with pytest.raises(ValueError, match=r"^(rank|find|eps|known|random_state) must "):
            decompose(GOOD, **arguments)
