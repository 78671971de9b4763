"""Explicit features of a learned kernel, with which a linear model is a kernel machine."""

from tessella.features._kernel_features import KernelFeatures

__all__ = ["KernelFeatures"]
