"""
A dictionary of image patches
=============================

Patches of 8 x 8 pixels of natural images fit no dictionary model exactly: another seed, or another half of the patches,
gives other atoms.  ``stability_`` says which of them come back.
"""

# %%
# Patches of lossless images, without their mean, whitened in 48 directions and divided by their contrast.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from skimage import data

import quartic

images = [getattr(data, name)().astype(float) for name in ("camera", "brick", "grass", "gravel", "moon")]
windows = [np.lib.stride_tricks.sliding_window_view(image, (8, 8))[::5, ::5].reshape(-1, 64) for image in images]
patches = np.random.default_rng(0).permutation(np.concatenate(windows))
patches -= patches.mean(axis=1, keepdims=True)
frame = quartic.Covariance().update(patches).frame(48)
Z = frame.whiten(patches)
Z /= np.sqrt(0.1 + np.mean(Z**2, axis=1, keepdims=True))
print(f"{Z.shape[0]} patches in {Z.shape[1]} dimensions")

# %%
# Sixty-four atoms, by the spectral stage alone, from each half of the patches.

with warnings.catch_warnings():
    warnings.simplefilter("ignore", quartic.DecompositionWarning)  # nothing is certified in such data
    one, other = (quartic.SpectralDictionaryLearning(64, refine=False).fit(half) for half in np.array_split(Z, 2))
again = np.max(quartic.metrics.match(one.components_, other.components_).table, axis=1)
for low, high in ((0.95, 1.01), (0.8, 0.95), (0.0, 0.8)):
    chosen = (one.stability_ >= low) & (one.stability_ < high)
    print(f"stability {low:.2f} to {high:.2f}: {np.sum(again[chosen] >= 0.9)} of {np.sum(chosen)} atoms come back")

# %%
# The atoms in pixels, the most stable first; a frame marks those that the other half gives as well.

atoms = (one.components_ @ frame.backward).reshape(-1, 8, 8)
figure, axes = plt.subplots(4, 16, figsize=(9, 2.6), layout="constrained")
for ax, k in zip(axes.flat, np.argsort(-one.stability_), strict=True):
    ax.imshow(atoms[k], cmap="gray")
    ax.set(xticks=[], yticks=[])
    for spine in ax.spines.values():
        spine.set(color="#B84A00" if again[k] >= 0.9 else "white", linewidth=2)
