"""Forms of a 4-tensor: one small interface, one file per form."""

from quartic.tensors.base import FourTensor
from quartic.tensors.combine import Congruence, Pairings, Sum
from quartic.tensors.factored import FactoredTensor
from quartic.tensors.packed import PackedTensor
from quartic.tensors.samples import SampleTensor

__all__ = ["Congruence", "FactoredTensor", "FourTensor", "PackedTensor", "Pairings", "SampleTensor", "Sum"]
