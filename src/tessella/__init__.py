"""Tessella learns the kernel together with the support vector machine that uses it."""

from tessella._version import __version__
from tessella.estimators import ExtrapolationWarning, LearnedKernelSVC, LearnedKernelSVR
from tessella.features import KernelFeatures
from tessella.kernels import (
    IntegralKernels,
    LearnedKernel,
    PolynomialKernels,
    TessellatedKernels,
)
from tessella.model_selection import KernelPathCV
from tessella.persistence import load, save
from tessella.tabular import make_tabular_pipeline

__all__ = [
    "ExtrapolationWarning",
    "IntegralKernels",
    "KernelFeatures",
    "KernelPathCV",
    "LearnedKernel",
    "LearnedKernelSVC",
    "LearnedKernelSVR",
    "PolynomialKernels",
    "TessellatedKernels",
    "__version__",
    "load",
    "make_tabular_pipeline",
    "save",
]
