"""
More atoms than dimensions
==========================

32 atoms in 16 dimensions, of which one or two are active in a sample.  How many there are is found as well.
"""

# %%
# No starting point, no number of atoms.

import quartic

data = quartic.datasets.nice_samples(20_000, 32, 16, p=0.05, coefficients="gaussian", random_state=0)
model = quartic.SpectralDictionaryLearning().fit(data.samples)
print(model.status_)
match = quartic.metrics.match(data.components, model.components_)
print(f"{match.found(0.999)} of 32 atoms at squared correlation 0.999")

# %%
# The drop of the spectrum after the 32nd eigenvalue says how many atoms there are; all of them are certified.

figure = model.plot(truth=data.components)

# %%
# Codes are sparse: orthogonal matching pursuit, to the tolerance that the refinement found.

codes = model.transform(data.samples[:1000])
counts = [(c != 0).sum(axis=1).mean() for c in (codes, data.codes[:1000])]
print(f"{counts[0]:.2f} atoms in a sample on average, {counts[1]:.2f} true ones")

# %%
# The same for a tensor: 40 generic components in 12 dimensions.

import numpy as np

A = np.random.default_rng(0).standard_normal((40, 12))
A /= np.linalg.norm(A, axis=1, keepdims=True)
T = np.einsum("ni,nj,nk,nl->ijkl", A, A, A, A, optimize=True)
result = quartic.decompose(T, random_state=0)
print(result.status)
