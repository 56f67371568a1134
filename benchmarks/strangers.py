"""Samples that no model of this library made: laws, dependence and noise of many kinds, each with its truth.

A *case* draws sources group by group, mixes them by a random matrix and adds noise.  Its truth are the columns of that
matrix that the stated order of readings (``docs/certificate.md``) makes atoms: sources of groups without axes, and
Gaussian ones, are none.  So a certificate is wrong if it lies above the squared correlation, in whitened coordinates,
with the nearest of what is left.  Noise that is not white gives axes to a group without any: in whitened coordinates
the law of its sources, with columns ``B`` of the mixing matrix, is symmetric about the left singular vectors of ``B``,
and no others.  A certificate for these is right about the law and says nothing about sources: it is counted apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from quartic.datasets.tensors import random_orthonormal
from quartic.samples import trim

Draw = Callable[[np.random.Generator, int], np.ndarray]
Group = Callable[[np.random.Generator, int, int], np.ndarray]


def _sign(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.choice([-1.0, 1.0], shape)


def _power(exponent: float) -> Draw:
    """Generalised Gaussian, density ``exp(-|x|^exponent)``: from heavy tails to nearly uniform."""
    return lambda rng, m: _sign(rng, (m,)) * rng.gamma(1 / exponent, size=m) ** (1 / exponent)


LAWS: dict[str, Draw] = {
    "laplace": lambda rng, m: rng.laplace(size=m),
    "uniform": lambda rng, m: rng.uniform(-1, 1, m),
    "logistic": lambda rng, m: rng.logistic(size=m),
    "t3": lambda rng, m: rng.standard_t(3, m),
    "t5": lambda rng, m: rng.standard_t(5, m),
    "power 0.5": _power(0.5),
    "power 4": _power(4.0),
    "sparse signs": lambda rng, m: _sign(rng, (m,)) * (rng.random(m) < 0.1),
    "sparse gaussian": lambda rng, m: rng.standard_normal(m) * (rng.random(m) < 0.2),
    "signs": lambda rng, m: _sign(rng, (m,)),
    "three points": lambda rng, m: rng.choice([-1.0, 0.0, 1.0], m, p=[0.4, 0.2, 0.4]),
    "arcsine": lambda rng, m: np.sin(rng.uniform(0, 2 * np.pi, m)),
    "triangular": lambda rng, m: rng.triangular(-1, 0, 1, m),
    "bimodal": lambda rng, m: _sign(rng, (m,)) * 1.5 + rng.standard_normal(m) * 0.7,
    "exponential": lambda rng, m: rng.exponential(size=m),
    "gamma": lambda rng, m: rng.gamma(2.0, size=m),
    "log-normal": lambda rng, m: np.exp(rng.standard_normal(m)),
    "mild log-normal": lambda rng, m: np.exp(0.5 * rng.standard_normal(m)),
    "gumbel": lambda rng, m: rng.gumbel(size=m),
    "coin": lambda rng, m: (rng.random(m) < 0.15).astype(float),
    "poisson": lambda rng, m: rng.poisson(1.0, m).astype(float),
    "weibull": lambda rng, m: rng.weibull(0.7, m),
}
GAUSSIAN: Draw = lambda rng, m: rng.standard_normal(m)  # noqa: E731
SUPER = ("laplace", "t5", "sparse gaussian", "power 0.5")


def _magnitudes(kind: str, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    if kind == "constant":
        return np.ones(shape)
    return rng.uniform(0.5, 1.5, shape) if kind == "uniform" else np.abs(rng.standard_normal(shape))


def block(kind: str, together: float, p: float) -> Group:
    """Atoms that are awake together, and then active each on its own: ``Pr[j | i]`` is ``together``."""

    def draw(rng: np.random.Generator, m: int, k: int) -> np.ndarray:
        active = (rng.random((m, 1)) < p / together) & (rng.random((m, k)) < together)
        return active * _sign(rng, (m, k)) * _magnitudes(kind, rng, (m, k))

    return draw


def exclusive(kind: str, p: float) -> Group:
    """At most one of them is active."""

    def draw(rng: np.random.Generator, m: int, k: int) -> np.ndarray:
        place = (rng.random((m, 1)) / p).astype(int) == np.arange(k)
        return place * _sign(rng, (m, k)) * _magnitudes(kind, rng, (m, k))

    return draw


def envelope(law: str, strength: float) -> Group:
    """Independent carriers under a common size."""

    def draw(rng: np.random.Generator, m: int, k: int) -> np.ndarray:
        carriers = np.stack([LAWS[law](rng, m) for _ in range(k)], axis=1)
        return carriers * np.exp(strength * rng.standard_normal((m, 1)))

    return draw


def shell(p: float) -> Group:
    """Directions of an l_p sphere, each sample with a radius of its own."""

    def draw(rng: np.random.Generator, m: int, k: int) -> np.ndarray:
        x = _sign(rng, (m, k)) * rng.gamma(1 / p, size=(m, k)) ** (1 / p)
        return x / np.sum(np.abs(x) ** p, axis=1, keepdims=True) ** (1 / p) * rng.exponential(size=(m, 1))

    return draw


def sphere(radius: str) -> Group:
    """The same in all directions: no axes."""

    def draw(rng: np.random.Generator, m: int, k: int) -> np.ndarray:
        x = rng.standard_normal((m, k))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        size = {
            "circle": lambda: np.ones((m, 1)),
            "disc": lambda: rng.random((m, 1)) ** (1 / k),
            "t5": lambda: np.sqrt(rng.chisquare(k, (m, 1)) / rng.chisquare(5, (m, 1))),
            "t3": lambda: np.sqrt(rng.chisquare(k, (m, 1)) / rng.chisquare(3, (m, 1))),
            "exponential": lambda: rng.exponential(size=(m, 1)),
        }[radius]()
        return x * size

    return draw


@dataclass(frozen=True)
class Case:
    """Samples and their truth.

    Attributes
    ----------
    family, name : str
    samples : ndarray of shape (m, d)
    atoms : ndarray of shape (n, d)
        The columns of the mixing matrix that are atoms, as rows.
    sources : int
        How many sources there are, with those that are none.
    loose : tuple of ndarray of shape (k, d)
        The columns of each group without axes in noise that is not white, as rows.
    """

    family: str
    name: str
    samples: np.ndarray
    atoms: np.ndarray
    sources: int
    loose: tuple[np.ndarray, ...] = ()

    @property
    def law(self) -> str:
        """Of independent sources: their law."""
        return self.name.split(",")[0]

    def correlations(self, B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Largest squared correlation of each row of ``B (k, d)`` with an atom, and with an axis that noise made.

        In coordinates whitened by the samples that a fit does not leave out: those that certificates refer to.
        """
        weights, _ = trim(self.samples, None)
        C = np.cov(self.samples if weights is None else self.samples[weights > 0], rowvar=False)
        values, vectors = np.linalg.eigh(C)
        varies = values > 1e-10 * values[-1]  # trimming may leave nothing of a rare atom
        root = vectors[:, varies] / np.sqrt(values[varies])
        made = [np.linalg.svd(rows @ root, full_matrices=False)[2] for rows in self.loose]
        U = _unit(B @ root)
        tables = (_unit(self.atoms @ root) @ U.T, np.concatenate((np.zeros((0, U.shape[1])), *made)) @ U.T)
        return tuple(np.max(table**2, axis=0, initial=0.0) for table in tables)


