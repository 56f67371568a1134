"""How many components: the cut of the spectrum, chosen by certificate."""

import numpy as np
import pytest

from quartic._arrays import pack_rank_one, packed_dim
from quartic.algorithms.recover import recover
from quartic.algorithms.select import TRIALS, drops, lowest_drop, rank_above, rank_by_certificate
from quartic.algorithms.truncate import Spectrum
from quartic.datasets import planted_tensor, random_orthonormal
from quartic.decomposition import decompose
from quartic.metrics import match
from quartic.tensors import PackedTensor

FLOOR = 1e-12


def exact_spectrum(M, width):
    """All eigenvalues and the leading vectors, by LAPACK: no residual."""
    values, vectors = np.linalg.eigh(M)
    values, vectors = values[::-1], vectors[:, ::-1]
    return Spectrum(values, vectors[:, :width], np.zeros(width), np.zeros((width, width)), 1, True)


def select(M, most, rng, **options):
    spectrum = exact_spectrum(M, most)
    return rank_by_certificate(spectrum, most, FLOOR, lambda k: recover(spectrum.head(k).flattened(), rng), **options)


class TestDrops:
    def test_over_the_largest_magnitude_beyond(self):
        values = np.array([8.0, 4.0, 2.0, 0.5, -1.0])
        np.testing.assert_allclose(drops(values, 5, FLOOR), [2, 2, 2, 0.5, 0])

    def test_what_is_beyond_may_be_negative(self):
        np.testing.assert_allclose(drops(np.array([4.0, 3.0, -6.0]), 2, FLOOR), [4 / 6, 3 / 6])

    def test_literally(self, rng):
        values = np.sort(rng.standard_normal(12))[::-1]
        ratio = drops(values, 12, FLOOR)
        for k in range(1, 13):
            beyond = max((abs(v) for v in values[k:]), default=0.0)
            expected = values[k - 1] / max(beyond, FLOOR) if values[k - 1] > FLOOR else 0.0
            assert ratio[k - 1] == pytest.approx(expected)

    def test_what_lies_below_the_floor_is_zero(self):
        values = np.array([1.0, 1e-13, 1e-30])
        np.testing.assert_allclose(drops(values, 3, FLOOR), [1e12, 0, 0])

    def test_no_more_than_asked_for_and_than_there_are(self):
        values = np.array([3.0, 2.0, 1.0])
        assert drops(values, 2, FLOOR).shape == (2,)
        assert drops(values, 7, FLOOR).shape == (3,)

    @pytest.mark.parametrize(
        ("values", "most", "expected"),
        [
            ([3.0, 2.9, 0.1, 0.09], 3, 2),
            ([3.0, 2.9, 0.1, 0.09], 1, 1),
            ([1.0, 1.0, 1.0], 3, 3),
            ([-1.0, -2.0], 2, 1),
            ([90.0, 3.0, 1.0, 0.9, 0.8], 4, 2),  # the lower of two drops, though not the sharper
            ([1.3, 1.2, 0.9, 0.8], 3, 2),  # none: the sharpest
        ],
    )
    def test_lowest(self, values, most, expected):
        assert lowest_drop(np.array(values), most, FLOOR) == expected


class TestRankAbove:
    def test_counts_what_exceeds_eps(self):
        chosen = rank_above(np.array([3.0, 2.0, 1.0, 0.5]), 0.9, 4)
        assert (chosen.rank, chosen.convincing) == (3, True)
        assert "3 eigenvalues exceed" in chosen.reason
        assert chosen.components is None

    def test_an_error_at_eps_itself_does_not_count(self):
        assert rank_above(np.array([1.0, 0.3 * (1 + 1e-6), 0.3, 0.3]), 0.3, 4).rank == 1

    def test_no_more_than_there_can_be(self):
        chosen = rank_above(np.array([3.0, 2.0, 1.0]), 0.1, 2)
        assert (chosen.rank, chosen.convincing) == (2, False)
        assert "more than the 2 orthogonal components" in chosen.reason


