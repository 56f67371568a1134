"""The command line on data larger than memory, and on moments that travel."""

from __future__ import annotations

import functools
import json

import numpy as np
import pytest
from command_line import assert_refused, outcome

import quartic
from quartic.datasets import nice_samples

zarr = pytest.importorskip("zarr")
pytest.importorskip("distributed")

N, M = 6, 6000


@pytest.fixture
def run(capsys):
    return functools.partial(outcome, capsys)


@pytest.fixture
def samples():
    return nice_samples(M, N, dictionary="orthonormal", snr=10.0, random_state=0).samples


@pytest.fixture
def data(samples, tmp_path):
    zarr.create_array(tmp_path / "samples.zarr", data=samples, chunks=(500, N))
    np.save(tmp_path / "samples.npy", samples)
    return tmp_path


def components(text):
    return np.array(json.loads(text)["components"])


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("samples.zarr", ()),
        ("samples.npy", ("--memory", "200kB")),
        ("samples.zarr", ("--workers", 1)),
        ("samples.npy", ("--skip-unreadable",)),
    ],
)
def test_the_answer_of_samples_in_memory(run, data, samples, name, options):
    code, out, err = run("learn", data / name, "--components", N, "--json", *options)
    assert (code, err) == (0, "")
    expected = quartic.SpectralDictionaryLearning(N).fit(samples).components_
    np.testing.assert_allclose(components(out), expected, atol=1e-9)


def test_a_checkpoint_is_kept_and_gone_on_from(run, data):
    arguments = ("learn", data / "samples.zarr", "--json", "--checkpoint", data / "run.npz")
    first = run(*arguments)
    assert (data / "run.npz").exists()
    assert components(run(*arguments)[1]).tolist() == components(first[1]).tolist()
    assert_refused(run(*arguments, "--components", 3), "--checkpoint", "other data, chunks or settings")


class TestMoments:
    def test_travel_in_two_passes(self, run, data, samples):
        halves = np.array_split(samples, 2)
        for name, rows in zip("ab", halves, strict=True):
            np.save(data / f"{name}.npy", rows)
            code, out, _ = run("moments", data / f"{name}.npy", "--out", data / f"{name}1.npz")
            assert code == 0
            assert f"mean and covariance of {len(rows):,} samples with {N} features" in out
        code, out, _ = run("merge", data / "a1.npz", data / "b1.npz", "--frame", data / "frame.npz")
        assert code == 0
        assert "frame.npz" in out
        for name, first in (("a", 0), ("b", len(halves[0]))):
            options = ("--frame", data / "frame.npz", "--first", first, "--out", data / f"{name}2.npz", "--json")
            code, out, _ = run("moments", data / f"{name}.npy", *options)
            assert (code, json.loads(out)["kind"]) == (0, "fourth moment")
        run("merge", data / "b2.npz", data / "a2.npz", "--out", data / "all.npz")
        code, out, _ = run("learn", "--from-moments", data / "all.npz", "--components", N, "--json")
        assert code == 0
        expected = quartic.SpectralDictionaryLearning(N, refine=False).fit(samples)
        np.testing.assert_allclose(components(out), expected.components_, atol=1e-9)

    def test_of_data_in_chunks(self, run, data, samples):
        run("moments", data / "samples.zarr", "--out", data / "zarr.npz")
        run("moments", data / "samples.npy", "--out", data / "npy.npz")
        a, b = (quartic.Covariance.load(data / name).covariance for name in ("zarr.npz", "npy.npz"))
        np.testing.assert_allclose(a, b, rtol=1e-12)

    def test_that_do_not_belong_together(self, run, data, samples):
        def made(name, *options):
            assert run("moments", data / "samples.npy", "--out", data / f"{name}.npz", *options)[0] == 0
            return data / f"{name}.npz"

        first = made("first")
        for name, options in (("frame", ()), ("less", ("--components", 3))):
            run("merge", first, "--frame", data / f"{name}.npz", *options)
        second = made("second", "--frame", data / "frame.npz")
        third = made("third", "--frame", data / "less.npz")
        out = ("--out", data / "all.npz")
        assert_refused(run("merge", first, second, *out), "second.npz", "of the pass of")
        assert_refused(run("merge", second, third, *out), "third.npz", "same frame")
        assert_refused(run("merge", second, second, *out), "would count twice")
        assert_refused(run("merge", data / "samples.npy", *out), "does not hold moments")
        assert_refused(run("merge", data / "none.npz", *out), "no such file")
        assert_refused(run("merge", second, "--frame", data / "x.npz"), "a --frame comes from files of the first")
        assert_refused(run("merge", first), "--out for the sum, or --frame")
        assert_refused(run("merge", first, *out, "--components", 3), "--components")
        assert_refused(run("learn", "--from-moments", first), "does not hold a second pass")
        assert_refused(run("learn", "--from-moments", second, "--memory", "1GB"), "leave out")
        again = ("moments", data / "samples.npy", "--frame", second, "--out", data / "x.npz")
        assert_refused(run(*again), "does not hold coordinates")
        assert not (data / "all.npz").exists()


