"""Certified decomposition of 4-tensors and dictionary learning by spectral methods."""

from typing import TYPE_CHECKING, Any

from quartic import datasets, metrics
from quartic._arrays import full_precision
from quartic.decomposition import decompose
from quartic.frame import Frame
from quartic.given_moment import dictionary_from_moment
from quartic.moments import Covariance, FourthMoment
from quartic.result import Decomposition, DecompositionWarning, Status
from quartic.tensors import FactoredTensor, FourTensor, PackedTensor

if TYPE_CHECKING:
    from quartic.diagnosis import Diagnosis, Finding, diagnose
    from quartic.distributed import Collection
    from quartic.estimators import SpectralDictionaryLearning, SpectralICA
    from quartic.sources import open_samples

__all__ = [
    "Collection",
    "Covariance",
    "Decomposition",
    "DecompositionWarning",
    "Diagnosis",
    "FactoredTensor",
    "Finding",
    "FourTensor",
    "FourthMoment",
    "Frame",
    "PackedTensor",
    "SpectralDictionaryLearning",
    "SpectralICA",
    "Status",
    "datasets",
    "decompose",
    "diagnose",
    "dictionary_from_moment",
    "full_precision",
    "metrics",
    "open_samples",
]
__version__ = "0.1.0"


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    # scikit-learn is loaded when an estimator is first asked for: it takes a second, and pandas where it is installed.
    if name in ("SpectralDictionaryLearning", "SpectralICA"):
        from quartic import estimators

        return getattr(estimators, name)
    if name in ("Diagnosis", "Finding", "diagnose"):
        from quartic import diagnosis

        return getattr(diagnosis, name)
    if name == "Collection":
        from quartic.distributed import Collection

        return Collection
    if name == "open_samples":
        from quartic.sources import open_samples

        return open_samples
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
