"""Problems whose answer is known: planted tensors, and samples of nice distributions."""

from quartic.datasets.samples import COEFFICIENTS, SUPPORTS, NiceSamples, nice_samples, population_moment
from quartic.datasets.tensors import ERRORS, PlantedTensor, planted_tensor, random_orthonormal

__all__ = [
    "COEFFICIENTS",
    "ERRORS",
    "SUPPORTS",
    "NiceSamples",
    "PlantedTensor",
    "nice_samples",
    "planted_tensor",
    "population_moment",
    "random_orthonormal",
]