def _unit(rows: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(length > 0, length, 1.0)


FAMILIES = ("law", "mixed", "gaussian", "blocks", "exclusive", "envelope", "shell", "sphere")
NOISES = ("none", "none", "none", "white", "coloured")


def draw(family: str, seed: int, *, law: str | None = None, shape: tuple[int, int] | None = None) -> Case:
    """The case of a family, all else by the seed; ``law`` and ``shape (m, d)`` where they are wanted."""
    rng = np.random.default_rng([seed, FAMILIES.index(family)])
    d = int(rng.choice([2, 3, 4, 6, 8, 12, 16, 24]))
    m = int(np.exp(rng.uniform(np.log(300), np.log(20_000))))
    m, d = shape or (m, d)
    noise = "none" if family == "law" else str(rng.choice(NOISES))
    S, real, name, k = _sources(family, d, m, rng, law)
    S = S / np.std(S, axis=0)
    kind = rng.integers(2)
    A = random_orthonormal(d, d, rng) if kind else rng.standard_normal((d, d))
    Y = S @ A
    if noise == "white":
        Y = S @ (A := random_orthonormal(d, d, rng)) + rng.uniform(0.1, 0.5) * rng.standard_normal((m, d))
    elif noise == "coloured":
        rank = min(d, 3)
        Y = Y + rng.uniform(0.2, 1.0) * rng.standard_normal((m, rank)) @ rng.standard_normal((rank, d))
    loose = tuple(np.split(A[~real], np.sum(~real) // k)) if family == "sphere" and noise == "coloured" else ()
    return Case(family, f"{name}, noise {noise}, d={d}, m={m}", Y, A[real], d, loose)


def _sources(
    family: str, d: int, m: int, rng: np.random.Generator, law: str | None
) -> tuple[np.ndarray, np.ndarray, str, int]:
    """Sources ``(m, d)``, which of them are atoms, a name, and the size of a group."""
    names = list(LAWS)
    if family == "law":
        law = law or str(rng.choice(names))
        return np.stack([LAWS[law](rng, m) for _ in range(d)], axis=1), np.ones(d, dtype=bool), law, 1
    if family in ("mixed", "gaussian"):
        chosen = [str(x) for x in rng.choice(names, d)]
        S = np.stack([LAWS[x](rng, m) for x in chosen], axis=1)
        real = np.ones(d, dtype=bool)
        if family == "gaussian":
            count = int(rng.choice([1, 2, max(1, d // 2)]))
            S[:, :count], real[:count] = rng.standard_normal((m, count)), False
        return S, real, f"{family} {int(np.sum(~real))} gaussian", 1
    k = int(rng.choice([2, 3, 5] if family == "blocks" else [2, 3, 4]))
    k = min(k, d)
    kind = str(rng.choice(["constant", "uniform", "gaussian"]))
    if family == "blocks":
        together, p = float(rng.choice([0.3, 0.5, 0.7, 0.8, 0.9, 0.95])), float(rng.choice([0.1, 0.2]))
        group, real, name = block(kind, together, p), True, f"blocks of {k} {kind} Pr {together} p {p}"
    elif family == "exclusive":
        p = float(rng.uniform(0.05, 0.8 / k))
        group, real, name = exclusive(kind, p), True, f"exclusive {k} {kind} p {p:.2f}"
    elif family == "envelope":
        carrier, strength = str(rng.choice(SUPER)), float(rng.uniform(0.2, 1.0))
        group, real, name = envelope(carrier, strength), True, f"envelope {k} {carrier} {strength:.2f}"
    elif family == "shell":
        p = float(rng.choice([0.5, 1.0, 1.5]))
        group, real, name = shell(p), True, f"shell {k} p {p}"
    else:
        radius = str(rng.choice(["circle", "disc", "t5", "t3", "exponential"]))
        group, real, name = sphere(radius), False, f"sphere {k} {radius}"
    whole, parts, atoms = d // k, [], []
    only = int(rng.integers(1, whole + 1)) if family == "sphere" else whole
    for _ in range(only):
        parts.append(group(rng, m, k))
        atoms += [real] * k
    law = str(rng.choice(names))
    while len(atoms) < d:  # the rest are independent sources
        parts.append(LAWS[law](rng, m)[:, None])
        atoms.append(True)
    return np.concatenate(parts, axis=1), np.array(atoms), name, k
