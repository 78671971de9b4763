"""Inspection of fitted models: relevance of features, and displays.

The displays follow the interface of scikit-learn. ``SomeDisplay.from_estimator(...)`` computes and
draws a display, ``plot`` draws it again, and the attributes ``ax_`` and ``figure_`` hold the axes
and the figure. The displays need matplotlib (``python -m pip install "tessella[plot]"``), which is
imported when the first display is drawn.
"""

from tessella.inspection._convergence import ConvergenceDisplay
from tessella.inspection._decision_surface import DecisionSurfaceDisplay
from tessella.inspection._kernel_slice import KernelSliceDisplay
from tessella.inspection._linearity import linear_share
from tessella.inspection._parameter import ParameterDisplay
from tessella.inspection._relevance import feature_relevance, interaction_relevance
from tessella.inspection._relevance_display import RelevanceDisplay
from tessella.inspection._slopes import relevance_scale

__all__ = [
    "ConvergenceDisplay",
    "DecisionSurfaceDisplay",
    "KernelSliceDisplay",
    "ParameterDisplay",
    "RelevanceDisplay",
    "feature_relevance",
    "interaction_relevance",
    "linear_share",
    "relevance_scale",
]
