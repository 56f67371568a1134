"""Data sets on disk, in every format: the rows that were written, in chunks that fit."""

from __future__ import annotations

import numpy as np
import pytest

import quartic
from quartic.sources import feature_names, open_samples, parsed_bytes

da = pytest.importorskip("dask.array")
zarr = pytest.importorskip("zarr")
h5py = pytest.importorskip("h5py")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

M, D = 1000, 5


def npy(path, Y):
    np.save(path / "samples.npy", Y)
    return path / "samples.npy"


def by_columns(path, Y):
    np.save(path / "samples.npy", np.asfortranarray(Y))
    return path / "samples.npy"


def folder(path, Y):
    for k, rows in enumerate(np.array_split(Y, 3)):
        np.save(path / f"{k}.npy", rows)
    (path / "README").write_text("not data")
    return path


def of_zarr(path, Y):
    zarr.create_array(path / "samples.zarr", data=Y, chunks=(70, D))
    return path / "samples.zarr"


def hdf5(path, Y):
    with h5py.File(path / "samples.h5", "w") as file:
        file.create_dataset("inner/samples", data=Y, chunks=(60, D))
        file["length"] = 3.0
    return path / "samples.h5"


def parquet(path, Y):
    table = pa.table({f"f{k}": Y[:, k] for k in range(D)})
    pq.write_table(table, path / "samples.parquet", row_group_size=110)
    return path / "samples.parquet"


def parquets(path, Y):
    for k, rows in enumerate(np.array_split(Y, 2)):
        pq.write_table(pa.table({f"f{k}": rows[:, k] for k in range(D)}), path / f"{k}.parquet")
    return path


FORMATS = [npy, by_columns, folder, of_zarr, hdf5, parquet, parquets]


@pytest.mark.parametrize("write", FORMATS)
@pytest.mark.parametrize("memory", [None, 80_000])
def test_rows_are_those_that_were_written(write, memory, tmp_path, rng):
    Y = rng.standard_normal((M, D))
    memory = None if write is parquets else memory  # of which a row group is read as a whole
    X = open_samples(write(tmp_path, Y), memory=memory)
    assert isinstance(X, da.Array)
    assert X.shape == (M, D)
    np.testing.assert_array_equal(X.compute(), Y)
    if memory is not None:
        assert max(X.chunks[0]) * D * 8 <= memory / 4
        assert len(X.chunks[0]) > 1


@pytest.mark.parametrize("write", [npy, of_zarr, hdf5])
def test_the_dtype_stays(write, tmp_path, rng):
    Y = rng.standard_normal((M, D)).astype(np.float32)
    assert open_samples(write(tmp_path, Y)).dtype == np.float32


@pytest.mark.parametrize("write", [npy, of_zarr])
def test_are_learned_from(write, tmp_path, seed):
    Y = quartic.datasets.nice_samples(6000, D, random_state=seed).samples
    X = open_samples(write(tmp_path, Y), memory="1MB")
    a, b = (quartic.SpectralDictionaryLearning(D).fit(data) for data in (Y, X))
    np.testing.assert_allclose(a.components_, b.components_, atol=1e-9)


def test_one_of_several_arrays(tmp_path, rng):
    Y = rng.standard_normal((M, D))
    group = zarr.open_group(tmp_path / "both.zarr", mode="w")
    group.create_array("a", data=Y)
    group.create_array("b", data=2 * Y)
    with h5py.File(tmp_path / "both.h5", "w") as file:
        file["a"], file["b"] = Y, 2 * Y
    for name in ("both.zarr", "both.h5"):
        np.testing.assert_array_equal(open_samples(tmp_path / name, key="b").compute(), 2 * Y)
        with pytest.raises(ValueError, match=r"key must be the name .*\(a, b\); none was given"):
            open_samples(tmp_path / name)
        with pytest.raises(ValueError, match=r"\(a, b\); got 'c'"):
            open_samples(tmp_path / name, key="c")


