"""
Separating mixed images
=======================

Four images, mixed by an unknown matrix: blind source separation by the same estimator that takes FastICA's place.
"""

# %%
# The pixels are samples, the images are sensors.

import matplotlib.pyplot as plt
import numpy as np
from skimage import data
from skimage.transform import resize

import quartic

names = ("camera", "brick", "coins", "text")
sources = np.stack([resize(getattr(data, name)().astype(float), (128, 128)).ravel() for name in names], axis=1)
sources = np.diff(sources, axis=0)  # differences of neighbouring pixels are sparse, grey values are not
mixing = np.random.default_rng(0).standard_normal((4, 4))
mixed = sources @ mixing.T

model = quartic.SpectralICA().fit(mixed)
print(model.status_)

# %%
# The images of the estimated sources, summed up again from their differences.

estimated = model.transform(mixed)
pairs = quartic.metrics.match(sources.T, estimated.T)
figure, axes = plt.subplots(3, 4, figsize=(8, 6), layout="constrained")
for k, (row, column, sign) in enumerate(zip(pairs.rows, pairs.columns, pairs.signs, strict=True)):
    for line, signal in enumerate((sources[:, row], mixed[:, k], sign * estimated[:, column])):
        picture = np.concatenate(([0.0], np.cumsum(signal))).reshape(128, 128)
        axes[line, k].imshow(picture, cmap="gray")
        axes[line, k].set_axis_off()
    axes[2, k].set_title(f"squared correlation {pairs.squared[k]:.3f}", fontsize=9)
for line, title in enumerate(("sources", "mixed", "separated")):
    axes[line, 0].text(-0.1, 0.5, title, rotation=90, va="center", transform=axes[line, 0].transAxes)
