"""Seeds and array libraries that the tests run over.

``QUARTIC_TEST_SEEDS`` widens the seeds: ``QUARTIC_TEST_SEEDS=0-19``, or ``3,7,20-29``.
"""

import importlib
import importlib.util
import os
from dataclasses import dataclass
from typing import Any

import hypothesis
import numpy as np
import pytest

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


@dataclass(frozen=True)
class Library:
    """An array library, and the way there from NumPy and back."""

    name: str
    xp: Any

    def asarray(self, x, dtype=None):
        """The values of a NumPy array, in this library."""
        return self.xp.asarray(np.array(x, dtype=dtype))

    def numpy(self, x):
        """The values of an array of this library, which it must be."""
        assert self.owns(x), f"expected an array of {self.name}, got {type(x)}"
        return x.numpy() if self.name == "torch" else np.asarray(x)

    def owns(self, x):
        return isinstance(x, type(self.xp.asarray([0.0])))

    def dtype(self, name):
        return getattr(self.xp, name)


# NumPy and the strict reference always; a library that is installed by chance joins them.
LIBRARIES = ["numpy", "array_api_strict"] + [name for name in ["torch"] if importlib.util.find_spec(name)]


@pytest.fixture(params=LIBRARIES)
def xp(request):
    return Library(request.param, importlib.import_module(request.param))
