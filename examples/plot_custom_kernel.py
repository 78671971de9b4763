"""
Define a kernel set of your own
===============================

The hours of the day lie on a circle, because 23:59 is close to 0:00. A kernel set for a circle
needs a function N(z, x) of a few lines. Learning, certificate and prediction do not change.

The figure shows that the fit with the kernels on the circle is continuous at midnight, has smooth
peaks and is closer to the truth. The fit with tessellated kernels jumps at midnight and has kinks
at the data points.
"""

import matplotlib.pyplot as plt
import numpy as np

from tessella import IntegralKernels, LearnedKernelSVR

plt.style.use("tableau-colorblind10")
rng = np.random.default_rng(0)
hour = np.sort(np.append(rng.uniform(0, 24, 38), [0.0, 24.0]))


def load_of_day(hour):
    """Return a load with a peak in the morning and one that lasts until after midnight."""
    angle = 2 * np.pi * hour / 24
    return np.exp(4 * np.cos(angle - 2.2) - 4) + np.exp(2 * np.cos(angle - 5.6) - 2)


y = load_of_day(hour) + 0.1 * rng.standard_normal(len(hour))


# %%
# The function N(z, x) consists of bumps on the circle, centred at z, with three different widths.
# The kernel is ``k(x, y) = mean over z of N(z, x)ᵀ P N(z, y)``. The matrix P therefore determines
# how much each width and each combination of widths contributes.
def bumps(z, X):
    """Return N of shape (nodes, rows, 3); X is scaled to [0, 1], which is one turn."""
    apart = np.cos(2 * np.pi * (z - X.T)) - 1  # (nodes, rows)
    return np.stack([np.exp(sharpness * apart) for sharpness in (1, 8, 64)], axis=-1)


circle = IntegralKernels(bumps, lower=[0.0], upper=[1.0], nodes=64)
grid = np.linspace(0, 24, 481)
figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
ax.plot(hour, y, ".", color="0.6", label="data")
ax.plot(grid, load_of_day(grid), "k--", lw=1, label="truth")
families = {"tessellated": ("tessellated", "-."), "on the circle": (circle, "-")}
for name, (kernels, line) in families.items():
    model = LearnedKernelSVR(C=1.0, kernels=kernels).fit(hour[:, None], y)
    fit = model.predict(grid[:, None])
    error = np.sqrt(np.mean((fit - load_of_day(grid)) ** 2))
    jump = abs(fit[0] - fit[-1])
    print(f"{name:14} error {error:.4f}, jump at midnight {jump:.4f}, gap {model.gap_:.6f}")
    ax.plot(grid, fit, line, label=name)
ax.set(xlabel="hour of the day", ylabel="load", xticks=range(0, 25, 4))
ax.legend()
plt.show()

# %%
# The diagonal of the learned P shows how its trace is divided among the widths, and the other
# entries show which widths are coupled.
print("P, with rows and columns from the largest to the smallest width")
print(np.array2string(model.P_, precision=2, suppress_small=True))
