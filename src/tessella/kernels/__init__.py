"""Kernel sets: families of kernels that are linear in a parameter of a cone."""

from tessella.cones import Sensitivities, positive_factor
from tessella.kernels._base import (
    BoundKernelSet,
    BoundMatrixSet,
    KernelSet,
    KernelWorkspace,
    MatrixMoments,
    Moments,
)
from tessella.kernels._bound_dictionary import BoundDictionary
from tessella.kernels._dictionary import FittedDictionary, KernelDictionary
from tessella.kernels._features import FiniteKernelSet
from tessella.kernels._floor import KernelsWithFloor
from tessella.kernels._functions import FunctionKernel, Gaussian, Polynomial
from tessella.kernels._integral import IntegralKernels
from tessella.kernels._learned import LearnedKernel
from tessella.kernels._names import BasisFunction, basis_functions, basis_names, kernel_name
from tessella.kernels._on_features import KernelsOnFeatures
from tessella.kernels._polynomial import PolynomialKernels
from tessella.kernels._predictor import Predictor
from tessella.kernels._scaling import UnitBox
from tessella.kernels._shared import SharedKernels
from tessella.kernels._stacked import StackedKernels
from tessella.kernels._sum import KernelSum
from tessella.kernels._tessellated import TessellatedKernels

__all__ = [
    "BasisFunction",
    "BoundDictionary",
    "BoundKernelSet",
    "BoundMatrixSet",
    "FiniteKernelSet",
    "FittedDictionary",
    "FunctionKernel",
    "Gaussian",
    "IntegralKernels",
    "KernelDictionary",
    "KernelSet",
    "KernelSum",
    "KernelWorkspace",
    "KernelsOnFeatures",
    "KernelsWithFloor",
    "LearnedKernel",
    "MatrixMoments",
    "Moments",
    "Polynomial",
    "PolynomialKernels",
    "Predictor",
    "Sensitivities",
    "SharedKernels",
    "StackedKernels",
    "TessellatedKernels",
    "UnitBox",
    "basis_functions",
    "basis_names",
    "kernel_name",
    "positive_factor",
]
