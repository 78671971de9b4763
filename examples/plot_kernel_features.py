"""
Many rows: features of a learned kernel
=======================================

Learn the kernel on a thousand rows, turn it into features, and train a linear model on all rows.
The cost grows with their number, not with its square.
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
# What a thousand rows can do by themselves.
learner = LearnedKernelSVR().fit(X[:1000], y[:1000])
print(f"kernel machine on 1,000 rows         R2 {learner.score(X_test, y_test):.3f}")

# %%
# The same kernel on 200,000 rows. The noise leaves room for an R2 of 0.95 at most.
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
# The features approach the kernel itself as landmarks are added, here from among 20,000 rows. What
# to see: ten times the landmarks give about a tenth of the error; on data as even as this, rows at
# random do as well as those by leverage scores, and k-means is ahead for very few only.
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
ax.legend(title="landmarks by")
plt.show()
