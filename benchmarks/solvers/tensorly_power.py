"""TensorLy ``symmetric_parafac_power_iteration`` with its defaults: ten starts and ten times four steps a component."""

import numpy as np


def solve(T, rank, seed):
    from tensorly.decomposition import symmetric_parafac_power_iteration

    np.random.seed(seed)  # noqa: NPY002  it draws its starts from NumPy's global state
    _, factor = symmetric_parafac_power_iteration(T, rank)
    return factor.T
