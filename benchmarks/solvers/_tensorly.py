"""What the two starts of TensorLy's ``parafac`` share."""

import numpy as np


def parafac(T, rank, seed, init):
    """ALS with TensorLy's defaults (at most 100 iterations, tolerance 1e-8); the mean of the four factors."""
    import tensorly.decomposition

    _, factors = tensorly.decomposition.parafac(T, rank, init=init, random_state=seed)
    rows = [F.T / np.linalg.norm(F.T, axis=1, keepdims=True) for F in factors]  # four times (rank, d)
    # ALS does not know that T is symmetric: the factors agree up to sign and noise.
    signs = [np.where(np.sum(R * rows[0], axis=1, keepdims=True) < 0, -1.0, 1.0) for R in rows]
    return sum(R * s for R, s in zip(rows, signs, strict=True))
