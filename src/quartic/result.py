"""What ``decompose`` returns: components, what is known about them, and how it went."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from quartic._arrays import Array, from_numpy, to_numpy
from quartic._files import check_suffix, load_arrays, readable, save_arrays
from quartic._reported import Reported
from quartic._words import called, counted
from quartic.algorithms.certify import is_certified
from quartic.tensors.cp import to_tensorly
from quartic.tensors.factored import FactoredTensor


def signs(B: np.ndarray) -> np.ndarray:
    """The sign of the largest entry of each row of ``B (m, d)``."""
    peaks = B[np.arange(B.shape[0]), np.argmax(np.abs(B), axis=1)] if B.shape[0] else np.ones(0)
    return np.where(peaks < 0, -1.0, 1.0)


def positive(B: np.ndarray) -> np.ndarray:
    """The rows of ``B (m, d)`` with the sign that makes the largest entry of each positive."""
    B = np.asarray(B)
    return B * signs(B).astype(B.dtype)[:, None]


def canonical_order(B: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Indices that sort the rows of ``B (m, d)``: the largest weight first, ties by entries."""
    scale = float(np.max(np.abs(weights), initial=0.0)) or 1.0
    return np.lexsort((*np.round(positive(B), 6).T[::-1], -np.round(weights / scale, 6)))


class DecompositionWarning(UserWarning):
    """Something was asked for and not found; the message says what, and what to try.

    Examples
    --------
    >>> import warnings, quartic
    >>> planted = quartic.datasets.planted_tensor(6, 4, 0.1, random_state=0)
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always", quartic.DecompositionWarning)
    ...     result = quartic.decompose(planted.tensor, rank=5, random_state=0)  # there are but 4
    >>> [warning.category.__name__ for warning in said], result.status.code
    (['DecompositionWarning'], 'incomplete')
    """


