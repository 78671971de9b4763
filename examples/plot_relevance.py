"""
Relevance of features and of pairs of features
==============================================

This example computes the relevance of features on artificial data, for which the correct result is
known. The target depends on four of eight features, and on two of these only through their
product.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.inspection import permutation_importance

from tessella import LearnedKernelSVR
from tessella.inspection import RelevanceDisplay, feature_relevance, interaction_relevance

rng = np.random.default_rng(0)
X = rng.random((800, 8))
y = 8 * (X[:, 0] - 0.5) * (X[:, 1] - 0.5) + X[:, 2] + 1.5 * X[:, 3]
y += 0.05 * rng.standard_normal(len(y))
model = LearnedKernelSVR().fit(X, y)

# %%
# The shares of the variance of the learned function are compared with those of the true function.
pair, third, fourth = 64 / 144, 1 / 12, 2.25 / 12
truth = np.array([pair, pair, third, fourth, 0, 0, 0, 0]) / (pair + third + fourth)
learned = feature_relevance(model, X)
importance = permutation_importance(model, X, y, random_state=0).importances_mean
print("feature   true share   learned share   permutation importance")
for j in range(8):
    print(f"x{j}        {truth[j]:10.2f}   {learned[j]:13.2f}   {importance[j]:22.2f}")

pairs = interaction_relevance(model, X)
first, second = np.unravel_index(pairs.argmax(), pairs.shape)
rest = np.sort(pairs, axis=None)[-3]
print(f"most relevant pair: x{first} and x{second}, {pairs.max():.2f}; next {rest:.3f}")

# %%
# The display shows that x0 and x1 act only together, that x2 and x3 act on their own, and that the
# other four features are irrelevant.
RelevanceDisplay.from_estimator(model, X, interactions=True)
plt.show()
