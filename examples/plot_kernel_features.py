"""
Train on many rows with features of a learned kernel
====================================================

This example learns a kernel on a thousand rows, converts it to features, and trains a linear model
on all rows. The cost of this approach grows linearly with the number of rows.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from tessella import KernelFeatures, LearnedKernelSVR

plt.style.use("tableau-colorblind10")
rng = np.random.default_rng(0)
X = rng.random((210_000, 4))
y = np.sin(8 * X[:, 0]) * X[:, 1] + np.abs(X[:, 2] - 0.4) + 0.1 * rng.standard_normal(len(X))
X, X_test, y, y_test = X[10_000:], X[:10_000], y[10_000:], y[:10_000]

# %%
# First, the kernel is learned on 1,000 rows.
learner = LearnedKernelSVR().fit(X[:1000], y[:1000])
print(f"kernel machine on 1,000 rows         R2 {learner.score(X_test, y_test):.3f}")

# %%
# Then linear models are trained on 200,000 rows with features of this kernel. Because of the noise,
# the R2 score cannot exceed 0.95.
counts = [10, 30, 100, 300]
scores = []
for count in counts:
    start = time.perf_counter()
    features = KernelFeatures(learner.kernel_, n_components=count, random_state=0)
    model = make_pipeline(features, Ridge(1e-4)).fit(X, y)
    seconds = time.perf_counter() - start
    scores.append(model.score(X_test, y_test))
    print(f"{count:3} features of it on {len(X):,} rows    R2 {scores[-1]:.3f}   {seconds:.1f} s")

# %%
# With more landmarks, the features approximate the kernel more accurately. The landmarks are chosen
# from 20,000 rows. In the figure, ten times as many landmarks lead to about a tenth of the error.
# These data are evenly distributed, so random landmarks are as good as landmarks by leverage
# scores, and k-means is better for very few landmarks only.
K = learner.kernel_(X_test[:500])
errors = {}
for landmarks in ("leverage", "k-means", "random"):
    errors[landmarks] = []
    for count in counts:
        features = KernelFeatures(
            learner.kernel_, n_components=count, landmarks=landmarks, random_state=0
        )
        Z = features.fit(X[:20_000]).transform(X_test[:500])
        errors[landmarks].append(np.linalg.norm(K - Z @ Z.T) / np.linalg.norm(K))

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for (landmarks, error), marker in zip(errors.items(), "os^", strict=True):
    ax.loglog(counts, error, marker=marker, label=landmarks)
ax.set(xlabel="landmarks", ylabel="relative error of the kernel matrix")
ax.legend(title="landmarks chosen by")
plt.show()
