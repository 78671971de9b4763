"""The feasible set of a kernel's parameter: a product of cones with one trace.

The parameter of a kernel set is a positive semidefinite matrix (:class:`PSD`), a vector of
nonnegative weights (:class:`Nonnegative`), or several of those (:class:`ProductCone`, whose points
are :class:`Blocks`). In every case the feasible set is the part of the cone where a linear
functional, the trace, equals one: matrices of side n and trace n, weights that sum to one, and
convex combinations of such points for a product.

Each cone knows its centre, its projection, its support function, its faces, the scaling of
Nesterov and Todd with the step to its boundary, and its leading directions. Problems and solvers
are written in these terms and do not know which cone they work on.
"""

from tessella.cones._blocks import Blocks, Point, inner
from tessella.cones._cone import Cone, Face, Factors, Frame, LeadingFace, Scaling, Spectrum
from tessella.cones._nonnegative import Nonnegative
from tessella.cones._product import ProductCone
from tessella.cones._psd import (
    PSD,
    is_factor,
    positive_factor,
    symmetric_factors,
    upper_triangle,
)
from tessella.cones._sensitivities import (
    Couplings,
    LinearSensitivities,
    Sensitivities,
    SumOfSensitivities,
    scaled_point,
)

__all__ = [
    "PSD",
    "Blocks",
    "Cone",
    "Couplings",
    "Face",
    "Factors",
    "Frame",
    "LeadingFace",
    "LinearSensitivities",
    "Nonnegative",
    "Point",
    "ProductCone",
    "Scaling",
    "Sensitivities",
    "Spectrum",
    "SumOfSensitivities",
    "inner",
    "is_factor",
    "positive_factor",
    "scaled_point",
    "symmetric_factors",
    "upper_triangle",
]
