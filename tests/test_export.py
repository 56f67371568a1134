"""Exports: the linear unmixing as safetensors."""

import numpy as np
import pytest

import quartic

safetensors = pytest.importorskip("safetensors.numpy")


@pytest.mark.parametrize("kind", [quartic.SpectralDictionaryLearning, quartic.SpectralICA])
def test_the_export_does_what_the_model_does(kind, tmp_path, seed):
    data = quartic.datasets.nice_samples(4000, 6, 8, coefficients="gaussian", snr=30, random_state=seed)
    Y = data.samples + 3.0  # a mean that matters
    model = kind(6, random_state=seed).fit(Y)
    model.to_safetensors(tmp_path / "model.safetensors")
    parts = safetensors.load_file(tmp_path / "model.safetensors")
    codes = Y @ parts["weight"].T + parts["bias"]
    np.testing.assert_allclose(codes, model.transform(Y), atol=1e-9)
    np.testing.assert_allclose(codes @ parts["mixing"].T + parts["mean"], model.inverse_transform(codes), atol=1e-9)
    np.testing.assert_array_equal(parts["certificates"], model.certificates_)


def test_its_origin_is_written_in_it(tmp_path):
    model = quartic.SpectralICA().fit(quartic.datasets.nice_samples(2000, 4, random_state=0).samples)
    model.to_safetensors(tmp_path / "model.safetensors")
    from safetensors import safe_open

    with safe_open(tmp_path / "model.safetensors", "numpy") as file:
        about = file.metadata()
    assert about["kind"] == "SpectralICA"
    assert model.status_.message in about["status"]


def test_codes_that_are_not_linear_are_refused_and_nothing_is_written(tmp_path):
    data = quartic.datasets.nice_samples(6000, 8, 5, p=0.1, coefficients="gaussian", random_state=0)
    model = quartic.SpectralDictionaryLearning(8).fit(data.samples)
    with pytest.raises(ValueError, match="not linear"):
        model.to_safetensors(tmp_path / "model.safetensors")
    assert not list(tmp_path.iterdir())


def test_the_package_is_asked_for_by_name(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "safetensors.numpy", None)
    model = quartic.SpectralICA().fit(quartic.datasets.nice_samples(2000, 4, random_state=0).samples)
    with pytest.raises(ImportError, match="pip install safetensors"):
        model.to_safetensors(tmp_path / "model.safetensors")
