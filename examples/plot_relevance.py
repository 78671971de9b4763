"""
Which features matter, and which act together
=============================================

On data made so that the answer is known: the target depends on four of eight features, two of
them only through their product.
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
# Shares of the variance of the learned function, beside those of the function that made the data.
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
print(f"strongest pair: x{first} and x{second}, {pairs.max():.2f}; next {rest:.3f}")

# %%
# The same as a picture. What to see: x0 and x1 count only together, x3 and x2 on their own, the
# other four not at all.
RelevanceDisplay.from_estimator(model, X, interactions=True)
plt.show()
