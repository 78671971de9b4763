import numpy as np
import pytest
from persistence.common import SIGN, X

import tessella
from tessella import (
    LearnedKernelSVC,
)


@pytest.fixture(scope="module")
def classifier():
    return LearnedKernelSVC(C=2.0).fit(X, np.where(SIGN, "yes", "no"))


@pytest.fixture
def model_file(classifier, tmp_path):
    path = tmp_path / "model.tsl"
    tessella.save(classifier, path)
    return path
