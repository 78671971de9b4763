"""
A kernel family of your own
===========================

Hours of the day lie on a circle: 23:59 is next to 0:00. A kernel set that knows this is one
function N(z, x) of a few lines; the rest, learning, certificate and prediction, stays as it is.
What to see: the fit on the circle has one value at midnight, round peaks, and is closer to the
truth; that of the tessellated family jumps there and bends at the data points.
"""

import matplotlib.pyplot as plt
import numpy as np

from tessella import IntegralKernels, LearnedKernelSVR

plt.style.use("tableau-colorblind10")
rng = np.random.default_rng(0)
hour = np.sort(np.append(rng.uniform(0, 24, 38), [0.0, 24.0]))


def load_of_day(hour):
    """A morning peak, and an evening that runs past midnight."""
    angle = 2 * np.pi * hour / 24
    return np.exp(4 * np.cos(angle - 2.2) - 4) + np.exp(2 * np.cos(angle - 5.6) - 2)


y = load_of_day(hour) + 0.1 * rng.standard_normal(len(hour))


# %%
# N(z, x) holds bumps around the circle, centred at z, of three widths. The kernel is
# ``k(x, y) = mean over z of N(z, x)ᵀ P N(z, y)``, so P says which widths count and how they mix.
def bumps(z, X):
    """N of shape (nodes, rows, 3); X is scaled to [0, 1], one turn."""
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
# What was learned: how P splits its trace between the widths, and which of them it ties together.
print("P, rows and columns from broad to narrow")
print(np.array2string(model.P_, precision=2, suppress_small=True))
