"""A first fit with an installed wheel: it certifies, predicts with threads, and can be loaded."""

import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_iris

import tessella
from tessella import LearnedKernelSVC, LearnedKernelSVR

X, y = load_iris(return_X_y=True)
classifier = LearnedKernelSVC(n_jobs=2).fit(X, y)
regressor = LearnedKernelSVR(n_jobs=2).fit(X[:, :3], X[:, 3])
for model in (classifier, regressor):
    assert 0 <= model.gap_ <= model.tol, model.gap_
assert classifier.score(X, y) > 0.95
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "model.tsl"
    classifier.save(path)
    again = tessella.load(path).decision_function(X)
assert np.array_equal(again, classifier.decision_function(X))
print(f"Tessella {tessella.__version__} in {Path(tessella.__file__).parent}: fits and certifies")
