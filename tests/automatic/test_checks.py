"""scikit-learn's own checks of estimators, none of which is expected to fail."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from tessella import TessellaClassifier, TessellaRegressor


@parametrize_with_checks([TessellaClassifier(effort="low"), TessellaRegressor(effort="low")])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
