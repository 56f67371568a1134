"""Frames, moments in coordinates of their own, and the files of both."""

from __future__ import annotations

import dataclasses
import zipfile

import numpy as np
import pytest
from test_moments import M, assert_same, identity_frame, samples

from quartic import _files, moments
from quartic.frame import Frame, inverse_root
from quartic.moments import Covariance, FourthMoment
from quartic.tensors import Congruence
from quartic.views import Rewhitened


class TestFrame:
    def test_there_and_back(self, rng):
        Y = samples(rng)
        frame = Covariance().update(Y).frame()
        Z = frame.whiten(Y)
        np.testing.assert_allclose(Z.T @ Z / M, np.eye(4), atol=1e-12)
        np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(Z @ frame.backward + frame.mean, Y, atol=1e-10)
        np.testing.assert_allclose(frame.backward @ frame.forward, np.eye(4), atol=1e-12)
        assert frame.dim == 4

    @pytest.mark.parametrize("chunk", [7, 16384])
    def test_whitening_is_done_in_double_and_stored_as_asked(self, rng, monkeypatch, chunk):
        monkeypatch.setattr(moments, "CHUNK", chunk)
        Y = (samples(rng) + 1e3).astype(np.float32)
        frame = Covariance().update(Y).frame()
        exact = (Y.astype(float) - frame.mean) @ frame.forward
        assert frame.whiten(Y).dtype == np.float32
        np.testing.assert_allclose(frame.whiten(Y), exact, atol=1e-6 * np.max(np.abs(exact)))
        np.testing.assert_allclose(frame.whiten(Y, np.float64), exact, atol=1e-12 * np.max(np.abs(exact)))

    def test_a_dimension_may_be_given(self, rng):
        Y = samples(rng)
        frame = Covariance().update(Y).frame(2)
        assert frame.dim == 2
        np.testing.assert_allclose(frame.whiten(Y).T @ frame.whiten(Y) / M, np.eye(2), atol=1e-10)
        principal = np.linalg.svd(Y - Y.mean(axis=0), full_matrices=False)[2][:2]
        np.testing.assert_allclose(frame.forward @ frame.backward, principal.T @ principal, atol=1e-10)

    def test_samples_that_do_not_vary(self):
        with pytest.raises(ValueError, match="do not vary"):
            Covariance().update(np.ones((10, 3))).frame()

    def test_narrowed(self, rng):
        Y = samples(rng)
        frame = Covariance().update(Y).frame()
        Q = np.linalg.qr(rng.standard_normal((4, 2)))[0]
        part = frame.narrowed(Q)
        np.testing.assert_allclose(part.whiten(Y), frame.whiten(Y) @ Q, atol=1e-12)
        np.testing.assert_allclose(part.backward @ part.forward, np.eye(2), atol=1e-12)

    def test_completed(self, rng):
        """The frame of some samples, completed by the covariance of others there, whitens those."""
        Y, other = samples(rng), 2 * samples(rng) + 3
        frame = Covariance().update(Y).frame()
        c = Covariance().update(other)
        full = frame.completed(c.mean, inverse_root(frame.forward.T @ c.covariance @ frame.forward))
        Z = full.whiten(other)
        np.testing.assert_allclose(Z.T @ Z / M, np.eye(4), atol=1e-10)
        np.testing.assert_allclose(Z @ full.backward + full.mean, other, atol=1e-9)

    def test_inverse_root(self, rng):
        G = rng.standard_normal((5, 5))
        C = G @ G.T
        R = inverse_root(C)
        np.testing.assert_allclose(R, R.T, atol=1e-10)
        np.testing.assert_allclose(R @ C @ R, np.eye(5), atol=1e-8)
        assert np.all(np.isfinite(inverse_root(np.diag([1.0, 0.0]))))  # singular, to rounding: finite all the same


def in_the_frame_of(full: Frame, white: Rewhitened, half: int | None) -> np.ndarray:
    """The cumulant of ``white`` in the coordinates of another frame with the same span."""
    Q = white.frame.backward @ full.forward  # z_full = z_white Q
    np.testing.assert_allclose(Q.T @ Q, np.eye(Q.shape[0]), atol=1e-8)
    return Congruence(white.cumulant(half), Q.T).to_packed()


