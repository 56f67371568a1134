"""Algorithm 4.11: recover every component: orthonormalise, filter, deflate, repeat.

    K := {}.  For t = 0, ..., 100 log n:
    (a) Preprocess T_work (Algorithm 4.1), contract it (4.3), postprocess the candidates with T_clean (4.8); B :=
        what passes and is not in K yet.
    (b) Orthonormalise: B = U Sigma V', b~_i := the polar factor's rows.
    (c) Drop the b~_i with <T_clean, b~_i^(x4)> < (1 - 6 eps)^2 - eps.
    (d) K := K + B~.
    (e) T_work := T_work - sum b~^(x4).

Here the loop runs on the *factored* tensor: after Algorithm 4.1 the working tensor is a span ``L`` of dimension
``n``, and deflating ``b b'`` from it takes ``n^2 d^2 / 2`` operations instead of the sweeps of a new truncation.

Departures from the paper: 4. ``L`` carries equal weights (see ``FactoredTensor.flattened``), so components of unequal
weight are found alike.  5. (d) and (e) are read in the order that deflates; as printed, (d) empties the set
before (e) subtracts it.  6. The filter is ``F``, the part of ``b b'`` in ``L``, which means something for every eps;
the paper's ``(1 - 6 eps)^2 - eps`` is below 1/2 from eps = 0.044 on.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from quartic._arrays import Array, array_namespace, descending, no_rows, pack_rank_one
from quartic.algorithms.contract import candidates, contract
from quartic.algorithms.postprocess import MIXTURE, evaluate, postprocess
from quartic.tensors.factored import FactoredTensor

PASSES, STEPS = 3, 8  # of Algorithm 4.8 in a round, and products in each; measured: fewer leave mixtures behind
SETTLED = 0.99  # squared correlation before and after the last pass, below which a candidate waits for the next round
SAME = 0.5  # squared correlation above which two candidates are one component: 45 degrees


def recover(
    L: FactoredTensor,
    rng: np.random.Generator,
    *,
    find: int | None = None,
    callback: Callable[[int], None] | None = None,
) -> Array:
    """Components whose squares lie in a span, ``(m, d)`` with unit rows, ``m <= find``.

    Parameters
    ----------
    L : FactoredTensor
        Orthonormal ``U_k`` with equal weights 1: the projector to the span.
    rng : numpy.random.Generator
        Draws the contractions.
    find : int, optional
        Stop when so many are found; the dimension of the span when not given.
    callback : callable, optional
        Called with the number found so far, after each round.
    """
    xp = array_namespace(L.like)
    find = L.rank if find is None else min(find, L.rank)
    known = no_rows(L.like, L.dim)
    work, failures = L, 0
    # One contraction in a round gives d candidates, nearly all components of a fresh tensor; what is left meets
    # less competition after deflation.  The paper's own schedule, n log n candidates, bounds those in vain.
    patience = math.ceil(math.log(L.rank + 1)) + 2
    while known.shape[0] < find and work.rank > 0 and failures < patience:
        B = candidates(contract(work, 1, rng), 2 * work.rank)  # step (a), on the working tensor
        before = postprocess(work, B, PASSES - 1, STEPS)
        B = postprocess(work, before, 1, STEPS)
        F = evaluate(L, B).values  # step (c), on the clean one
        settled = xp.sum(before * B, axis=1) ** 2 > SETTLED
        fresh = distinct(B, F, settled & (F > MIXTURE), known)
        if fresh.shape[0] == 0:
            failures += 1
            continue
        fresh = fresh[: min(fresh.shape[0], find - known.shape[0])]
        known = xp.concat((known, xp.take(B, fresh, axis=0)), axis=0)
        if callback is not None:
            callback(known.shape[0])
        if known.shape[0] < find:
            work = deflate_span(L, polar(known))  # steps (b), (d), (e)
    return known


def distinct(B: Array, scores: Array, accepted: Array, known: Array, same: float = SAME) -> Array:
    """Indices of the accepted rows of ``B`` that are the best of their cluster and not known, the best score first.

    Two of one cluster have a squared correlation above ``same``.
    """
    xp = array_namespace(B)
    order = descending(xp.where(accepted, scores, -xp.ones_like(scores)))
    order = order[: int(xp.count_nonzero(accepted))]
    B = xp.take(B, order, axis=0)
    near = (B @ xp.matrix_transpose(B)) ** 2 > same
    # A candidate that is close to a better one goes; clusters are tight, so no chain of them is cut wrongly.
    repeated = xp.any(xp.tril(xp.astype(near, xp.int8), k=-1) > 0, axis=1)
    repeated = repeated | xp.any((B @ xp.matrix_transpose(known)) ** 2 > same, axis=1)
    return xp.take(order, xp.nonzero(~repeated)[0])


def polar(B: Array) -> Array:
    """Step (b): the closest matrix with orthonormal rows to ``B (m, d)``."""
    xp = array_namespace(B)
    values, V = xp.linalg.eigh(xp.astype(B @ xp.matrix_transpose(B), xp.float64))
    root = (V / xp.sqrt(xp.maximum(values, xp.finfo(xp.float64).eps * values[-1]))) @ xp.matrix_transpose(V)
    return xp.astype(root, B.dtype) @ B


def deflate_span(L: FactoredTensor, B: Array) -> FactoredTensor:
    """Step (e) on a span: the part of ``L`` that is orthogonal to the ``b b'``.

    In the coordinates of ``L`` a known component is ``c = U' bb'``; the orthogonal complement of these vectors has
    ``rank - m`` dimensions.
    """
    xp = array_namespace(L.like)
    c = xp.matrix_transpose(L.U) @ pack_rank_one(B)  # (rank, m)
    basis, _ = xp.linalg.qr(xp.astype(c, xp.float64), mode="complete")
    complement = xp.astype(basis[:, c.shape[1] :], L.like.dtype)
    return FactoredTensor(L.lam[: complement.shape[1]], L.U @ complement)
