"""The estimators among scikit-learn's own tools, each for a property that could fail."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import BaggingRegressor
from sklearn.inspection import permutation_importance
from sklearn.metrics import get_scorer
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    cross_val_predict,
    cross_validate,
    learning_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from tessella import KernelFeatures, LearnedKernelSVC, LearnedKernelSVR


def test_grid_search_finds_what_a_loop_finds(waves):
    X, y = waves
    grid = {"C": [0.1, 1.0], "delta": [0.1, 1.0]}
    search = GridSearchCV(LearnedKernelSVR(), grid, cv=KFold(3)).fit(X, y)
    by_hand = {}
    for C in grid["C"]:
        for delta in grid["delta"]:
            model = LearnedKernelSVR(C=C, delta=delta)
            by_hand[C, delta] = np.mean(
                [
                    model.fit(X[train], y[train]).score(X[test], y[test])
                    for train, test in KFold(3).split(X)
                ]
            )
    best = max(by_hand, key=by_hand.get)
    assert (search.best_params_["C"], search.best_params_["delta"]) == best
    assert search.best_score_ == pytest.approx(by_hand[best], abs=1e-6)


def test_pipeline_scaling_changes_nothing(waves):
    # Features are scaled to the unit cube inside, so a scaler before it is without effect.
    X, y = waves
    alone = LearnedKernelSVR(tol=1e-6).fit(X, y).predict(X)
    scaled = make_pipeline(StandardScaler(), LearnedKernelSVR(tol=1e-6)).fit(X, y).predict(X)
    np.testing.assert_allclose(scaled, alone, rtol=1e-3)


def test_column_transformer_makes_text_columns_useful():
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "green", "blue"], 120)
    size = rng.random(120)
    y = np.where(colour == "red", size, 1 - size)
    frame = pd.DataFrame({"size": size, "colour": colour})
    encode = ColumnTransformer(
        [("text", OneHotEncoder(sparse_output=False), ["colour"])], remainder="passthrough"
    )
    model = make_pipeline(encode, LearnedKernelSVR(C=100.0)).fit(frame[:80], y[:80])
    assert model.score(frame[80:], y[80:]) > 0.95
    blind = LearnedKernelSVR(C=100.0).fit(frame[["size"]][:80], y[:80])
    assert blind.score(frame[["size"]][80:], y[80:]) < 0.5


def test_calibrated_probabilities_agree_with_predictions(circles):
    X, y = circles
    model = CalibratedClassifierCV(LearnedKernelSVC(), cv=3, ensemble=False).fit(X, y)
    probability = model.predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    assert (probability.argmax(axis=1) == model.predict(X)).all()
    # Calibration is monotone in the decision function of the machine inside.
    scores = model.calibrated_classifiers_[0].estimator.decision_function(X)
    assert (np.diff(probability[np.argsort(scores), 1]) >= 0).all()
    assert (model.predict(X) == y).mean() > 0.9


def test_bagging_averages_its_members(waves):
    X, y = waves
    bag = BaggingRegressor(LearnedKernelSVR(), n_estimators=3, max_samples=0.7, random_state=0)
    bag.fit(X, y)
    members = [
        member.predict(X[:, features])
        for member, features in zip(bag.estimators_, bag.estimators_features_, strict=True)
    ]
    np.testing.assert_allclose(bag.predict(X), np.mean(members, axis=0))
    assert len({member.objective_ for member in bag.estimators_}) == 3
    assert bag.score(X, y) > 0.9


def test_cross_validate_gives_certified_models(circles):
    X, y = circles
    scoring = ["accuracy", "roc_auc"]
    found = cross_validate(
        LearnedKernelSVC(), X, y, cv=3, scoring=scoring, return_estimator=True, return_indices=True
    )
    for k, model in enumerate(found["estimator"]):
        test = found["indices"]["test"][k]
        assert model.gap_ <= model.tol
        assert found["test_accuracy"][k] == model.score(X[test], y[test])
        assert found["test_roc_auc"][k] == get_scorer("roc_auc")(model, X[test], y[test])


def test_sample_weight_is_routed(waves):
    X, y = waves
    weight = (np.arange(len(y)) % 3 > 0).astype(float)
    spoiled = np.where(weight == 0, 1e6, y)
    with config_context(enable_metadata_routing=True):
        model = LearnedKernelSVR().set_fit_request(sample_weight=True)
        scorer = get_scorer("r2").set_score_request(sample_weight=True)
        params = {"sample_weight": weight}
        clean = cross_validate(model, X, y, cv=3, scoring=scorer, params=params)["test_score"]
        dirty = cross_validate(model, X, spoiled, cv=3, scoring=scorer, params=params)["test_score"]
        assert (clean == dirty).all()
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
        pipeline.fit(X, spoiled, **params)
        assert pipeline.score(X[weight > 0], y[weight > 0]) > 0.9
        with pytest.raises(ValueError, match="sample_weight"):
            cross_validate(LearnedKernelSVR(), X, y, cv=3, params=params)


def test_set_output_names_the_features(waves):
    X, y = waves
    features = KernelFeatures(LearnedKernelSVR(), n_components=5, random_state=0)
    frame = pd.DataFrame(X, columns=["a", "b"], index=np.arange(len(X)) + 100)
    out = features.set_output(transform="pandas").fit(frame, y).transform(frame)
    assert isinstance(out, pd.DataFrame)
    assert out.columns.tolist() == features.get_feature_names_out().tolist()
    assert out.index.equals(frame.index)
    # A frame made by a transformer before it: the names arrive.
    pipeline = make_pipeline(StandardScaler(), LearnedKernelSVR()).set_output(transform="pandas")
    assert pipeline.fit(frame, y)[-1].feature_names_in_.tolist() == ["a", "b"]


def test_transformed_target(waves):
    X, y = waves
    model = TransformedTargetRegressor(LearnedKernelSVR(), func=np.log, inverse_func=np.exp)
    inner = LearnedKernelSVR().fit(X, np.log(y))
    np.testing.assert_allclose(model.fit(X, y).predict(X), np.exp(inner.predict(X)))


def test_curves_importances_and_out_of_fold_predictions(waves):
    X, y = waves
    noisy = np.column_stack([X, np.random.default_rng(0).random(len(y))])
    model = LearnedKernelSVR()
    importance = permutation_importance(model.fit(noisy, y), noisy, y, random_state=0)
    assert importance.importances_mean.argmax() == 0  # y is a wave in the first feature
    _, _, scores = learning_curve(
        model, X, y, train_sizes=[0.2, 1.0], cv=KFold(3, shuffle=True, random_state=0)
    )
    assert scores.mean(axis=1)[0] < scores.mean(axis=1)[1]
    outside = cross_val_predict(model, X, y, cv=3)
    assert np.corrcoef(outside, y)[0, 1] > 0.9
