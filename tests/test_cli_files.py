"""Files of samples that the command line cannot use: what is wrong, and where, in one line."""

import functools
import os

import numpy as np
import pytest
from command_line import assert_refused, outcome


@pytest.fixture
def run(capsys):
    """Run a command in this process: exit code, standard output, standard error."""
    return functools.partial(outcome, capsys)


@pytest.fixture
def file(tmp_path):
    np.save(tmp_path / "samples.npy", np.random.default_rng(0).standard_normal((50, 3)))
    return tmp_path / "samples.npy"


def write_npz(path, X):
    np.savez(path, X)


def with_value(value):
    X = np.ones((20, 3))
    X[10, 1] = value
    return X


@pytest.mark.parametrize(
    ("X", "said"),
    [
        (np.ones(5), "samples as rows, shape (m, d); got shape (5,)"),
        (np.ones((5, 2, 2)), "got shape (5, 2, 2)"),
        (np.ones((0, 3)), "got shape (0, 3)"),
        (np.ones((3, 0)), "got shape (3, 0)"),
        (np.ones((5, 2), dtype=complex), "real numbers, got dtype complex128"),
        (np.full((5, 2), "1.0"), "real numbers, got dtype <U3"),
        (np.zeros(5, dtype=[("a", float)]), "real numbers"),
        (np.ones((1, 3)), "holds one sample; at least two are needed"),
        (np.ones((50, 3)), "do not vary"),
        (
            np.where(np.arange(60).reshape(20, 3) == 31, np.nan, 1.0),
            "is not finite: X[10, 1] is nan; remove or replace",
        ),
        (np.where(np.arange(60).reshape(20, 3) == 5, -np.inf, 1.0), "is not finite: X[1, 2] is -inf"),
    ],
)
@pytest.mark.parametrize("save", [np.save, write_npz])
def test_arrays_that_are_no_samples_are_refused(run, tmp_path, X, said, save):
    path = tmp_path / ("bad.npy" if save is np.save else "bad.npz")
    save(path, X)
    assert_refused(run("learn", path, "--out", tmp_path / "m.npz"), str(path), said)
    assert os.listdir(tmp_path) == [path.name]


def test_the_place_of_a_bad_value_is_found_in_a_long_file(run, tmp_path):
    X = np.zeros((40_000, 3))
    X[33_333, 1] = np.nan
    np.save(tmp_path / "a.npy", X)
    assert_refused(run("learn", tmp_path / "a.npy"), "X[33333, 1] is nan")


@pytest.mark.parametrize(
    ("text", "said", "remedy"),
    [
        ("1,2\n3,x\n", "line 2, column 2: 'x' is not a number", "leave out columns and lines of text"),
        ("a,b\n1,2\n\n3,\n", "line 4, column 2 (b) is empty", "a value is missing: fill it in"),
        ("1,2\n3,4,5\n", "line 2 has 3 columns, the lines before have 2", "separated by commas"),
        ("1,2\n3\n", "line 2 has 1 columns, the lines before have 2", "separated by commas"),
        ("a,b,c\n1,2\n", "line 2 has 2 columns, the lines before have 3", "separated by commas"),
        (",a,b\n0,1,2\n1,2,3,4\n", "line 3 has 4 columns, the lines before have 3", "separated by commas"),
        ("1,2,\n3,4,\n", "line 1, column 3 is empty", "fill it in"),
        ("a,b,\n3,4,5\n", "line 1, column 3 is empty, in a header", "name all columns, or none"),
        (",a,,c\n0,3,4,5\n", "line 1, column 3 is empty, in a header", "name all columns, or none"),
        ("a,1\n1,2\n", "line 1, column 1: 'a' is not a number", "in a header there must be no numbers"),
        ("a,b\nc,d\n", "line 2, column 1 (a): 'c' is not a number", "leave out"),
        (",a,b\nx,1,2\ny,c,d\n", "line 3, column 2 (a): 'c' is not a number", "leave out"),
        ("1,2\n3,nan\n", "line 2, column 2: nan; a value is missing", "fill it in"),
        ("a,b\n1,2\n3,NA\n", "line 3, column 2 (b): NA; a value is missing", "quartic check counts"),
        ("1,2\n-inf,4\n", "line 2, column 1: -inf is not finite", "replace it"),
        ("1,2\n3,1e999\n", "line 2, column 2: 1e999 is not finite", "replace it"),
        ("1;2,5\n3;4,5\n", "line 1, column 2: '2,5' has a decimal comma", "write numbers with points"),
        ("a b\n1 2\n3 x\n", "line 3, column 2 (b): 'x' is not a number", "leave out"),
        ("a,b\n", "holds no samples", "separated by commas"),
        ("0,1,2\n", "holds no samples", "separated by commas"),
        ("\r\n\n", "holds no samples", "separated by commas"),
        ("1,2\n \n", "line 2, column 1 is empty", "fill it in"),
        ('1,"2\n3,4\n', "line 1, column 2: '\"2' is not a number", "leave out"),
        ("1,2\n# 3,4\n", "line 2, column 1: '# 3' is not a number", "leave out"),
        ("1,2\n3," + "x" * 200 + "\n", "'" + "x" * 40 + "' is not a number", "leave out"),
        ("1,2\n1_0,3\n", "1_0", "separated by commas"),  # a number to Python, not to NumPy
    ],
)
@pytest.mark.parametrize("name", ["bad.csv", "bad.txt"])
def test_bad_tables_are_refused_with_the_place(run, tmp_path, name, text, said, remedy):
    (tmp_path / name).write_text(text)
    assert_refused(run("learn", tmp_path / name), f"{tmp_path / name}: ", said, remedy)


