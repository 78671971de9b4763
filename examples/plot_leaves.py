"""
Divide many rows into leaves
============================

This example learns a function of two features from 60,000 rows. With ``max_leaf_rows``, a machine
that was learned on a sample is the base function. A tree of cuts divides all rows into leaves, and
the machines of the leaves, which share one learned kernel, correct the base function. The
certificate is that of all machines together. See :doc:`/guide/large-data`.

The figure shows that the base function finds the broad shapes, and that the leaves add what a
sample cannot tell. The cuts run along the waves, because a cut divides the rows in the direction
in which the base function varies most.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import root_mean_squared_error

from tessella import LearnedKernelSVR

plt.style.use("tableau-colorblind10")
rng = np.random.default_rng(0)


def function(X):
    """Waves that become shorter towards one corner."""
    return np.sin(2 * np.pi * (X[:, 0] + 6 * X[:, 0] ** 2 * X[:, 1]))


X, X_test = rng.random((60_000, 2)), rng.random((5000, 2))
y = function(X) + 0.3 * rng.standard_normal(len(X))


def error(values):
    """Return the distance from the function without noise."""
    return root_mean_squared_error(function(X_test), values)


# %%
# The time of one machine grows nearly with the square of the number of rows, and that of leaves in
# proportion to it. The parameters are the same. With equally many rows, the errors are similar.
fits = {
    "one machine": (None, [5000, 10_000, 20_000]),
    "leaves of 1,000 rows": (1000, [5000, 20_000, 60_000]),
}
errors = {name: {} for name in fits}
for name, (most, sizes) in fits.items():
    for size in sizes:
        start = time.perf_counter()
        model = LearnedKernelSVR(max_leaf_rows=most, tol=1e-2).fit(X[:size], y[:size])
        seconds = time.perf_counter() - start
        errors[name][size] = error(model.predict(X_test))
        print(f"{name:20}  {size:6} rows  error {errors[name][size]:.3f}  {seconds:.1f} s")

# %%
# The last model has all rows. Its parts are in the attribute ``leaves_``.
leaves = model.leaves_
base = error(leaves.base.scores(X_test, None)[:, 0])
print(f"base function of {len(leaves.base.support_vectors)} support vectors, error {base:.3f}")
print(f"{leaves.n_leaves} leaves in {leaves.partition.n_trees} trees, gap {model.gap_:.4f}")

side = (np.arange(300) + 0.5) / 300
grid = np.column_stack([axis.ravel() for axis in np.meshgrid(side, side)])
learned = model.predict(grid).reshape(300, 300)
broad = leaves.base.scores(grid, None).reshape(300, 300)
leaf = leaves.partition.leaves_of(model.kernel_.box.apply(grid))[0].reshape(300, 300)
cut = np.zeros(leaf.shape, dtype=bool)  # pixels whose neighbours belong to other leaves
cut[1:] |= leaf[1:] != leaf[:-1]
cut[:, 1:] |= leaf[:, 1:] != leaf[:, :-1]

# %%
# The first three pictures have the same colours. The cuts are those of the first of the two trees.
figure, axes = plt.subplots(2, 2, figsize=(8.4, 7.4), layout="constrained")
frame = {"extent": (0, 1, 0, 1), "origin": "lower"}
surfaces = {
    "base function": broad,
    "correction by the leaves": learned - broad,
    "learned function and cuts": learned,
}
for ax, (title, surface) in zip(axes.flat, surfaces.items(), strict=False):
    picture = ax.imshow(surface, cmap="PuOr_r", vmin=-1.2, vmax=1.2, **frame)
    ax.set(title=title, xlabel="first feature", ylabel="second feature")
axes[1, 0].imshow(np.ma.masked_where(~cut, cut), cmap="gray_r", vmin=0, vmax=1, **frame)
figure.colorbar(picture, ax=axes[0], shrink=0.9)
for (name, found), marker in zip(errors.items(), "os", strict=True):
    axes[1, 1].loglog(list(found), list(found.values()), marker=marker, label=name)
ticks = sorted({size for found in errors.values() for size in found})
axes[1, 1].set(title="error", xlabel="training rows", ylabel="root mean squared error")
axes[1, 1].set_xticks(ticks, [f"{size:,}" for size in ticks], minor=False)
axes[1, 1].set_yticks([0.1, 0.2, 0.3, 0.4], ["0.1", "0.2", "0.3", "0.4"])
axes[1, 1].minorticks_off()
axes[1, 1].legend()
plt.show()
