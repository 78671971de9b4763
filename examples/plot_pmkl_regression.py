"""
Regression demo of the paper
============================

This example fits a noisy function with a jump with ``tessella.pmkl``, which has the interface of
the software of the paper. If ``y`` has more than two distinct values, the task is a regression.

The figure shows that the fits have kinks at training samples and follow the jump at 0.6. The fits
of degrees 1 and 2 cannot be distinguished by eye.
"""

import matplotlib.pyplot as plt
import numpy as np

from tessella.pmkl import evaluate_pmkl, params_tk, pmkl

rng = np.random.default_rng(0)


def truth(x):
    """Return a wave that ends with a jump at 0.6."""
    return np.where(x < 0.6, np.sin(12 * x), 4 * (x - 0.6))


x = np.sort(rng.random(150))
y = truth(x) + 0.15 * rng.standard_normal(len(x))
x_test = np.linspace(0, 1, 400)

# %%
# The arguments have the order of the paper: degree, delta, epsilon, maxit, tol. ``None`` stands for
# a default.
print("mean squared error against the function without noise")
predictions = {}
for degree in (0, 1, 2):
    f = pmkl(x, y, "Regression", 10, params_tk(degree, None, 0.2, 200))
    predictions[degree] = evaluate_pmkl(f, x_test)
    error = np.mean((predictions[degree] - truth(x_test)) ** 2)
    print(f"degree {degree}: {error:.4f}, certified gap {f.gap:.5f}")

# %%
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(x, y, ".", color="0.6", label="training samples")
ax.plot(x_test, truth(x_test), "k--", lw=1, label="function")
lines = ({"lw": 4, "c": "#E69F00"}, {"lw": 2, "c": "#0072B2"}, {"ls": ":", "c": "black"})
for (degree, values), line in zip(predictions.items(), lines, strict=True):
    ax.plot(x_test, values, **line, label=f"degree {degree}")
ax.set(xlabel="x", ylabel="y", title="Tessellated kernels follow the wave and its jump")
ax.legend()
plt.show()
