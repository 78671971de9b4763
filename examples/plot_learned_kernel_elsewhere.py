"""
Use a learned kernel in other kernel methods
============================================

The kernel that an estimator has learned can be used in other methods. This example uses it in a
Gaussian process, which computes uncertainties of its predictions, and in kernel principal
component analysis.

On the left of the figure, both Gaussian processes find the edge. The process with the learned
kernel has slightly better scores and is less smooth. On the right, the target varies along the
second principal component, from dark at the top to bright at the bottom.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import KernelPCA
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.svm import SVR

from tessella import LearnedKernelSVR
from tessella.gaussian_process import LearnedGPKernel

rng = np.random.default_rng(0)
X, X_test = rng.random((160, 2)), rng.random((1000, 2))


def signal(X):
    """Return a wave with an edge at one half."""
    return np.where(X[:, 0] > 0.5, 1.0, 0.0) + np.sin(4 * X[:, 1])


y = signal(X) + 0.1 * rng.standard_normal(160)
y_test = signal(X_test) + 0.1 * rng.standard_normal(1000)

# %%
# The kernel is learned by a support vector machine. ``SVR`` accepts it as a kernel function.
model = LearnedKernelSVR().fit(X, y)
print(f"LearnedKernelSVR           R2 {model.score(X_test, y_test):.3f}")
other = SVR(kernel=model.kernel_).fit(X, y)
print(f"SVR with its kernel        R2 {other.score(X_test, y_test):.3f}")

# %%
# A Gaussian process tunes the scale of the kernel and the noise, and computes standard deviations
# of its predictions.
kernel = LearnedGPKernel(model.kernel_)
priors = {"learned": kernel, "RBF": ConstantKernel() * RBF([0.3, 0.3])}
line = np.column_stack([np.linspace(0, 1, 201), np.full(201, 0.5)])
along = {}
for name, prior in priors.items():
    process = GaussianProcessRegressor(prior + WhiteKernel(0.05), normalize_y=True).fit(X, y)
    mean, deviation = process.predict(X_test, return_std=True)
    inside = np.mean(np.abs(y_test - mean) < 1.96 * deviation)
    print(
        f"Gaussian process, {name:8} R2 {process.score(X_test, y_test):.3f}, "
        f"95 % intervals contain {100 * inside:.0f} %, evidence "
        f"{process.log_marginal_likelihood_value_:.0f}"
    )
    along[name] = process.predict(line, return_std=True)

# %%
# The figure shows both processes along a line through the centre, with intervals of 95 %, and the
# principal components in the space of the learned kernel.
figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
styles = {"learned": ("#0072B2", "-"), "RBF": ("#E69F00", "--")}
for name, (mean, deviation) in along.items():
    color, dashes = styles[name]
    band = mean - 1.96 * deviation, mean + 1.96 * deviation
    axes[0].fill_between(line[:, 0], *band, color=color, alpha=0.2, lw=0)
    axes[0].plot(line[:, 0], mean, dashes, color=color, label=name)
axes[0].plot(line[:, 0], signal(line), "k:", label="truth")
axes[0].set(xlabel="first feature", ylabel="target", title="Gaussian process, second feature 0.5")
axes[0].legend(loc="upper left")
components = KernelPCA(2, kernel=kernel).fit_transform(X)
points = axes[1].scatter(*components.T, c=y, cmap="cividis")
figure.colorbar(points, label="target")
axes[1].set(xlabel="first component", ylabel="second component", title="Kernel PCA, learned kernel")
plt.show()