class TestRewhitened:
    def test_as_if_whitened_by_all_samples_from_the_start(self, rng):
        Y = samples(rng)
        full = Covariance().update(Y).frame()
        first = dataclasses.replace(Covariance().update(Y[: M // 5]).frame(), mean=full.mean)
        white = Rewhitened(FourthMoment(first).update(Y))
        direct = FourthMoment(full).update(Y)
        assert np.linalg.norm(direct.covariance() - FourthMoment(first).update(Y).covariance(), 2) > 0.05
        for half in (None, 0, 1):
            expected = direct.cumulant(half).to_packed()
            np.testing.assert_allclose(in_the_frame_of(full, white, half), expected, atol=1e-9)
        np.testing.assert_allclose(white.frame.mean, full.mean, atol=1e-9)
        Z = white.frame.whiten(Y)
        np.testing.assert_allclose(Z.T @ Z / M, np.eye(4), atol=1e-9)
        np.testing.assert_array_equal(white.effective, direct.effective)
        assert white.dim == 4

    def test_samples_with_another_mean(self, rng):
        """Mean and whitener are those of all samples; the cumulant errs as the docstring of ``Rewhitened`` says.

        That is by the third cumulant alone.
        """
        Y = samples(rng)
        full = Covariance().update(Y).frame()
        first = Covariance().update(Y[: M // 5]).frame()
        white = Rewhitened(FourthMoment(first).update(Y))
        np.testing.assert_allclose(white.frame.mean, full.mean, atol=1e-9)
        Z = white.frame.whiten(Y)
        np.testing.assert_allclose(Z.T @ Z / M, np.eye(4), atol=1e-9)
        delta = (full.mean - first.mean) @ full.forward
        assert np.linalg.norm(delta) > 0.02
        Z = full.whiten(Y)
        third = np.einsum("si,sj,sk->ijk", Z, Z, Z) / M
        moved = sum(np.einsum("ijkl->" + order, np.einsum("i,jkl->ijkl", delta, third)) for order in ORDERS)
        Q = white.frame.backward @ full.forward
        found = Congruence(white.cumulant(), Q.T).to_dense()
        exact = FourthMoment(full).update(Y).cumulant().to_dense()
        np.testing.assert_allclose(found, exact + moved, atol=1e-9)

    def test_symmetric_samples_do_not_mind_another_mean(self, rng):
        half = rng.laplace(size=(M, 4))
        Y = np.concatenate((half, -half))  # third moments vanish exactly
        delta = np.array([1.0, 0.0, -1.0, 0.5])
        white = Rewhitened(FourthMoment(identity_frame(mean=delta)).update(Y, index=np.tile(np.arange(M), 2)))
        exact = Rewhitened(FourthMoment(identity_frame()).update(Y, index=np.tile(np.arange(M), 2)))
        np.testing.assert_allclose(white.root, exact.root, atol=1e-10)
        for half in (None, 0, 1):
            np.testing.assert_allclose(white.cumulant(half).to_packed(), exact.cumulant(half).to_packed(), atol=1e-9)
            np.testing.assert_allclose(white.covariance(half), exact.covariance(half), atol=1e-9)


ORDERS = ("ijkl", "jikl", "kjil", "ljki")


class TestFiles:
    def kinds(self, rng):
        Y = samples(rng)
        c = Covariance().update(Y.astype(np.float32))
        frame = c.frame()
        return {"Covariance": c, "Frame": frame, "FourthMoment": FourthMoment(frame, np.float32).update(Y)}

    def test_round_trip(self, rng, tmp_path):
        kinds = self.kinds(rng)
        for kind, x in kinds.items():
            x.save(tmp_path / f"{kind}.npz")
        c, frame, moment = (getattr(moments, kind).load(tmp_path / f"{kind}.npz") for kind in kinds)
        assert_same(c, kinds["Covariance"], rtol=0)
        assert c.rounding == np.finfo(np.float32).eps
        assert frame == kinds["Frame"]
        assert frame.reason == kinds["Frame"].reason
        np.testing.assert_array_equal(frame.spectrum, kinds["Frame"].spectrum)
        assert_same(moment, kinds["FourthMoment"], rtol=0)
        assert moment.frame == frame
        assert moment.dtype == np.float32

    def test_what_was_loaded_goes_on(self, rng, tmp_path):
        Y = samples(rng)
        frame = Covariance().update(Y).frame()
        for make in (Covariance, lambda: FourthMoment(frame)):
            saved = make().update(Y[:200])
            saved.save(tmp_path / "half.npz")
            loaded = type(saved).load(tmp_path / "half.npz")
            assert_same(loaded.update(Y[200:]), make().update(Y))
            again = type(saved).load(tmp_path / "half.npz")
            assert_same(again.merge(make().update(Y[200:], index=200)), make().update(Y))

    def test_an_empty_moment_may_be_saved(self, rng, tmp_path):
        FourthMoment(identity_frame()).save(tmp_path / "m.npz")
        loaded = FourthMoment.load(tmp_path / "m.npz")
        assert loaded.dtype is None
        Y = samples(rng)
        assert_same(loaded.update(Y), FourthMoment(identity_frame()).update(Y), rtol=0)

    def test_an_empty_covariance_may_not(self, tmp_path):
        with pytest.raises(ValueError, match="nothing to save"):
            Covariance().save(tmp_path / "c.npz")
        assert list(tmp_path.iterdir()) == []

    def test_all_at_once_or_not_at_all(self, rng, tmp_path, monkeypatch):
        path = tmp_path / "c.npz"
        Covariance().update(samples(rng)).save(path)
        before = path.read_bytes()

        def full(out, **arrays):
            out.write(b"half")
            raise OSError("no space left")

        monkeypatch.setattr(np, "savez", full)
        for x in self.kinds(rng).values():
            with pytest.raises(OSError, match="no space left"):
                x.save(path)
        assert path.read_bytes() == before
        assert list(tmp_path.iterdir()) == [path]

    def test_the_wrong_kind(self, rng, tmp_path):
        kinds = self.kinds(rng)
        for kind, x in kinds.items():
            x.save(tmp_path / "x.npz")
            for other in kinds.keys() - {kind}:
                with pytest.raises(ValueError, match=f"x.npz holds a {kind}, not a {other}"):
                    getattr(moments, other).load(tmp_path / "x.npz")

    def test_another_version(self, rng, tmp_path, monkeypatch):
        for kind, x in self.kinds(rng).items():
            with monkeypatch.context() as patch:
                patch.setattr(_files, "FORMAT", 99)
                x.save(tmp_path / "x.npz")
            with pytest.raises(ValueError, match=r"x\.npz has format 99, this version of quartic reads 1"):
                getattr(moments, kind).load(tmp_path / "x.npz")

    def test_damaged_files(self, rng, tmp_path):
        """Cut anywhere, or with any bytes changed: an error that names the file, or the same numbers."""
        path = tmp_path / "x.npz"
        said, unchanged = [], []
        for kind, x in self.kinds(rng).items():
            load = getattr(moments, kind).load
            x.save(path)
            whole = path.read_bytes()
            for length in (0, 1, 50, len(whole) // 2, len(whole) - 1):
                path.write_bytes(whole[:length])
                with pytest.raises(ValueError, match=r"x\.npz is not a file saved by quartic, or is damaged"):
                    load(path)
            for _ in range(40):
                broken = bytearray(whole)
                for place in rng.integers(0, len(whole), 3):
                    broken[place] ^= 1 << int(rng.integers(8))
                path.write_bytes(bytes(broken))
                try:
                    found = load(path)
                except ValueError as error:
                    said.append(str(error))
                else:  # the bytes did not matter
                    unchanged.append(found == x if kind == "Frame" else np.array_equal(found.weight, x.weight))
        assert all("x.npz" in message for message in said)
        assert len(said) > 60
        assert all(unchanged)

    def test_missing_arrays(self, rng, tmp_path):
        for kind, x in self.kinds(rng).items():
            x.save(tmp_path / "x.npz")
            with zipfile.ZipFile(tmp_path / "x.npz") as whole:
                names = [name for name in whole.namelist() if name not in ("kind.npy", "format.npy")]
                for left_out in names:
                    with zipfile.ZipFile(tmp_path / "part.npz", "w") as part:
                        for name in whole.namelist():
                            if name != left_out:
                                part.writestr(name, whole.read(name))
                    with pytest.raises(ValueError, match=r"part\.npz is not a file saved by quartic, or is damaged"):
                        getattr(moments, kind).load(tmp_path / "part.npz")

    def test_nothing_is_executed(self, tmp_path):
        np.savez(tmp_path / "x.npz", format=1, kind="Covariance", mean_=np.array([print], dtype=object))
        np.save(tmp_path / "y.npz", np.zeros(3))
        (tmp_path / "y.npz.npy").rename(tmp_path / "z.npz")
        for name in ("x.npz", "z.npz"):
            with pytest.raises(ValueError, match=f"{name} is not a file saved by quartic"):
                Covariance.load(tmp_path / name)
        with pytest.raises(FileNotFoundError):
            Covariance.load(tmp_path / "missing.npz")


class TestArguments:
    def test_dim(self, rng):
        with pytest.raises(ValueError, match="dim must be at least 1, or None; got 0"):
            Covariance().update(samples(rng)).frame(0)

    @pytest.mark.parametrize("dtype", [int, "float16"])
    def test_dtype(self, dtype):
        with pytest.raises(ValueError, match="dtype must be float32, float64 or None; got"):
            FourthMoment(identity_frame(), dtype)

    def test_merge(self, rng):
        c = Covariance().update(samples(rng))
        moment = FourthMoment(c.frame())
        with pytest.raises(TypeError, match="a Covariance is merged with another one; got FourthMoment"):
            c.merge(moment)
        with pytest.raises(TypeError, match="a FourthMoment is merged with another one; got Covariance"):
            moment.merge(c)
