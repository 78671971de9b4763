"""The setting of the paper, which the defaults of the estimators need not be."""

from __future__ import annotations

from typing import Any

_COMMON = {"C": 10.0, "kernels": "tessellated", "degree": 1, "delta": 0.5, "scaling": "range"}
_OF_TASK: dict[str, dict[str, Any]] = {"classification": {}, "regression": {"epsilon": 0.1}}


def paper_settings(task: str) -> dict[str, Any]:
    """Return the parameters of the paper's experiments, by the names that the estimators use.

    The defaults of the estimators are chosen by their error on held-out rows and may change. The
    setting of the paper does not change: tessellated kernels of degree 1 on features scaled by
    their range, with a margin of 0.5, and in a regression a tube of a tenth of the standard
    deviation of y. The paper chooses `C` and `delta` by cross-validation, so their values here are
    the start of a search.

    Parameters
    ----------
    task : {"classification", "regression"}
        The task, because only a regression with a tube has the parameter `epsilon`.

    Returns
    -------
    dict
        Parameters for :class:`~tessella.LearnedKernelSVC` in a classification, and for
        :class:`~tessella.LearnedKernelSVR` in a regression. Each call returns a new dictionary.

    See Also
    --------
    tessella.pmkl.pmkl : The interface of the software of the paper.

    Examples
    --------
    >>> from tessella import LearnedKernelSVC
    >>> from tessella.estimators import paper_settings
    >>> paper_settings("regression")["epsilon"]
    0.1
    >>> model = LearnedKernelSVC(**paper_settings("classification"))
    >>> model.scaling
    'range'
    """
    if task not in _OF_TASK:
        raise ValueError(f"task={task!r} is unknown; use one of {tuple(_OF_TASK)}.")
    return {**_COMMON, **_OF_TASK[task]}
