"""Seeds, array libraries and the device that the tests run over.

``QUARTIC_TEST_SEEDS`` widens the seeds: ``QUARTIC_TEST_SEEDS=0-19``, or ``3,7,20-29``.

``QUARTIC_TEST_DEVICE=cuda`` runs the tests that are written for every array library with those that have a GPU:
PyTorch, CuPy and JAX, whichever are installed.  The others say nothing about a device, and are left out.
"""

import importlib
import importlib.util
import os
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # scikit-learn's array dispatch asks for it, before SciPy is loaded

import hypothesis
import numpy as np
import pytest
import sklearn

from quartic._arrays import on_host, to_numpy

# The same examples in every run; a run over many seeds draws new ones.
hypothesis.settings.register_profile(
    "quartic",
    deadline=None,
    max_examples=25,
    print_blob=True,
    derandomize="QUARTIC_TEST_SEEDS" not in os.environ,
)
hypothesis.settings.load_profile("quartic")


def _seeds(text):
    """The whole numbers of ``0-3,7``."""
    seeds = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        seeds += range(int(first), int(last or first) + 1)
    return seeds


@pytest.fixture(params=_seeds(os.environ.get("QUARTIC_TEST_SEEDS", "0-1")))
def seed(request):
    return request.param


@pytest.fixture
def rng(seed):
    return np.random.default_rng(seed)


DEVICE = os.environ.get("QUARTIC_TEST_DEVICE", "cpu")


@dataclass(frozen=True)
class Library:
    """An array library, and the way there from NumPy and back."""

    name: str
    xp: Any

    def asarray(self, x, dtype=None):
        """The values of a NumPy array, in this library, on the device of the tests."""
        x = np.array(x, dtype=dtype)
        return self.xp.asarray(x, device=DEVICE) if self.name == "torch" else self.xp.asarray(x)

    def numpy(self, x):
        """The values of an array of this library, which it must be, on the device of the tests."""
        assert self.owns(x), f"expected an array of {self.name} on {DEVICE}, got {type(x)}"
        return to_numpy(x)

    def owns(self, x):
        mine = isinstance(x, type(self.xp.asarray([0.0])))
        return mine and on_host(x) == (DEVICE == "cpu")

    def dtype(self, name):
        return getattr(self.xp, name)

    @property
    def exact(self):
        """Whether it computes what NumPy does, bit by bit."""
        return self.name in ("numpy", "array_api_strict")

    def within(self, tolerance, elsewhere=2e-3):
        """A tolerance of answers, where a device draws random starts of its own: these show before the fixed point."""
        return tolerance if DEVICE == "cpu" else max(tolerance, elsewhere)


# NumPy and the strict reference always; a library that is installed by chance joins them.
CANDIDATES = ["torch"] if DEVICE == "cpu" else ["torch", "cupy", "jax"]
INSTALLED = [name for name in CANDIDATES if importlib.util.find_spec(name)]
LIBRARIES = ["numpy", "array_api_strict", *INSTALLED] if DEVICE == "cpu" else INSTALLED


def pytest_collection_modifyitems(config, items):
    if DEVICE != "cpu":
        mine = [item for item in items if "xp" in getattr(item, "fixturenames", ())]
        config.hook.pytest_deselected(items=[item for item in items if item not in mine])
        items[:] = mine


def library(name):
    """A library by its name."""
    if name == "jax":
        importlib.import_module("jax").config.update("jax_enable_x64", True)
        importlib.import_module("jax").config.update("jax_default_matmul_precision", "highest")
        return Library("jax", importlib.import_module("jax.numpy"))
    return Library(name, importlib.import_module(name))


@pytest.fixture(params=LIBRARIES)
def xp(request):
    return library(request.param)


@pytest.fixture
def dispatch():
    """scikit-learn's array dispatch, switched on."""
    with sklearn.config_context(array_api_dispatch=True):
        yield
