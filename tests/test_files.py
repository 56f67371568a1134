"""Files appear whole or not at all."""

import os
import stat

import pytest

from quartic._files import atomic


def write_half(path, error):
    with atomic(path) as out:
        out.write(b"half")
        raise error


def test_a_file_appears_when_all_went_well(tmp_path):
    path = tmp_path / "out.bin"
    with atomic(path) as out:
        out.write(b"whole")
        assert not path.exists()
    assert path.read_bytes() == b"whole"
    assert os.listdir(tmp_path) == ["out.bin"]


def test_an_old_file_is_replaced_whole(tmp_path):
    path = tmp_path / "out.bin"
    path.write_bytes(b"old and long")
    with atomic(str(path)) as out:
        out.write(b"new")
        out.flush()
        assert path.read_bytes() == b"old and long"
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_nothing_is_left_of_a_failure(tmp_path, error):
    path = tmp_path / "out.bin"
    with pytest.raises(error):
        write_half(path, error())
    assert os.listdir(tmp_path) == []


def test_a_failure_leaves_the_old_file(tmp_path):
    path = tmp_path / "out.bin"
    path.write_bytes(b"old")
    with pytest.raises(OSError, match="full"):
        write_half(path, OSError("disk full"))
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["out.bin"]


def test_into_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with atomic("out.bin") as out:
        out.write(b"here")
    assert (tmp_path / "out.bin").read_bytes() == b"here"


def test_a_missing_folder(tmp_path):
    with pytest.raises(FileNotFoundError), atomic(tmp_path / "missing" / "out.bin"):
        pytest.fail("nothing should be computed for a file that cannot be written")
    assert os.listdir(tmp_path) == []


def test_a_folder_in_the_way(tmp_path):
    path = tmp_path / "out.bin"
    path.mkdir()
    with pytest.raises(OSError, match="out"), atomic(path) as out:
        out.write(b"x")
    assert os.listdir(tmp_path) == ["out.bin"]
    assert os.listdir(path) == []


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_as_readable_as_any_other_file(tmp_path, mask, mode):
    before = os.umask(mask)
    try:
        with atomic(tmp_path / "out.bin") as out:
            out.write(b"x")
        assert stat.S_IMODE((tmp_path / "out.bin").stat().st_mode) == mode
        assert os.umask(mask) == mask
    finally:
        os.umask(before)
