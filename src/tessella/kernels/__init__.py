"""Kernel sets: families of kernels that are linear in a parameter of a cone."""

from tessella.cones import Sensitivities, positive_factor
from tessella.kernels._base import (
    BoundKernelSet,
    BoundMatrixSet,
    KernelSet,
    KernelWorkspace,
    MatrixMoments,
    Moments,
    ThinRows,
)
from tessella.kernels._bound_dictionary import BoundDictionary
from tessella.kernels._dictionary import FittedDictionary, KernelDictionary
from tessella.kernels._distances import absolute_pair_sums, laplace_gram
from tessella.kernels._features import FiniteKernelSet
from tessella.kernels._floor import KernelsWithFloor
from tessella.kernels._functions import FunctionKernel, Gaussian, Polynomial
from tessella.kernels._integral import IntegralKernels
from tessella.kernels._learned import LearnedKernel
from tessella.kernels._names import BasisFunction, basis_functions, basis_names, kernel_name
from tessella.kernels._on_features import KernelsOnFeatures
from tessella.kernels._polynomial import PolynomialKernels
from tessella.kernels._predictor import Predictor
from tessella.kernels._scaling import SCALINGS, UnitBox, check_scaling, varying_columns
from tessella.kernels._shared import SharedKernels, bind_to_machines
from tessella.kernels._single import (
    GaussianKernels,
    LaplaceKernels,
    MaternKernels,
    SingleKernelSet,
)
from tessella.kernels._stacked import StackedKernels
from tessella.kernels._sum import KernelSum
from tessella.kernels._tessellated import TessellatedKernels

__all__ = [
    "SCALINGS",
    "BasisFunction",
    "BoundDictionary",
    "BoundKernelSet",
    "BoundMatrixSet",
    "FiniteKernelSet",
    "FittedDictionary",
    "FunctionKernel",
    "Gaussian",
    "GaussianKernels",
    "IntegralKernels",
    "KernelDictionary",
    "KernelSet",
    "KernelSum",
    "KernelWorkspace",
    "KernelsOnFeatures",
    "KernelsWithFloor",
    "LaplaceKernels",
    "LearnedKernel",
    "MaternKernels",
    "MatrixMoments",
    "Moments",
    "Polynomial",
    "PolynomialKernels",
    "Predictor",
    "Sensitivities",
    "SharedKernels",
    "SingleKernelSet",
    "StackedKernels",
    "TessellatedKernels",
    "ThinRows",
    "UnitBox",
    "absolute_pair_sums",
    "basis_functions",
    "basis_names",
    "bind_to_machines",
    "check_scaling",
    "kernel_name",
    "laplace_gram",
    "positive_factor",
    "varying_columns",
]