@pytest.mark.parametrize(
    "content", ["1,2\n3,ü\n".encode("latin-1"), b"\xff\xfe1\x00,\x002\x00\n\x00", b"1,2\n\x00\xff"]
)
def test_tables_that_are_no_text_are_refused(run, tmp_path, content):
    (tmp_path / "bad.csv").write_bytes(content)
    assert_refused(run("learn", tmp_path / "bad.csv"), str(tmp_path / "bad.csv"), "UTF-8")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.npy", b"", "is empty"),
        ("a.npy", b"1,2\n3,4\n", "is not a .npy, .npz or .csv file"),
        ("a.dat", b"1,2\n3,4\n", "nor text of a name that ends in .csv, .tsv, .txt"),
        ("a.npz", b"PK\x03\x04 and so on", "damaged, or no .npz archive"),
        ("a.npy", b"\x93NUMPY\x01\x00\x05\x00oops\n", "header is damaged or truncated"),
    ],
)
def test_files_that_are_no_arrays_are_refused(run, tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    assert_refused(run("learn", tmp_path / name), str(tmp_path / name), said, "numpy.save")


def test_an_empty_text_is_refused_with_what_it_should_hold(run, tmp_path):
    (tmp_path / "a.csv").touch()
    assert_refused(run("learn", tmp_path / "a.csv"), "the file is empty; samples are rows, numbers separated by commas")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a.xlsx", "is a spreadsheet; export it as .csv"),
        ("a.npy.gz", "is compressed; unpack it first"),
        ("a.mat", "is a file of MATLAB; read it with scipy.io.loadmat"),
        ("a.pkl", "is a pickle, which is never loaded"),
    ],
)
def test_formats_that_are_not_read_are_named(run, tmp_path, name, said):
    (tmp_path / name).write_bytes(b"PK\x03\x04 and so on")
    assert_refused(run("learn", tmp_path / name), f"{tmp_path / name}: {said}")


def test_damaged_archives_are_refused(run, tmp_path):
    path = tmp_path / "a.npz"
    write_npz(path, np.random.default_rng(0).standard_normal((500, 3)))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert_refused(run("learn", path), str(path), "damaged")
    path.write_bytes(whole[:2000] + bytes(100) + whole[2100:])  # the checksum tells
    assert_refused(run("learn", path), str(path), "damaged")


def test_pickles_are_refused(run, tmp_path):
    for path, save in ((tmp_path / "a.npy", np.save), (tmp_path / "a.npz", write_npz)):
        save(path, np.array([[1, None]], dtype=object))
        assert_refused(run("learn", path), str(path), "pickled Python objects, which are never loaded")


def test_paths_that_cannot_be_read_are_refused(run, file, tmp_path):
    assert_refused(run("learn", tmp_path / "none.csv"), "none.csv", "no such file", "check the path")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert_refused(run("learn", empty), str(empty), "holds no .npy and no .parquet files")
    assert_refused(run("decompose", empty), str(empty), "is a directory")
    assert_refused(run("learn", file / "inside"), "cannot be read", "Not a directory")
    assert_refused(run("learn", os.devnull), os.devnull, "not a regular file")


def test_archives_of_several_arrays_need_a_key(run, file, tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, X=np.ones((5, 3)), labels=np.arange(3))
    assert_refused(run("learn", path), str(path), "holds 2 arrays, X, labels", "--key NAME")
    assert_refused(run("learn", path, "--key", "Y"), "--key Y", "no such array, but X, labels")
    assert_refused(run("learn", path, "--key", "labels"), str(path), "got shape (3,)")
    assert_refused(run("learn", file, "--key", "X"), "--key X", "not an .npz archive")
    np.savez(path, **{f"a{i}": np.ones(1) for i in range(12)})
    assert_refused(run("learn", path), "holds 12 arrays", "a7 and 4 more")
    np.savez(path)
    assert_refused(run("learn", path), str(path), "holds no arrays")
