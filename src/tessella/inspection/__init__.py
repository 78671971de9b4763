"""Looking inside a fitted model: relevance of features, and pictures.

The displays follow scikit-learn: ``SomeDisplay.from_estimator(...)`` computes and draws, ``plot``
draws again, and ``ax_`` and ``figure_`` are what was drawn on. They need matplotlib
(``python -m pip install "tessella[plot]"``), which is imported when the first one is drawn.
"""

from tessella.inspection._convergence import ConvergenceDisplay
from tessella.inspection._decision_surface import DecisionSurfaceDisplay
from tessella.inspection._kernel_slice import KernelSliceDisplay
from tessella.inspection._parameter import ParameterDisplay
from tessella.inspection._relevance import feature_relevance, interaction_relevance
from tessella.inspection._relevance_display import RelevanceDisplay

__all__ = [
    "ConvergenceDisplay",
    "DecisionSurfaceDisplay",
    "KernelSliceDisplay",
    "ParameterDisplay",
    "RelevanceDisplay",
    "feature_relevance",
    "interaction_relevance",
]
