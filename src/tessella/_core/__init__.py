"""Compiled core: max-product matrices and the dual SVM solver (C++17, nanobind)."""

from . import _native

absolute_pair_sums = _native.absolute_pair_sums
DualSteps = _native.DualSteps
JointSteps = _native.JointSteps
KernelRows = _native.KernelRows
KernelRows32 = _native.KernelRows32
instruction_set = _native.instruction_set
kernel_matrix = _native.kernel_matrix
machine_matrices = _native.machine_matrices
max_product = _native.max_product
max_product_apply = _native.max_product_apply
push_machines = _native.push_machines
solve_dual = _native.solve_dual
solve_machines = _native.solve_machines
sum_sensitivities = _native.sum_sensitivities
tridiagonal_forms = _native.tridiagonal_forms

__all__ = [
    "DualSteps",
    "JointSteps",
    "KernelRows",
    "KernelRows32",
    "absolute_pair_sums",
    "instruction_set",
    "kernel_matrix",
    "machine_matrices",
    "max_product",
    "max_product_apply",
    "push_machines",
    "solve_dual",
    "solve_machines",
    "sum_sensitivities",
    "tridiagonal_forms",
]
