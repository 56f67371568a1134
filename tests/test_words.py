"""What is said to people: the remedy that fits, the condition that holds, the line that they wrote."""

import warnings

import numpy as np
import pytest

import quartic
from quartic import DecompositionWarning, SpectralDictionaryLearning, SpectralICA, decompose
from quartic._words import counted
from quartic.datasets import nice_samples, planted_tensor
from quartic.tensors.factored import FactoredTensor


@pytest.fixture(scope="module")
def orthogonal():
    return planted_tensor(12, 8, 0.02, random_state=0).tensor


@pytest.fixture(scope="module")
def general():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((6, 8))
    return FactoredTensor.from_components(np.ones(6), A / np.linalg.norm(A, axis=1, keepdims=True)).to_dense()


def page(subject, tmp_path):
    subject.write_report(tmp_path / "report.html")
    return (tmp_path / "report.html").read_text(encoding="utf-8")


def test_certificates_say_what_they_rest_on(orthogonal, general, tmp_path):
    first, second = decompose(orthogonal), decompose(general)
    assert first.orthogonal
    assert not second.orthogonal
    assert second.status.ok
    assert "if the true components are orthonormal" in page(first, tmp_path)
    assert "if the true components are orthonormal" not in page(second, tmp_path)
    assert "general position" in page(second, tmp_path)
    assert "general position" in second.summary()
    second.save(tmp_path / "result.npz")
    assert not quartic.Decomposition.load(tmp_path / "result.npz").orthogonal


def test_a_rank_that_is_too_small_is_told_from_a_large_error(orthogonal):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DecompositionWarning)
        status = decompose(orthogonal, rank=4).status
    assert status.code in ("incomplete", "uncertified")
    assert "the spectrum shows 8" in status.message
    assert "give no rank, and they are counted, up to 8" in status.remedy
    assert "eps" not in status.remedy


def test_an_input_that_is_not_symmetric_is_named():
    rng = np.random.default_rng(0)
    factors = [np.linalg.qr(rng.standard_normal((8, 8)))[0] for _ in range(4)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DecompositionWarning)
        result = decompose(np.einsum("ai,bi,ci,di->abcd", *factors))
    assert not result.status.ok
    assert "T is not symmetric" in result.status.message
    assert "parafac" in result.status.remedy


def test_two_calls_give_the_same(orthogonal):
    first, second = decompose(orthogonal), decompose(orthogonal)
    np.testing.assert_array_equal(first.components, second.components)
    np.testing.assert_array_equal(first.certificates, second.certificates)


@pytest.mark.parametrize("estimator", [SpectralDictionaryLearning, SpectralICA])
def test_warnings_point_here_and_name_the_check(estimator, tmp_path):
    with pytest.warns(DecompositionWarning, match="quartic check") as said:
        model = estimator().fit(np.random.default_rng(0).standard_normal((2000, 6)))
    assert said[0].filename == __file__
    noun = "source" if estimator is SpectralICA else "atom"
    assert f"0 of 6 {noun}s certified" in str(model.status_)
    text = page(model, tmp_path)
    assert "degrees of the truth" not in text
    assert f"None of the 6 {noun}s is certified" in text


def test_a_warning_of_decompose_points_here(orthogonal):
    with pytest.warns(DecompositionWarning) as said:
        decompose(orthogonal, rank=10)
    assert said[0].filename == __file__


def test_a_file_of_another_kind_is_named(orthogonal, tmp_path):
    decompose(orthogonal).save(tmp_path / "result.npz")
    with pytest.raises(ValueError, match=r"holds a Decomposition, not a SpectralICA.*Decomposition\.load"):
        SpectralICA.load(tmp_path / "result.npz")
    model = SpectralICA().fit(nice_samples(2000, 5, random_state=0).samples)
    model.save(tmp_path / "model.npz")
    with pytest.raises(ValueError, match="holds a SpectralICA, not a Decomposition"):
        quartic.Decomposition.load(tmp_path / "model.npz")
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*missing"):
        model.save(tmp_path / "missing" / "model.npz")


def test_what_is_printed_is_a_table(orthogonal):
    result = decompose(orthogonal)
    assert str(result) == result.summary()
    model = SpectralDictionaryLearning().fit(nice_samples(2000, 5, random_state=0).samples)
    assert str(model.report_) == model.report_.summary()


def test_the_names_of_the_library_are_seen():
    assert set(dir(quartic)) == set(quartic.__all__)
    assert counted(1, "atom") == "1 atom"
    assert counted(0, "atom") == "0 atoms"


def test_columns_of_a_dataframe_that_hold_no_numbers_are_named():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(nice_samples(200, 3, random_state=0).samples, columns=["a", "b", "c"])
    frame["subject"] = "s0"
    with pytest.raises(ValueError, match="no numbers: subject; leave them out"):
        SpectralDictionaryLearning().fit(frame)
