"""How estimators look in a notebook: scikit-learn's diagram and a summary of the fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tessella.inspection._html import model_html


class NotebookMixin:
    """Adds a summary of the fit below scikit-learn's diagram of an estimator.

    Only the two methods that notebooks call are extended. The diagram is the one that the
    installed version of scikit-learn draws, and there is none if scikit-learn is configured to
    display text.
    """

    def _summary_html(self) -> str:
        """The summary as HTML; empty before the fit."""
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
    """Shows the summary in the box of the estimator, so that diagrams of pipelines have it, too.

    This needs scikit-learn 1.9, whose diagrams have a table of fitted attributes. With earlier
    versions the summary is shown below the diagram of the estimator alone.
    """

    def _get_fitted_attr_html(self, *args: Any, **kwargs: Any) -> Any:
        summary = self._summary_html()  # before the table, because it may compute an attribute
        table = super()._get_fitted_attr_html(*args, **kwargs)  # type: ignore[misc]
        if summary:
            attributes = table._repr_html_inner
            table._repr_html_inner = lambda: summary + attributes()
        return table
