"""Problems for solvers that take samples."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

import numpy as np

from quartic import datasets


@dataclass(frozen=True)
class SamplesProblem:
    """Samples of a sparse model with a known dictionary: the arguments of ``quartic.datasets.nice_samples``.

    Attributes
    ----------
    m, n : int
        Number of samples and of atoms.
    d : int, optional
        Dimension; ``n`` (a complete dictionary) when not given.
    supports, coefficients, dictionary : str
        Which model; see ``nice_samples``.
    cooccurrence : float, optional
        ``Pr[j | i]`` of the pairs that the supports couple.
    p : float
        How often an atom is active.
    snr : float, optional
        Signal to noise in dB; no noise when not given.
    dtype : str
        Of the samples.
    group : int
        Atoms in a block, or around a hub.
    outliers : float
        Share of the samples that are gross outliers.
    """

    kind: ClassVar[str] = "samples"
    m: int
    n: int
    d: int | None = None
    supports: str = "independent"
    coefficients: str = "sign"
    cooccurrence: float | None = None
    p: float = 0.1
    dictionary: str = "gaussian"
    snr: float | None = None
    dtype: str = "float64"
    group: int = 8
    outliers: float = 0.0

    @property
    def needs(self) -> set[str]:
        """What a solver must take."""
        return {"samples", "overcomplete"} if self.n > (self.d or self.n) else {"samples"}

    @property
    def name(self) -> str:
        """All that it is, in words; the last fields only where they are not the default."""
        name = f"{self.supports} {self.coefficients} d={self.d or self.n} n={self.n} m={self.m}"
        others = [f for f in fields(self)[5:] if getattr(self, f.name) != f.default]
        return " ".join([name, *(f"{f.name}={getattr(self, f.name)}" for f in others)])

    def as_dict(self) -> dict[str, Any]:
        """For the rows of the results."""
        return {"problem": self.name, **asdict(self)}

    def small(self) -> SamplesProblem:
        """One of its kind that takes no time."""
        return SamplesProblem(1000, 4, dtype=self.dtype)  # of a complete one: what is loaded is the same

    def given(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """What a solver is given, the samples ``(m, d)``, and the atoms ``(n, d)``."""
        drawn = datasets.nice_samples(**asdict(self), random_state=seed)
        return drawn.samples, drawn.components
