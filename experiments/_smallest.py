"""The fewest samples that solve a problem: a search on a geometric grid, over nested samples.

A problem is drawn once, as many samples as the grid reaches, and its first ``m`` rows are the smaller problems: what is
solved is then nearly always solved with more, and the search may bisect.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

STEPS = 4  # of the grid to a factor of two


def grid(least: int, most: int) -> list[int]:
    """Numbers of samples, ``STEPS`` of them to a factor of two, the same for all that ask: ``least`` to ``most``."""
    numbers = (round(2 ** (k / STEPS)) for k in range(STEPS * most.bit_length()))
    return [m for m in numbers if least <= m <= most]


def smallest(solved: Callable[[int], bool], numbers: Sequence[int]) -> int | None:
    """The first of ascending ``numbers`` that is solved, and None if none is; upwards, since many samples cost most."""
    low, high = -1, 0
    while not solved(numbers[high]):
        if high == len(numbers) - 1:
            return None
        low, high = high, min(high + STEPS, len(numbers) - 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if solved(numbers[middle]) else (middle, high)
    return numbers[high]