@dataclass(frozen=True)
class Status:
    """What happened, and the remedy if something did not work.

    Attributes
    ----------
    code : str
        ``complete``; of a decomposition ``uncertified``, ``incomplete``, ``no-gap``, ``contradiction`` (of an eps that
        was given) or ``nothing``; of a fitted estimator the main cause, see ``docs/diagnosis.md``.
    message : str
        What happened, with the figures.
    remedy : str
        What to try; empty when nothing is wrong.
    causes : tuple of str
        Codes of all causes that the message names, also of what certificates rest on.

    Examples
    --------
    >>> import quartic
    >>> planted = quartic.datasets.planted_tensor(6, 4, 0.1, random_state=0)
    >>> status = quartic.decompose(planted.tensor, random_state=0).status
    >>> status.code, status.ok, status.remedy
    ('complete', True, '')
    """

    code: str
    message: str
    remedy: str = ""
    causes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether everything that was asked for is there and certified."""
        return self.code == "complete"

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".rstrip()

    def about(self, noun: str) -> Status:
        """The same of atoms that are called otherwise.

        Parameters
        ----------
        noun : str

        Returns
        -------
        Status

        Examples
        --------
        >>> import quartic
        >>> print(quartic.Status("complete", "5 atoms found.").about("source"))
        5 sources found.
        """
        return replace(self, message=called(self.message, noun), remedy=called(self.remedy, noun))


@dataclass(frozen=True, repr=False)
class Decomposition(Reported):
    """Components of a tensor, with what is known about them.

    Attributes
    ----------
    components : array of shape (n, d)
        Unit rows; the largest weight first, the largest entry of each positive.  In the library and on the device
        of the tensor.
    weights : array of shape (n,)
        Least-squares weights in the units of the tensor, to a small fraction of ``eps``.
    certificates : array of shape (n,)
        Lower bound on the squared correlation of each component with the nearest true one, given that the true
        ones are orthonormal and that the spectral norm of the error is at most ``eps_assumed``.  For components in
        general position ``docs/overcomplete.md`` says what takes the place of orthonormality.
    eps : float
        Measured: the spectral norm of ``T - sum_i w_i b_i^(x4)`` on Sym2, in the units of the tensor.
    eps_assumed : float
        The error the certificates rest on: what was given, or what the spectrum and the residual show, if nothing was
        or components are missing.  The latter errs from below where the components fill most of the space of symmetric
        matrices, that is for ``d`` of 2 or 3.
    rank : int
        The rank that was given or chosen.
    reason : str
        How rank and eps were chosen.
    status : Status
    spectrum : ndarray
        Leading eigenvalues of the tensor on Sym2, descending (Ritz values); of what is left of it when components are
        known.
    known : int
        How many of the components were given.
    asymmetry : float
        Relative distance of the input from the pair-symmetric tensors it was projected to.
    orthogonal : bool
        Whether the certificates rest on orthonormal components; or on what takes its place in general position.
    sweeps : int
        Applications of the tensor to a block of vectors, the measurement of ``eps`` not counted.
    timings : dict
        Seconds by stage.

    Examples
    --------
    >>> import quartic
    >>> planted = quartic.datasets.planted_tensor(6, 4, 0.1, random_state=0)
    >>> result = quartic.decompose(planted.tensor, random_state=0)
    >>> result.components.shape, result.certified.tolist()
    ((4, 6), [True, True, True, True])
    >>> quartic.metrics.match(planted.components, result.components).found()
    4
    """

    components: Array
    weights: Array
    certificates: Array
    eps: float
    eps_assumed: float
    rank: int
    reason: str
    status: Status
    spectrum: np.ndarray
    known: int = 0
    asymmetry: float = 0.0
    orthogonal: bool = True
    sweeps: int = 0
    timings: dict[str, float] = field(default_factory=dict)

    @property
    def certified(self) -> Array:
        """Mask of the components whose certificate exceeds 1/2."""
        return from_numpy(is_certified(to_numpy(self.certificates)), self.components)

    def __str__(self) -> str:
        return self.summary()

    def to_tensor(self) -> Array:
        """``sum_i w_i b_i^(x4)`` as an array ``(d, d, d, d)``.

        Examples
        --------
        >>> import numpy as np, quartic
        >>> planted = quartic.datasets.planted_tensor(6, 4, 0.1, random_state=0)
        >>> result = quartic.decompose(planted.tensor, random_state=0)
        >>> left = (planted.tensor - result.to_tensor()).reshape(36, 36)
        >>> bool(np.isclose(np.linalg.norm(left, 2), result.eps, rtol=1e-3))
        True
        """
        return FactoredTensor.from_components(self.weights, self.components).to_dense()

    def to_tensorly(self) -> Any:
        """The same as TensorLy's ``CPTensor``, with four equal factors ``(d, n)``; ``decompose`` takes one, too.

        Examples
        --------
        >>> import quartic
        >>> planted = quartic.datasets.planted_tensor(6, 4, 0.1, random_state=0)
        >>> result = quartic.decompose(planted.tensor, random_state=0)
        >>> cp = result.to_tensorly()
        >>> cp.shape, cp.rank, len(quartic.decompose(cp, random_state=0).components)
        ((6, 6, 6, 6), 4, 4)
        """
        return to_tensorly(self.weights, self.components)

    def summary(self, most: int = 20) -> str:
        """A table of components, and what is to be said about all of them.

        Parameters
        ----------
        most : int, default=20
            How many components are listed.

        Returns
        -------
        str

        Examples
        --------
        >>> import quartic
        >>> planted = quartic.datasets.planted_tensor(6, 4, 0.1, random_state=0)
        >>> result = quartic.decompose(planted.tensor, random_state=0)
        >>> print(result.summary(most=1).splitlines()[0])
        4 components in dimension 6, 4 certified
        """
        n, d = self.components.shape
        certified = int(np.sum(to_numpy(self.certified)))
        lines = [
            f"{counted(n, 'component')} in dimension {d}, {certified} certified",
            f"status   {self.status}",
            f"rank     {self.rank}: {self.reason}",
            f"eps      {self.eps:.4g} measured, {self.eps_assumed:.4g} assumed by the certificates",
        ]
        if not self.orthogonal:
            lines.append("proof    of components in general position, see docs/overcomplete.md")
        if self.asymmetry:
            lines.append(f"input    {self.asymmetry:.2e} of its norm was not pair-symmetric and was projected away")
        lines.append(f"time     {sum(self.timings.values()):.3f} s, {counted(self.sweeps, 'sweep')}")
        if n:
            lines += ["", "  component      weight  certificate"]
        weights, bounds = to_numpy(self.weights), to_numpy(self.certificates)
        for i in range(min(n, most)):
            mark = "" if bounds[i] > 0.5 else "  not certified"
            lines.append(f"  {i:9d}  {weights[i]:10.4g}  {bounds[i]:11.4f}{mark}")
        if n > most:
            lines.append(f"  ... and {n - most} more")
        return "\n".join(lines)

    def __repr__(self) -> str:
        n, d = self.components.shape
        certified = int(np.sum(to_numpy(self.certified)))
        return f"<Decomposition: {counted(n, 'component')} in dimension {d}, {certified} certified>"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from quartic.report.findings import findings
        from quartic.report.page import fragment

        return fragment(findings(self))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a ``.npz`` file, all at once or not at all; :meth:`load` reads it back as NumPy arrays.

        Parameters
        ----------
        path : str or path

        Examples
        --------
        >>> import os, tempfile, quartic
        >>> planted = quartic.datasets.planted_tensor(6, 4, 0.1, random_state=0)
        >>> result = quartic.decompose(planted.tensor, random_state=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result.save(os.path.join(folder, "result.npz"))
        ...     os.listdir(folder)
        ['result.npz']
        """
        arrays = {name: to_numpy(getattr(self, name)) for name in _ARRAYS}
        arrays |= {name: np.asarray(getattr(self, name)) for name in _SCALARS}
        arrays["status"] = np.asarray([self.status.code, self.status.message, self.status.remedy])
        arrays["stages"] = np.asarray(list(self.timings), dtype=str)
        arrays["seconds"] = np.asarray(list(self.timings.values()))
        check_suffix(path, ".npz")
        save_arrays(path, "Decomposition", arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Decomposition:
        """Read what :meth:`save` wrote; nothing in the file is executed.

        Parameters
        ----------
        path : str or path

        Returns
        -------
        Decomposition

        Examples
        --------
        >>> import os, tempfile, quartic
        >>> planted = quartic.datasets.planted_tensor(6, 4, 0.1, random_state=0)
        >>> result = quartic.decompose(planted.tensor, random_state=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result.save(os.path.join(folder, "result.npz"))
        ...     again = quartic.Decomposition.load(os.path.join(folder, "result.npz"))
        >>> again.status == result.status, bool((again.components == result.components).all())
        (True, True)
        """
        data = load_arrays(path, "Decomposition")
        with readable(path):
            values: dict[str, Any] = {key: data[key] for key in _ARRAYS}
            values |= {key: data[key].item() for key in _SCALARS}
            code, message, remedy = (str(part) for part in data["status"])
            timings = dict(zip(data["stages"].tolist(), data["seconds"].tolist(), strict=True))
        return cls(**values, status=Status(code, message, remedy), timings=timings)


_ARRAYS = ("components", "weights", "certificates", "spectrum")
_SCALARS = ("eps", "eps_assumed", "rank", "reason", "known", "asymmetry", "orthogonal", "sweeps")
