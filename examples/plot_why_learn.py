"""
Why a single kernel width is not enough
=======================================

The surface in this example has a sharp edge in one direction and a slow wave in the other. An RBF
kernel has a single width. If the width is small, the prediction is noisy along the wave; if it is
large, the edge is blurred. A learned kernel does not have this restriction.

The figure shows that the learned kernel keeps the edge sharp, at the price of faint stripes. The
RBF kernel blurs the edge and produces bumps next to it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVR

from tessella import KernelPathCV, LearnedKernelSVR

rng = np.random.default_rng(0)


def surface(X):
    """Return a surface with a cliff at one half and a wave along it."""
    return np.where(X[:, 0] > 0.5, 1.5, 0.0) + np.sin(2 * np.pi * X[:, 1])


X, X_test = rng.random((300, 2)), rng.random((2000, 2))
y = surface(X) + 0.3 * rng.standard_normal(len(X))

# %%
# The parameters of both methods are chosen by cross-validation on the same 300 noisy rows.
searches = {
    "RBF": GridSearchCV(SVR(), {"C": np.logspace(-1, 2, 4), "gamma": np.logspace(-1, 3, 9)}, cv=3),
    "learned kernel": KernelPathCV(
        LearnedKernelSVR(), {"C": np.logspace(-1, 2, 4), "delta": [0.05, 0.2, 1.0]}, cv=3
    ),
}
axis = np.linspace(0, 1, 120)
grid = np.column_stack([part.ravel() for part in np.meshgrid(axis, axis)])
pictures = {"truth": surface(grid)}
for name, search in searches.items():
    search.fit(X, y)
    score = search.score(X_test, surface(X_test))
    print(f"{name:15} R2 {score:.3f} against the surface without noise")
    pictures[f"{name}, R² {score:.3f}"] = search.predict(grid)

figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained", sharey=True)
for ax, (title, values) in zip(axes, pictures.items(), strict=True):
    image = ax.imshow(
        values.reshape(120, 120), origin="lower", extent=(0, 1, 0, 1), vmin=-1.3, vmax=2.8
    )
    ax.set(title=title, xlabel="first feature")
axes[0].set(ylabel="second feature")
figure.colorbar(image, ax=axes, label="value", shrink=0.9)
plt.show()
