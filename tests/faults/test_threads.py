"""Threads of the compiled core: forks, many callers, and systems that have no thread to give."""

from __future__ import annotations

import pytest
from reference.processes import needs_fork, needs_timer, output_of
from reference.threads import needs_task_list

# Large enough for several threads in the compiled loops.
DATA = """
import os, signal, sys, threading, warnings
import numpy as np
from tessella import LearnedKernelSVC, LearnedKernelSVR, TessellaClassifier
from tessella.backend import effective_threads

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.random((1500, 6))
y = np.where(X[:, 0] + X[:, 1] * X[:, 2] > 0.75, "yes", "no")

def fitted(n_jobs, C=1.0):
    return LearnedKernelSVC(C=C, n_jobs=n_jobs, tol=1e-2).fit(X, y)

TASKS = "/proc/self/task"

def threads():
    return len(os.listdir(TASKS))

def answers_of(child):
    pid = os.fork()
    if pid == 0:
        right = False
        try:
            right = child()
        finally:
            os._exit(0 if right else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""


@needs_fork
def test_a_child_of_a_process_with_threads():
    """A forked child has none of the threads of its parent, and starts its own."""
    program = """
    listed = os.path.isdir(TASKS)
    before = threads() if listed else 0
    model = fitted(3)
    expected, coef = model.decision_function(X), model.dual_coef_
    assert not listed or threads() == before + 2

    def child():
        again = fitted(3)
        same = (again.dual_coef_ == coef).all() and again.gap_ == model.gap_
        same = same and (model.decision_function(X) == expected).all()
        return same and (not listed or threads() == 3)

    print([answers_of(child) for _ in range(5)])
    """
    printed = output_of(DATA + _dedented(program), OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
    assert printed.strip() == "[0, 0, 0, 0, 0]"


@needs_fork
def test_a_child_of_a_child():
    program = """
    model = fitted(2)
    expected = model.decision_function(X)

    def grandchild():
        return (model.decision_function(X) == expected).all()

    def child():
        return grandchild() and answers_of(grandchild) == 0

    print(answers_of(child))
    """
    assert output_of(DATA + _dedented(program)).strip() == "0"


@needs_fork
def test_a_fork_while_another_thread_computes():
    """The other thread may hold any lock of the core at this moment; the child has none of it."""
    program = """
    model = fitted(3)
    expected = model.decision_function(X)
    over = threading.Event()

    def compute():
        while not over.is_set():
            model.decision_function(X)

    others = [threading.Thread(target=compute) for _ in range(2)]
    for other in others:
        other.start()
    print([answers_of(lambda: (model.decision_function(X) == expected).all()) for _ in range(20)])
    over.set()
    for other in others:
        other.join()
    """
    assert output_of(DATA + _dedented(program)).strip() == str([0] * 20)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_of_multiprocessing(method, tmp_path):
    """Predictions and a fit in two workers, after the parent has used threads."""
    program = """
    import multiprocessing

    def work(model):
        return model.decision_function(X), fitted(2).dual_coef_

    if __name__ == "__main__":
        if METHOD not in multiprocessing.get_all_start_methods():
            sys.exit("skip")
        model = fitted(2)
        expected = model.decision_function(X)
        with multiprocessing.get_context(METHOD).Pool(2) as pool:
            for scores, coef in pool.map(work, [model] * 4):
                assert (scores == expected).all()
                assert (coef == model.dual_coef_).all()
        print("done")
    """
    path = tmp_path / "program.py"
    path.write_text(f"METHOD = {method!r}\n" + DATA + _dedented(program))
    assert output_of(str(path)).strip() == "done"


def test_many_threads_fit_at_once():
    """Each call shares its work with the pool of threads; no call sees that of another."""
    program = """
    strengths = [0.5, 1.0, 2.0]
    expected = [fitted(1, C) for C in strengths]
    failures = []

    def fit(C, alone):
        model = fitted(3, C)
        same = (model.dual_coef_ == alone.dual_coef_).all() and model.gap_ == alone.gap_
        if not (same and (model.decision_function(X) == alone.decision_function(X)).all()):
            failures.append(C)

    callers = [
        threading.Thread(target=fit, args=pair)
        for _ in range(4) for pair in zip(strengths, expected, strict=True)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    print(failures)
    """
    assert output_of(DATA + _dedented(program)).strip() == "[]"


BLAS = """
from threadpoolctl import threadpool_info
from tessella.backend import limit_blas

def of_blas():
    return {library["num_threads"] for library in threadpool_info()
            if library["user_api"] == "blas"}

def in_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

before = of_blas()
"""


def test_blas_gets_its_threads_back_when_the_last_limit_ends():
    program = """
    first, second = limit_blas(), limit_blas()
    first.__enter__()
    in_thread(second.__enter__)
    first.__exit__(None, None, None)
    during = of_blas()
    in_thread(lambda: second.__exit__(None, None, None))
    print(before, during, of_blas())
    """
    printed = output_of(DATA + BLAS + _dedented(program), OPENBLAS_NUM_THREADS="3").strip()
    assert printed in ("{3} {1} {3}", "{2} {1} {2}", "{1} {1} {1}")  # by the number of cores


@needs_fork
def test_a_child_forgets_the_limits_of_other_threads():
    program = """
    in_thread(limit_blas().__enter__)

    def child():
        with limit_blas():
            during = of_blas()
        return during == {1} and of_blas() == before

    print(of_blas(), answers_of(child))
    """
    assert output_of(DATA + BLAS + _dedented(program)).strip() == "{1} 0"


@needs_task_list
def test_a_huge_number_of_threads():
    program = """
    alone, many = fitted(1), fitted(100_000)
    assert (alone.dual_coef_ == many.dual_coef_).all()
    assert (alone.decision_function(X) == many.decision_function(X)).all()
    assert threads() <= effective_threads(100_000) + effective_threads(-1) + 1
    TessellaClassifier(n_jobs=100_000, effort="low").fit(X[:60], y[:60])
    print(effective_threads(100_000) == max(64, effective_threads(-1)))
    """
    assert output_of(DATA + _dedented(program)).strip() == "True"


@needs_task_list
def test_a_system_without_threads_to_give():
    """The stack of a thread would be larger than the address space: none can be started."""
    import resource

    def no_room_for_a_stack():
        resource.setrlimit(resource.RLIMIT_STACK, (2**40, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_AS, (2**36, resource.RLIM_INFINITY))

    program = """
    try:
        threading.Thread(target=int).start()
    except RuntimeError:
        before = threads()
        same = (fitted(4).dual_coef_ == fitted(1).dual_coef_).all()
        print(same, threads() == before)
    """
    one_thread = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    printed = output_of(DATA + _dedented(program), before=no_room_for_a_stack, **one_thread)
    assert printed.strip() == "True True"


@needs_timer
@needs_task_list
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_memory_that_runs_out_during_a_fit(n_jobs):
    """A timer takes all free memory away, earlier or later: an error or a model, and no crash."""
    program = """
    import resource

    no_limit = resource.getrlimit(resource.RLIMIT_AS)
    n_jobs, expected = int(sys.argv[1]), fitted(1).dual_coef_

    def take_memory(*_):
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + margin, no_limit[1]))

    def outcome():
        try:
            return fitted(n_jobs).status_
        except MemoryError:
            return "MemoryError"
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            resource.setrlimit(resource.RLIMIT_AS, no_limit)

    def fits():
        global margin
        take_memory()
        yield outcome()
        for k in range(15):
            margin = (0, 2**20, 2**24)[k % 3]
            signal.setitimer(signal.ITIMER_REAL, 0.01 * 1.2**k)
            yield outcome()

    margin = 0
    signal.signal(signal.SIGALRM, take_memory)
    # The stack of the main thread grows as it is used, and the system ends a process in which it
    # cannot; that of another thread is there from the beginning.
    caller = threading.Thread(target=lambda: print(*fits(), sep="\\n"))
    caller.start()
    caller.join()
    assert (fitted(n_jobs).dual_coef_ == expected).all()
    """
    outcomes = output_of(DATA + _dedented(program), str(n_jobs)).splitlines()
    assert outcomes[0] == "MemoryError"
    assert set(outcomes) <= {"MemoryError", "out of memory", "optimal"}


def _dedented(program):
    """Remove the indentation that a program has in this file."""
    return "\n".join(line[4:] for line in program.splitlines()) + "\n"
