"""Multiple kernel learning: weighted sums of the kernels of a dictionary.

The convex problem, its certificate and the solvers are described in
``tessella.multiple_kernels._problem``, ``_learned`` and ``_simple``.
"""

from tessella.multiple_kernels._classifier import MultipleKernelSVC
from tessella.multiple_kernels._dictionary import (
    CombinedKernel,
    FittedDictionary,
    KernelDictionary,
)
from tessella.multiple_kernels._kernels import Gaussian, OnFeatures, Polynomial
from tessella.multiple_kernels._regressor import MultipleKernelSVR

__all__ = [
    "CombinedKernel",
    "FittedDictionary",
    "Gaussian",
    "KernelDictionary",
    "MultipleKernelSVC",
    "MultipleKernelSVR",
    "OnFeatures",
    "Polynomial",
]
