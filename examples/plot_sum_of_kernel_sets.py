"""
Add up kernel sets for groups of features
=========================================

Kernel sets can be added. The sum contains all convex combinations of their kernels. The shares of
the sets, and the kernel of each set, are learned by one convex problem with one certificate.

In this example a target depends on the place and on the time of a measurement, and two other
features are irrelevant. The sum has a family of kernels for each of the three groups of features:
tessellated kernels for the place, where the target has an edge, Gaussian kernels of several widths
for the time, along which it oscillates, and tessellated kernels for the rest. The figure shows
that the irrelevant group has the smallest share, and that only small widths have a weight.
"""

import matplotlib.pyplot as plt
import numpy as np

from tessella import KernelDictionary, KernelPathCV, LearnedKernelSVR, TessellatedKernels
from tessella.kernels import Gaussian

plt.style.use("tableau-colorblind10")
rng = np.random.default_rng(0)


def wave(time):
    """Return the part of the target that depends on the time."""
    return np.sin(2 * np.pi * 3 * time)


def sample(n):
    """Return rows with a place, a time and two irrelevant features, and their targets."""
    X = rng.random((n, 5))
    edge = 1.5 * (X[:, 0] + 0.5 * X[:, 1] > 0.75)
    return X, edge + wave(X[:, 2]) + 0.2 * rng.standard_normal(n)


X, y = sample(250)
X_test, y_test = sample(2000)

# %%
# ``on_features`` restricts a kernel set to some columns, and ``+`` adds kernel sets. A
# :class:`~tessella.KernelDictionary` standardises its features, so the widths of the Gaussian
# kernels are measured in standard deviations.
place, time, rest = [0, 1], [2], [3, 4]
widths = (0.1, 0.2, 0.4, 0.8, 1.6)
gaussians = KernelDictionary([Gaussian(width) for width in widths])
groups = (
    TessellatedKernels().on_features(place)
    + gaussians.on_features(time)
    + TessellatedKernels().on_features(rest)
)


def fit(kernels):
    """Return a model with the best of three values of C in cross-validation."""
    search = KernelPathCV(LearnedKernelSVR(kernels=kernels), {"C": [1.0, 3.0, 10.0]}, cv=3)
    return search.fit(X, y).best_estimator_


model = fit(groups)
print(f"objective {model.objective_:.2f}, lower bound {model.lower_bound_:.2f}")

# %%
# The parameter of the learned kernel has a block for each set. The trace of a block, as its cone
# defines it, is the share of the set in the sum. The block of the dictionary contains the weights
# of its kernels.
blocks = model.kernel_.parameter
cones = model.kernel_.kernels.cone(model.n_features_in_).cones
shares = [cone.trace(block) for cone, block in zip(cones, blocks, strict=True)]
for name, share in zip(("place", "time", "rest"), shares, strict=True):
    print(f"share of the kernels of {name:5} {share:.2f}")

# %%
# On new rows, the sum over the groups is better than each family on all features, because it knows
# that place and time contribute to the target independently of each other. A larger sum is not
# always better: with Gaussian kernels of all features next to the tessellated ones, the score
# falls, because narrow kernels have the smallest objective on the training rows.
rivals = {
    "tessellated, all features": TessellatedKernels(),
    "Gaussians, all features": gaussians,
    "both, all features": TessellatedKernels() + gaussians,
}
scores = {name: fit(kernels).score(X_test, y_test) for name, kernels in rivals.items()}
scores["sum over the groups"] = model.score(X_test, y_test)
for name, score in scores.items():
    print(f"{name:25}: R2 {score:.3f}")

# %%
# The figure shows the shares of the sets, the weights within the dictionary, and the learned
# function along the time, at a fixed place on each side of the edge.
figure, axes = plt.subplots(1, 3, figsize=(11, 3.8), layout="constrained")
axes[0].bar(["place", "time", "rest"], shares, color="C0")
axes[0].set(title="shares of the kernel sets", ylabel="share", ylim=(0, 1))
axes[1].bar([f"{width:g}" for width in widths], blocks[1], color="C1")
axes[1].set(title="weights of the Gaussian kernels", xlabel="width", ylabel="weight", ylim=(0, 1))
grid = np.linspace(0, 1, 400)
for level, label, style in ((0.9, "beyond the edge", "-"), (0.1, "before the edge", "-.")):
    rows = np.column_stack([np.full((400, 2), level), grid, np.full((400, 2), 0.5)])
    line = axes[2].plot(grid, model.predict(rows), style, label=label)[0]
    truth = 1.5 * (1.5 * level > 0.75) + wave(grid)
    axes[2].plot(grid, truth, color=line.get_color(), lw=5, alpha=0.25)
axes[2].set(title="learned function (wide lines: truth)", xlabel="time", ylim=(-1.6, 4.6))
axes[2].legend(loc="upper right")
plt.show()
