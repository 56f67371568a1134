"""A literal reading of Algorithms 4.1 to 4.11 and 5.4 on arrays of ``d^4`` numbers: the reference for the fast forms.

Slow on purpose: full decompositions of every reshaping, an explicit Gaussian ``g`` in ``R^(d^2)``, one contraction at
a time.  Modes are numbered from 1, as in the paper; ``T`` is always ``(d, d, d, d)``.

Slips of the paper that are corrected here (all others are in the docstrings of the lemmas' tests):

1. 4.11(d) empties the new set before (e) subtracts it, so that nothing is ever deflated: (e) comes first here.
2. 4.11(b) makes the ``b_i`` rows of ``B`` and then multiplies them as if they were columns: ``b~_i`` are the rows of
   ``U V'`` for ``B = U Sigma V'``.
3. 4.11(a) compares a new vector with ``K`` only; the many contractions of one round find the same component again and
   again, and (b) would then tear the copies apart: it is compared with ``B`` as well.  Its threshold, correlation
   ``1 - eps``, is finer than what Lemma 4.9 promises for two copies (``1 - 12 eps``): 1/2 is used.
4. 4.8 takes ``u`` in ``R^(d^2)``: it is a vector of ``R^d``.
5. Lemmas 4.5 and 4.6 print the reshaping {123}{4} twice: the second one is {124}{3}, as in Algorithm 4.3.
6. 4.1 says that eigenvalues of magnitude below eps are set to zero; its formula, which is what Lemma 4.2 is about, also
   lowers the others by eps.  It needs a symmetric flattening; of another one the symmetric part is taken, which is
   where the nearest positive semidefinite matrix lies.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np

PAIRS = ((1, 2), (3, 4))  # the square reshaping {12}{34}
MODE_4 = ((1, 2, 3), (4,))  # the rectangular reshapings {123}{4}
MODE_3 = ((1, 2, 4), (3,))  # and {124}{3}
CROSS = ((1, 3), (2, 4))  # the second square reshaping of Algorithm 5.4, {13}{24}

Modes = tuple[Sequence[int], Sequence[int]]


def reshape(T: np.ndarray, modes: Modes = PAIRS) -> np.ndarray:
    """The matrix ``T_{rows,columns}`` of section 2."""
    rows, columns = modes
    d = T.shape[0]
    return T.transpose([m - 1 for m in (*rows, *columns)]).reshape(d ** len(rows), d ** len(columns))


def fold(M: np.ndarray, modes: Modes = PAIRS) -> np.ndarray:
    """Inverse of :func:`reshape`."""
    order = [m - 1 for m in (*modes[0], *modes[1])]
    d = round(M.size**0.25)
    return M.reshape(d, d, d, d).transpose(np.argsort(order))


def norm(T: np.ndarray, modes: Modes = PAIRS) -> float:
    """Spectral norm of a reshaping."""
    return float(np.linalg.norm(reshape(T, modes), 2))


def rank_one(B: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """``sum_i w_i b_i^(x4)`` for the rows of ``B (n, d)``."""
    w = np.ones(B.shape[0]) if weights is None else weights
    return np.einsum("n,ni,nj,nk,nl->ijkl", w, B, B, B, B, optimize=True)


def value(T: np.ndarray, v: np.ndarray) -> float:
    """``<T, v^(x4)>``."""
    return float(np.einsum("ijkl,i,j,k,l", T, v, v, v, v, optimize=True))


def symmetrise_pairs(T: np.ndarray) -> np.ndarray:
    """Average over 1<->2, 3<->4 and the transpose of the square flattening: what packing does."""
    T = (T + T.transpose(1, 0, 2, 3)) / 2
    T = (T + T.transpose(0, 1, 3, 2)) / 2
    return (T + T.transpose(2, 3, 0, 1)) / 2


def symmetrise_all(T: np.ndarray) -> np.ndarray:
    """Average over all 24 permutations of the modes."""
    return sum(T.transpose(p) for p in itertools.permutations(range(4))) / 24


def positive_part(M: np.ndarray) -> np.ndarray:
    """``(M)_+``, the projection to the positive semidefinite cone (Fact A.4)."""
    values, vectors = np.linalg.eigh((M + M.T) / 2)
    return (vectors * np.maximum(values, 0.0)) @ vectors.T


def clip_singular_values(M: np.ndarray) -> np.ndarray:
    """The projection to the matrices of spectral norm at most 1."""
    U, s, Vt = np.linalg.svd(M, full_matrices=False)
    return (U * np.minimum(s, 1.0)) @ Vt


def preprocess(T: np.ndarray, eps: float) -> np.ndarray:
    """Algorithm 4.1: ``T^{>eps} = (T - eps Id)_+`` on the square flattening."""
    M = reshape(T)
    return fold(positive_part(M - eps * np.eye(M.shape[0])))


def project(T: np.ndarray) -> np.ndarray:
    """Steps 1 and 2 of Algorithm 4.3: ``T^{<=1}``."""
    for modes in (MODE_4, MODE_3):
        T = fold(clip_singular_values(reshape(T, modes)), modes)
    return T


def contract(T: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Step 3 of Algorithm 4.3: ``M_g = sum_ij g_ij T_ij`` for ``g (d, d)``."""
    return np.einsum("ij,ijkl->kl", g, T)


