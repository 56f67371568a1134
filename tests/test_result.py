"""The result of ``decompose``: what it holds, how it is shown, and how it is kept in a file."""

import dataclasses
import os
import pickle
import warnings

import numpy as np
import pytest
from test_decomposition import planted, results_by_status

from quartic import Decomposition, DecompositionWarning, PackedTensor, decompose
from quartic._arrays import pack_rank_one


@pytest.fixture(scope="module")
def small_result():
    return decompose(planted(0, 12, 6, weights=np.arange(6, 0, -1.0)).tensor, random_state=0)


class TestResult:
    @pytest.fixture
    def result(self, small_result):
        return small_result

    def test_frozen(self, result):
        for field in dataclasses.fields(result):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(result, field.name, None)
        with pytest.raises(dataclasses.FrozenInstanceError):
            result.status.code = "complete"

    def test_to_tensor(self, result):
        C = result.components
        expected = np.einsum("k,ka,kb,kc,kd->abcd", result.weights, C, C, C, C)
        np.testing.assert_allclose(result.to_tensor(), expected, atol=1e-12)

    def test_eps_is_the_norm_of_the_residual(self, seed):
        p = planted(seed, 12, 6, 0.2)
        result = decompose(p.tensor, random_state=seed)
        residual = (p.tensor - result.to_tensor()).reshape(144, 144)
        assert result.eps == pytest.approx(np.linalg.norm(residual, 2), rel=0.15)
        assert result.eps <= np.linalg.norm(residual, 2) * (1 + 1e-9)

    def test_weights_are_those_of_least_squares(self, seed):
        p = planted(seed, 12, 6, 0.2)
        result = decompose(p.tensor, random_state=seed)
        B = pack_rank_one(result.components)
        columns = np.stack([np.outer(b, b).ravel() for b in B.T], axis=1)
        expected = np.linalg.lstsq(columns, p.packed.ravel(), rcond=None)[0]
        np.testing.assert_allclose(result.weights, expected, atol=1e-9)

    def test_spectrum(self, result):
        exact = np.linalg.eigvalsh(planted(0, 12, 6, weights=np.arange(6, 0, -1.0)).packed)[::-1]
        assert np.all(np.diff(result.spectrum) <= 0)
        np.testing.assert_allclose(result.spectrum[:6], exact[:6], atol=0.05)

    def test_summary(self, result):
        lines = result.summary().splitlines()
        assert lines[0] == "6 components in dimension 12, 6 certified"
        table = [line.split() for line in lines[-6:]]
        assert [row[0] for row in table] == [str(i) for i in range(6)]
        np.testing.assert_allclose([float(row[1]) for row in table], result.weights, rtol=1e-3)
        np.testing.assert_allclose([float(row[2]) for row in table], result.certificates, atol=1e-4)
        assert "not certified" not in result.summary()
        for part in (result.reason, str(result.status), f"{result.sweeps} sweeps", f"{result.eps:.4g} measured"):
            assert part in result.summary()

    def test_a_long_summary_is_cut(self, result):
        text = result.summary(most=2)
        assert "... and 4 more" in text
        assert len(text.splitlines()) == len(result.summary().splitlines()) - 3

    def test_what_is_not_certified_is_marked(self):
        assert results_by_status()["uncertified"]().summary().count("not certified") == 6

    def test_timings(self, result):
        assert list(result.timings) == ["pack", "truncate", "recover", "postprocess", "measure", "certify"]
        assert all(seconds >= 0 for seconds in result.timings.values())

    @pytest.mark.parametrize("given", [{"rank": 6}, {}, {"find": 2}, {"rank": 6, "find": 2}, {"known": 2}])
    def test_sweeps_are_the_applications_but_for_scale_and_measurement(self, given):
        counts, stages = {}, []

        class Counting(PackedTensor):
            def apply(self, X):
                counts[stages[-1]] = counts.get(stages[-1], 0) + bool(X.shape[1])
                return super().apply(X)

            def scaled(self, factor):
                return Counting(self.matrix, self.unit * factor)

        p = planted(0, 12, 6)
        if "known" in given:
            given = given | {"known": p.components[:2]}
        result = decompose(
            Counting(p.packed), random_state=0, callback=lambda stage, done: stages.append(stage), **given
        )
        assert counts.pop("pack") == 1
        assert counts.pop("measure") > 0
        assert result.sweeps == sum(counts.values())


