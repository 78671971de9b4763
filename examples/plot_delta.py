"""
Effect of the parameter delta
=============================

The kernel is an integral over a box around the data. The parameter ``delta`` is the margin of this
box on every side, in units of the range of each feature. The data are heights along one line of
the terrain model that comes with matplotlib.

The figure shows that with a small delta the kernel decays quickly, so that the fit follows
details. With a large delta all points are similar, and the fit follows broad shapes only.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.cbook import get_sample_data

from tessella import LearnedKernelSVR
from tessella.kernels import TessellatedKernels

terrain = get_sample_data("jacksboro_fault_dem.npz")["elevation"]
height = terrain[170].astype(float)  # one line across the map with 403 points
place = np.arange(len(height))[:, None]
train = np.arange(0, len(height), 5)
test = np.setdiff1d(np.arange(len(height)), train)
LINES = {
    0.01: {"color": "#0072B2"},
    0.1: {"color": "#E69F00", "ls": "--"},
    0.5: {"color": "#009E73", "ls": "-."},
    4.0: {"color": "black", "ls": ":"},
}

# %%
# All fits use the same C. The upper axes show the kernel at the centre of the family, P = I, which
# depends on delta only. The lower axes show fits with learned kernels.
figure, axes = plt.subplots(2, 1, figsize=(7, 7), layout="constrained")
grid = np.linspace(0, 1, 201)[:, None]
axes[1].plot(place, height, color="0.8", lw=5, label="terrain")
for delta, line in LINES.items():
    kernels = TessellatedKernels(degree=0, delta=delta)
    k = kernels.cross(grid, np.array([[0.6]]), np.eye(2))[:, 0]
    axes[0].plot(grid, k / k.max(), **line, label=f"delta = {delta:g}")
    model = LearnedKernelSVR(C=10.0, delta=delta).fit(place[train], height[train])
    axes[1].plot(place, model.predict(place), **line, label=f"delta = {delta:g}")
    print(f"delta {delta:<5g} R2 between the points {model.score(place[test], height[test]):.3f}")
axes[0].set(
    xlabel="x, scaled to [0, 1]", ylabel="k(x, 0.6), largest value 1", title="Kernel, P = I"
)
axes[1].set(
    xlabel="grid points from west to east, 74 m apart",
    ylabel="height (m)",
    title="Fits with C = 10",
)
for ax in axes:
    ax.legend()
plt.show()
