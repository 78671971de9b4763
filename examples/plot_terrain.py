"""
Reconstruct a terrain from 750 heights
======================================

This example reconstructs the terrain of a fault near Jacksboro, Tennessee, from 750 of about
75,000 grid points. The data come with matplotlib. Tessellated kernels of degree 2 are compared
with a Gaussian kernel. Both are tuned by cross-validation on the 750 points.

With default parameters, the learned kernel has smaller errors. After tuning, the Gaussian kernel
is clearly better. The figure shows that the surface of the Gaussian kernel is equally smooth in
all directions, as hills are. The surface of the tessellated kernel has creases along the axes, and
so have its errors.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.cbook import get_sample_data
from matplotlib.colors import LightSource
from sklearn.compose import TransformedTargetRegressor
from sklearn.metrics import root_mean_squared_error
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVR

from tessella import KernelPathCV, LearnedKernelSVR

with get_sample_data("jacksboro_fault_dem.npz") as file:
    height = file["elevation"][46:298, 51:351].astype(
        float
    )  # the centre of the map; row 0 is in the north
    steps = 111.2 * file["dy"], 111.2 * file["dx"] * np.cos(np.deg2rad(36.6))  # km
row, column = np.indices(height.shape)
place = np.column_stack([steps[1] * column.ravel(), steps[0] * row[::-1].ravel()])  # east, north
order = np.random.default_rng(0).permutation(height.size)
train, test = order[:750], order[750:]
X, y = place[train], height.ravel()[train]

# %%
# For both methods, the coordinates are scaled to [0, 1] and the heights are standardised. Tessella
# does this itself.
folds = KFold(3, shuffle=True, random_state=0)
svr = make_pipeline(MinMaxScaler(), SVR())
gaussian = TransformedTargetRegressor(svr, transformer=StandardScaler())
learned = LearnedKernelSVR(degree=2)
searches = {
    "Gaussian": GridSearchCV(
        gaussian,
        {"regressor__svr__C": [1, 10, 100], "regressor__svr__gamma": [10, 30, 100, 300, 1000]},
        cv=folds,
    ),
    "tessellated": KernelPathCV(learned, {"C": [1, 10, 100], "delta": [0.005, 0.1]}, cv=folds),
}
surfaces = {}
for (name, search), untuned in zip(searches.items(), (gaussian, learned), strict=True):
    errors = [
        root_mean_squared_error(height.ravel()[test], model.fit(X, y).predict(place[test]))
        for model in (untuned, search)
    ]
    print(f"{name:12} RMSE {errors[0]:5.1f} m with defaults, {errors[1]:5.1f} m tuned")
    surfaces[f"{name}, RMSE {errors[1]:.1f} m"] = search.predict(place).reshape(height.shape)
print(f"certified gap of the learned kernel {searches['tessellated'].best_estimator_.gap_:.1e}")

# %%
# The figure shows the terrain in light from the north-west, the training points and the errors.
figure, axes = plt.subplots(2, 3, figsize=(10, 6.6), layout="constrained", sharex=True, sharey=True)
frame = {"extent": (0, place[:, 0].max(), 0, place[:, 1].max())}
colours = {"cmap": plt.cm.cividis, "vmin": height.min(), "vmax": height.max()}
sun = LightSource(azdeg=315, altdeg=45)
for ax, (title, surface) in zip(axes[0], {"elevation": height, **surfaces}.items(), strict=True):
    ax.imshow(sun.shade(surface, vert_exag=0.02, blend_mode="soft", **colours), **frame)
    ax.set(title=title)
ground = axes[1, 0].imshow(height, **frame, **colours)
axes[1, 0].plot(*X.T, ".", color="white", ms=2)
axes[1, 0].set(title="750 training points")
for ax, surface in zip(axes[1, 1:], surfaces.values(), strict=True):
    wrong = ax.imshow(surface - height, cmap="PuOr_r", vmin=-200, vmax=200, **frame)
    ax.set(title="error")
figure.colorbar(ground, ax=axes[0], label="elevation (m)", shrink=0.9)
figure.colorbar(wrong, ax=axes[1], label="prediction - elevation (m)", extend="both", shrink=0.9)
figure.supxlabel("east (km)")
figure.supylabel("north (km)")
plt.show()
