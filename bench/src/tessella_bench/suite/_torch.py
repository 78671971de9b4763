"""Methods of the suite that bring torch: xRFM and RealMLP."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella_bench._methods import CLASSIFICATION, Fitted
from tessella_bench._tuning import Stopwatch
from tessella_bench.suite._boosted import coded
from tessella_bench.suite._data import text_columns
from tessella_bench.suite._divisions import hold_out
from tessella_bench.suite._frames import Prepared, as_numbers, with_filled_numbers
from tessella_bench.suite._scores import log_loss
from tessella_bench.suite._search import Draw, logarithmic, one_of, settings, uniform

_XRFM_SETTINGS, _HELD_OUT = 64, 0.2
_ITERATIONS = 5
_KERNELS, _CHANCES = ("lpq", "l2"), (0.8, 0.2)

# The space of its authors.
XRFM_SPACE: dict[str, Draw] = {
    "bandwidth": logarithmic(0.5, 200.0),
    "exponent": uniform(0.7, 1.4),
    "inner": uniform(0.0, 0.8),  # how far norm_p is from the exponent to 2
    "reg": logarithmic(1e-6, 10.0),
    "diag": one_of((False, True)),
    "kernel": one_of(_KERNELS, _CHANCES),
}


def xrfm_tuned(task: str, X: Any, y: Any, seed: int) -> Fitted:
    """xRFM: 64 random settings, judged on 20 % held out; the best fit is kept.

    The held-out rows also choose the number of its iterations, so that its users keep the model
    that was fitted without them. It runs on a GPU where there is one.
    """
    import torch

    torch.set_num_threads(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    labels, target = coded(task, y)
    searching = Stopwatch()
    with searching():
        learn, judge = hold_out(task, target, _HELD_OUT, seed)
        prepare = as_numbers(X.iloc[learn], scaled=True)
        mean, deviation = (0.0, 1.0) if labels is not None else _moments(target[learn])
        tensors = [
            torch.tensor(prepare(X.iloc[rows]), dtype=torch.float32, device=device)
            for rows in (learn, judge)
        ]
        scaled = target if labels is not None else (target - mean) / deviation
        kind = torch.long if labels is not None else torch.float32
        targets = [torch.tensor(scaled[rows], dtype=kind, device=device) for rows in (learn, judge)]
        best: tuple[tuple[float, ...], Any, dict[str, Any]] | None = None
        for drawn in settings(XRFM_SPACE, _XRFM_SETTINGS + 1, seed)[1:]:
            setting = drawn | {"device": device}
            model = _Xrfm(setting, labels is not None, mean, deviation, seed)
            try:
                model.fit(tensors[0], targets[0], tensors[1], targets[1])
                loss = model.loss(tensors[1].cpu().numpy(), target[judge])
            except (RuntimeError, ValueError):  # a singular system: the setting is of no use
                continue
            if best is None or loss < best[0]:
                best = loss, model, setting
    if best is None:
        raise RuntimeError("no setting of xRFM could be fitted")
    _, model, setting = best
    return Fitted(Prepared(prepare, model, labels), setting, searching.seconds, 0.0)


def _moments(target: NDArray[np.float64]) -> tuple[float, float]:
    return float(target.mean()), float(target.std()) or 1.0


class _Xrfm:
    """One xRFM, as its wrapper for scikit-learn sets it up."""

    def __init__(
        self, setting: dict[str, Any], classify: bool, mean: float, deviation: float, seed: int
    ) -> None:
        from xrfm import xRFM

        exponent = setting["exponent"]
        model = {
            "kernel": setting["kernel"],
            "bandwidth": setting["bandwidth"],
            "exponent": exponent,
            "norm_p": exponent + (2.0 - exponent) * setting["inner"],
            "diag": setting["diag"],
            "bandwidth_mode": "constant",
        }
        fit = {"reg": setting["reg"], "iters": _ITERATIONS, "verbose": False, "solver": "solve"}
        fit |= {"early_stop_rfm": True, "early_stop_multiplier": 1.1}
        self.model = xRFM(
            {"model": model, "fit": fit},
            device=setting["device"],
            tuning_metric="accuracy" if classify else "mse",
            classification_mode="prevalence",
            random_state=seed,
            n_threads=1,
            verbose=False,
        )
        self.classify, self.mean, self.deviation = classify, mean, deviation
        if classify:
            self.predict_proba = self.model.predict_proba

    def fit(self, X: Any, y: Any, X_held_out: Any, y_held_out: Any) -> None:
        self.model.fit(X, y, X_held_out, y_held_out)

    def predict(self, X: Any) -> Any:
        found = np.asarray(self.model.predict(X)).ravel()
        return found if self.classify else found * self.deviation + self.mean

    def loss(self, X: Any, y: Any) -> tuple[float, ...]:
        predicted = self.predict(X)
        if not np.isfinite(predicted).all():
            raise ValueError("predictions that are not finite")
        if not self.classify:
            return (float(np.mean((predicted - y) ** 2)),)
        chances = self.predict_proba(X)
        return float(np.mean(predicted != y)), log_loss(y, chances, range(chances.shape[1]))


def realmlp(task: str, X: Any, y: Any, seed: int) -> Fitted:
    """RealMLP as it comes; it holds out 20 % itself to choose the epoch."""
    import torch
    from pytabkit import RealMLP_TD_Classifier, RealMLP_TD_Regressor

    torch.set_num_threads(1)
    labels, target = coded(task, y)
    kind = RealMLP_TD_Classifier if task == CLASSIFICATION else RealMLP_TD_Regressor
    fitting = Stopwatch()
    with fitting():
        prepare = with_filled_numbers(X)
        model = kind(device="cpu", random_state=seed, n_threads=1)
        model.fit(prepare(X), target, cat_col_names=text_columns(X))
    return Fitted(Prepared(prepare, model, labels), {}, 0.0, fitting.seconds)
