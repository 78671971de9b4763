"""Leave-one-out predictions of kernel machines with a given kernel matrix.

With the squared loss they are exact, for every value of C from one factorisation. With the hinge
loss and the ε-insensitive loss they follow from the factors of the optimum where that stays on
its face, and from a second solution elsewhere.
"""

from tessella.leave_one_out._cholesky import last_left_out, ridge_leave_one_out
from tessella.leave_one_out._gradient import (
    LeaveOneOutGradient,
    NotPositiveDefiniteError,
    leave_one_out_gradient,
)
from tessella.leave_one_out._held_out import (
    HeldOutGradient,
    held_out_gradient,
    held_out_predictions,
)
from tessella.leave_one_out._ridge import BestC, RidgePath
from tessella.leave_one_out._squared import RidgeSolution
from tessella.leave_one_out._svm import SvmLeaveOneOut, svm_leave_one_out

__all__ = [
    "BestC",
    "HeldOutGradient",
    "LeaveOneOutGradient",
    "NotPositiveDefiniteError",
    "RidgePath",
    "RidgeSolution",
    "SvmLeaveOneOut",
    "held_out_gradient",
    "held_out_predictions",
    "last_left_out",
    "leave_one_out_gradient",
    "ridge_leave_one_out",
    "svm_leave_one_out",
]