class TestRankByCertificate:
    @pytest.mark.parametrize(
        "error", ["gaussian", "gaussian-symmetric", "identity", "covariance", "cancel", "low-rank"]
    )
    @pytest.mark.parametrize("n", [1, 6, 16])
    def test_right_for_errors_of_a_third(self, seed, rng, error, n):
        p = planted_tensor(16, n, 0.25, error=error, random_state=seed)
        chosen = select(p.packed, 16, rng)
        assert (chosen.rank, chosen.convincing) == (n, True)
        assert match(p.components, chosen.components).found(0.9) == n
        assert f"{n} of {n} dimensions are certified" in chosen.reason

    def test_an_error_of_low_rank_makes_a_sharper_drop_below_it(self, seed, rng):
        p = planted_tensor(16, 5, 0.0, random_state=seed)
        V = np.linalg.qr(rng.standard_normal((packed_dim(16), 3)))[0]
        M = p.packed + 0.2 * V @ V.T
        values = np.linalg.eigvalsh(M)[::-1]
        assert np.argmax(drops(values, 16, FLOOR)) + 1 == 8
        chosen = select(M, 16, rng)
        assert (chosen.rank, chosen.convincing) == (5, True)

    def test_weights_from_1_to_30(self, seed, rng):
        w = 30.0 ** np.linspace(0, 1, 10)
        p = planted_tensor(16, 10, 0.01, weights=w, random_state=seed)
        chosen = select(p.packed, 16, rng)
        assert (chosen.rank, chosen.convincing) == (10, True)
        assert match(p.components, chosen.components).found(0.99) == 10

    def test_weights_from_1_to_300(self, seed):
        """Heavy components make sharper drops than the error; the light ones have to be resolved all the same."""
        w = np.maximum(300 ** np.random.default_rng(seed).uniform(0, 1, 10), 1)
        p = planted_tensor(16, 10, 0.3, weights=w, random_state=seed)
        assert decompose(PackedTensor(p.packed), random_state=seed).rank == 10

    def test_two_groups_of_weights_are_not_cut_apart(self, seed, rng):
        w = np.r_[np.full(4, 20.0), np.full(5, 1.0)]
        p = planted_tensor(16, 9, 0.2, weights=w, random_state=seed)
        assert np.argmax(drops(np.linalg.eigvalsh(p.packed)[::-1], 16, FLOOR)) + 1 == 4
        assert select(p.packed, 16, rng).rank == 9

    def test_without_error_there_is_nothing_but_rounding(self, seed, rng):
        p = planted_tensor(12, 7, 0.0, random_state=seed)
        chosen = select(p.packed, 12, rng)
        assert (chosen.rank, chosen.convincing) == (7, True)
        assert "nothing but rounding" in chosen.reason

    def test_noise_alone_has_no_gap(self, seed, rng):
        noise = planted_tensor(16, 1, 1.0, random_state=seed).error
        chosen = select(noise, 16, rng)
        assert not chosen.convincing
        assert chosen.components is None
        assert "no clear gap" in chosen.reason

    def test_a_gap_without_components_does_not_convince(self, seed, rng):
        V = np.linalg.qr(rng.standard_normal((packed_dim(20), 3)))[0]
        chosen = select(V @ V.T, 20, rng)
        assert chosen.rank == 3
        assert not chosen.convincing
        assert "only 0 of 3 dimensions are certified" in chosen.reason

    def test_nothing_is_an_answer_where_something_is_known(self, seed, rng):
        noise = planted_tensor(16, 1, 1.0, random_state=seed).error
        chosen = select(noise, 16, rng, least=0)
        assert (chosen.rank, chosen.convincing) == (0, True)

    def test_few_proposals_are_tried(self, rng):
        tried = []
        A = random_orthonormal(24, 24, rng)
        B = pack_rank_one(A)
        M = (B * 2.0 ** -np.arange(24)) @ B.T
        spectrum = exact_spectrum(M, 24)

        def search(k):
            tried.append(k)
            return np.zeros((0, 24))

        chosen = rank_by_certificate(spectrum, 24, FLOOR, search)
        assert len(tried) == TRIALS
        assert tried == sorted(tried, reverse=True)
        assert not chosen.convincing
