"""Components that contractions lose, and what deflation brings back.

Theorems 1.1 and 4.4: for eps below some constant, contractions of one truncated and projected tensor find 0.99 n of the
components; the error may have weakened the others, and then no reasonable number of contractions finds them.  Theorem
4.12: subtracting what was found and starting again (Algorithm 4.11) finds all of them, for eps up to O(1 / log^2 n).
Two errors aim at such harm: one cancels a tenth of the components in part, one tilts all of them towards a single one,
so that the projections clip it with the crowd that lies on it.  Algorithm 4.11 is run with one departure: a vector is
accepted at half of the weight that a component may have, since the paper's (1 - 3 eps)^2 - eps is negative, and accepts
anything, from eps = 0.2 on.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import quartic
from experiments import figures
from experiments.contractions import NEAR, truncated
from experiments.experiment import Run, Table, Verdict
from quartic._arrays import pack, pack_rank_one
from quartic.algorithms.contract import candidates, contract
from quartic.algorithms.postprocess import postprocess
from quartic.algorithms.recover import distinct, polar
from quartic.datasets import random_orthonormal
from quartic.tensors.combine import deflate

TITLE = "Lost and recovered components"
CONTRACTIONS = 10  # times n log n, in each round: without an error every component is found with probability 1 - n^-9
ROUNDS = 3
WAYS = {
    "round 1": "4.3 alone",
    "round 2": "deflated once",
    f"round {ROUNDS}": "deflated twice",
    "eigenvectors": "eigenvectors, flattened",
    "quartic": "quartic",
}


def cancel(A: np.ndarray, victims: int) -> np.ndarray:
    """Minus the first components: they keep ``1 - eps`` of their weight, and ``1 - 2 eps`` after the truncation."""
    B = pack_rank_one(A[:victims])
    return -B @ B.T


def crowd(A: np.ndarray, victims: int) -> np.ndarray:
    """All components but the first tilt towards those, each to one of them.

    ``sum_k b_k v_k' + v_k b_k'`` with ``b_k = a_k a_k'`` and ``v_k`` the unit matrix along ``a_k a_j' + a_j a_k'``,
    where ``j`` is the victim of ``k``.  All the ``b_k`` and ``v_k`` are orthonormal, so the norm is 1.
    """
    k = np.arange(victims, A.shape[0])
    B = pack_rank_one(A[k])
    V = pack(A[k][:, :, None] * A[k % victims][:, None, :]) * np.sqrt(2)
    return B @ V.T + V @ B.T


ERRORS = {"cancel": (cancel, 0.1), "crowd": (crowd, 0.0)}  # with the share of the components they aim at; one at least


def top_vectors(T: Any, n: int, eps: float, rng: np.random.Generator) -> np.ndarray:
    """Algorithms 4.1 and 4.3: top singular vectors of ``10 n log n`` contractions, left and right, ``(m, d)``."""
    L = truncated(T, n, eps)
    M = contract(L, math.ceil(CONTRACTIONS * n * math.log(n + 1)), rng)
    left, _, right = np.linalg.svd(M)
    return np.concatenate((left[:, :, 0], right[:, 0, :]))


def values_of(T: quartic.PackedTensor, B: np.ndarray) -> np.ndarray:
    """``<T, b^(x4)>`` for each row of ``B (m, d)``."""
    return np.sum(pack_rank_one(B) * T.apply(pack_rank_one(B)), axis=0)


def rounds(T: quartic.PackedTensor, A: np.ndarray, eps: float, rng: np.random.Generator) -> list[np.ndarray]:
    """Which components Algorithm 4.11 has found after each round, as masks ``(n,)``."""
    n, d = A.shape
    known, masks, accepted = np.zeros((0, d)), [], 0.5 * (1 - eps)
    for _ in range(ROUNDS):
        missing = n - known.shape[0]
        if missing:
            work = deflate(T, np.ones(known.shape[0]), known)  # (e) of the round before
            matrix = work.apply(np.eye(T.pair_dim))
            B = postprocess(T, top_vectors(quartic.PackedTensor((matrix + matrix.T) / 2), missing, eps, rng))  # (a)
            values = values_of(T, B)
            B = B[distinct(B, values, values > accepted, known)][:missing]
            B = polar(B) if B.shape[0] else B  # (b)
            known = np.concatenate((known, B[values_of(T, B) > accepted]))  # (c), (d)
        masks.append(found(A, known))
    return masks


def found(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Which rows of ``A`` are near a row of ``B``."""
    return np.any((A @ B.T) ** 2 >= NEAR, axis=1)


