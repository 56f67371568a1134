"""Outliers, rare activity, and noise in few directions: what looks alike to a norm or a weight, and is not."""

import warnings

import numpy as np
import pytest

from quartic import DecompositionWarning, SpectralDictionaryLearning
from quartic.datasets import nice_samples
from quartic.metrics import match
from quartic.samples import points_nowhere, trim


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
