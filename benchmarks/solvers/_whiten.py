"""What the solvers that whiten by themselves share."""

import numpy as np


def whiten(Y, n):
    """White samples ``(m, n)``, in float64, and the way back ``(n, d)``: directions ``U`` are atoms ``U @ back``."""
    Y = Y - np.mean(Y, axis=0, dtype=np.float64)
    variances, axes = np.linalg.eigh(Y.T @ Y / Y.shape[0])
    deviations, axes = np.sqrt(variances[-n:]), axes[:, -n:]
    return Y @ (axes / deviations), (axes * deviations).T
