"""scikit-learn ``MiniBatchDictionaryLearning``: online dictionary learning, stopped by its own rule.

The penalty is that of its authors (Mairal, Bach, Ponce and Sapiro, 2010): ``1.2 / sqrt(d)`` for samples of norm 1.
Small batches and much patience (500 batches without improvement, at most 20 passes, no stop when the dictionary moves
little): with its defaults it stops after two passes and has half of the atoms, measured at d = 32.
"""

import numpy as np

TAKES = {"samples", "overcomplete"}


def solve(Y, n, seed):
    from sklearn.decomposition import MiniBatchDictionaryLearning

    m, d = Y.shape
    patient = {"fit_algorithm": "cd", "batch_size": 32, "tol": 0.0, "max_no_improvement": 500, "max_iter": 20}
    model = MiniBatchDictionaryLearning(n, alpha=1.2 / np.sqrt(d), random_state=seed, **patient)
    return model.fit(Y * np.sqrt(m) / np.linalg.norm(Y)).components_
