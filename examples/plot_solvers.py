"""
Compare the solvers
===================

All solvers that can learn a matrix P are run on one problem. They stop on the same certified gap,
so their runs can be compared directly.

The figure shows that the gap of the Newton methods (working-set, joint) decreases steeply once
they are close to the optimum. Frank-Wolfe quickly finds an approximate solution and then slows
down. The semidefinite program has no result until it ends, and takes by far the most time.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

from tessella.kernels import TessellatedKernels, UnitBox
from tessella.problems import SaddlePoint
from tessella.solvers import SOLVERS
from tessella.svm import DualProblem

plt.style.use("tableau-colorblind10")

# %%
# This is the problem that :class:`~tessella.LearnedKernelSVR` solves: the features are scaled to
# the unit box, the target is standardised, C is 10 and epsilon is 0.1. It has forty rows only,
# because the semidefinite program is slow.
X, y = load_diabetes(return_X_y=True)
X, y = X[:40], y[:40]
rows = UnitBox.fit(X).apply(X)
target = (y - y.mean()) / y.std()
problem = SaddlePoint(
    TessellatedKernels(degree=1, delta=0.5).bind(rows),
    DualProblem.regression(target, 10.0, 0.1),
)

# %%
# Each solver runs to a gap of 1e-6. Two solvers are left out: "simple-mkl" learns weights of
# kernels only, and "newton" is for the squared loss.
figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained", sharey=True)
names = sorted(set(SOLVERS) - {"newton", "simple-mkl"})
for name, marker in zip(names, "osv^Dx", strict=True):
    result = SOLVERS[name](problem, tol=1e-6, max_iter=600, time_limit=60.0)
    seconds = [record.time for record in result.history]
    steps = [record.iteration for record in result.history]
    gaps = [max(record.gap, 1e-12) for record in result.history]
    print(
        f"{name:12} value {result.value:.4f} bound {result.bound:.4f} gap {result.gap:.1e} "
        f"in {seconds[-1]:.2f} s: {result.status.value}"
    )
    shape = {"marker": marker, "ms": 4, "markevery": max(1, len(gaps) // 15), "label": name}
    axes[0].loglog(seconds, gaps, **shape)
    axes[1].loglog([step + 1 for step in steps], gaps, **shape)
for ax, label in zip(axes, ("seconds", "iterations + 1"), strict=True):
    ax.axhline(1e-6, color="0.6", lw=0.8, ls="--")
    ax.set(xlabel=label)
axes[0].set(ylabel="certified relative gap")
axes[1].legend()
plt.show()
