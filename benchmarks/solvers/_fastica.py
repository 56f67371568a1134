"""What the two contrasts of scikit-learn's ``FastICA`` share."""


def fastica(Y, n, seed, fun):
    """Its own tolerance (1e-4), but up to 500 steps for 200; ``eigh`` is the fast way to whiten many samples."""
    from sklearn.decomposition import FastICA

    model = FastICA(n, fun=fun, whiten="unit-variance", whiten_solver="eigh", max_iter=500, random_state=seed)
    return model.fit(Y).mixing_.T
