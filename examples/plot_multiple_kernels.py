"""
Learn the weights of a dictionary of kernels
============================================

Instead of a kernel from a continuous family, :class:`~tessella.MultipleKernelSVR` learns the
weights of a list of kernels. In this example the list contains Gaussian and polynomial kernels of
all ten measurements of the diabetes data, and of each measurement alone.

The figure shows that most of the learned weights are zero. The other weights show which features
are important: bmi, bp, s5 and all columns together. The weights by alignment belong to single
columns. On test rows, the three weightings have similar scores if C is chosen for each of them,
and the plain average is hard to beat.
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
    """Fit the weights and the machine."""
    return MultipleKernelSVR(C=C, kernels=dictionary, weighting=weighting).fit(X, y)


# %%
# All three weightings are fitted to the same problem. The lower bound of the learned weights holds
# for any weights: no weighting of these kernels has a smaller objective.
models = {weighting: fit(weighting, X, y) for weighting in WEIGHTINGS}
learned = models["learned"]
print(f"lower bound of all weightings {learned.lower_bound_:.2f}; certified gap {learned.gap_:.1e}")
for weighting, model in models.items():
    used = np.count_nonzero(model.weights_ > 1e-6)
    print(
        f"{weighting:10} objective {model.objective_:.2f}, {used} of {len(model.weights_)} kernels"
    )

# %%
# The next table shows the mean test score over three divisions. The best value of C depends on the
# weighting: learned weights fit the training rows best and need the smallest C.
divisions = [train_test_split(X, y, test_size=0.3, random_state=seed) for seed in range(3)]
STRENGTHS = (0.1, 1.0, 10.0)
print("R2 on the test rows" + "".join(f"   C = {C:<4g}" for C in STRENGTHS))
for weighting in WEIGHTINGS:
    means = [
        np.mean([fit(weighting, X1, y1, C).score(X2, y2) for X1, X2, y1, y2 in divisions])
        for C in STRENGTHS
    ]
    print(f"{weighting:19}" + "".join(f"   {mean:8.3f}" for mean in means))

# %%
# The figure shows all weights. The rows are the features of a kernel, and the columns its type.
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
axes[0].set(ylabel="features of the kernel")
figure.colorbar(image, ax=axes, label="weight (grey: below 0.001)", shrink=0.8)
plt.show()
