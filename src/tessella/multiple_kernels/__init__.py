"""Multiple kernel learning: weighted sums of the kernels of a dictionary.

The two estimators are those of :mod:`tessella.estimators` with a
:class:`~tessella.kernels.KernelDictionary` as their kernel set, and with rules that give the
weights instead of learning them.
"""

from tessella.multiple_kernels._classifier import MultipleKernelSVC
from tessella.multiple_kernels._regressor import MultipleKernelSVR

__all__ = ["MultipleKernelSVC", "MultipleKernelSVR"]
