"""Why an atom is not certified, and what a certificate rests on: as data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any


class Reason(Enum):
    """Why an atom is not certified; the value is what is said of it."""

    NO_SAMPLES = "no samples were kept to prove it with"
    FEW_SAMPLES = "too few samples for two halves of them to say anything"
    SERIAL = "too few parts of the samples are independent of each other"
    LOST = "too much of its features was lost on the way to the file"
    GAUSSIAN = "its signal may be Gaussian"
    NO_AXES = "the samples do not tell it from other directions of a plane"
    ALIKE = "it lies in a plane that is the same in all directions, and has no axes"
    RIVAL = "another reading of the samples is not excluded"
    UNSTABLE = "the two halves of the samples give different directions"
    GROUP = "an atom that it occurs together with is not certified"
    INACCURATE = "it is not known to be nearer to one atom than to all others"
    CONTRADICTED = "it does not fit to the others that claim to be certified"


class Basis(Enum):
    """What a certificate assumes of the sources; the value is what is said of it."""

    INDEPENDENCE = "independent sources"
    SIGNS = "signs that are independent given the magnitudes, and few active atoms in samples of small norm"


@dataclass(frozen=True)
class Doubt:
    """Why an atom is not certified.

    Attributes
    ----------
    reason : Reason
    other : int or None
        The axis that spans the plane in question together with this one, where it is about a plane.
    found, needed : float
        The figure that decided, and the one that would have done.
    """

    reason: Reason
    other: int | None = None
    found: float = 0.0
    needed: float = 0.0

    def moved(self, place: Mapping[int, int]) -> Doubt:
        """With the other axis where it is now; without one that is not among them any more."""
        return self if self.other is None else replace(self, other=place.get(self.other))

    @property
    def times_as_many(self) -> float:
        """How many times as many samples would settle it, if figures stay as they are; infinite where none would."""
        if self.found <= 0 or self.needed <= 0:
            return math.inf
        if self.reason in (Reason.GAUSSIAN, Reason.NO_AXES):  # standard errors
            return (self.needed / self.found) ** 2
        if self.reason is Reason.UNSTABLE:  # angles
            return (self.found / self.needed) ** 2
        if self.reason is Reason.INACCURATE:  # squared cosines
            return (math.acos(math.sqrt(min(self.found, 1.0))) / math.acos(math.sqrt(self.needed))) ** 2
        return math.inf

    def plain(self) -> list[Any]:
        """As a file holds it; ``Doubt.restored`` is the way back."""
        return [self.reason.name, self.other, float(self.found), float(self.needed)]

    @classmethod
    def restored(cls, plain: list[Any] | None) -> Doubt | None:
        """From a file."""
        return None if plain is None else cls(Reason[plain[0]], *plain[1:])

    def __str__(self) -> str:
        where = "" if self.other is None else f" (with {self.other}"
        figures = f"{self.found:.2g} found, {self.needed:.2g} needed" if self.needed else ""
        joined = ": ".join(part for part in (where, figures) if part) if where else (f" ({figures}" if figures else "")
        return self.reason.value + (joined + ")" if joined else "")
