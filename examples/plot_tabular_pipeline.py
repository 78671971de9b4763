"""
Tables with categories and gaps
===============================

``make_tabular_pipeline`` takes a table as it is: text, truth values, dates, missing values. Here a
tenth of all entries of a table are erased. Most rows then have a gap; a model that may learn from
them does better than one that is trained on the whole rows only.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, train_test_split

from tessella import LearnedKernelSVR, make_tabular_pipeline

table, target = load_diabetes(as_frame=True, return_X_y=True, scaled=False)
table["sex"] = table["sex"].map({1.0: "one", 2.0: "two"})  # the data does not say which
rng = np.random.default_rng(0)
gappy = table.mask(rng.random(table.shape) < 0.1)
print(f"{len(table)} rows, {gappy.isna().any(axis=1).sum()} of them with a gap")

# %%
# Ten splits. In the last two cases the test rows have their gaps too.
model = make_tabular_pipeline(LearnedKernelSVR(C=0.3, tol=1e-2))
scores = {"no gaps anywhere": [], "gaps, all rows": [], "gaps, whole rows only": []}
for seed in range(10):
    train, test = train_test_split(table.index, random_state=seed)
    whole = gappy.loc[train].dropna().index
    cases = ((train, table), (train, gappy), (whole, gappy))
    for found, (rows, source) in zip(scores.values(), cases, strict=True):
        model.fit(source.loc[rows], target[rows])
        found.append(model.score(source.loc[test], target[test]))
for name, found in scores.items():
    print(f"{name:22} R2 {np.mean(found):.3f}")

# %%
# What a model looks at, for the columns of the table, on rows it has not seen. What to see: four
# columns carry most of it, and the bars of the others reach zero.
train, test, y_train, y_test = train_test_split(gappy, target, random_state=0)
search = GridSearchCV(model, {"model__C": [0.1, 0.3, 1.0]}, cv=3).fit(train, y_train)
names = search.best_estimator_[:-1].get_feature_names_out()
print(f"{table.shape[1]} columns became {len(names)} features, among them {', '.join(names[-4:])}")
importance = permutation_importance(search, test, y_test, n_repeats=10, random_state=0)
order = np.argsort(importance.importances_mean)
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.barh(
    table.columns[order], importance.importances_mean[order], xerr=importance.importances_std[order]
)
ax.axvline(0.0, color="black", lw=0.8)
ax.set(xlabel="loss of R2 when the column is shuffled")
plt.show()
