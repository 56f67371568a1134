"""Grey images that come with scikit-image as PNG files, without the traces of a JPEG coder, and their patches."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

TRAIN = ("astronaut", "brick", "camera", "coins", "grass", "gravel", "moon", "motorcycle_left")
HELD_OUT = ("chelsea", "coffee")


@lru_cache
def grey(name: str) -> np.ndarray:
    """An image of scikit-image, 0 to 255; of a colour image its luminance."""
    import skimage
    from skimage.io import imread

    # The files of the package: skimage.data would look for some of them elsewhere.
    return luminance(imread(Path(skimage.__file__).parent / "data" / f"{name}.png"))


def luminance(image: np.ndarray) -> np.ndarray:
    """That of the JPEG standard, for an image of three colours; a grey one as it is."""
    image = image.astype(np.float64)
    return image if image.ndim == 2 else image[..., :3] @ np.array([0.299, 0.587, 0.114])


def patches(images: tuple[str, ...], size: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """``count`` patches ``(count, size^2)`` at random places, none twice, an equal share of each image, centred."""
    parts = []
    for name, share in zip(images, np.diff(np.linspace(0, count, len(images) + 1).astype(int)), strict=True):
        windows = np.lib.stride_tricks.sliding_window_view(grey(name), (size, size))
        places = rng.choice(windows.shape[0] * windows.shape[1], share, replace=False)
        rows, columns = np.divmod(places, windows.shape[1])
        parts.append(windows[rows, columns].reshape(share, -1))
    P = rng.permutation(np.concatenate(parts))
    return P - P.mean(axis=1, keepdims=True)
