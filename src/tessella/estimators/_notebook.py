"""How estimators look in a notebook: scikit-learn's diagram, and what the fit has proved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tessella.inspection._html import model_html


class NotebookMixin:
    """Adds a summary of the fit below scikit-learn's diagram of an estimator.

    Only the two methods that notebooks ask for are extended, so a diagram is whatever the
    installed version of scikit-learn draws, and there is none where it is configured to show text.
    """

    def _summary_html(self) -> str:
        """The summary; empty where there is nothing to tell."""
        return model_html(self)

    @property
    def _repr_html_(self) -> Callable[[], str]:
        diagram = super()._repr_html_  # type: ignore[misc]
        return lambda: self._with_summary(diagram())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] = self._with_summary(bundle["text/html"])
        return bundle

    def _with_summary(self, diagram: str) -> str:
        summary = self._summary_html()
        return diagram if summary in diagram else diagram + summary


class NotebookStepMixin(NotebookMixin):
    """Shows the summary in the box of the estimator, so that a pipeline's diagram has it too.

    scikit-learn asks for the table of fitted attributes since version 1.9; before, the summary
    stands below the diagram of the estimator alone.
    """

    def _get_fitted_attr_html(self, *args: Any, **kwargs: Any) -> Any:
        summary = self._summary_html()  # first: relevance, once known, is one of the attributes
        table = super()._get_fitted_attr_html(*args, **kwargs)  # type: ignore[misc]
        if summary:
            attributes = table._repr_html_inner
            table._repr_html_inner = lambda: summary + attributes()
        return table
