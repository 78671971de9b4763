"""
Intervals that hold what they promise
=====================================

Split conformal prediction: set some rows aside, look how far off the model is on them, and make
every interval that wide. Whatever the model and the data, an interval for a new row of the same
kind then holds its target with the chosen probability.
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
    """The smallest of the errors that is exceeded by a new one with chance 1 - level at most."""
    rank = int(np.ceil((len(errors) + 1) * level))
    return np.sort(errors)[rank - 1] if rank <= len(errors) else np.inf


def conformal(X, y, seed):
    """Train, measure the errors on rows set aside, and test on others."""
    X_fit, X_rest, y_fit, y_rest = train_test_split(X, y, train_size=0.5, random_state=seed)
    X_aside, X_test, y_aside, y_test = train_test_split(
        X_rest, y_rest, train_size=0.5, random_state=seed
    )
    model = LearnedKernelSVR(C=1.0).fit(X_fit, y_fit)
    width = half_width(np.abs(y_aside - model.predict(X_aside)), LEVEL)
    return width, model.predict(X_test), y_test


# %%
# One split: the intervals beside the targets of rows that were used for nothing else.
width, center, truth = conformal(X, y, seed=0)
inside = np.abs(truth - center) <= width
print(f"half-width {width:.1f}; standard deviation of the target {y.std():.1f}")
print(f"coverage on {len(truth)} test rows: {inside.mean():.3f} for a promise of {LEVEL:.3f}")

# %%
# The promise is about the mean over splits, which a single one scatters around.
coverage = []
for seed in range(20):
    other_width, other_center, other_truth = conformal(X, y, seed)
    coverage.append(np.mean(np.abs(other_truth - other_center) <= other_width))
error = np.std(coverage) / len(coverage) ** 0.5
print(f"mean over 20 splits: {np.mean(coverage):.3f}, standard error {error:.3f}")

# %%
# The picture of the first split, in order of the prediction. What to see: about one target in ten
# lies outside; the intervals are all as wide, whether a row is easy or not.
order = np.argsort(center)
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
place = np.arange(len(order))
ax.fill_between(place, (center - width)[order], (center + width)[order], alpha=0.25, lw=0)
ax.plot(place, center[order], label="prediction")
for hit, marker, name in ((True, "o", "inside"), (False, "kX", "outside")):
    chosen = inside[order] == hit
    ax.plot(place[chosen], truth[order][chosen], marker, ms=4, label=name)
ax.set(xlabel="test rows, by prediction", ylabel="progression of diabetes")
ax.legend(title=f"{100 * LEVEL:.0f} % intervals", loc="upper left")
plt.show()