def top_singular_vectors(M: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors ``u_L`` and ``u_R``."""
    U, _, Vt = np.linalg.svd(M)
    return U[:, 0], Vt[0]


def postprocess(T: np.ndarray, u: np.ndarray, eps: float) -> np.ndarray | None:
    """Algorithm 4.8, with its acceptance test; None when neither vector passes it."""
    A = np.einsum("ijkl,k,l->ij", T, u, u)
    passed = [v for v in top_singular_vectors(A) if value(T, v) >= (1 - 3 * eps) ** 2 - eps]
    return max(passed, key=lambda v: value(T, v), default=None)


def orthonormalise(B: np.ndarray) -> np.ndarray:
    """Step 3(b) of Algorithm 4.11 for the rows of ``B (m, d)``, slip 2 corrected."""
    U, _, Vt = np.linalg.svd(B, full_matrices=False)
    return U @ Vt


def decompose(T: np.ndarray, n: int, eps: float, rng: np.random.Generator) -> np.ndarray:
    """Algorithm 4.11: the known components ``(m, d)``, slips 1 to 3 corrected.

    It stops when ``n`` components are known, and after three rounds in vain.
    """
    d = T.shape[0]
    K = np.zeros((0, d))  # step 1
    work = T.copy()  # step 2; T itself is the clean copy
    in_vain = 0
    for _ in range(math.ceil(100 * math.log(n + 1))):  # step 3
        B = np.zeros((0, d))
        projected = project(preprocess(work, eps))  # (a); the contractions of a round share it
        for _ in range(math.ceil(2 * n * math.log(n + 1)) + 4):
            for u in top_singular_vectors(contract(projected, rng.standard_normal((d, d)))):
                v = postprocess(T, u, eps)
                if v is not None and np.all((np.concatenate((K, B)) @ v) ** 2 < 0.5):
                    B = np.vstack((B, v))
        if len(B):
            B = orthonormalise(B)  # (b)
            values = np.array([value(T, b) for b in B])
            B = B[values >= (1 - 6 * eps) ** 2 - eps]  # (c)
        work = work - rank_one(B)  # (e)
        K = np.concatenate((K, B))  # (d)
        in_vain = 0 if len(B) else in_vain + 1
        if len(K) >= n or in_vain == 3:
            break
    return K


def project_in_sequence(T: np.ndarray, projections: Sequence[Callable[[np.ndarray], np.ndarray]]) -> list[np.ndarray]:
    """The general scheme of section 1: ``T^(1), ..., T^(r)``, each the projection of the one before it."""
    steps = []
    for projection in projections:
        T = projection(T)
        steps.append(T)
    return steps


def clean(T: np.ndarray, eps: float) -> np.ndarray:
    """Algorithm 5.4: ``T~ = (sigma(T^{>eps}) - eps Id)_+``, where ``sigma`` reshapes {12}{34} to {13}{24}.

    ``sigma`` is a map of matrices, so ``T~`` is folded back as {12}{34}.
    """
    M = reshape(preprocess(T, eps), CROSS)
    return fold(positive_part(M - eps * np.eye(M.shape[0])))


def fourth_moment(Z: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """``sum_s w_s z_s^(x4) / sum_s w_s`` for the rows of ``Z (m, d)``."""
    w = np.ones(Z.shape[0]) if weights is None else weights
    return rank_one(Z, w / np.sum(w))


def fourth_cumulant(Z: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """The fourth moment without the three pairings of the second: the cumulant, if the samples are centred."""
    w = np.ones(Z.shape[0]) if weights is None else weights
    C = np.einsum("s,si,sj->ij", w / np.sum(w), Z, Z)
    pairings = (np.einsum(f"{a},{b}->ijkl", C, C) for a, b in (("ij", "kl"), ("ik", "jl"), ("il", "jk")))
    return fourth_moment(Z, w) - sum(pairings)
