"""Certified decomposition of 4-tensors and dictionary learning by spectral methods."""

from quartic import datasets, metrics
from quartic.decomposition import decompose
from quartic.dictionary import dictionary_from_moment
from quartic.estimators import SpectralDictionaryLearning, SpectralICA
from quartic.moments import Covariance, FourthMoment, Frame
from quartic.result import Decomposition, DecompositionWarning, Status
from quartic.tensors import FactoredTensor, FourTensor, PackedTensor

__all__ = [
    "Covariance",
    "Decomposition",
    "DecompositionWarning",
    "FactoredTensor",
    "FourTensor",
    "FourthMoment",
    "Frame",
    "PackedTensor",
    "SpectralDictionaryLearning",
    "SpectralICA",
    "Status",
    "datasets",
    "decompose",
    "dictionary_from_moment",
    "metrics",
]
__version__ = "0.1.0"
