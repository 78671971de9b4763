"""Kernel sets: families of kernels linear in a positive matrix P."""

from tessella.kernels._base import BoundKernelSet, KernelSet, Moments, positive_factor
from tessella.kernels._features import FiniteKernelSet
from tessella.kernels._integral import IntegralKernels
from tessella.kernels._learned import LearnedKernel
from tessella.kernels._names import BasisFunction, basis_functions, basis_names
from tessella.kernels._polynomial import PolynomialKernels
from tessella.kernels._predictor import Predictor
from tessella.kernels._scaling import UnitBox
from tessella.kernels._sensitivity import Sensitivities
from tessella.kernels._stacked import StackedKernels
from tessella.kernels._tessellated import TessellatedKernels

__all__ = [
    "BasisFunction",
    "BoundKernelSet",
    "FiniteKernelSet",
    "IntegralKernels",
    "KernelSet",
    "LearnedKernel",
    "Moments",
    "PolynomialKernels",
    "Predictor",
    "Sensitivities",
    "StackedKernels",
    "TessellatedKernels",
    "UnitBox",
    "basis_functions",
    "basis_names",
    "positive_factor",
]
