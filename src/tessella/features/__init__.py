"""Explicit features of a learned kernel, so that a linear model on them is a kernel machine."""

from tessella.features._kernel_features import KernelFeatures

__all__ = ["KernelFeatures"]