def counted(error: str, n: int, eps: float, seed: int) -> dict[str, Any]:
    """Found after each round, by the eigenvectors of one contraction of equal weights, and by the library."""
    rng = np.random.default_rng(seed)
    A = random_orthonormal(n, n, rng)
    aim, share = ERRORS[error]
    victims = max(1, round(share * n))
    B = pack_rank_one(A)
    T = quartic.PackedTensor(B @ B.T + eps * aim(A, victims))
    masks = dict(zip((f"round {k + 1}" for k in range(ROUNDS)), rounds(T, A, eps, rng), strict=True))
    flat = truncated(T, n, eps).flattened()
    masks["eigenvectors"] = found(A, postprocess(flat, candidates(contract(flat, 1, rng), n), passes=3))
    masks["quartic"] = found(A, quartic.decompose(T, n, random_state=seed).components)
    row: dict[str, Any] = {"error": error, "eps": eps, "seed": seed}
    for key, mask in masks.items():
        row |= {key: float(np.mean(mask)), f"{key}, victims": float(np.mean(mask[:victims]))}
    return row


def measure(run: Run) -> dict[str, Any]:
    """Fractions found, of all components and of the victims, for growing eps."""
    n, grid, seeds = (10, (0.1, 0.3), 1) if run.quick else (40, (0.01, 0.025, 0.05, *np.arange(2, 10) / 20), 4)
    cases = [(error, n, eps, seed) for error in ERRORS for eps in grid for seed in range(seeds)]
    return {"n": n, "eps": grid, "seeds": seeds, "rows": run.each(counted, cases)}


def _mean(data: dict[str, Any], error: str, eps: float, key: str) -> float:
    return float(np.mean([row[key] for row in data["rows"] if (row["error"], row["eps"]) == (error, eps)]))


def tables(data: dict[str, Any]) -> list[Table]:
    """Means over seeds: of all components, and of the victims in brackets."""
    lines = [
        [error, eps, *(f"{mean(error, eps, key):.3f} ({mean(error, eps, key + ', victims'):.2f})" for key in WAYS)]
        for mean in [lambda *which: _mean(data, *which)]
        for error in ERRORS
        for eps in data["eps"]
    ]
    title = f"Fraction found of n = d = {data['n']} components (and of those that the error aims at)"
    return [Table(f"{title}; means of {data['seeds']} seeds", ["error", "eps", *WAYS.values()], lines)]


def verdicts(data: dict[str, Any]) -> list[Verdict]:
    """The least fractions, and from which eps on components are lost."""
    last = f"round {ROUNDS}"
    least = min(data["eps"])

    def reach(key: str) -> tuple[float | None, str]:
        """From which eps on a component in a hundred is lost, and this in words."""
        losing = min((row["eps"] for row in data["rows"] if row[key] < 0.99), default=None)
        worst = f"{min(row[key] for row in data['rows']):.2f} n at worst up to eps = {max(data['eps']):g}"
        return losing, worst if losing is None else f"{worst}, all below {losing:g}"

    (first, once), (then, deflated), (_, flat), (_, ours) = map(reach, ("round 1", last, "eigenvectors", "quartic"))
    return [
        Verdict(
            "Theorems 1.1 and 4.4",
            "contractions of one projected tensor find 0.99 n components, for eps below some constant",
            once,
            "does not hold at these sizes" if first == least else "holds",
        ),
        Verdict(
            "Theorem 4.12",
            "deflation finds the others, for eps up to O(1 / log^2 n)",
            f"{deflated}; the eigenvectors of one contraction with equal weights: {flat}; quartic: {ours}",
            "does not hold at these sizes" if then == least else "holds",
        ),
    ]


def draw(data: dict[str, Any]) -> Any:
    """The fraction found of the components that the error aims at, against eps, for two errors and five methods."""
    figure, axes = figures.panels(1, 2, sharey=True)
    titles = {"cancel": "a tenth cancelled in part", "crowd": "all others tilted to one"}
    for ax, error in zip(axes[0], ERRORS, strict=True):
        for key, look in zip(WAYS, figures.styles(WAYS.values()).values(), strict=True):
            ax.plot(data["eps"], [_mean(data, error, eps, key + ", victims") for eps in data["eps"]], **look)
        ax.set(xlabel="eps", title=titles[error], ylim=(-0.05, 1.05))
    axes[0, 0].set_ylabel("fraction found of those aimed at")
    axes[0, 0].legend(fontsize=8, loc="lower left")
    return figure
