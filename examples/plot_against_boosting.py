"""
When to prefer gradient boosting
================================

This example compares kernel machines with gradient boosting on two functions, while the number of
irrelevant columns grows. The first function is smooth and suits kernels; the second consists of
thresholds and suits trees.

The figure shows that the kernels are better on the smooth function of five columns, until the
irrelevant columns dominate all distances. On the thresholds, the trees are better from the start,
and irrelevant columns hardly affect them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVR

from tessella import KernelPathCV, LearnedKernelSVR

plt.style.use("tableau-colorblind10")
rng = np.random.default_rng(0)
IDLE = (0, 5, 20)
N_TRAIN = 300


def smooth(X):
    """Return the function of Friedman."""
    wave = 10 * np.sin(np.pi * X[:, 0] * X[:, 1])
    return wave + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]


def thresholds(X):
    """Return a function of five thresholds."""
    high = X[:, :5] > np.array([0.5, 0.3, 0.7, 0.5, 0.6])
    return 6.0 * (high[:, 0] ^ high[:, 1]) + 4.0 * (high[:, 2] & high[:, 3]) + 2.0 * high[:, 4]


# %%
# All three methods are tuned on the training rows, with a small grid each.
searches = {
    "learned kernel": KernelPathCV(
        LearnedKernelSVR(), {"C": [0.1, 1.0, 10.0], "delta": [0.1, 1.0]}, cv=3
    ),
    "RBF": GridSearchCV(SVR(), {"C": [0.1, 1.0, 10.0], "gamma": [0.03, 0.3]}, cv=3),
    "gradient boosting": GridSearchCV(
        GradientBoostingRegressor(n_estimators=150, max_features=0.5, random_state=0),
        {"max_depth": [2, 3, 5]},
        cv=3,
    ),
}
figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained", sharey=True)
for ax, truth in zip(axes, (smooth, thresholds), strict=True):
    scores = {name: [] for name in searches}
    for idle in IDLE:
        X = rng.random((N_TRAIN + 1000, 5 + idle))
        signal = truth(X)
        y = (signal - signal.mean()) / signal.std() + 0.2 * rng.standard_normal(len(X))
        for name, search in searches.items():
            search.fit(X[:N_TRAIN], y[:N_TRAIN])
            scores[name].append(search.score(X[N_TRAIN:], y[N_TRAIN:]))
    for (name, found), marker in zip(scores.items(), "os^", strict=True):
        print(f"{truth.__name__:10} {name:18}", "  ".join(f"{score:.3f}" for score in found))
        ax.plot(IDLE, found, marker=marker, label=name)
    ax.set(title=truth.__name__, xlabel="irrelevant columns", xticks=IDLE)
axes[0].set(ylabel="R² on 1,000 test rows")
axes[1].legend()
plt.show()
