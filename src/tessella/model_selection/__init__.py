"""Cross-validated choice of the parameters of an estimator."""

from tessella.model_selection._kernel_path_cv import KernelPathCV

__all__ = ["KernelPathCV"]
