"""
The paper's regression demo
===========================

A function with a kink and noise, through the interface of the paper's software,
``tessella.pmkl``. More than two distinct values in ``y`` mean regression.
"""

import matplotlib.pyplot as plt
import numpy as np

from tessella.pmkl import evaluate_pmkl, params_tk, pmkl

rng = np.random.default_rng(0)


def truth(x):
    """A wave that breaks off at 0.6."""
    return np.where(x < 0.6, np.sin(12 * x), 4 * (x - 0.6))


x = np.sort(rng.random(150))
y = truth(x) + 0.15 * rng.standard_normal(len(x))
x_test = np.linspace(0, 1, 400)

# %%
# The arguments in the paper's order: degree, delta, epsilon, maxit, tol. ``None`` is a default.
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
for (degree, values), color in zip(
    predictions.items(), ("#E69F00", "#0072B2", "#D55E00"), strict=True
):
    ax.plot(x_test, values, color=color, label=f"degree {degree}")
ax.set(xlabel="x", ylabel="y", title="Tessellated kernels follow the wave and its break")
ax.legend()
plt.show()
