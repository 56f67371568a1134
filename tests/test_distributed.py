"""Samples in Dask collections: the answer is that of samples in memory, however they are cut, read or interrupted."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import quartic
from quartic import Collection, Covariance, FourthMoment, SpectralDictionaryLearning, SpectralICA, _checkpoint
from quartic.datasets import nice_samples
from quartic.distributed import _tree
from quartic.samples import Held

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

CLOSE = 1e-9
D, M = 6, 9000


def samples(seed, m=M, d=D, **options):
    given = {"snr": 10.0, "dictionary": "orthonormal", "random_state": seed}
    return nice_samples(m, d, **(given | options)).samples


def cut(Y, rows):
    return da.from_array(Y, chunks=(rows, Y.shape[1]))


def same(a, b, close=CLOSE):
    np.testing.assert_allclose(a.components_, b.components_, atol=close)
    np.testing.assert_allclose(a.certificates_, b.certificates_, atol=1e-6)
    assert a.status_.code == b.status_.code


class TestSameAnswer:
    @pytest.mark.parametrize("rows", [700, 4001, M])
    @pytest.mark.parametrize("n", [None, D])
    def test_for_any_chunks(self, seed, rows, n):
        Y = samples(seed)
        same(SpectralDictionaryLearning(n).fit(Y), SpectralDictionaryLearning(n).fit(cut(Y, rows)))

    def test_more_samples_than_the_subsample(self, seed, monkeypatch):
        Y = samples(seed, m=20_000)
        monkeypatch.setattr("quartic.distributed.SUBSAMPLE_LEAST", 300)  # so that more rows are fetched, too
        model = SpectralDictionaryLearning(D).fit(cut(Y, 3000))
        assert model.n_iter_ > 0
        same(SpectralDictionaryLearning(D).fit(Y), model)

    def test_of_both_estimators(self, seed):
        Y = samples(seed)
        same(SpectralICA(D).fit(Y), SpectralICA(D).fit(cut(Y, 1000)))

    def test_without_refinement(self, seed):
        Y = samples(seed)
        same(
            SpectralDictionaryLearning(D, refine=False).fit(Y),
            SpectralDictionaryLearning(D, refine=False).fit(cut(Y, 800)),
        )

    def test_more_atoms_than_features(self, seed):
        data = nice_samples(20_000, 12, d=8, p=0.1, dictionary="gaussian", random_state=seed)
        same(
            SpectralDictionaryLearning(12).fit(data.samples),
            SpectralDictionaryLearning(12).fit(cut(data.samples, 3000)),
        )

    def test_single_precision(self, seed):
        Y = samples(seed).astype(np.float32)
        model = SpectralDictionaryLearning(D).fit(cut(Y, 1500))
        same(SpectralDictionaryLearning(D).fit(Y), model, 1e-4)

    def test_whole_numbers_and_columns_in_chunks(self, seed):
        Y = np.round(10 * samples(seed)).astype(np.int32)
        chunked = da.from_array(Y, chunks=(2000, 2))
        same(SpectralDictionaryLearning(D).fit(Y), SpectralDictionaryLearning(D).fit(chunked))

    def test_weights(self, seed, rng):
        Y = samples(seed)
        w = rng.uniform(0, 2, M)
        w[::7] = 0
        expected = SpectralDictionaryLearning(D).fit(Y, sample_weight=w)
        for given in (w, list(w), da.from_array(w, chunks=901)):
            same(expected, SpectralDictionaryLearning(D).fit(cut(Y, 1300), sample_weight=given))

    def test_dataframes(self, seed):
        table = pd.DataFrame(samples(seed), columns=list("abcdef"))
        parts = dd.from_pandas(table, npartitions=5)
        model = SpectralDictionaryLearning(D).fit(parts)
        same(SpectralDictionaryLearning(D).fit(table), model)
        assert model.feature_names_in_.tolist() == list("abcdef")
        np.testing.assert_allclose(model.transform(parts).compute(), model.transform(table))
        with pytest.raises(ValueError, match="feature names"):
            model.transform(parts.rename(columns={"a": "z"}))
        with pytest.raises(ValueError, match="set_output must be left"):
            model.set_output(transform="pandas").transform(parts)

    def test_empty_chunks_and_unknown_lengths(self, seed):
        Y = samples(seed)
        X = cut(Y, 900)
        X = X[X[:, 0] > 0]  # lengths are not known
        same(SpectralDictionaryLearning(D).fit(Y[Y[:, 0] > 0]), SpectralDictionaryLearning(D).fit(X))
        padded = da.concatenate([cut(Y, 900), da.zeros((0, D))])
        same(SpectralDictionaryLearning(D).fit(Y), SpectralDictionaryLearning(D).fit(padded))


class TestOutliers:
    def test_are_left_out(self, seed, rng):
        Y = samples(seed)
        Y[rng.choice(M, 5, replace=False)] *= 1e4
        a, b = (SpectralDictionaryLearning(D).fit(X) for X in (Y, cut(Y, 1100)))
        assert a.report_.trimmed == b.report_.trimmed == 5
        same(a, b)

    def test_that_fill_a_chunk(self, seed):
        """What is long is not seen from inside of a chunk: it is read once more."""
        Y = samples(seed, m=20_000)
        Y[1000:1050] *= 1e3
        X = da.concatenate([cut(Y[:1000], 1000), cut(Y[1000:1050], 50), cut(Y[1050:], 2000)])
        a, data = Held.trimmed_from(Y, None), Collection(X)
        assert a.trimmed == data.trimmed == 50
        assert data.passes == 2
        np.testing.assert_allclose(a.covariance().covariance, data.covariance().covariance, rtol=1e-10)

    def test_among_samples_without_weight(self, seed):
        Y = samples(seed, m=20_000)
        w = np.zeros(20_000)
        w[::70] = 1
        Y[[70, 700, 7000]] *= 1e3
        a, data = Held.trimmed_from(Y, w), Collection(cut(Y, 3000), w)
        assert a.trimmed == data.trimmed == 3

    def test_chunks_of_another_size(self, seed):
        """A chunk of tiny samples is no reason to refuse all."""
        Y = samples(seed).astype(np.float32)
        Y[2000:3000] *= 1e-19
        assert Collection(cut(Y, 1000)).count == M

    def test_that_are_none_after_all(self, seed, rng):
        """A chunk of short samples thinks a usual one too long; it is counted in the end."""
        Y = samples(seed, m=20_000)
        Y[:500] *= 1e-2
        Y[10] = Y[5000]
        a, data = Held.trimmed_from(Y, None), Collection(cut(Y, 500))
        assert a.trimmed == data.trimmed == 0
        assert data.count == 20_000
        np.testing.assert_allclose(a.covariance().covariance, data.covariance().covariance, rtol=1e-10)
        np.testing.assert_allclose(a.covariance().half(0), data.covariance().half(0), rtol=1e-10)


class TestTransform:
    def test_is_lazy_and_the_same(self, seed):
        Y = samples(seed)
        X = cut(Y, 1000)
        for model in (SpectralDictionaryLearning(D).fit(Y), SpectralICA(D).fit(Y)):
            codes = model.transform(X)
            assert isinstance(codes, da.Array)
            assert codes.chunks == (X.chunks[0], (D,))
            np.testing.assert_array_equal(codes.compute(), model.transform(Y))
            np.testing.assert_allclose(model.inverse_transform(codes).compute(), Y, atol=1e-8)
            np.testing.assert_array_equal(model.transform(Collection(X)).compute(), codes.compute())

    def test_of_unknown_lengths(self, seed):
        Y = samples(seed)
        X = cut(Y, 1000)
        model = SpectralICA(D).fit(Y)
        for least in (0.0, np.sort(Y[:, 0])[-3]):  # most chunks are empty then
            found = model.transform(X[X[:, 0] > least]).compute()
            np.testing.assert_allclose(found, model.transform(Y[Y[:, 0] > least]))
        with pytest.raises(ValueError, match="5 features, but 6"):
            model.transform(X[:, :5])


class TestAccumulators:
    def test_take_collections(self, seed, rng):
        Y, w = samples(seed), rng.uniform(0, 2, M)
        X = cut(Y, 1234)
        expected, found = Covariance().update(Y, w), Covariance().update(X, w)
        for one in ("mean", "covariance", "effective", "rows", "count"):
            np.testing.assert_allclose(getattr(found, one), getattr(expected, one), rtol=1e-12)
        frame = expected.frame()
        expected, found = FourthMoment(frame).update(Y, w), FourthMoment(frame).update(X, w)
        np.testing.assert_allclose(found.fourth, expected.fourth, rtol=1e-12)

    def test_go_on_after_what_they_have(self, seed):
        Y = samples(seed)
        frame = Covariance().update(Y).frame()
        expected = FourthMoment(frame).update(Y)
        found = FourthMoment(frame).update(Y[:3000]).update(cut(Y[3000:], 1000))
        assert found.rows == found.count == M
        np.testing.assert_allclose(found.fourth, expected.fourth, rtol=1e-12)
        later = FourthMoment(frame).update(cut(Y[3000:], 1000), index=3000).merge(FourthMoment(frame).update(Y[:3000]))
        np.testing.assert_allclose(later.fourth, expected.fourth, rtol=1e-12)

    def test_are_learned_from(self, seed):
        Y, more = np.split(samples(seed, m=2 * M), 2)
        frame = Covariance().update(Y).frame()
        moment = FourthMoment(frame).update(cut(Y, 1000))
        model = SpectralDictionaryLearning(D).fit_moment(moment)
        same(SpectralDictionaryLearning(D, refine=False, frame=frame).fit(Y), model)
        same(model.partial_fit(more), SpectralDictionaryLearning(D, frame=frame).partial_fit(Y).partial_fit(more))
        assert moment.count == M  # the one that was given is not added to
        with pytest.raises(TypeError, match="FourthMoment"):
            model.fit_moment(Y)


def failing(Y, rows, bad):
    """Chunks of which some can not be read."""

    def read(block, block_info=None):
        if block_info[0]["chunk-location"][0] in bad:
            raise OSError("the disk is on fire")
        return block

    return cut(Y, rows).map_blocks(read, dtype=Y.dtype, meta=np.empty((0, D)))


class TestBadChunks:
    def test_are_named(self, seed):
        model = SpectralDictionaryLearning(D)
        with pytest.raises(RuntimeError, match=r"chunk 2 of the samples, rows 2000 to 2999, .*on fire.*errors='skip'"):
            model.fit(failing(samples(seed), 1000, {2}))
        assert not hasattr(model, "components_")

    def test_are_left_out_if_asked(self, seed):
        Y = samples(seed)
        with pytest.warns(RuntimeWarning, match=r"chunk 2 .* left out"):
            model = SpectralDictionaryLearning(D).fit(Collection(failing(Y, 1000, {2}), errors="skip"))
        assert model.n_samples_seen_ == model.report_.samples == M - 1000
        w = np.ones(M)
        w[2000:3000] = 0
        same(SpectralDictionaryLearning(D).fit(Y, sample_weight=w), model)
        without = SpectralDictionaryLearning(D).fit(cut(Y, 1000), sample_weight=w)
        np.testing.assert_allclose(model.components_, without.components_, atol=1e-13)

    @pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 8, 64])
    def test_leave_the_order_of_all_others(self, size):
        """Sums are joined by twos, a power of two on the left: one that is missing moves none of the others."""
        joined = _tree(range(size), lambda k: str(k), lambda a, b: f"({a}{b})")
        assert joined == {1: "0", 2: "(01)", 3: "((01)2)", 5: "(((01)(23))4)"}.get(size, joined)
        assert joined.count("(") == size - 1
        gap = _tree(range(size), lambda k: None if k == 1 else str(k), lambda a, b: a if b is None else f"({a}{b})")
        assert gap == joined.replace("(01)", "0")

    def test_also_where_lengths_are_not_known(self, seed):
        Y = samples(seed)
        bad = failing(Y, 1000, {2})
        bad = bad[bad[:, 0] > -np.inf]
        with pytest.raises(RuntimeError, match=r"chunk 2 of the samples could not be read .*on fire"):
            Collection(bad)
        with pytest.warns(RuntimeWarning, match="left out"):
            given = Collection(bad, errors="skip")
        assert SpectralDictionaryLearning(D).fit(given).n_samples_seen_ == M - 1000

    def test_later_is_an_error(self, seed, tmp_path, monkeypatch):
        """What was counted once can not be left out any more."""
        monkeypatch.setattr("quartic.distributed.SUBSAMPLE_LEAST", 300)
        Y, seen = samples(seed, m=20_000), []

        def read(block, block_info=None):
            if block_info and block_info[0]["chunk-location"][0] == 2:
                seen.append(1)
                if len(seen) > 1:
                    raise OSError("the disk is on fire")
            return block

        X = cut(Y, 1000).map_blocks(read, dtype=Y.dtype, meta=np.empty((0, D)))
        with pytest.raises(RuntimeError, match="was read before, and is counted"):
            SpectralDictionaryLearning(D).fit(Collection(X, errors="skip"))

    def test_what_fails_besides_is_no_bad_chunk(self, seed, monkeypatch):
        def broken(*arguments, **options):
            raise KeyError("a bug")

        monkeypatch.setattr("quartic.distributed.surveyed", broken)
        with pytest.raises(KeyError, match="a bug"):
            SpectralDictionaryLearning(D).fit(Collection(cut(samples(seed), 1000), errors="skip"))

    def test_all_of_them(self, seed):
        Y = samples(seed)
        with pytest.warns(RuntimeWarning, match="left out"), pytest.raises(ValueError, match="no chunk"):
            SpectralDictionaryLearning(D).fit(Collection(failing(Y, 4500, {0, 1}), errors="skip"))

    @pytest.mark.parametrize("errors", ["raise", "skip"])
    def test_bad_samples_are_no_bad_chunk(self, seed, errors):
        Y = samples(seed)
        Y[2345, 1] = np.nan
        with pytest.raises(ValueError, match=r"rows 2000 to 2999: .*NaN"):
            SpectralDictionaryLearning(D).fit(Collection(cut(Y, 1000), errors=errors))

    def test_bad_arguments(self, seed):
        X = cut(samples(seed), 1000)
        for make, words in (
            (lambda: Collection(X, errors="maybe"), "errors must be one of"),
            (lambda: Collection(X, np.ones(3)), "sample_weight must hold 9000 weights"),
            (lambda: Collection(X[:, 0]), "samples as rows"),
            (lambda: Collection(X.astype(complex)), "real numbers"),
            (lambda: SpectralICA().fit(X[:1]), "at least two"),
            (lambda: SpectralICA().fit(Collection(X), sample_weight=np.ones(M)), "must be given to the Collection"),
            (lambda: SpectralICA().fit(X, sample_weight=np.zeros(M)), "sample_weight must be positive"),
            (lambda: SpectralICA(frame=np.eye(3)).fit(X), "frame must be"),
            (lambda: Covariance().update(Collection(X), np.ones(M)), "must be given to the Collection"),
            (lambda: Covariance().update(X, index=np.arange(M)), "index must be that of the first row"),
            (lambda: Covariance().update(X.map_blocks(lambda b: b[1:], dtype=float)), r"should have \(1000, 6\)"),
            (lambda: SpectralICA().fit(X, sample_weight=-np.ones(M)), "at least 0"),
        ):
            with pytest.raises(ValueError, match=words):
                make()


class StopError(Exception):
    pass


def stopped_after(calls):
    """A callback that stops a run after so many batches of chunks."""
    count = 0

    def callback(*_):
        nonlocal count
        count += 1
        if count == calls:
            raise StopError

    return callback


class TestCheckpoint:
    @pytest.fixture(autouse=True)
    def small(self, monkeypatch):
        monkeypatch.setattr("quartic.distributed.GROUP", 4)
        monkeypatch.setattr("quartic.distributed.AHEAD", 0)
        monkeypatch.setattr("quartic.distributed.SUBSAMPLE_LEAST", 300)
        monkeypatch.setattr("quartic.learn.plan.ROWS", 2000)  # fewer than there are, so that all are passed over, too

    def test_a_run_that_is_stopped_anywhere_goes_on(self, seed, tmp_path):
        X = cut(samples(seed, m=20_000), 1000)
        whole = Collection(X)
        read = []
        whole.callback = lambda *_: read.append(1)
        expected = SpectralDictionaryLearning(D).fit(whole)
        assert len(read) >= 15  # batches of chunks
        for calls in range(1, len(read) + 1, 3):
            path = tmp_path / f"{calls}.npz"
            with pytest.raises(StopError):
                SpectralDictionaryLearning(D).fit(
                    Collection(X, checkpoint=path, every=0, callback=stopped_after(calls))
                )
            again = []
            given = Collection(X, checkpoint=path, every=0, callback=lambda *_, seen=again: seen.append(1))
            model = SpectralDictionaryLearning(D).fit(given)
            np.testing.assert_array_equal(model.components_, expected.components_)  # to the last bit
            assert len(again) == len(read) - calls  # nothing is read twice

    def test_waves_of_any_size_sum_alike(self, seed, monkeypatch):
        X = cut(samples(seed), 500)
        expected = SpectralDictionaryLearning(D).fit(X)
        monkeypatch.setattr("quartic.distributed._threads", lambda client: 100)
        monkeypatch.setattr("quartic.distributed.AHEAD", 1)
        calls = []
        model = SpectralDictionaryLearning(D).fit(Collection(X, callback=lambda number, *_: calls.append(number)))
        assert len(calls) == len(set(calls))  # one wave a pass
        np.testing.assert_array_equal(model.components_, expected.components_)

    def test_of_other_data_or_settings_is_refused(self, seed, tmp_path):
        X, path = cut(samples(seed), 1000), tmp_path / "run.npz"
        SpectralDictionaryLearning(D).fit(Collection(X, checkpoint=path))
        before = path.read_bytes()
        for model, given in (
            (SpectralDictionaryLearning(D - 1), X),
            (SpectralDictionaryLearning(D, random_state=1), X),
            (SpectralICA(D), X),
            (SpectralDictionaryLearning(D), X + 1e-9),
            (SpectralDictionaryLearning(D), da.concatenate([X[:-1], X[:1]]).rechunk(X.chunks)),
            (SpectralDictionaryLearning(D), X.rechunk((900, D))),
            (SpectralDictionaryLearning(D), X[:8000]),
        ):
            with pytest.raises(ValueError, match="belongs to other data, chunks or settings"):
                model.fit(Collection(given, checkpoint=path))
        assert path.read_bytes() == before

    def test_needs_a_seed(self, seed, tmp_path):
        X = Collection(cut(samples(seed), 1000), checkpoint=tmp_path / "run.npz")
        with pytest.raises(ValueError, match="random_state must be a whole number"):
            SpectralDictionaryLearning(D, random_state=None).fit(X)

    def test_that_is_damaged_is_refused(self, seed, tmp_path):
        X, path = cut(samples(seed), 1000), tmp_path / "run.npz"
        SpectralDictionaryLearning(D).fit(Collection(X, checkpoint=path))
        held = path.read_bytes()
        for part in (held[: len(held) // 2], b"", b"my thesis"):
            path.write_bytes(part)
            with pytest.raises(ValueError, match=r"checkpoint can not be read.*start anew"):
                SpectralDictionaryLearning(D).fit(Collection(X, checkpoint=path))
            assert path.read_bytes() == part

    def test_a_full_disk_stops_nothing(self, seed, tmp_path, monkeypatch):
        X, path = cut(samples(seed), 1000), tmp_path / "run.npz"
        expected = SpectralDictionaryLearning(D).fit(X)
        save, calls = _checkpoint.save_arrays, []

        def full(*arguments):
            calls.append(1)
            if len(calls) > 1:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            save(*arguments)

        monkeypatch.setattr(_checkpoint, "save_arrays", full)
        with pytest.warns(RuntimeWarning, match="could not be written .*No space"):
            model = SpectralDictionaryLearning(D).fit(Collection(X, checkpoint=path, every=0))
        np.testing.assert_array_equal(model.components_, expected.components_)
        monkeypatch.undo()
        monkeypatch.setattr("quartic.distributed.GROUP", 4)
        monkeypatch.setattr("quartic.distributed.AHEAD", 0)
        monkeypatch.setattr("quartic.distributed.SUBSAMPLE_LEAST", 300)
        monkeypatch.setattr("quartic.learn.plan.ROWS", 2000)
        again = SpectralDictionaryLearning(D).fit(Collection(X, checkpoint=path, every=0))  # the first is still good
        np.testing.assert_array_equal(again.components_, expected.components_)

    def test_remembers_what_was_left_out(self, seed, tmp_path):
        Y, path = samples(seed), tmp_path / "run.npz"
        bad = failing(Y, 1000, {2})
        given = Collection(bad, errors="skip", checkpoint=path, every=0, callback=stopped_after(2))
        with pytest.warns(RuntimeWarning, match="left out"), pytest.raises(StopError):
            SpectralDictionaryLearning(D).fit(given)
        given = Collection(cut(Y, 1000), errors="skip", checkpoint=path)  # it can be read by now
        with pytest.warns(RuntimeWarning, match="chunk 2 .* was left out before the run was stopped"):
            model = SpectralDictionaryLearning(D).fit(given)
        assert model.n_samples_seen_ == M - 1000
        with pytest.raises(ValueError, match="other data, chunks or settings"):
            SpectralDictionaryLearning(D).fit(Collection(cut(Y, 1000), errors="raise", checkpoint=path))

    def test_of_accumulators(self, seed, tmp_path):
        Y, path = samples(seed), tmp_path / "run.npz"
        with pytest.raises(StopError):
            Covariance().update(Collection(cut(Y, 500), checkpoint=path, every=0, callback=stopped_after(2)))
        found = Covariance().update(Collection(cut(Y, 500), checkpoint=path))
        np.testing.assert_allclose(found.covariance, Covariance().update(Y).covariance, rtol=1e-12)
        assert found.count == M


def test_nothing_but_collections_needs_dask():
    code = (
        "import sys; sys.modules['dask'] = None; import numpy as np, quartic; quartic.SpectralICA(2).fit(np.eye(9, 2))"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_partial_fit_takes_batches_in_memory(seed):
    with pytest.raises(TypeError, match="partial_fit takes batches in memory"):
        SpectralICA(D).partial_fit(cut(samples(seed), 1000))


def test_a_collection_that_was_looked_at_can_be_fitted(seed):
    data = Collection(cut(samples(seed), 1000))
    assert data.count == M
    same(SpectralDictionaryLearning(D).fit(samples(seed)), SpectralDictionaryLearning(D).fit(data))


@pytest.mark.parametrize("n", [None, 6])
def test_the_caller_holds_a_part_only(seed, monkeypatch, n):
    held, hold = [], Collection._hold

    def watched(self, found):
        hold(self, found)
        held.append(len(self._held["index"]))

    monkeypatch.setattr("quartic.distributed.HELD", 200_000)
    monkeypatch.setattr("quartic.distributed.SUBSAMPLE_LEAST", 100)
    monkeypatch.setattr(Collection, "_hold", watched)
    rng = np.random.default_rng(seed)
    Y = rng.laplace(size=(30_000, 4)) @ rng.standard_normal((4, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", quartic.DecompositionWarning)
        SpectralDictionaryLearning(n, temperature=0).fit(cut(Y, 2000))
    assert max(held) < 20_000
