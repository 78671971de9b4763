"""Compiled core: max-product tiles and the dual SVM solver (C++17, nanobind)."""

from tessella._core._native import max_product, max_threads, solve_dual

__all__ = ["max_product", "max_threads", "solve_dual"]