def test_columns_of_parquet_files_go_by_their_names(tmp_path, rng):
    table = pytest.importorskip("pandas").DataFrame(rng.standard_normal((20, 3)), columns=["a", "b", "c"])
    table.index = np.arange(20) * 7  # which is written, and no feature
    table[:10].to_parquet(tmp_path / "0.parquet")
    table[10:][["c", "a", "b"]].to_parquet(tmp_path / "1.parquet")
    pq.write_table(
        pa.table({"a": [], "b": [], "c": []}, schema=pa.schema([(x, pa.float64()) for x in "abc"])),
        tmp_path / "2.parquet",
    )
    np.testing.assert_array_equal(open_samples(tmp_path).compute(), table.to_numpy())
    assert feature_names(tmp_path) == feature_names(tmp_path / "0.parquet") == ["a", "b", "c"]
    table[["a", "b"]].to_parquet(tmp_path / "3.parquet")
    with pytest.raises(ValueError, match="has no column 'c'"):
        open_samples(tmp_path)
    table.assign(c="x").to_parquet(tmp_path / "3.parquet")
    with pytest.raises(ValueError, match="column 'c' must hold real numbers"):
        open_samples(tmp_path)


def test_pieces_that_are_too_large_are_said(tmp_path, rng):
    for write in (of_zarr, parquet):
        path = write(tmp_path, rng.standard_normal((M, D)))
        with pytest.warns(RuntimeWarning, match="more than the .* that memory allows"):
            open_samples(path, memory=4000)


def test_a_file_that_was_cut_off_afterwards(tmp_path, rng):
    path = npy(tmp_path, rng.standard_normal((M, D)))
    X = open_samples(path, memory=40_000)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)
    with pytest.raises(RuntimeError, match=r"chunk \d+ of the samples, rows .* ends before row"):
        quartic.SpectralDictionaryLearning().fit(X)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("vector.npy", np.ones(5), "samples as rows"),
        ("complex.npy", np.ones((5, 2), dtype=complex), "real samples"),
        ("one.npy", np.ones((1, 2)), "at least two samples"),
    ],
)
def test_what_can_not_be_samples(name, content, words, tmp_path):
    np.save(tmp_path / name, content)
    with pytest.raises(ValueError, match=words):
        open_samples(tmp_path / name)


@pytest.mark.parametrize("write", [npy, folder, of_zarr, hdf5])
def test_only_tables_have_names(write, tmp_path, rng):
    assert feature_names(write(tmp_path, rng.standard_normal((M, D)))) is None


@pytest.mark.parametrize("name", ["a.csv", "a.npz"])
def test_what_is_not_read_in_chunks(name, tmp_path):
    (tmp_path / name).write_text("1,2")
    with pytest.raises(ValueError, match="is not read in chunks; read it with NumPy or pandas"):
        open_samples(tmp_path / name)


def test_paths_that_lead_nowhere(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file"):
        open_samples(tmp_path / "none.npy")
    with pytest.raises(ValueError, match=r"holds no \.npy"):
        open_samples(tmp_path)
    (tmp_path / "a.txt").write_text("1,2")
    with pytest.raises(ValueError, match=r"must be \.npy.*'\.txt'"):
        open_samples(tmp_path / "a.txt")
    (tmp_path / "parts").mkdir()
    for d in (2, 3):
        np.save(tmp_path / "parts" / f"{d}.npy", np.ones((4, d)))
    with pytest.raises(ValueError, match=r"same number of columns; found \[2, 3\]"):
        open_samples(tmp_path / "parts")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("4GB", 4 * 10**9), ("500 MiB", 500 * 2**20), ("1.5g", 1_500_000_000), (1000, 1000), ("12", 12), ("2kb", 2000)],
)
def test_sizes(text, expected):
    assert parsed_bytes(text) == expected


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "0", 0, True, "1..5GB", "4 apples"])
def test_sizes_that_are_none(text):
    with pytest.raises(ValueError, match="memory must be"):
        parsed_bytes(text)
