"""Tessella learns the kernel together with the support vector machine that uses it."""

from tessella.estimators import ExtrapolationWarning, LearnedKernelSVC, LearnedKernelSVR
from tessella.features import KernelFeatures
from tessella.kernels import (
    IntegralKernels,
    LearnedKernel,
    PolynomialKernels,
    TessellatedKernels,
)
from tessella.persistence import load, save
from tessella.tabular import make_tabular_pipeline

__version__ = "0.1.0"

__all__ = [
    "ExtrapolationWarning",
    "IntegralKernels",
    "KernelFeatures",
    "LearnedKernel",
    "LearnedKernelSVC",
    "LearnedKernelSVR",
    "PolynomialKernels",
    "TessellatedKernels",
    "load",
    "make_tabular_pipeline",
    "save",
]
