"""
Probabilities that can be believed
==================================

A support vector machine gives scores, not probabilities. ``CalibratedClassifierCV`` turns them
into probabilities, which agree with its predictions and, on rows that were not seen, with how often
things happen.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import brier_score_loss, roc_auc_score
from sklearn.model_selection import cross_val_predict

from tessella import LearnedKernelSVC

plt.style.use("tableau-colorblind10")

# Two of thirty measurements, so that there is something to be unsure of.
X, y = load_breast_cancer(return_X_y=True)
X = X[:, [1, 8]]  # texture and symmetry

# %%
# One machine is trained on all rows, and a sigmoid on its scores for rows left out in turn.
model = CalibratedClassifierCV(LearnedKernelSVC(C=1.0), ensemble=False, cv=5).fit(X, y)
probability = model.predict_proba(X)
likelier = model.classes_[probability.argmax(axis=1)]
print(f"predict is the likelier class: {np.mean(model.predict(X) == likelier):.4f} of the rows")

# %%
# The machine itself puts its boundary where the hinge loss is least, not where both classes are
# equally likely. Where the two disagree, the probability is close to one half.
machine = model.calibrated_classifiers_[0].estimator
differ = machine.predict(X) != model.predict(X)
unsure = np.abs(probability[differ, 1] - 0.5).max(initial=0.0)
print(f"the machine itself agrees on:  {1 - np.mean(differ):.4f} of the rows")
print(f"elsewhere the probability is within {unsure:.4f} of one half")

# %%
# On rows that neither the machine nor the sigmoid has seen.
unseen = cross_val_predict(model, X, y, cv=5, method="predict_proba")[:, 1]
scores = cross_val_predict(LearnedKernelSVC(C=1.0), X, y, cv=5, method="decision_function")
print(f"mean probability {unseen.mean():.4f}, frequency {y.mean():.4f}")
print(
    f"Brier score {brier_score_loss(y, unseen):.4f}, of the frequency alone "
    f"{y.var():.4f}; area under the curve {roc_auc_score(y, unseen):.4f}"
)

# %%
# The reliability diagram, beside what scores squeezed into [0, 1] would have said. What to see: the
# calibrated line stays near the diagonal, the other one is far above it.
figure, ax = plt.subplots(figsize=(6, 5), layout="constrained")
squeezed = (scores - scores.min()) / np.ptp(scores)
for name, values, marker in (("calibrated", unseen, "s"), ("scores, squeezed", squeezed, "o")):
    CalibrationDisplay.from_predictions(
        y, values, n_bins=8, strategy="quantile", name=name, ax=ax, marker=marker
    )
ax.set(xlabel="probability given", ylabel="frequency observed")
plt.show()
