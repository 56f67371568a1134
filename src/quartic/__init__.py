"""Certified decomposition of 4-tensors by spectral methods."""

from quartic import datasets, metrics
from quartic.decomposition import decompose
from quartic.result import Decomposition, DecompositionWarning, Status
from quartic.tensors import FactoredTensor, FourTensor, PackedTensor

__all__ = [
    "Decomposition",
    "DecompositionWarning",
    "FactoredTensor",
    "FourTensor",
    "PackedTensor",
    "Status",
    "datasets",
    "decompose",
    "metrics",
]
__version__ = "0.1.0"
