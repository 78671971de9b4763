"""
Compare decision surfaces with those of an RBF kernel
=====================================================

This example fits an RBF machine and a learned kernel to circles, moons and spirals. The parameters
of both are chosen by cross-validation: C and the width of the RBF kernel, and C and delta of the
learned kernel.

The figure shows that both methods find the shapes, with similar accuracies. The boundaries of the
RBF machine are round. The boundaries of the learned kernel follow the axes and have creases at
training points.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_circles, make_moons
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.svm import SVC

from tessella import KernelPathCV, LearnedKernelSVC
from tessella.inspection import DecisionSurfaceDisplay


def make_spirals(n_samples, noise, random_state):
    """Return two spirals of one and a half turns."""
    rng = np.random.default_rng(random_state)
    angle = 3 * np.pi * np.sqrt(rng.random(n_samples)) + 0.5
    arm = rng.integers(0, 2, n_samples)
    turned = angle + np.pi * arm
    X = angle[:, None] * np.column_stack([np.cos(turned), np.sin(turned)])
    return X + noise * rng.standard_normal(X.shape), arm


# %%
# Half of the rows are training rows, and the other half are used to compute the accuracy in the
# title. On these data sets a single width suits all of the data, and a learned kernel has no
# advantage over an RBF kernel. See :ref:`sphx_glr_auto_examples_plot_why_learn.py` for data on
# which it has.
data = {
    "circles": make_circles(300, noise=0.15, factor=0.5, random_state=0),
    "moons": make_moons(300, noise=0.25, random_state=0),
    "spirals": make_spirals(300, noise=0.5, random_state=0),
}
searches = {
    "RBF": GridSearchCV(SVC(), {"C": np.logspace(-1, 3, 5), "gamma": np.logspace(-2, 2, 5)}, cv=3),
    "learned kernel": KernelPathCV(
        LearnedKernelSVC(), {"C": np.logspace(-1, 3, 5), "delta": [0.05, 0.2, 1.0]}, cv=3
    ),
}

figure, axes = plt.subplots(3, 2, figsize=(7, 9.6), layout="constrained")
for row, (name, (X, y)) in enumerate(data.items()):
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    for column, (kind, search) in enumerate(searches.items()):
        ax = axes[row, column]
        search.fit(X, y)
        score = search.score(X_test, y_test)
        print(f"{name:8} {kind:15} accuracy {score:.3f}")
        DecisionSurfaceDisplay.from_estimator(
            search.best_estimator_, X, y, tessellation=False, ax=ax
        )
        ax.set(title=f"{name}, {kind}: {100 * score:.1f} %", xlabel="", ylabel="")
        ax.set(xticks=[], yticks=[])
        ax.get_legend().remove()
plt.show()
