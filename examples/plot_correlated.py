"""
Atoms that occur together
=========================

Most methods assume that atoms are active independently of each other.  Here they come in blocks of five, and an atom of
an active block is active with probability 1/2: far beyond where ICA finds anything.
"""

# %%
# The samples, and two fits.

import numpy as np
from sklearn.decomposition import FastICA

import quartic

data = quartic.datasets.nice_samples(20_000, 20, supports="blocks", group=5, cooccurrence=0.5, random_state=0)
model = quartic.SpectralDictionaryLearning().fit(data.samples)
ica = FastICA(whiten="unit-variance", max_iter=1000, random_state=0).fit(data.samples)
for name, atoms in (("quartic", model.components_), ("FastICA", ica.mixing_.T)):
    print(f"{name} finds {quartic.metrics.match(data.components, atoms).found(0.95)} of 20 atoms")
print(model.status_)

# %%
# The energies of the atoms say which of them belong together: four groups of five, framed in the third picture.

print([np.sort(group).tolist() for group in model.groups_])
figure = model.plot(truth=data.components)
