"""
Choose C and delta along a path
===============================

Two parameters determine how well a model with a learned kernel generalises: the weight C of the
loss, and delta, the margin of the tessellation around the data. :class:`~tessella.KernelPathCV`
evaluates a grid of both parameters by cross-validation. Each fit starts from a kernel that was
learned before, and each fit is certified on its own.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from tessella import KernelPathCV, LearnedKernelSVR

plt.style.use("tableau-colorblind10")
X, y = load_diabetes(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

grid = {"C": np.logspace(-2, 2, 9), "delta": [0.1, 0.5, 2.0]}
search = KernelPathCV(LearnedKernelSVR(), grid, cv=3).fit(X_train, y_train)

untuned = LearnedKernelSVR().fit(X_train, y_train)
print(f"best C, delta     {search.best_params_['C']:.2f}, {search.best_params_['delta']:.2f}")
print(f"cross-validated   {search.best_score_:.3f}")
print(f"test R2, tuned    {search.score(X_test, y_test):.3f}")
print(f"test R2, untuned  {untuned.score(X_test, y_test):.3f}")
print(f"worst gap         {search.cv_results_['worst_gap'].max():.6f}")

# %%
# The figure shows the score along each path, with the standard deviation between the folds. If C is
# too small, the model underfits; if C is too large, it learns the noise. The parameter delta shifts
# the whole path.
results = search.cv_results_
fig, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
for delta, marker in zip(grid["delta"], "o^s", strict=True):
    path = results["param_delta"] == delta
    C = results["param_C"][path].astype(float)
    mean, spread = results["mean_test_score"][path], results["std_test_score"][path]
    (line,) = ax.semilogx(C, mean, marker=marker, label=f"delta = {delta:g}")
    ax.fill_between(C, mean - spread, mean + spread, color=line.get_color(), alpha=0.12, lw=0)
ax.plot(
    search.best_params_["C"],
    search.best_score_,
    marker="o",
    markersize=14,
    markerfacecolor="none",
    markeredgecolor="black",
    linestyle="none",
    label="chosen",
)
ax.set(xlabel="C", ylabel="R² in cross-validation", title="Diabetes, 331 training rows")
ax.legend()
plt.show()
