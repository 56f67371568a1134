"""Chunks of every array library, on the device that they are on: what is heavy is computed there."""

import numpy as np
import pytest
from conftest import LIBRARIES, library

from quartic import Collection, Covariance, FourthMoment, SpectralDictionaryLearning, SpectralICA
from quartic.datasets import nice_samples

da = pytest.importorskip("dask.array")

pytestmark = pytest.mark.usefixtures("dispatch")

D, M, ROWS = 6, 9000, 2000


@pytest.fixture(params=[name for name in LIBRARIES if name != "numpy"])  # which the others are compared with
def xp(request):
    return library(request.param)


def samples(seed, dtype=np.float64):
    data = nice_samples(M, D, snr=10.0, dictionary="orthonormal", random_state=seed)
    return data.samples.astype(dtype)


def cut(xp, Y):
    """Chunks of a library, made where they are used."""
    return da.from_array(Y, chunks=(ROWS, D)).map_blocks(xp.asarray, dtype=Y.dtype, meta=np.empty((0, 0), Y.dtype))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_answer_of_samples_in_memory(xp, seed, dtype):
    Y = samples(seed, dtype)
    model, expected = SpectralDictionaryLearning(D).fit(cut(xp, Y)), SpectralDictionaryLearning(D).fit(Y)
    close = xp.within(1e-6 if dtype == np.float64 else 1e-3)
    np.testing.assert_allclose(xp.numpy(model.components_), expected.components_, atol=close)
    assert np.all(xp.numpy(model.certified_))


def test_passes_stay_where_the_chunks_are(xp, seed, monkeypatch):
    """No chunk is copied to the host on the way: all that the tasks are given are arrays of the library."""
    from quartic import distributed, passes

    seen = []
    for name in ("surveyed", "refined"):
        task = getattr(passes, name)

        def watched(piece, *rest, task=task, **options):
            seen.append((task.__name__, xp.owns(piece.rows)))
            return task(piece, *rest, **options)

        monkeypatch.setattr(distributed, name, watched)
    monkeypatch.setattr(distributed, "SUBSAMPLE_LEAST", 300)
    monkeypatch.setattr("quartic.learn.plan.ROWS", 300)
    SpectralDictionaryLearning(D).fit(cut(xp, samples(seed)))
    assert set(seen) == {("surveyed", True), ("refined", True)}


def test_transform_gives_chunks_of_the_library(xp, seed):
    Y = samples(seed)
    X = cut(xp, Y)
    model = SpectralICA(D).fit(X)
    sources = model.transform(X)
    first = sources.to_delayed().ravel()[0].compute()
    np.testing.assert_allclose(xp.numpy(first), SpectralICA(D).fit(Y).transform(Y)[:ROWS], atol=xp.within(1e-5))


def test_checkpoints(xp, seed, tmp_path, monkeypatch):
    monkeypatch.setattr("quartic.distributed.SUBSAMPLE_LEAST", 300)
    X, path = cut(xp, samples(seed)), tmp_path / "run.npz"
    model = SpectralDictionaryLearning(D).fit(Collection(X, checkpoint=path))
    read = []
    again = SpectralDictionaryLearning(D).fit(Collection(X, checkpoint=path, callback=lambda *_: read.append(1)))
    assert not read
    np.testing.assert_array_equal(xp.numpy(again.components_), xp.numpy(model.components_))


def test_moments(xp, seed):
    Y = samples(seed)
    frame = Covariance().update(Y).frame()
    found = FourthMoment(frame, like=xp.asarray(Y[:0])).update(cut(xp, Y))
    np.testing.assert_allclose(xp.numpy(found.fourth), FourthMoment(frame).update(Y).fourth, rtol=1e-9, atol=1e-9)
