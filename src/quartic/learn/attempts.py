"""What a fit tried, as a value: which proposer, on what, what of it was proven, and what that cost."""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import Enum


class Proposer(Enum):
    """A way to find candidates."""

    FIXED_POINT = "fixed point"
    SPAN = "span of the moment"
    UNTANGLE = "local tempering"
    WINDOW = "window of the spectrum"
    BEYOND = "more atoms than dimensions"


@dataclass(frozen=True)
class Attempt:
    """What was tried, what it proved and what it cost.

    Attributes
    ----------
    proposer : str
        The value of a :class:`Proposer`.
    rows : int
        Samples that it worked on.
    temperature : float
        The ``beta`` of their weights; 0 for plain moments.
    certified, atoms : int
        How many of its candidates were certified, and how many it had.
    seconds : float
        For finding and proving.
    """

    proposer: str
    rows: int
    temperature: float
    certified: int
    atoms: int
    seconds: float

    def __str__(self) -> str:
        weights = f", temperature {self.temperature:.3g}" if self.temperature else ""
        what = f"{self.proposer}, {self.rows:,} samples{weights}"
        return f"{what}: {self.certified} of {self.atoms} certified in {self.seconds:.2f} s"


class Plan:
    """Attempts, in their order, while they are made."""

    def __init__(self) -> None:
        self.attempts: list[Attempt] = []
        self._since = time.perf_counter()

    def starts(self) -> None:
        """An attempt begins now."""
        self._since = time.perf_counter()

    def made(self, proposer: Proposer, rows: int, temperature: float, certified: int, atoms: int) -> None:
        """An attempt is over; the next one begins."""
        seconds = time.perf_counter() - self._since
        self.attempts.append(Attempt(proposer.value, rows, float(temperature), certified, atoms, seconds))
        self.starts()
