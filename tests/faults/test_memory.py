"""The memory guard: estimates are what a fit needs, and too much is refused at once."""

import sys

import numpy as np
import pytest
from reference.processes import output_of
from sklearn.exceptions import ConvergenceWarning

from tessella import LearnedKernelRidge, LearnedKernelSVC, LearnedKernelSVR
from tessella.cones import PSD, Nonnegative, ProductCone
from tessella.kernels import PolynomialKernels, TessellatedKernels
from tessella.solvers import parameter_memory, working_memory

needs_limits = pytest.mark.skipif(sys.platform != "linux", reason="reads limits from /proc")
MEGABYTE = 2**20

COMMON = """
import re, resource, sys, warnings
from pathlib import Path
import numpy as np
import tessella
from tessella import KernelDictionary, TessellatedKernels

warnings.simplefilter("ignore")
UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
rng = np.random.default_rng(0)
FLOOR = TessellatedKernels(floor=0.1)

def limit(room):
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + room, resource.RLIM_INFINITY))

def no_limit():
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)

def peak():
    # That of getrusage() would begin with the size of the process that has started this one.
    return int(re.search(r"VmHWM:\\s+([0-9]+) kB", Path("/proc/self/status").read_text())[1]) * 1024

def data(m, n):
    X = rng.random((m, n))
    return X, np.where(X[:, 0] > 0.5, 1, -1)

tessella.LearnedKernelSVC(max_iter=1, n_jobs=1).fit(*data(30, 2))  # loads what every fit needs
"""


@needs_limits
@pytest.mark.parametrize(
    ("rows", "columns", "estimator"),
    [
        (300, 300, "LearnedKernelSVC(max_iter=2, n_jobs=1)"),
        (300, 26, "LearnedKernelSVC(degree=2, max_iter=2, n_jobs=1)"),
        (40, 300, "LearnedKernelSVC(kernels=FLOOR, max_iter=2, n_jobs=1)"),
        (40, 300, "LearnedKernelSVR(kernels=FLOOR, solver='frank-wolfe', max_iter=2, n_jobs=1)"),
        (40, 250, "LearnedKernelRidge(kernels=FLOOR, max_iter=2, n_jobs=1)"),
        (1500, 4, "LearnedKernelSVC(solver='joint', max_iter=2, n_jobs=1)"),
        # In the span of the rows
        (100, 5000, "LearnedKernelSVC(max_iter=2, n_jobs=1)"),
        (200, 3000, "LearnedKernelSVR(solver='frank-wolfe', max_iter=2, n_jobs=1)"),
        (200, 3000, "LearnedKernelRidge(max_iter=2, n_jobs=1)"),
        (100, 200, "LearnedKernelSVC(degree=2, max_iter=2, n_jobs=1)"),
        (100, 200, "LearnedKernelSVC(kernels='polynomial', degree=2, max_iter=2, n_jobs=1)"),
    ],
)
def test_the_estimate_is_what_a_fit_needs(rows, columns, estimator):
    program = f"""
from tessella.estimators import _solving
X, y = data({rows}, {columns})
needed, require = [], _solving.require_memory
_solving.require_memory = lambda count, *text: (needed.append(count), require(count, *text))
before = peak()
tessella.{estimator}.fit(X, y)
print(needed[-1], peak() - before)
"""
    estimate, measured = map(float, output_of(COMMON + program).split())
    assert measured > 15 * MEGABYTE  # otherwise it is noise that is measured
    assert 0.5 * measured < estimate < 3.0 * measured


@needs_limits
@pytest.mark.parametrize(
    ("columns", "estimator"),
    [
        (20_000, "LearnedKernelSVC(kernels=FLOOR)"),
        (20_000, "LearnedKernelRidge(kernels=FLOOR)"),
        (1_000_000, "LearnedKernelSVC(kernels=FLOOR)"),
        (6_000, "LearnedKernelSVC(degree=2)"),
        (6_000, "LearnedKernelSVR(kernels='polynomial', degree=2)"),
        (300, "LearnedKernelSVC(kernels=TessellatedKernels(monomials='xz', degree=2))"),
        (20_000, "LearnedKernelSVC(kernels=FLOOR + KernelDictionary.standard())"),
    ],
)
def test_wide_problems_are_refused_before_anything_is_allocated(columns, estimator):
    program = f"""
X, y = data(4, {columns})
y[:2] = -1, 1
limit(4 << 30)
before = peak()
try:
    tessella.{estimator}.fit(X, y)
except MemoryError as error:
    print(peak() - before - 12 * X.nbytes, str(error))
"""
    printed = output_of(COMMON + program, seconds=100)
    grown, _, message = printed.partition(" ")
    assert float(grown) < 40 * MEGABYTE
    assert f"{columns} features" in message
    assert "Use fewer features" in message


