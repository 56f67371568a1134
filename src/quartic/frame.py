"""The coordinates of the second pass: the centre of the samples, and what whitens them."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from quartic._arrays import (
    Array,
    array_namespace,
    device,
    from_numpy,
    rows_of,
    typed,
    write,
)
from quartic._files import load_arrays, readable, save_arrays

ROUNDED = 64 * float(np.finfo(np.float64).eps)  # of the largest eigenvalue: less may be what eigensolvers leave


@dataclass(frozen=True, eq=False)
class Frame:
    """The coordinates of the second pass: ``z = (y - mean) @ forward``.

    Attributes
    ----------
    mean : ndarray of shape (d,)
    forward : ndarray of shape (d, r)
    backward : ndarray of shape (r, d)
        ``backward @ forward = Id``.
    spectrum : ndarray of shape (d,)
        Eigenvalues of the covariance, descending.
    reason : str
        How the dimension ``r`` was chosen.

    Examples
    --------
    >>> import numpy as np, quartic
    >>> Y = 5 + np.random.default_rng(0).standard_normal((1000, 3)) * [1.0, 10.0, 100.0]
    >>> frame = quartic.Covariance().update(Y).frame()
    >>> frame.dim, bool(np.allclose(np.cov(frame.whiten(Y).T, bias=True), np.eye(3)))
    (3, True)
    """

    mean: np.ndarray
    forward: np.ndarray
    backward: np.ndarray
    spectrum: np.ndarray
    reason: str

    @property
    def dim(self) -> int:
        """``r``, the dimension of the whitened samples."""
        return int(self.forward.shape[1])

    @property
    def rank(self) -> int:
        """Directions that vary: all that are kept, and those beside them that are no rounding.

        Examples
        --------
        >>> import numpy as np, quartic
        >>> Y = np.random.default_rng(0).standard_normal((1000, 3)) @ np.ones((3, 4))  # all in one direction
        >>> quartic.Covariance().update(Y).frame().rank
        1
        """
        beside = self.spectrum[self.dim :] > ROUNDED * max(float(self.spectrum[0]), 0.0)
        return self.dim + int(np.sum(beside))

    @property
    def key(self) -> str:
        """A digest of the coordinates: moments can be merged if it is the same."""
        parts = (self.mean, self.forward, self.backward)
        return hashlib.sha256(b"".join(np.ascontiguousarray(x).tobytes() for x in parts)).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Frame) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def whiten(self, Y: Array, dtype: Any = None) -> Array:
        """Samples in these coordinates, ``(m, r)``, computed in float64.

        Parameters
        ----------
        Y : array of shape (m, d)
        dtype : dtype, optional
            Of the answer; that of the samples when not given.

        Examples
        --------
        >>> import numpy as np, quartic
        >>> Y = np.random.default_rng(0).uniform(size=(1000, 3)).astype(np.float32)
        >>> Z = quartic.Covariance().update(Y).frame().whiten(Y)
        >>> Z.shape, str(Z.dtype), bool(abs(Z.mean(axis=0)).max() < 1e-5)
        ((1000, 3), 'float32', True)
        """
        xp = array_namespace(Y)
        mean, forward = from_numpy(self.mean, Y), from_numpy(self.forward, Y)
        empty = Y[:0, : self.dim] if dtype is None else typed(Y[:0, : self.dim], dtype)
        out = xp.empty((Y.shape[0], self.dim), dtype=empty.dtype, device=device(Y))
        size = rows_of(Y, np.float64)
        for first in range(0, Y.shape[0], size):
            chunk = slice(first, min(first + size, Y.shape[0]))
            white = (xp.astype(Y[chunk, :], xp.float64) - mean) @ forward
            out = write(out, (chunk, slice(None)), xp.astype(white, empty.dtype))
        return out

    def completed(self, mean: np.ndarray, root: np.ndarray) -> Frame:
        """The frame of other samples in the same span.

        Parameters
        ----------
        mean : ndarray of shape (d,)
            Of those samples.
        root : ndarray of shape (r, r)
            ``C^(-1/2)``, with ``C`` their covariance in these coordinates.

        Returns
        -------
        Frame

        Examples
        --------
        >>> import numpy as np, quartic
        >>> Y = np.random.default_rng(0).standard_normal((1000, 3))
        >>> frame = quartic.Covariance().update(Y).frame()
        >>> wider = frame.completed(frame.mean, np.eye(3) / 2)  # for 2 Y, where C is 4 Id
        >>> bool(np.allclose(wider.whiten(Y), frame.whiten(Y) / 2))
        True
        """
        backward = np.linalg.solve(root, self.backward)
        return Frame(mean, self.forward @ root, backward, self.spectrum, self.reason)

    def narrowed(self, Q: np.ndarray) -> Frame:
        """The part of these coordinates in a subspace.

        Parameters
        ----------
        Q : ndarray of shape (r, n)
            Orthonormal columns that span it.

        Returns
        -------
        Frame

        Examples
        --------
        >>> import numpy as np, quartic
        >>> Y = np.random.default_rng(0).standard_normal((1000, 3))
        >>> frame = quartic.Covariance().update(Y).frame()
        >>> part = frame.narrowed(np.eye(3)[:, :2])
        >>> part.dim, bool(np.allclose(part.whiten(Y), frame.whiten(Y)[:, :2]))
        (2, True)
        """
        return Frame(self.mean, self.forward @ Q, Q.T @ self.backward, self.spectrum, self.reason)

    def arrays(self) -> dict[str, np.ndarray]:
        """What a file needs to hold, for :meth:`from_arrays` to make the frame again.

        Examples
        --------
        >>> import numpy as np, quartic
        >>> frame = quartic.Covariance().update(np.random.default_rng(0).standard_normal((1000, 3))).frame()
        >>> list(frame.arrays())
        ['frame_mean', 'frame_forward', 'frame_backward', 'frame_spectrum', 'frame_reason']
        """
        arrays = ("mean", "forward", "backward", "spectrum", "reason")
        return {f"frame_{name}": np.asarray(getattr(self, name)) for name in arrays}

    @classmethod
    def from_arrays(cls, data: dict[str, np.ndarray]) -> Frame:
        """A frame from what :meth:`arrays` gave.

        Parameters
        ----------
        data : mapping of str to ndarray
            Other names may be in it.

        Returns
        -------
        Frame

        Examples
        --------
        >>> import numpy as np, quartic
        >>> frame = quartic.Covariance().update(np.random.default_rng(0).standard_normal((1000, 3))).frame()
        >>> quartic.Frame.from_arrays({**frame.arrays(), "sensor": np.asarray("left")}) == frame
        True
        """
        mean, forward, backward, spectrum = (
            data[f"frame_{name}"] for name in ("mean", "forward", "backward", "spectrum")
        )
        return cls(mean, forward, backward, spectrum, str(data["frame_reason"]))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a ``.npz`` file, all at once or not at all.

        Parameters
        ----------
        path : str or path

        Examples
        --------
        >>> import os, tempfile, numpy as np, quartic
        >>> frame = quartic.Covariance().update(np.random.default_rng(0).standard_normal((1000, 3))).frame()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     frame.save(os.path.join(folder, "frame.npz"))
        ...     os.listdir(folder)
        ['frame.npz']
        """
        save_arrays(path, "Frame", self.arrays())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Frame:
        """Read what :meth:`save` wrote; nothing in the file is executed.

        Parameters
        ----------
        path : str or path

        Returns
        -------
        Frame

        Examples
        --------
        >>> import os, tempfile, numpy as np, quartic
        >>> frame = quartic.Covariance().update(np.random.default_rng(0).standard_normal((1000, 3))).frame()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     frame.save(os.path.join(folder, "frame.npz"))
        ...     quartic.Frame.load(os.path.join(folder, "frame.npz")) == frame
        True
        """
        data = load_arrays(path, "Frame")
        with readable(path):
            return cls.from_arrays(data)


def inverse_root(C: np.ndarray) -> np.ndarray:
    """``C^(-1/2)``, symmetric."""
    values, V = np.linalg.eigh(C)
    return (V / np.sqrt(np.maximum(values, np.finfo(np.float64).eps * values[-1]))) @ V.T
