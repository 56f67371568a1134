"""Outliers, rare activity, and noise in few directions: what looks alike to a norm or a weight, and is not."""

import warnings

import numpy as np
import pytest

from quartic import DecompositionWarning, SpectralDictionaryLearning
from quartic.datasets import nice_samples
from quartic.metrics import match
from quartic.samples import Limit, points_nowhere, shared_planes, trim


@pytest.mark.parametrize("share", [0.006, 0.02, 0.05])
def test_many_outliers_in_no_direction_are_left_out(share):
    """More than 0.5% of the samples, so that a limit by the longest of them would let them pass."""
    data = nice_samples(8000, 10, p=0.3, coefficients="laplace", random_state=1)
    rng = np.random.default_rng(2)
    Y = data.samples + 5.0
    gross = rng.choice(8000, round(share * 8000), replace=False)
    Y[gross] += 200 * rng.standard_normal((gross.size, 10))
    model = SpectralDictionaryLearning().fit(Y)
    assert model.report_.trimmed == gross.size
    assert model.status_.code == "complete"
    assert match(data.components, model.components_).found(0.99) == 10


@pytest.mark.parametrize("p", [0.002, 0.008])
def test_rare_activity_is_no_outlier(p):
    """A few percent of samples far longer than the others, which are noise: but in few directions."""
    data = nice_samples(20_000, 12, p=p, coefficients="gaussian", dictionary="orthonormal", snr=30, random_state=3)
    weights, trimmed = trim(data.samples, None)
    assert weights is None
    assert trimmed == 0


def test_rows_that_point_nowhere():
    rng = np.random.default_rng(0)
    stretched = rng.standard_normal((400, 8)) * np.geomspace(1, 30, 8)
    assert points_nowhere(stretched)
    assert points_nowhere(rng.standard_cauchy((400, 1)) * stretched)
    atoms = rng.standard_normal((24, 8))
    assert not points_nowhere(rng.standard_normal((400, 1)) * atoms[rng.integers(24, size=400)])


@pytest.mark.parametrize("draw", [0, 1])
def test_noise_in_one_direction_is_not_certified_as_an_atom(draw):
    """White noise is large in one whitened direction of an ill-conditioned dictionary; weights give it light tails."""
    data = nice_samples(8000, 8, p=0.03, coefficients="gaussian", snr=30, random_state=draw)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DecompositionWarning)
        model = SpectralDictionaryLearning().fit(data.samples)
    nearest = np.max(match(data.components, model.components_).table, axis=0)
    assert np.all(nearest[model.certified_] > 0.5)


def rare_pair(m, d, p, together, rng):
    """Laplace sources, and a pair of atoms of their variance, active in a share of the samples."""
    first = rng.random(m) < p
    second = rng.random(m) < np.where(first, together, p * (1 - together) / (1 - p))
    active = np.stack((first, second), axis=1)
    pair = active * rng.standard_normal((m, 2)) / np.sqrt(p)
    codes = np.concatenate((rng.laplace(size=(m, d - 2)) / np.sqrt(2), pair), axis=1)
    return codes @ rng.standard_normal((d, d)), np.any(active, axis=1)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("m", "p"), [(5000, 0.005), (20_000, 0.002), (20_000, 0.01)])
@pytest.mark.parametrize("together", [0.0, 0.8])
@pytest.mark.parametrize("d", [4, 8, 16])
def test_a_rare_pair_is_not_trimmed(seed, m, p, together, d):
    Y, _ = rare_pair(m, d, p, together or p, np.random.default_rng(seed))
    assert trim(Y, None) == (None, 0)


@pytest.mark.parametrize("seed", range(6))
def test_gross_samples_beside_a_rare_pair_are(seed):
    rng = np.random.default_rng(seed)
    Y, active = rare_pair(20_000, 8, 0.005, 0.8, rng)
    gross = rng.choice(np.flatnonzero(~active), 5, replace=False)
    Y[gross] = 2e3 * rng.standard_normal((5, 8))
    kept, count = trim(Y, None)
    assert count == 5
    np.testing.assert_array_equal(np.flatnonzero(kept == 0), np.sort(gross))


@pytest.mark.parametrize("seed", range(6))
def test_the_longest_samples_of_heavy_tails_lie_along_atoms(seed):
    """Student's t with three degrees of freedom: the longest are 20 to 40 times as long as most."""
    rng = np.random.default_rng(seed)
    Y = rng.standard_t(3, (20_000, 4)) @ rng.standard_normal((4, 4))
    assert trim(Y, None) == (None, 0)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("share", [0.01, 0.1])
def test_a_gross_sensor_is_a_source(seed, share):
    rng = np.random.default_rng(seed)
    Y = rng.laplace(size=(5000, 8)) @ rng.standard_normal((8, 8))
    Y[:, 0] += 50 * np.std(Y) * rng.standard_normal(5000) * (rng.random(5000) < share)
    assert trim(Y, None) == (None, 0)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["one", "along an atom", "copies", "unit"])
def test_absurd_rows_go_whatever_their_direction(seed, kind):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((8, 8))
    Y = rng.laplace(size=(20_000, 8)) @ A
    rows = np.sort(rng.choice(20_000, {"copies": 3, "unit": 50}.get(kind, 1), replace=False))
    if kind == "unit":
        Y[rows] *= 1e3
    else:
        Y[rows] = {"one": 1e6 * rng.standard_normal(8), "along an atom": 1e3 * A[0], "copies": 9999.0}[kind]
    kept, count = trim(Y, None)
    assert count == len(rows)
    np.testing.assert_array_equal(np.flatnonzero(kept == 0), rows)


@pytest.mark.parametrize("seed", range(10))
def test_random_directions_share_no_plane(seed):
    rng = np.random.default_rng(seed)
    for k, d in ((5, 3), (15, 4), (100, 8), (300, 16)):
        assert shared_planes(60 * rng.standard_normal((k, d))) == []
    atoms = 60 * rng.standard_normal((2, 8))
    planes = shared_planes(rng.standard_normal((20, 2)) @ atoms + 0.3 * rng.standard_normal((20, 8)))
    assert [plane.axes.shape[1] for plane, _ in planes] == [2]


def test_the_limit_does_not_depend_on_where_rare_samples_are(rng):
    Y, active = rare_pair(20_000, 4, 0.002, 0.8, rng)
    Y[active] *= 3
    limit = Limit.of(Y, 20_000)
    assert limit.planes
    parts = np.concatenate([limit.gross(part) for part in np.array_split(Y, 7)])
    np.testing.assert_array_equal(parts, limit.gross(Y))
    assert np.sum(np.asarray(limit.norms(Y))[active] > limit.norm) > 0  # long, and kept
