"""Tessella learns the kernel together with the support vector machine that uses it."""

from typing import TYPE_CHECKING, Any

from tessella._version import __version__
from tessella.estimators import (
    ExtrapolationWarning,
    LearnedKernelRidge,
    LearnedKernelRidgeClassifier,
    LearnedKernelSVC,
    LearnedKernelSVR,
)
from tessella.features import KernelFeatures
from tessella.kernels import (
    IntegralKernels,
    KernelDictionary,
    LearnedKernel,
    PolynomialKernels,
    TessellatedKernels,
)
from tessella.persistence import load, save
from tessella.tabular import make_tabular_pipeline

if TYPE_CHECKING:
    from tessella.automatic import TessellaClassifier, TessellaRegressor
    from tessella.model_selection import KernelPathCV
    from tessella.multiple_kernels import MultipleKernelSVC, MultipleKernelSVR

__all__ = [
    "ExtrapolationWarning",
    "IntegralKernels",
    "KernelDictionary",
    "KernelFeatures",
    "KernelPathCV",
    "LearnedKernel",
    "LearnedKernelRidge",
    "LearnedKernelRidgeClassifier",
    "LearnedKernelSVC",
    "LearnedKernelSVR",
    "MultipleKernelSVC",
    "MultipleKernelSVR",
    "PolynomialKernels",
    "TessellaClassifier",
    "TessellaRegressor",
    "TessellatedKernels",
    "__version__",
    "load",
    "make_tabular_pipeline",
    "save",
]


def __getattr__(name: str) -> Any:
    # Imported when needed, because scikit-learn's model selection and scipy.optimize are slow to
    # import.
    if name == "KernelPathCV":
        from tessella.model_selection import KernelPathCV

        return KernelPathCV
    if name in ("TessellaClassifier", "TessellaRegressor"):
        from tessella import automatic

        return getattr(automatic, name)
    if name in ("MultipleKernelSVC", "MultipleKernelSVR"):
        from tessella import multiple_kernels

        return getattr(multiple_kernels, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
