"""What learning from samples returns: a dictionary, and what is known about it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from quartic._words import counted
from quartic.certify.doubts import Basis, Doubt
from quartic.frame import Frame
from quartic.learn.attempts import Attempt
from quartic.result import Status


@dataclass(frozen=True)
class LearningReport:
    """How a dictionary was found.

    Attributes
    ----------
    samples, trimmed : int
        Rows that were read, and those left out because one of them outweighed all others.
    dim : int
        Dimension of the whitened samples.
    frame_reason, rank_reason : str
        How that dimension, and the number of atoms, were chosen.
    subsample : int
        Samples that fed the spectral stage.
    subsample_reason : str
        Why so many.
    form : str
        ``accumulated`` or ``implicit``: how the fourth moment was held.
    temperature : float
        The ``beta`` of the weights ``exp(-beta ||z||^2)`` in the spectral stage; 0 when plain moments were used.
    effective : float
        Effective sample size of the spectral stage, under its weights.
    local : int
        Atoms that are certified among others that they occur together with: these rest on independent signs.
    tau : float
        The tau of the coefficients: the largest ``E x_i^2 x_j^2`` over the fourth moments of both, as measured.
    groups : list of list of int
        Atoms that occur together, by the correlations of their energies; single ones are left out.
    window : tuple of int
        ``(a, b)``: eigenvalues ``a`` to ``b`` of the cumulant were skipped as pair terms; ``(0, 0)`` for the top of
        the spectrum.
    spectrum : ndarray
        Leading eigenvalues of the cumulant.
    kept : int
        Eigenvectors that were kept of it: the atoms that were looked for, which may be more than were asked for.
    sweeps : int
        Applications of the cumulant to a block of vectors.
    refinement : str
        What the refinement did.
    passes : int
        Over all samples, in the refinement.
    timings : dict
        Seconds by stage.
    units : str
        What counts as independent: rows, groups of rows, or stretches of them.
    plan : tuple of Attempt
        What was tried, in this order: each with its proposer, its samples, what it proved and what it cost.
    """

    samples: int
    trimmed: int
    dim: int
    frame_reason: str
    rank_reason: str
    subsample: int
    subsample_reason: str
    form: str
    temperature: float
    effective: float
    local: int
    tau: float
    groups: list[list[int]]
    window: tuple[int, int]
    spectrum: np.ndarray
    kept: int
    sweeps: int
    refinement: str
    passes: int
    timings: dict[str, float] = field(default_factory=dict)
    units: str = "rows"
    plan: tuple[Attempt, ...] = ()

    def __str__(self) -> str:
        return self.summary()

    def summary(self) -> str:
        """The figures, one a line."""
        lines = [
            f"samples     {self.samples}" + (f", {self.trimmed} trimmed" if self.trimmed else ""),
            f"evidence    independent parts: {self.units}",
            f"dimension   {self.dim}: {self.frame_reason}",
            f"atoms       {self.rank_reason}",
            f"spectral    {self.subsample} samples, {self.form}: {self.subsample_reason}",
            *(f"{'tried' if i == 0 else '':<12}{attempt}" for i, attempt in enumerate(self.plan)),
            f"weights     temperature {self.temperature:.3g}, {self.effective:.0f} effective samples",
            f"supports    tau {self.tau:.2f}, {counted(len(self.groups), 'group')}; "
            f"{counted(self.local, 'atom')} certified among others that they occur with",
            f"refinement  {self.refinement}",
            f"time        {sum(self.timings.values()):.2f} s",
        ]
        return "\n".join(lines)


UNTOLD = Status("untold", "What happened is not said yet.")


@dataclass(frozen=True)
class Learned:
    """A dictionary, with what is known about it.

    Attributes
    ----------
    components : ndarray of shape (n, d)
        Atoms, unit rows: the most energy first, the largest entry of each positive.
    unmixing : ndarray of shape (n, d)
        ``codes = (Y - mean) @ unmixing.T``; those of least norm where there are more atoms than dimensions.
    mean : ndarray of shape (d,)
    spread : ndarray of shape (n,)
        Standard deviation of the codes.
    thresholds : ndarray of shape (n,)
        Codes below are zero; all zeros when the data are not exactly sparse.
    certificates : ndarray of shape (n,)
    doubts : tuple of Doubt or None
        Why an atom is not certified, with figures; None for one that is.
    bases : tuple of Basis
        What each certificate assumes of the sources.
    uncertainty : ndarray of shape (n,)
        Estimated sine of the angle between an atom and the truth, from the two halves of the samples.
    stability : ndarray of shape (n,)
        Squared correlation, in whitened coordinates, with what the spectral stage finds in each half of the samples
        alone: the smaller one.
    kurtosis : ndarray of shape (n,)
        Of the codes, with its sign.
    correlations : ndarray of shape (n, n)
        Of the energies of the codes, with a zero diagonal: which atoms occur together.
    eps : float
        Spectral norm of what the atoms do not explain of the whitened cumulant.
    frame : Frame
    status : Status
    report : LearningReport
    tolerance : float
        Where there are more atoms than dimensions: the part of a sample's norm that its sparse code may leave.
    """

    components: np.ndarray
    unmixing: np.ndarray
    mean: np.ndarray
    spread: np.ndarray
    thresholds: np.ndarray
    certificates: np.ndarray
    uncertainty: np.ndarray
    stability: np.ndarray
    kurtosis: np.ndarray
    correlations: np.ndarray
    eps: float
    frame: Frame
    report: LearningReport
    status: Status = UNTOLD
    tolerance: float = 0.0
    doubts: tuple[Doubt | None, ...] = ()
    bases: tuple[Basis, ...] = ()

    @property
    def energy(self) -> np.ndarray:
        """What part of the energy of all atoms each of them has, ``(n,)``."""
        # Atoms are unit rows and codes are uncorrelated: E |y - mean|^2 = sum_i spread_i^2.
        squares = self.spread**2
        return np.asarray(squares / squares.sum())

    @property
    def overcomplete(self) -> bool:
        """Whether there are more atoms than dimensions: codes are not linear in the samples then."""
        return self.components.shape[0] > self.frame.dim
