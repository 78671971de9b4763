"""
The weights of a dictionary of kernels
======================================

Instead of one kernel from a continuous family, a weighted sum of kernels from a list:
:class:`~tessella.MultipleKernelSVR` finds the weights, here for Gaussians and polynomials of all
ten measurements of the diabetes data and of each of them alone. What to see: of the learned
weights most are zero, and the others name what counts: bmi, bp, s5, and all columns together;
weights by alignment go to single columns. On rows left out the three are close, each with the C
that suits it: the plain average is hard to beat.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from tessella import KernelDictionary, MultipleKernelSVR

X, y = load_diabetes(return_X_y=True, as_frame=True)
dictionary = KernelDictionary.standard(bandwidths=(1.0, 3.0), degrees=(1, 2))
WEIGHTINGS = ("learned", "alignment", "average")


def fit(weighting, X, y, C=0.1):
    """Weights and machine."""
    return MultipleKernelSVR(C=C, kernels=dictionary, weighting=weighting).fit(X, y)


# %%
# The same problem for all three. The certificate of the learned weights holds for any others: no
# weighting of these kernels has a value below its lower bound.
models = {weighting: fit(weighting, X, y) for weighting in WEIGHTINGS}
learned = models["learned"]
print(f"no weighting is below {learned.lower_bound_:.2f}; certified gap {learned.gap_:.1e}")
for weighting, model in models.items():
    used = np.count_nonzero(model.weights_ > 1e-6)
    print(f"{weighting:10} value {model.objective_:.2f}, {used} of {len(model.weights_)} kernels")

# %%
# Scores on rows left out, the mean over three divisions. Each weighting has a C of its own that
# suits it: learned weights fit the training rows best and need the smallest one.
divisions = [train_test_split(X, y, test_size=0.3, random_state=seed) for seed in range(3)]
STRENGTHS = (0.1, 1.0, 10.0)
print("R2 on rows left out" + "".join(f"   C = {C:<4g}" for C in STRENGTHS))
for weighting in WEIGHTINGS:
    means = [
        np.mean([fit(weighting, X1, y1, C).score(X2, y2) for X1, X2, y1, y2 in divisions])
        for C in STRENGTHS
    ]
    print(f"{weighting:19}" + "".join(f"   {mean:8.3f}" for mean in means))

# %%
# All weights: a row for what a kernel looks at, a column for what it is.
columns = ["Gaussian 1", "Gaussian 3", "linear", "quadratic"]
rows = ["all columns", *X.columns]
colours = plt.get_cmap("cividis").with_extremes(bad="0.93", under="0.93")
figure, axes = plt.subplots(1, 3, figsize=(10, 5.2), layout="constrained", sharey=True)
for ax, (weighting, model) in zip(axes, models.items(), strict=True):
    weights = model.weights_.reshape(len(rows), len(columns))
    image = ax.imshow(weights, cmap=colours, norm="log", vmin=1e-3, vmax=1, aspect="auto")
    for (row, column), weight in np.ndenumerate(weights):
        if weight >= 0.005:
            color = "black" if weight > 0.1 else "white"
            ax.text(column, row, f"{weight:.2f}", ha="center", va="center", color=color)
    ax.set(title=weighting, yticks=range(len(rows)), yticklabels=rows)
    ax.set_xticks(range(len(columns)), columns, rotation=35, ha="right")
axes[0].set(ylabel="kernel of")
figure.colorbar(image, ax=axes, label="weight (grey: below 0.001)", shrink=0.8)
plt.show()