def test_bad_usage(run, data):
    assert_refused(run("learn"), "either a file of samples or --from-moments")
    assert_refused(run("learn", data / "samples.npy", "--from-moments", data / "x.npz"), "either a file")
    assert_refused(run("learn", data / "samples.npy", "--memory", "lots"), "--memory must be")
    assert_refused(run("learn", data / "samples.npy", "--workers", 0), "--workers must be at least 1")
    assert_refused(run("learn", data / "none.zarr"), "no such file or folder")
    assert_refused(run("learn", data / "samples.npy", "--memory", "1GB", "--key", "x"), "key must be None")
    np.savez(data / "samples.npz", X=np.ones((5, 2)))
    assert_refused(run("learn", data / "samples.npz", "--memory", "1GB"), "is read as a whole")


def test_formats_and_sizes_are_checked_before_dask_is_asked_for(run, data, monkeypatch):
    (data / "samples.csv").write_text("1,2\n3,4\n")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert_refused(run("learn", data / "samples.csv", "--memory", "1GB"), "is read as a whole")
    assert_refused(run("learn", data / "samples.npy", "--memory", "4XB"), "--memory must be", "'4XB'")
    assert_refused(run("learn", data / "samples.npy", "--memory", "1GB"), "Dask, which is not there")


def test_keys_are_asked_for_by_the_option(run, data, samples):
    group = zarr.open_group(data / "both.zarr", mode="w")
    group.create_array("a", data=samples)
    group.create_array("b", data=samples)
    for argv in (["learn"], ["check"], ["moments", "--out", data / "x.npz"]):
        refused = run(argv[0], data / "both.zarr", *argv[1:])
        assert_refused(refused, "both.zarr: --key must be the name of one", "(a, b); none was given")


@pytest.mark.parametrize("verb", ["learn", "moments"])
def test_what_is_not_finite_is_named(run, data, samples, verb):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    samples[4321, 3] = np.nan
    table = pa.table({f"temp_{k}": samples[:, k] for k in range(N)})
    pq.write_table(table, data / "a.parquet", row_group_size=1000)
    options = ["--out", data / "x.npz"] if verb == "moments" else []
    assert_refused(
        run(verb, data / "a.parquet", *options), "a.parquet: is not finite: X[4321, 3] (column temp_3) is nan"
    )


def test_outputs_of_moments_have_a_suffix(run, data):
    refused = run("moments", data / "samples.npy", "--out", data / "a.csv")
    assert_refused(refused, "--out", "unknown format; use .npz")
    run("moments", data / "samples.npy", "--out", data / "a.npz")
    assert_refused(run("merge", data / "a.npz", "--frame", data / "frame"), "--frame", "unknown format; use .npz")
