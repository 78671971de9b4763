"""
Fit a table with categories and missing values
==============================================

``make_tabular_pipeline`` accepts tables with text, booleans, dates and missing values. In this
example a tenth of all entries of a table are deleted, so that most rows have missing values. A
model that is trained on all rows is better than one that is trained on the complete rows only.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, train_test_split

from tessella import LearnedKernelSVR, make_tabular_pipeline

table, target = load_diabetes(as_frame=True, return_X_y=True, scaled=False)
table["sex"] = table["sex"].map({1.0: "one", 2.0: "two"})  # the data set does not define the codes
rng = np.random.default_rng(0)
gappy = table.mask(rng.random(table.shape) < 0.1)
print(f"{len(table)} rows, {gappy.isna().any(axis=1).sum()} of them with missing values")

# %%
# The scores are means over ten splits. In the last two cases, the test rows have missing values
# too.
model = make_tabular_pipeline(LearnedKernelSVR(C=0.3, tol=1e-2))
scores = {"complete table": [], "missing values, all rows": [], "missing, complete rows": []}
for seed in range(10):
    train, test = train_test_split(table.index, random_state=seed)
    whole = gappy.loc[train].dropna().index
    cases = ((train, table), (train, gappy), (whole, gappy))
    for found, (rows, source) in zip(scores.values(), cases, strict=True):
        model.fit(source.loc[rows], target[rows])
        found.append(model.score(source.loc[test], target[test]))
for name, found in scores.items():
    print(f"{name:24} R2 {np.mean(found):.3f}")

# %%
# Permutation importance measures how much the model depends on each column of the table, on test
# rows. The figure shows that four columns are important, and that the importance of the others is
# not distinguishable from zero.
train, test, y_train, y_test = train_test_split(gappy, target, random_state=0)
search = GridSearchCV(model, {"model__C": [0.1, 0.3, 1.0]}, cv=3).fit(train, y_train)
names = search.best_estimator_[:-1].get_feature_names_out()
print(f"{table.shape[1]} columns became {len(names)} features, including {', '.join(names[-4:])}")
importance = permutation_importance(search, test, y_test, n_repeats=10, random_state=0)
order = np.argsort(importance.importances_mean)
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.barh(
    table.columns[order], importance.importances_mean[order], xerr=importance.importances_std[order]
)
ax.axvline(0.0, color="black", lw=0.8)
ax.set(xlabel="loss of R2 when the column is shuffled")
plt.show()
