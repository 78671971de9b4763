from __future__ import annotations

import pytest
from reference.weights import TASKS


@pytest.fixture(params=TASKS)
def task(request):
    return request.param
