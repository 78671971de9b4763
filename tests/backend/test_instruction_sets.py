"""The compiled loops of all instruction sets that this processor has."""

from __future__ import annotations

import pytest
from reference.processes import output_of

SETS = ("baseline", "avx2", "avx512")

# Numbers of rows with and without a rest after the last whole vector, panel and block of rows.
PROGRAM = """
import hashlib
import numpy as np
from tessella import _core
from tessella.backend import KernelOnDemand, instruction_set
from tessella.kernels import TessellatedKernels, absolute_pair_sums, laplace_gram
from tessella.svm import DualProblem, DualSettings, solve_dual

def show(name, *arrays):
    data = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)
    print(name, hashlib.sha256(data).hexdigest())

print(instruction_set())
for m in (1, 7, 16, 137, 600):
    rng = np.random.default_rng(m)
    X, w, P = rng.random((m, 5)), rng.standard_normal(m), np.eye(12)
    kernels = TessellatedKernels()
    bound = kernels.bind(X, n_jobs=1)
    for dtype in (np.float32, np.float64):
        show(f"gram {m}", kernels.bind(X, n_jobs=1, dtype=dtype).gram(P))
    show(f"cross {m}", kernels.cross(X[::-1], X[: m // 2 + 1], P, n_jobs=1))
    show(f"gradient {m}", bound.gradient(w))
    show(f"laplace {m}", laplace_gram(X, X[: m // 2 + 1], n_jobs=1))
    show(f"pairs {m}", absolute_pair_sums(np.outer(w, w), X, n_jobs=1))
    forms = np.empty((3, 5))
    _core.tridiagonal_forms(0.1 * np.tile(w, (3, 1)), np.tile(w**2, (3, 1)), X, forms, 1)
    show(f"forms {m}", forms)
    on_demand = KernelOnDemand(max_bytes=0)
    on_demand.hold(bound.product_form(bound.cone.factors(P)))
    show(f"product {m}", on_demand.product(w, 1))
    K = bound.gram(P)
    for dual in (
        DualProblem.regression(w, 2.0, 0.1),
        DualProblem.classification(np.where(w > 0, 1.0, -1.0), 2.0),
    ):
        for matrix in (K, K.astype(np.float32), on_demand):
            found = solve_dual(matrix, dual, tol=1e-6, n_jobs=1)
            numbers = (found.objective, found.primal, found.intercept, found.n_iter)
            show(f"dual {m}", found.w, found.gradient, np.array(numbers))
        blocks = DualSettings(least_blocks=2, min_block=50, max_block=50)
        found = solve_dual(on_demand, dual, tol=1e-6, n_jobs=1, settings=blocks)
        show(f"blocks {m}", found.w, found.gradient, np.array([found.objective, found.n_iter]))
"""


def test_results_agree_to_the_last_bit():
    """Sums have the same eight partial sums everywhere, and no product is fused with a sum."""
    printed = [output_of(PROGRAM, TESSELLA_SIMD=name).splitlines() for name in SETS]
    names = [lines[0] for lines in printed]
    # The variable is the widest set that may be used; where it is missing the next one is.
    assert names[0] == "baseline"
    assert all(own in SETS[: k + 1] for k, own in enumerate(names))
    for lines in printed[1:]:
        assert lines[1:] == printed[0][1:]


def test_the_widest_set_is_the_default():
    program = "\nfrom tessella.backend import instruction_set\nprint(instruction_set())"
    assert output_of(program, TESSELLA_SIMD="") == output_of(program, TESSELLA_SIMD="avx512")


def test_an_unknown_set():
    with pytest.raises(AssertionError, match=r'TESSELLA_SIMD is "sse9"; expected baseline, avx2'):
        output_of("\nimport tessella", TESSELLA_SIMD="sse9")
