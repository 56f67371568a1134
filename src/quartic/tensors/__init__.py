"""Forms of a 4-tensor: one small interface, one file per form."""

from quartic.tensors.base import FourTensor
from quartic.tensors.combine import Sum
from quartic.tensors.factored import FactoredTensor
from quartic.tensors.packed import PackedTensor

__all__ = ["FactoredTensor", "FourTensor", "PackedTensor", "Sum"]
