"""Exponents: slopes of straight lines in doubly logarithmic plots, with their uncertainty."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import stats


@dataclass(frozen=True)
class Exponent:
    """``y = factor x^slope``, with an interval of 95% for the slope: ``[low, high]``."""

    slope: float
    low: float
    high: float
    factor: float

    def __str__(self) -> str:
        return f"{self.slope:.2f} [{self.low:.2f}, {self.high:.2f}]"

    def __call__(self, x: Any) -> np.ndarray:
        """The fitted power law."""
        return self.factor * np.asarray(x, dtype=float) ** self.slope

    def as_dict(self) -> dict[str, float]:
        """For the data that are kept; ``Exponent(**d)`` is the way back."""
        return asdict(self)


def median(values: Iterable[float | None]) -> float | None:
    """The median, with what was not reached, None, above all else; None if that is what it is, or if there is none."""
    known = [np.inf if value is None else value for value in values]
    middle = float(np.median(known)) if known else np.inf
    return middle if np.isfinite(middle) else None


def exponent(x: Sequence[float], y: Sequence[float], level: float = 0.95) -> Exponent:
    """The least-squares line through ``(log x, log y)``, with Student's interval for its slope.

    Parameters
    ----------
    x, y : sequence of float
        Positive, at least three of them; repetitions of one ``x`` count as they are.
    level : float, default=0.95
        Of the interval.
    """
    if len(x) < 3:
        raise ValueError(f"x must hold at least three points for an interval; got {len(x)}.")
    a, b = np.log(np.asarray(x, dtype=float)), np.log(np.asarray(y, dtype=float))
    slope, intercept = np.polyfit(a, b, 1)
    # The standard error of a slope: that of the residuals, over the spread of the abscissas.
    residual = np.sum((b - slope * a - intercept) ** 2) / (len(a) - 2)
    margin = stats.t.ppf((1 + level) / 2, len(a) - 2) * np.sqrt(residual / np.sum((a - np.mean(a)) ** 2))
    return Exponent(float(slope), float(slope - margin), float(slope + margin), float(np.exp(intercept)))
