"""
Calibrated probabilities
========================

A support vector machine computes scores and not probabilities. ``CalibratedClassifierCV`` converts
the scores to probabilities. These probabilities agree with its predictions, and on new rows they
agree with the observed frequencies.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import brier_score_loss, roc_auc_score
from sklearn.model_selection import cross_val_predict

from tessella import LearnedKernelSVC

plt.style.use("tableau-colorblind10")

# Use two of the thirty measurements only, so that some predictions are uncertain.
X, y = load_breast_cancer(return_X_y=True)
X = X[:, [1, 8]]  # texture and symmetry

# %%
# The machine is trained on all rows. The sigmoid is trained on the scores of rows that were left
# out in cross-validation.
model = CalibratedClassifierCV(LearnedKernelSVC(C=1.0), ensemble=False, cv=5).fit(X, y)
probability = model.predict_proba(X)
likelier = model.classes_[probability.argmax(axis=1)]
print(f"predict is the likelier class: {np.mean(model.predict(X) == likelier):.4f} of the rows")

# %%
# The machine itself minimises the hinge loss, so its boundary is not exactly where both classes are
# equally likely. Where its prediction differs from that of the calibrated model, the probability is
# close to one half.
machine = model.calibrated_classifiers_[0].estimator
differ = machine.predict(X) != model.predict(X)
unsure = np.abs(probability[differ, 1] - 0.5).max(initial=0.0)
print(f"the machine itself agrees on:  {1 - np.mean(differ):.4f} of the rows")
print(f"elsewhere the probability is within {unsure:.4f} of one half")

# %%
# Next, the probabilities are computed for rows that neither the machine nor the sigmoid was trained
# on.
unseen = cross_val_predict(model, X, y, cv=5, method="predict_proba")[:, 1]
scores = cross_val_predict(LearnedKernelSVC(C=1.0), X, y, cv=5, method="decision_function")
print(f"mean probability {unseen.mean():.4f}, frequency {y.mean():.4f}")
print(
    f"Brier score {brier_score_loss(y, unseen):.4f}, of the frequency alone "
    f"{y.var():.4f}; area under the curve {roc_auc_score(y, unseen):.4f}"
)

# %%
# The reliability diagram compares the calibrated probabilities with scores that are scaled linearly
# to [0, 1]. The calibrated probabilities are close to the diagonal, and the scaled scores are far
# above it.
figure, ax = plt.subplots(figsize=(6, 5), layout="constrained")
squeezed = (scores - scores.min()) / np.ptp(scores)
for name, values, marker in (("calibrated", unseen, "s"), ("scaled scores", squeezed, "o")):
    CalibrationDisplay.from_predictions(
        y, values, n_bins=8, strategy="quantile", name=name, ax=ax, marker=marker
    )
ax.set(xlabel="predicted probability", ylabel="observed frequency")
plt.show()
