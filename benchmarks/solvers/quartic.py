"""The library itself: ``decompose`` from the dense array, packing included, or ``SpectralDictionaryLearning``."""

TAKES = {"dense", "samples", "overcomplete"}


def solve(X, n, seed):
    import quartic

    if getattr(X, "ndim", 4) == 4:  # a dense array, or one of the library's own forms, which have no ndim
        return quartic.decompose(X, n, random_state=seed).components
    return quartic.SpectralDictionaryLearning(n, random_state=seed).fit(X).components_
