"""
A dictionary of image patches
=============================

Patches of 8 x 8 pixels of natural images, and which of the atoms that are learned from them can be relied on.
"""

# %%
# Patches of lossless images, without their mean.

import numpy as np
from skimage import data
from skimage.util import view_as_windows

import quartic

images = [getattr(data, name)().astype(float) for name in ("camera", "brick", "grass", "gravel", "moon")]
patches = np.concatenate([view_as_windows(image, (8, 8), step=5).reshape(-1, 64) for image in images])
patches -= patches.mean(axis=1, keepdims=True)
print(f"{patches.shape[0]} patches")

# %%
# A dictionary.  Not every atom is certified: real images are no exact model, and the certificate says for which of them
# the two halves of the patches agree.

model = quartic.SpectralDictionaryLearning(48).fit(patches)
print(model.status_)

# %%
figure = model.plot(shape=(8, 8))
