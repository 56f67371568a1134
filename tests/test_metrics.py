"""Matching components, and comparing unmixing with mixing, up to order, sign and length."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from quartic.datasets import random_orthonormal
from quartic.metrics import amari_distance, match


class TestTransformations:
    @pytest.fixture
    def A(self, rng):
        return random_orthonormal(8, 6, rng)

    def test_itself(self, A):
        m = match(A, A)
        assert m.rows.tolist() == m.columns.tolist() == list(range(6))
        np.testing.assert_allclose(m.squared, 1)
        assert m.signs.tolist() == [1] * 6
        assert m.found() == 6

    def test_order_sign_and_length(self, A, rng):
        order, signs = rng.permutation(6), rng.choice([-1, 1], 6)
        B = (A * signs[:, None] * rng.uniform(0.1, 10, (6, 1)))[order]
        m = match(A, B)
        assert m.rows.tolist() == list(range(6))
        assert order[m.columns].tolist() == list(range(6))
        assert m.signs.tolist() == signs.tolist()
        np.testing.assert_allclose(m.squared, 1)
        np.testing.assert_allclose(m.table, np.eye(6)[:, order], atol=1e-12)

    @pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e200, 1e300])
    def test_no_square_over_or_underflows(self, A, scale):
        np.testing.assert_allclose(match(scale * A, A).squared, 1)
        np.testing.assert_allclose(match(scale * A, A / scale).squared, 1)

    def test_a_known_angle(self):
        m = match([[1.0, 0.0]], [[np.cos(0.3), -np.sin(0.3)]])
        assert m.squared[0] == pytest.approx(np.cos(0.3) ** 2)
        assert m.found(np.cos(0.3) ** 2 - 1e-9) == 1
        assert m.found(np.cos(0.3) ** 2 + 1e-9) == 0

    def test_every_library(self, A, xp):
        m = match(xp.asarray(A), xp.asarray(A[::-1].copy()))
        assert m.columns.tolist() == [5, 4, 3, 2, 1, 0]

    def test_integers_and_lists(self):
        assert match([[1, 0], [0, 2]], np.array([[0, 3], [1, 0]])).columns.tolist() == [1, 0]


class TestSizes:
    def test_the_smaller_set_is_matched(self, rng):
        A = random_orthonormal(8, 6, rng)
        m = match(A, A[[4, 1]])
        assert m.rows.tolist() == [1, 4]
        assert m.columns.tolist() == [1, 0]
        assert m.table.shape == (6, 2)
        assert m.found() == 2
        m = match(A[[4, 1]], A)
        assert m.columns.tolist() == [4, 1]
        assert m.table.shape == (2, 6)

    def test_each_partner_is_used_once(self):
        A = np.eye(3)
        m = match(A, [A[0], A[0], A[0]])
        assert m.found() == 1
        assert sorted(m.columns.tolist()) == [0, 1, 2]

    def test_none(self):
        m = match(np.zeros((0, 4)), np.eye(4))
        assert m.squared.shape == m.rows.shape == (0,)
        assert m.found() == 0
        assert m.table.shape == (0, 4)

    def test_a_zero_row_matches_nothing(self):
        m = match(np.eye(3), np.array([[1.0, 0, 0], [0, 0, 0], [0, 0, 1.0]]))
        assert m.found() == 2
        assert m.squared[1] == 0
        assert m.signs[1] == 0


def test_the_sum_is_largest(rng):
    A, B = rng.standard_normal((4, 3)), rng.standard_normal((5, 3))
    m = match(A, B)
    best = max(sum(m.table[i, j] for i, j in enumerate(p)) for p in itertools.permutations(range(5), 4))
    assert m.squared.sum() == pytest.approx(best)


@given(
    st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(1, 4)).flatmap(
        lambda n: st.tuples(
            *(
                hnp.arrays(np.float64, (k, n[2]), elements=st.floats(allow_nan=False, allow_infinity=False))
                for k in n[:2]
            )
        )
    )
)
def test_any_finite_rows(sets):
    A, B = sets
    m = match(A, B)
    assert m.table.shape == (len(A), len(B))
    assert np.all((m.table >= 0) & (m.table <= 1))
    assert len(m.rows) == min(len(A), len(B))
    assert np.all(np.diff(m.rows) > 0)
    assert len(set(m.columns.tolist())) == len(m.columns)
    np.testing.assert_array_equal(m.squared, m.table[m.rows, m.columns])
    np.testing.assert_allclose(match(B, A).table, m.table.T, atol=1e-12)


@pytest.mark.parametrize(
    ("A", "B", "message"),
    [
        (np.ones(3), np.eye(3), r"A must have components as rows, shape \(n, d\); got shape \(3,\)"),
        (np.eye(3), np.ones((1, 1, 3)), r"B must have components as rows, shape \(n, d\); got shape \(1, 1, 3\)"),
        (np.eye(3), np.eye(4), r"A and B must have components of one length; got 3 and 4"),
        (np.array([[1.0, np.nan]]), np.eye(2), r"A .*finite"),
        (np.eye(2), np.array([[1.0, np.inf]]), r"B .*finite"),
    ],
)
def test_bad_input(A, B, message):
    with pytest.raises(ValueError, match=message):
        match(A, B)


class TestAmariDistance:
    @pytest.fixture
    def A(self, rng):
        return rng.standard_normal((7, 5))

    def test_nothing_at_the_inverse_up_to_order_sign_and_length(self, A, rng):
        W = np.linalg.pinv(A)
        scale = rng.uniform(0.1, 10, (5, 1)) * rng.choice([-1, 1], (5, 1))
        assert amari_distance((scale * W)[rng.permutation(5)], A) == pytest.approx(0, abs=1e-12)
        assert amari_distance(1e200 * W, 1e-200 * A) == pytest.approx(0, abs=1e-12)

    def test_one_where_every_source_is_everywhere(self):
        assert amari_distance(np.ones((4, 4)), np.eye(4)) == pytest.approx(1)

    def test_a_rotation_of_two_of_three(self):
        c, s = np.cos(0.3), np.sin(0.3)
        W = np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])
        assert amari_distance(W, np.eye(3)) == pytest.approx(4 * np.tan(0.3) / 12)  # two rows, two columns; 2 n (n - 1)

    def test_between_nothing_and_one(self, A, rng):
        near = np.linalg.pinv(A + 1e-3 * rng.standard_normal(A.shape))
        assert 0 < amari_distance(near, A) < 0.02 < amari_distance(rng.standard_normal((5, 7)), A) < 1

    def test_one_source(self):
        assert amari_distance([[2.0]], [[-3.0]]) == 0

    def test_every_library(self, A, xp):
        assert amari_distance(xp.asarray(np.linalg.pinv(A)), xp.asarray(A)) == pytest.approx(0, abs=1e-12)

    @pytest.mark.parametrize(
        ("W", "A", "message"),
        [
            (np.eye(2), np.eye(3), "must fit"),
            (np.zeros((0, 2)), np.zeros((2, 0)), "must fit"),
            (np.eye(2)[0], np.eye(2), "W must be a matrix"),
            (np.eye(2), np.full((2, 2), np.nan), "A must be a matrix of finite numbers"),
            ([[1.0, 0.0], [0.0, 0.0]], np.eye(2), "row or a column of zeros"),
            ([[1.0, 0.0], [1.0, 0.0]], np.eye(2), "row or a column of zeros"),
        ],
    )
    def test_errors_name_what_is_wrong(self, W, A, message):
        with pytest.raises(ValueError, match=message):
            amari_distance(W, A)
