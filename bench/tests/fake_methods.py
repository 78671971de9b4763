"""Methods that are quick, slow or broken on purpose; worker processes import them too."""

import os
import sys

import numpy as np
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from tessella_bench._methods import Fitted, NotApplicableError


def average(task, X, y, seed):
    model = DummyClassifier() if task == "classification" else DummyRegressor()
    return Fitted(model.fit(X, y), {"seed": seed}, tune_seconds=1.5, fit_seconds=0.5)


def neighbour(task, X, y, seed):
    model = KNeighborsClassifier(1) if task == "classification" else KNeighborsRegressor(1)
    sys.stdout.write("libraries print what they like")
    sys.stdout.flush()
    return Fitted(model.fit(X, y), {"k": 1}, gap=1e-4)


def endless(task, X, y, seed):
    while True:
        pass


def broken(task, X, y, seed):
    raise RuntimeError("broken on purpose")


def dying(task, X, y, seed):
    sys.stderr.write("last words\n")
    sys.stderr.flush()
    os._exit(3)


def picky(task, X, y, seed):
    raise NotApplicableError("too many rows")


def senseless(task, X, y, seed):
    class Model:
        def predict(self, X):
            return np.full(len(X), np.nan)

    return Fitted(Model())


def greedy(task, X, y, seed):
    raise MemoryError