@needs_limits
def test_few_wide_rows_need_little():
    program = """
X, y = data(12, 20_000)
limit(1 << 28)  # a fortieth of the matrix P
model = tessella.LearnedKernelSVC(C=1e-6, n_jobs=1).fit(X, y)
print(model.status_, *model.parameter_.shape)
"""
    status, side, columns = output_of(COMMON + program).split()
    assert (status, side) == ("optimal", "40002")
    assert int(columns) <= 24


@needs_limits
def test_constant_columns_do_not_count():
    program = """
X, y = data(30, 5000)
X[:, 3:] = 1.0
limit(1 << 29)
print(tessella.LearnedKernelSVC(n_jobs=1).fit(X, y).status_)
"""
    assert output_of(COMMON + program).strip() == "optimal"


def test_a_parameter_counts_with_all_its_entries():
    one = parameter_memory("working-set", PSD(300))
    assert one % (8 * 300**2) == 0
    assert parameter_memory("working-set", PSD(600)) == 4 * one
    assert parameter_memory("auto", PSD(300)) == one < parameter_memory("joint", PSD(300))
    weights = parameter_memory("working-set", Nonnegative(90_000))
    assert weights == one
    both = parameter_memory("working-set", ProductCone([PSD(300), Nonnegative(90_000)]))
    assert both == 2 * one


def test_auto_is_counted_as_the_solver_that_it_chooses():
    options = {"by_rows": True, "cone": PSD(300)}
    rows = working_memory("working-set", [100], 8, by_rows=True)
    assert working_memory("auto", [100], 8, **options) == rows + parameter_memory("auto", PSD(300))
    smooth = working_memory("auto", [100], 8, smooth=True, **options)
    assert smooth == 6 * 8 * 100**2 + parameter_memory("joint", PSD(300))


@pytest.mark.parametrize(
    ("kernels", "side"),
    [
        (TessellatedKernels(degree=2), 1225),
        (TessellatedKernels(degree=1, monomials="xz"), 97),
        (PolynomialKernels(degree=2), 1225),
    ],
    ids=str,
)
def test_exponents_count(kernels, side):
    """Of each monomial there is a tuple with a tuple of two numbers for each variable."""
    assert kernels.count_params(48) in (side, 2 * side)
    assert kernels.memory_estimate(1, 48, 8) >= 150 * side


# ---- time limits of wide problems, without a clock


@pytest.fixture
def decompositions(monkeypatch):
    """The sides of all eigenproblems that are solved."""
    sides, eigh = [], np.linalg.eigh

    def counted(A, *args):
        sides.append(len(A))
        return eigh(A, *args)

    monkeypatch.setattr(np.linalg, "eigh", counted)
    return sides


@pytest.mark.parametrize("cls", [LearnedKernelSVC, LearnedKernelSVR, LearnedKernelRidge])
def test_no_time_gives_the_certificate_that_costs_nothing(cls, decompositions):
    rng = np.random.default_rng(0)
    X = rng.random((12, 250))
    y = np.where(X[:, 0] > 0.5, 1.0, -1.0)
    kernels = TessellatedKernels(floor=0.1)  # without it, the span of the rows is small
    model = cls(C=2.0, kernels=kernels, time_limit=1e-6, n_jobs=1)
    with pytest.warns(ConvergenceWarning, match="Do not use this model"):
        model.fit(X, y)
    assert max(decompositions) < 400  # nothing as large as the parameter, of side 502
    assert model.status_ == "time limit"
    assert (model.lower_bound_, model.gap_) == (0.0, 1.0)
    standard = (y - y.mean()) / y.std()
    epsilon = getattr(model, "epsilon_", 0.0)
    corners = np.concatenate([standard - epsilon, standard + epsilon])  # one has the best offset
    tubes = [np.maximum(np.abs(standard - b) - epsilon, 0).sum() for b in corners]
    expected = {
        LearnedKernelSVC: 2 * 2.0 * min((y > 0).sum(), (y < 0).sum()),
        LearnedKernelSVR: 2.0 * min(tubes),
        LearnedKernelRidge: 0.5 * 2.0 * (standard**2).sum(),
    }[cls]
    assert model.objective_ == pytest.approx(expected)
    assert len(set(model.predict(X))) == 1


def test_a_small_parameter_gets_a_real_certificate_however_short_the_time():
    rng = np.random.default_rng(0)
    X = rng.random((40, 3))
    y = np.where(X[:, 0] > 0.5, 1, -1)
    with pytest.warns(ConvergenceWarning):
        model = LearnedKernelSVC(time_limit=1e-9, tol=1e-9, n_jobs=1).fit(X, y)
    assert model.dual_coef_.shape[1] > 0
