"""Samples that break what halves by rows assume, or were spoiled on their way to the file, each with its truth.

A *case* mixes independent sources, and then does one thing to the rows, or to the features, that a certificate must
survive or be refused for.  Its truth are the columns of the mixing matrix; of a gross sensor, that sensor, too: what it
adds is a source like any other; and where each value is changed by itself, as by rounding, what becomes of the column
of a source of three values: that is what the samples have, wherever the source is active alone, and no one can tell it
from a column.  ``cause`` is what the status is to name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.signal import lfilter

from benchmarks.strangers import LAWS, Case
from quartic.datasets.tensors import random_orthonormal

Spoil = Callable[[np.random.Generator, np.ndarray], np.ndarray]
SOURCES = ("laplace", "sparse gaussian", "uniform", "t5", "sparse signs", "logistic", "exponential")


def independent(rng: np.random.Generator, m: int, d: int) -> np.ndarray:
    """Rows that are independent, of one law or of several."""
    names = [str(name) for name in rng.choice(SOURCES, d if rng.random() < 0.5 else 1)]
    return np.stack([LAWS[names[i % len(names)]](rng, m) for i in range(d)], axis=1)


def walks(rng: np.random.Generator, m: int, d: int) -> np.ndarray:
    """Random walks."""
    return np.cumsum(independent(rng, m, d), axis=0)


def autoregressive(coefficient: float) -> Callable[[np.random.Generator, int, int], np.ndarray]:
    """Of independent innovations."""

    def draw(rng: np.random.Generator, m: int, d: int) -> np.ndarray:
        return np.asarray(lfilter([1.0], [1.0, -coefficient], independent(rng, m, d), axis=0))

    return draw


def slow_sines(rng: np.random.Generator, m: int, d: int) -> np.ndarray:
    """A few periods each."""
    return np.sin(2 * np.pi * (np.arange(m)[:, None] / m * rng.uniform(1, 20, d) + rng.random(d)))


def repeated(rng: np.random.Generator, Y: np.ndarray) -> np.ndarray:
    """Every row 2 to 100 times, next to each other or not."""
    times = int(np.exp(rng.uniform(np.log(2), np.log(100))))
    rows = np.repeat(np.arange(-(-Y.shape[0] // times)), times)
    return Y[rows if rng.random() < 0.5 else rng.permutation(rows)]


def rounded(rng: np.random.Generator, Y: np.ndarray) -> np.ndarray:
    """To a third of a standard deviation, or to one."""
    step = Y.std(axis=0) * float(rng.choice([1 / 3, 1.0]))
    return np.round(Y / step) * step


def imputed(rng: np.random.Generator, Y: np.ndarray) -> np.ndarray:
    """2 to 30% of the entries by the mean of what is left of their column."""
    lost = rng.random(Y.shape) < rng.uniform(0.02, 0.3)
    mean = np.nanmean(np.where(lost, np.nan, Y), axis=0)
    return np.where(lost, mean, Y)


def clipped(rng: np.random.Generator, Y: np.ndarray) -> np.ndarray:
    """1 to 20% of the values of each feature at a rail."""
    limit = np.quantile(np.abs(Y - np.median(Y, axis=0)), 1 - rng.uniform(0.01, 0.2), axis=0)
    return np.clip(Y, np.median(Y, axis=0) - limit, np.median(Y, axis=0) + limit)


def squashed(rng: np.random.Generator, Y: np.ndarray) -> np.ndarray:
    """By the hyperbolic tangent, of one to three standard deviations."""
    return np.tanh((Y - Y.mean(axis=0)) / Y.std(axis=0) * rng.uniform(1, 3))


def signs(rng: np.random.Generator, Y: np.ndarray) -> np.ndarray:
    """Alone."""
    return np.sign(Y - np.median(Y, axis=0))


def gross(rng: np.random.Generator, Y: np.ndarray) -> np.ndarray:
    """One sensor with spikes of 20 to 100 standard deviations in 1 to 10% of the rows."""
    Y, column = Y.copy(), int(rng.integers(Y.shape[1]))
    spikes = rng.random(Y.shape[0]) < rng.uniform(0.01, 0.1)
    Y[:, column] += spikes * rng.standard_normal(Y.shape[0]) * rng.uniform(20, 100) * Y[:, column].std()
    return Y


DRAWN = {"walks": walks, "AR(0.999)": autoregressive(0.999), "slow sines": slow_sines}
SPOILED: dict[str, Spoil] = {
    "repeated": repeated, "rounded": rounded, "imputed": imputed, "clipped": clipped, "squashed": squashed,
    "signs": signs, "gross sensor": gross,
}  # fmt: skip
KINDS = (*DRAWN, *SPOILED)
BY_VALUE = ("rounded", "clipped", "squashed", "signs")  # each value is changed by itself
CAUSE = {
    "walks": "serial", "AR(0.999)": "serial", "slow sines": "serial", "repeated": "repeated-rows", "rounded": "rounded",
    "imputed": "filled", "clipped": "clipped", "squashed": "squashed", "signs": "rounded",
    "gross sensor": "gross-sensor",
}  # fmt: skip


@dataclass(frozen=True)
class Spoiled(Case):
    """A case with the cause that its status is to name."""

    cause: str = ""


def draw(kind: str, seed: int, *, shape: tuple[int, int] | None = None) -> Spoiled:
    """The case of a kind, all else by the seed; ``shape (m, d)`` where it is wanted."""
    rng = np.random.default_rng([seed, KINDS.index(kind), 11])
    d, m = int(rng.integers(2, 13)), int(np.exp(rng.uniform(np.log(500), np.log(20_000))))
    m, d = shape or (m, d)
    S = DRAWN.get(kind, independent)(rng, m, d)
    A = random_orthonormal(d, d, rng) if rng.random() < 0.5 else rng.standard_normal((d, d))
    A = A / np.std(S, axis=0)[:, None]
    Y = S @ A
    atoms = A
    if kind in BY_VALUE:
        lone = [S[:, i].max() * A[i] for i in range(d) if np.unique(S[:, i]).shape[0] == 3]
        lone = np.stack([np.zeros(d), *lone])
        Y = SPOILED[kind](rng, np.concatenate((Y, lone)))
        Y, lone = Y[:m], Y[m + 1 :] - Y[m]
        atoms = np.concatenate((A, lone))
    elif kind in SPOILED:
        Y = SPOILED[kind](rng, Y)
    if kind == "gross sensor":
        atoms = np.concatenate((A, np.eye(d)))
    return Spoiled(kind, f"{kind}, d={d}, m={m}", Y, atoms, d, cause=CAUSE[kind])
