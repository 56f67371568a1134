"""A CP (Kruskal) tensor ``sum_k w_k a_k (x) b_k (x) c_k (x) d_k``, as TensorLy holds it: in and out.

Its pair-symmetric part is ``(U diag(w) V' + V diag(w) U') / 2`` on Sym2, with the packed symmetric parts of the ``a_k
b_k'`` as ``U`` and those of the ``c_k d_k'`` as ``V``: nothing of size ``d^4`` is made.
"""

from __future__ import annotations

import math
from typing import Any

from quartic._arrays import Array, array_namespace, floor_of, is_array_api_obj, pack
from quartic.tensors.packed import PackedTensor

ORDER = 4


def is_cp(T: Any) -> bool:
    """Whether ``T`` is a CP tensor: TensorLy's ``CPTensor``, or whatever has ``weights`` and ``factors`` as it does."""
    return hasattr(T, "factors") and hasattr(T, "weights")


def packed_cp(T: Any) -> PackedTensor:
    """The pair-symmetric part of a CP tensor of order 4, packed, with the size of what is not."""
    factors = list(T.factors)
    shapes = [tuple(F.shape) for F in factors]
    if len(factors) != ORDER or len(set(shapes)) != 1 or len(shapes[0]) != 2:
        raise ValueError(f"T must have {ORDER} factors of one shape (d, rank); got shapes {shapes}.")
    xp = array_namespace(*factors)
    weights = T.weights if is_array_api_obj(T.weights) else xp.ones(shapes[0][1], dtype=factors[0].dtype)
    if not all(bool(xp.all(xp.isfinite(x))) for x in (*factors, weights)):
        raise ValueError("T has weights or factors that are not finite: remove or replace them.")
    A, B, C, D = (xp.matrix_transpose(F) for F in factors)  # (rank, d)
    U, V = pack(A[:, :, None] * B[:, None, :]), pack(C[:, :, None] * D[:, None, :])  # (N, rank)
    half = (U * weights) @ xp.matrix_transpose(V)
    matrix = (half + xp.matrix_transpose(half)) / 2
    # ||T||_F^2 = w' (A A' * B B' * C C' * D D') w
    gram = (A @ xp.matrix_transpose(A)) * (B @ xp.matrix_transpose(B))
    gram = gram * (C @ xp.matrix_transpose(C)) * (D @ xp.matrix_transpose(D))
    square, kept = float(weights @ gram @ weights), float(xp.sum(matrix * matrix))
    if kept == 0:
        raise ValueError("the pair-symmetric part of T is zero: there is nothing to decompose.")
    lost = max(0.0, 1.0 - kept / square)
    return PackedTensor(matrix, asymmetry=math.sqrt(lost) if lost > 8 * floor_of(matrix.dtype, xp) else 0.0)


def to_tensorly(weights: Array, components: Array) -> Any:
    """TensorLy's ``CPTensor`` of ``sum_i w_i b_i^(x4)``, from ``weights (n,)`` and ``components (n, d)``."""
    try:
        from tensorly.cp_tensor import CPTensor
    except ImportError as error:
        raise ImportError("to_tensorly needs TensorLy: pip install tensorly") from error
    columns = array_namespace(components).matrix_transpose(components)
    return CPTensor((weights, [columns] * ORDER))
