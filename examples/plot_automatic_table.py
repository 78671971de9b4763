"""
Fit a table with text, dates and gaps, without choosing anything
================================================================

``TessellaRegressor`` takes a table as it comes. This example fits the prices of made-up flats,
whose columns are numbers, text, dates and codes with gaps, and compares the result with a linear
model and with gradient boosting. Then it shows what the model has found.

The prices are made up, so that the truth is known: they depend smoothly on the area and on the
date, with a different slope for each town, and one column has no effect.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from tessella import TessellaRegressor

plt.style.use("tableau-colorblind10")
rng = np.random.default_rng(0)
n = 900
table = pd.DataFrame(
    {
        "area": rng.gamma(6.0, 15.0, n),
        "town": rng.choice(["Ulm", "Bern", "Wien", "Graz"], n, p=[0.4, 0.3, 0.2, 0.1]),
        "sold": pd.Timestamp("2010-01-01") + pd.to_timedelta(rng.integers(0, 4500, n), "D"),
        "heating": rng.integers(1, 6, n),  # codes, not numbers
        "noise": rng.normal(size=n),
    }
)
slope = table["town"].map({"Ulm": 2.0, "Bern": 5.0, "Wien": 3.5, "Graz": 1.5})
years = (table["sold"] - pd.Timestamp("2010-01-01")).dt.days / 365.25
surcharge = table["heating"].map({1: 0, 2: 40, 3: -20, 4: 60, 5: 10})
price = slope * table["area"] ** 0.9 * (1 + 0.3 * np.sin(years / 2)) + surcharge
price += 15 * rng.normal(size=n)
table = table.mask(rng.random(table.shape) < 0.05)
print(table.head(4))

# %%
# The table is fitted as it is. Only the codes have to be named. The other two models need the
# dates as numbers, and the linear model needs an imputer, indicators and a scaler.
train, test, y_train, y_test = train_test_split(table, price, train_size=600, random_state=0)
model = TessellaRegressor(categorical_features=["heating"]).fit(train, y_train)


def prepared(frame):
    """Return the table with dates as days and with codes as text."""
    days = (frame["sold"] - pd.Timestamp("2010-01-01")).dt.days
    return frame.assign(sold=days, heating=frame["heating"].astype("category"))


numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
categories = OneHotEncoder(handle_unknown="ignore")
linear = make_pipeline(
    make_column_transformer(
        (numbers, make_column_selector(dtype_include=np.number)),
        (categories, make_column_selector(dtype_exclude=np.number)),
    ),
    RidgeCV(np.geomspace(0.01, 100, 9)),
)
trees = HistGradientBoostingRegressor(categorical_features=["town", "heating"], random_state=0)
prepared_train = prepared(train).assign(town=train["town"].astype("category"))
prepared_test = prepared(test).assign(town=test["town"].astype("category"))
scores = {
    "TessellaRegressor": model.score(test, y_test),
    "gradient boosting": trees.fit(prepared_train, y_train).score(prepared_test, y_test),
    "ridge regression": linear.fit(prepared_train, y_train).score(prepared_test, y_test),
}
for name, score in scores.items():
    print(f"{name:18} test R2 {score:.3f}")
print(f"leave-one-out R2 of TessellaRegressor {model.loo_score_:.3f}")

# %%
# The leaderboard lists what was compared, with errors on held-out rows and the weights in the
# average.
board = pd.DataFrame(model.leaderboard_)
print(board[["error", "weight", "family", "scaling", "stage", "loss"]].head(6).round(3))

# %%
# The relevance of a column is its share of the variance of the predictions. The intervals come
# from the residuals of held-out rows.
relevance = pd.Series(model.feature_relevance_, index=table.columns).sort_values()
lower, upper = model.predict_interval(test, coverage=0.9).T
inside = (lower <= y_test) & (y_test <= upper)
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
axes[0].barh(relevance.index, relevance)
axes[0].set(xlabel="share of the variance of the predictions", title="Relevance of the columns")
predicted = model.predict(test)
axes[1].plot(predicted, y_test, ".", color="0.3", label="test rows")
order = np.argsort(predicted)
axes[1].fill_between(
    predicted[order], lower[order], upper[order], alpha=0.3, label="90 % intervals"
)
axes[1].set(
    xlabel="prediction", ylabel="price", title=f"{inside.mean():.0%} of the rows are inside"
)
axes[1].legend()
plt.show()
