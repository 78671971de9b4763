"""
Prediction intervals with guaranteed coverage
=============================================

Split conformal prediction holds out some rows, measures the errors of the model on these rows, and
chooses the width of the intervals from the errors. An interval then contains the target of a new
row with the chosen probability. This holds for any model and any data, as long as the new rows
come from the same distribution.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from tessella import LearnedKernelSVR

plt.style.use("tableau-colorblind10")
X, y = load_diabetes(return_X_y=True)
LEVEL = 0.9


def half_width(errors, level):
    """Return the smallest error that a new one exceeds with probability at most 1 - level."""
    rank = int(np.ceil((len(errors) + 1) * level))
    return np.sort(errors)[rank - 1] if rank <= len(errors) else np.inf


def conformal(X, y, seed):
    """Train a model, measure its errors on held-out rows, and predict for test rows."""
    X_fit, X_rest, y_fit, y_rest = train_test_split(X, y, train_size=0.5, random_state=seed)
    X_aside, X_test, y_aside, y_test = train_test_split(
        X_rest, y_rest, train_size=0.5, random_state=seed
    )
    model = LearnedKernelSVR(C=1.0).fit(X_fit, y_fit)
    width = half_width(np.abs(y_aside - model.predict(X_aside)), LEVEL)
    return width, model.predict(X_test), y_test


# %%
# For one split, the intervals are compared with the targets of test rows, which were not used
# before.
width, center, truth = conformal(X, y, seed=0)
inside = np.abs(truth - center) <= width
print(f"half-width {width:.1f}; standard deviation of the target {y.std():.1f}")
print(f"coverage on {len(truth)} test rows: {inside.mean():.3f}, nominal {LEVEL:.3f}")

# %%
# The guarantee holds for the mean coverage over splits. The coverage of a single split varies.
coverage = []
for seed in range(20):
    other_width, other_center, other_truth = conformal(X, y, seed)
    coverage.append(np.mean(np.abs(other_truth - other_center) <= other_width))
error = np.std(coverage) / len(coverage) ** 0.5
print(f"mean over 20 splits: {np.mean(coverage):.3f}, standard error {error:.3f}")

# %%
# The figure shows the first split, with test rows in the order of their predictions. About one
# target in ten is outside its interval. All intervals have the same width, even if some rows are
# easier to predict than others.
order = np.argsort(center)
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
place = np.arange(len(order))
ax.fill_between(place, (center - width)[order], (center + width)[order], alpha=0.25, lw=0)
ax.plot(place, center[order], label="prediction")
for hit, marker, name in ((True, "o", "inside"), (False, "kX", "outside")):
    chosen = inside[order] == hit
    ax.plot(place[chosen], truth[order][chosen], marker, ms=4, label=name)
ax.set(xlabel="test rows in the order of predictions", ylabel="progression of diabetes")
ax.legend(title=f"{100 * LEVEL:.0f} % intervals", loc="upper left")
plt.show()