class TestSaving:
    @pytest.fixture(params=results_by_status())
    def result(self, request):
        return quietly_made(results_by_status()[request.param])

    def test_round_trip(self, tmp_path, result):
        path = tmp_path / "result.npz"
        result.save(path)
        back = Decomposition.load(path)
        for field in dataclasses.fields(result):
            saved, loaded = getattr(result, field.name), getattr(back, field.name)
            if isinstance(saved, np.ndarray):
                assert loaded.dtype == saved.dtype
                np.testing.assert_array_equal(loaded, saved)
            else:
                assert loaded == saved
                assert type(loaded) is type(saved)
        assert back.summary() == result.summary()
        assert os.listdir(tmp_path) == ["result.npz"]

    def test_from_every_library(self, tmp_path, xp):
        T = planted(0, 6, 3).tensor
        result = decompose(xp.asarray(T, "float32"), random_state=0)
        result.save(str(tmp_path / "result.npz"))
        back = Decomposition.load(str(tmp_path / "result.npz"))
        assert back.components.dtype == np.float32
        np.testing.assert_array_equal(back.components, xp.numpy(result.components))
        assert back.status == result.status

    def test_the_name_is_taken_as_it_is(self, tmp_path):
        results_by_status()["complete"]().save(tmp_path / "result")
        assert os.listdir(tmp_path) == ["result"]
        assert Decomposition.load(tmp_path / "result").status.ok

    def test_a_missing_folder(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            results_by_status()["complete"]().save(tmp_path / "missing" / "result.npz")
        assert os.listdir(tmp_path) == []

    def test_a_failure_leaves_the_old_file_and_nothing_else(self, tmp_path, monkeypatch):
        path = tmp_path / "result.npz"
        path.write_bytes(b"old")

        def fail(out, **arrays):
            out.write(b"half")
            raise KeyboardInterrupt

        result = results_by_status()["complete"]()
        monkeypatch.setattr(np, "savez", fail)
        with pytest.raises(KeyboardInterrupt):
            result.save(path)
        assert path.read_bytes() == b"old"
        assert os.listdir(tmp_path) == ["result.npz"]


def quietly_made(make):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DecompositionWarning)
        return make()


class TestLoading:
    @pytest.fixture
    def saved(self, tmp_path):
        path = tmp_path / "result.npz"
        results_by_status()["complete"]().save(path)
        return path

    @staticmethod
    def rewritten(path, **changes):
        """The file with some of its arrays changed, or dropped where the change is None."""
        with np.load(path) as data:
            arrays = dict(data) | changes
        np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
        return path

    def refused(self, path, message="is not a file saved by quartic"):
        with pytest.raises(ValueError, match=message) as caught:
            Decomposition.load(path)
        assert path.name in str(caught.value)

    @pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 0.999])
    def test_truncated(self, saved, part):
        content = saved.read_bytes()
        saved.write_bytes(content[: int(part * len(content))])
        self.refused(saved)

    def test_damaged(self, saved):
        content = bytearray(saved.read_bytes())
        at = content.index(b"\x93NUMPY") + 200
        content[at : at + 8] = b"\xff" * 8
        saved.write_bytes(content)
        self.refused(saved)

    def test_empty(self, saved):
        saved.write_bytes(b"")
        self.refused(saved)

    def test_text(self, saved):
        saved.write_text("components")
        self.refused(saved)

    def test_a_pickle_is_not_executed(self, saved):
        class Trap:
            def __reduce__(self):
                return (pytest.fail, ("a pickle was executed",))

        saved.write_bytes(pickle.dumps(Trap()))
        self.refused(saved)

    def test_an_object_array_is_not_executed(self, saved):
        self.rewritten(saved, reason=np.array([{"a": 1}], dtype=object))
        self.refused(saved)

    def test_another_npz(self, saved):
        np.savez(saved, T=np.ones(3))
        self.refused(saved)

    def test_a_npy(self, saved):
        with saved.open("wb") as out:
            np.save(out, np.ones(3))
        self.refused(saved)

    @pytest.mark.parametrize("name", ["components", "status", "eps", "stages"])
    def test_a_part_is_missing(self, saved, name):
        self.refused(self.rewritten(saved, **{name: None}))

    def test_a_part_of_another_kind(self, saved):
        self.refused(self.rewritten(saved, format=np.array("first")))

    def test_a_future_format(self, saved):
        self.refused(self.rewritten(saved, format=np.asarray(99)), r"has format 99, this version of quartic reads 1: ")

    def test_a_missing_file(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="nowhere"):
            Decomposition.load(tmp_path / "nowhere.npz")
