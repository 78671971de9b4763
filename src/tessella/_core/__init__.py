"""Compiled core: max-product tiles and the dual SVM solver (C++17, nanobind)."""

from . import _native

max_product = _native.max_product
max_threads = _native.max_threads
solve_dual = _native.solve_dual

__all__ = ["max_product", "max_threads", "solve_dual"]
