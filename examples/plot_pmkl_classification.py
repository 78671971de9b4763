"""
Classification demo of the paper
================================

This example classifies concentric circles with ``tessella.pmkl``, which has the interface of the
software of the paper. The columns of ``x`` are samples, ``y`` contains two labels, and all other
parameters have the default values of the paper.

The figure shows that the boundary (solid) consists of pieces along the axes. It is determined by
few samples near the margins (dashed).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_circles

from tessella.pmkl import evaluate_pmkl, params_tk, pmkl, pmkl_boosted

samples, y = make_circles(400, noise=0.12, factor=0.45, random_state=0)
x, y = samples.T, 2 * y - 1  # features by samples, labels -1 and +1
x_train, x_test = x[:, :200], x[:, 200:]
y_train, y_test = y[:200], y[200:]

# %%
# The vector ``y`` has two distinct values, so the task is a classification.
f = pmkl(x_train, y_train)
accuracy = np.mean(evaluate_pmkl(f, x_test) == y_test)
print(f"{f.type}: test accuracy {accuracy:.3f}, certified gap {f.gap:.6f}")

# %%
# The combined algorithm, Frank-Wolfe followed by the accelerated method, reaches a smaller gap.
boosted = pmkl_boosted(x_train, y_train, "Classification", 10, params_tk(maxit=1000, tol=1e-5))
print(f"boosted: {boosted.model.n_iter_} iterations, certified gap {boosted.gap:.6f}")

# %%
# The vector ``f.alpha`` has an entry for each sample. The samples with positive entries are the
# support vectors.
grid = np.linspace(-1.6, 1.6, 160)
plane = np.stack(np.meshgrid(grid, grid))
scores = f.model.decision_function(plane.reshape(2, -1).T).reshape(plane.shape[1:])
figure, ax = plt.subplots(figsize=(5.2, 5), layout="constrained")
ax.contourf(*plane, scores, levels=[-np.inf, 0, np.inf], colors=["#0072B2", "#D55E00"], alpha=0.2)
ax.contour(*plane, scores, levels=[-1, 0, 1], colors="0.3", linestyles=["--", "-", "--"])
for label, color, marker in ((-1, "#0072B2", "o"), (1, "#D55E00", "s")):
    ax.scatter(*x_train[:, y_train == label], s=14, c=color, marker=marker, label=f"{label:+d}")
ax.scatter(
    *x_train[:, f.alpha > 0], s=60, facecolors="none", edgecolors="k", label="support vectors"
)
ax.set(xlabel="$x_1$", ylabel="$x_2$", aspect="equal", title="Concentric circles, learned kernel")
ax.legend(loc="upper right")
plt.show()
