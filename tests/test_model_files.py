"""Fitted models as files: whole, versioned, and read without executing anything."""

import json
import os
import zipfile

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import quartic
from quartic import Covariance, SpectralDictionaryLearning, SpectralICA
from quartic.datasets import nice_samples

N, M = 6, 2000
DATA = nice_samples(M, N, dictionary="orthonormal", random_state=0)


@pytest.fixture(params=[SpectralDictionaryLearning, SpectralICA])
def kind(request):
    return request.param


@pytest.fixture
def path(tmp_path, kind):
    kind().fit(DATA.samples).save(tmp_path / "model.npz")
    return tmp_path / "model.npz"


def fitted(model):
    return {name: value for name, value in vars(model).items() if name.endswith("_")}


@pytest.mark.filterwarnings("ignore::quartic.DecompositionWarning")
def test_a_model_comes_back_whole(tmp_path, kind, seed):
    Y = nice_samples(M, N, random_state=seed, snr=20 if seed % 2 else None).samples
    refine = seed % 3 > 0
    model = kind(N, refine=refine, moment="implicit" if refine else "accumulated", random_state=5).fit(Y)
    model.save(str(tmp_path / "a.npz"))
    again = kind.load(tmp_path / "a.npz")
    assert again.get_params() == model.get_params()
    before, after = fitted(model), fitted(again)
    assert before.keys() == after.keys()
    for name in before.keys() - {"learned_", "report_"}:
        np.testing.assert_array_equal(after[name], before[name], err_msg=name)
    for name, value in vars(model.report_).items():
        np.testing.assert_array_equal(getattr(again.report_, name), value, err_msg=name)
    np.testing.assert_array_equal(again.transform(Y), model.transform(Y))
    assert again.report_.summary() == model.report_.summary()
    assert again.n_features_in_ == N


def test_what_was_given_as_numpy_numbers_is_kept(tmp_path, kind):
    model = kind(np.int64(N), refine=np.bool_(True), random_state=np.uint8(3)).fit(DATA.samples)
    model.save(tmp_path / "a.npz")
    again = kind.load(tmp_path / "a.npz")
    assert (again.n_components, again.refine, again.random_state) == (N, True, 3)


def test_feature_names_are_kept(tmp_path, kind):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(DATA.samples, columns=[f"größe {i}" for i in range(N)])
    kind().fit(table).save(tmp_path / "a.npz")
    again = kind.load(tmp_path / "a.npz").set_output(transform="pandas")
    assert list(again.feature_names_in_) == list(table.columns)
    assert list(again.transform(table).columns) == list(again.get_feature_names_out())


def test_after_batches_the_moments_are_files_of_their_own(tmp_path, kind):
    model = kind(N).partial_fit(DATA.samples)
    model.save(tmp_path / "a.npz")
    again = kind.load(tmp_path / "a.npz")
    assert not hasattr(again, "moment_")
    np.testing.assert_array_equal(again.components_, model.components_)


def test_a_model_that_is_not_fitted_cannot_be_saved(tmp_path, kind):
    with pytest.raises(NotFittedError):
        kind().save(tmp_path / "a.npz")
    assert os.listdir(tmp_path) == []


def test_no_pickle_is_needed(path):
    with np.load(path, allow_pickle=False) as data:
        assert all(data[name].dtype.kind != "O" for name in data.files)
        json.loads(str(data["text"]))


def test_an_interrupted_save_leaves_the_old_file(path, kind, monkeypatch):
    old = path.read_bytes()

    def interrupt(out, **arrays):
        out.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", interrupt)
    with pytest.raises(KeyboardInterrupt):
        kind.load(path).save(path)
    assert path.read_bytes() == old
    assert os.listdir(path.parent) == ["model.npz"]


def rewrite(path, **changes):
    with np.load(path) as data:
        arrays = dict(data) | changes
    np.savez(path, **{name: value for name, value in arrays.items() if value is not None})


def test_another_kind_is_refused(tmp_path, path, kind):
    (other,) = {SpectralDictionaryLearning, SpectralICA} - {kind}
    with pytest.raises(ValueError, match=rf"model.npz holds a {kind.__name__}, not a {other.__name__}"):
        other.load(path)
    Covariance().update(DATA.samples).frame().save(tmp_path / "frame.npz")
    with pytest.raises(ValueError, match=f"frame.npz holds a Frame, not a {kind.__name__}"):
        kind.load(tmp_path / "frame.npz")


def test_another_version_is_refused(path, kind):
    rewrite(path, format=np.asarray(99))
    with pytest.raises(ValueError, match=r"model.npz has format 99, this version of quartic reads \d+"):
        kind.load(path)


DAMAGE = r"model.npz is not a file saved by quartic, or is damaged"


@pytest.mark.parametrize("part", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_refused(path, kind, part):
    os.truncate(path, int(part * path.stat().st_size))
    with pytest.raises(ValueError, match=DAMAGE):
        kind.load(path)


def test_a_file_with_a_wrong_byte_is_refused(path, kind):
    with zipfile.ZipFile(path) as archive:
        place = archive.getinfo("components.npy").header_offset + 200
    data = bytearray(path.read_bytes())
    data[place] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(ValueError, match=DAMAGE):
        kind.load(path)


@pytest.mark.parametrize(
    "changes",
    [
        {"components": None},
        {"text": None},
        {"frame_forward": None},
        {"kind": None},
        {"format": None},
        {"text": np.asarray("{}")},
        {"text": np.asarray("no json")},
        {"text": np.asarray('{"settings": {"unknown": 1}, "report": {}, "status": {}, "samples": 1}')},
        {"format": np.asarray("text")},
        {"eps": np.asarray("text")},
        {"eps": np.ones(3)},
    ],
    ids=str,
)
def test_an_incomplete_file_is_refused(path, kind, changes):
    rewrite(path, **changes)
    with pytest.raises(ValueError, match=DAMAGE):
        kind.load(path)


@pytest.mark.parametrize("content", [b"", b"text", b"\x80\x04N.", b"PK\x03\x04"])
def test_other_files_are_refused(path, kind, content):
    path.write_bytes(content)
    with pytest.raises(ValueError, match=DAMAGE):
        kind.load(path)


def test_pickles_inside_are_never_loaded(path, kind):
    rewrite(path, components=np.array([None], dtype=object))
    with pytest.raises(ValueError, match=DAMAGE):
        kind.load(path)


def test_a_missing_file_is_missing(tmp_path, kind):
    with pytest.raises(FileNotFoundError):
        kind.load(tmp_path / "none.npz")


def test_parameters_of_a_coder_may_be_numpy_numbers(tmp_path, kind):
    options = {"transform_algorithm": "omp", "transform_n_nonzero_coefs": np.int64(2), "transform_alpha": None}
    model = kind(**options).fit(DATA.samples)
    model.save(tmp_path / "a.npz")
    assert kind.load(tmp_path / "a.npz").transform_n_nonzero_coefs == 2


def test_names_of_other_formats_are_refused(tmp_path):
    data = quartic.datasets.planted_tensor(6, 4, 0.1, random_state=0)
    result = quartic.decompose(data.tensor)
    model = quartic.SpectralICA().fit(quartic.datasets.nice_samples(1000, 4, random_state=0).samples)
    for thing in (result, model):
        with pytest.raises(ValueError, match=r"path must end in .npz, which is what is written; got .*x.csv"):
            thing.save(tmp_path / "x.csv")
        with pytest.raises(ValueError, match=r"path must end in .html or .htm"):
            thing.write_report(tmp_path / "x.pdf")
    assert not list(tmp_path.iterdir())
