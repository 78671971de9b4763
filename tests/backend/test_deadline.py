"""Deadlines of long loops: who they hold for, and that they end loops of many pieces."""

from __future__ import annotations

import threading
import time

import pytest

from tessella.backend import OutOfTimeError, check_deadline, deadline, in_threads


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_a_deadline_holds_inside_its_block_only(clock):
    check_deadline()
    with deadline(101.0):
        check_deadline()
        clock[0] = 101.0
        with pytest.raises(OutOfTimeError):
            check_deadline()
    check_deadline()


def test_no_deadline_leaves_the_one_that_holds(clock):
    with deadline(99.0), deadline(None), pytest.raises(OutOfTimeError):
        check_deadline()


def test_the_earlier_of_two_deadlines_holds(clock):
    with deadline(99.0), deadline(1e9), pytest.raises(OutOfTimeError):
        check_deadline()
    with deadline(1e9):
        with deadline(99.0), pytest.raises(OutOfTimeError):
            check_deadline()
        check_deadline()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_loop_of_pieces_ends_at_its_deadline(clock, n_jobs):
    done = []

    def work(piece):
        done.append(piece)
        clock[0] += 1.0

    with deadline(103.0), pytest.raises(OutOfTimeError):
        in_threads(work, list(range(50)), n_jobs)
    assert 3 <= len(done) <= 3 + n_jobs
    assert in_threads(lambda k: 2 * k, [1, 2, 3], n_jobs) == [2, 4, 6]


def test_pieces_in_other_threads_have_the_deadline_of_their_loop(clock):
    def work(_piece):
        clock[0] = 200.0
        with pytest.raises(OutOfTimeError):
            check_deadline()
        clock[0] = 100.0
        return threading.get_ident()

    with deadline(150.0):
        assert len(in_threads(work, [1], 2)) == 1
    # Another thread that is not part of the loop has no deadline.
    ended = []
    with deadline(1.0):
        other = threading.Thread(target=lambda: (check_deadline(), ended.append(True)))
        other.start()
        other.join()
    assert ended == [True]
