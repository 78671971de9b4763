"""Rows by leaf and vectors by leaf: the same in memory and on disk."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tessella.rows import LeafVectors, LeavesInMemory, LeavesOnDisk

ROWS, COLUMNS, LEAVES = 5_000, 3, 12


@pytest.fixture(params=["memory", "disk", "small buffer", "tiny buffer"])
def make(request, tmp_path):
    """A function that makes an empty store."""
    stores = []

    def store(n_leaves=LEAVES, n_columns=COLUMNS):
        if request.param == "memory":
            return LeavesInMemory(n_leaves, n_columns)
        size = {"disk": 64 << 20, "small buffer": 5_000, "tiny buffer": 0}[request.param]
        stores.append(LeavesOnDisk(n_leaves, n_columns, tmp_path, buffer_bytes=size))
        return stores[-1]

    yield store
    for made in stores:
        made.close()


def rows_of(seed=0, rows=ROWS):
    rng = np.random.default_rng(seed)
    return rng.integers(0, LEAVES - 1, rows), rng.normal(size=(rows, COLUMNS))


def filled(store, leaf, rows, step=701):
    for start in range(0, len(leaf), step):
        store.append(leaf[start : start + step], rows[start : start + step])
    store.finish()
    return store


def test_leaves_keep_their_rows_in_order(make):
    leaf, rows = rows_of(rows=1_000)
    store = filled(make(), leaf, rows)
    assert store.sizes.tolist() == np.bincount(leaf, minlength=LEAVES).tolist()
    assert store.nbytes == rows.nbytes
    for k in range(LEAVES):
        np.testing.assert_array_equal(store.rows(k), rows[leaf == k])
    assert store.rows(LEAVES - 1).shape == (0, COLUMNS)


def test_appended_rows_are_copied(make):
    store = make()
    block = np.ones((2, COLUMNS))
    store.append(np.array([0, 1], dtype=np.uint8), block)
    block[:] = 7.0
    store.append(np.zeros(0, dtype=int), np.empty((0, COLUMNS)))
    store.finish()
    store.finish()
    assert store.rows(0).tolist() == [[1.0] * COLUMNS]


def test_leaves_are_split(make):
    leaf, rows = rows_of(rows=1_000)
    store = filled(make(), leaf, rows)
    before = store.rows(4)
    third = len(before) // 3
    parts = [before[third:], before[:0], before[:third]]
    assert store.replace(4, parts) == [4, LEAVES, LEAVES + 1]
    again = store.rows(4)
    assert store.replace(4, [again[:5], again[5:]]) == [4, LEAVES + 2]
    expected = {
        4: before[third:][:5],
        LEAVES: before[:0],
        LEAVES + 1: before[:third],
        LEAVES + 2: before[third:][5:],
    }
    for k in range(LEAVES + 3):
        np.testing.assert_array_equal(store.rows(k), expected.get(k, rows[leaf == k]))
        assert store.sizes[k] == len(store.rows(k))
    assert store.nbytes == rows.nbytes
    assert store.replace(0, [np.ones((1, COLUMNS))]) == [0]
    assert store.rows(0).tolist() == [[1.0] * COLUMNS]


def test_parts_are_copied_and_readers_cannot_change_rows(make):
    store = filled(make(), *rows_of(rows=100))
    part = np.ones((2, COLUMNS))
    store.replace(0, [part, part])
    part[:] = 7.0
    for k in (0, LEAVES):
        read = store.rows(k)
        if read.flags.writeable:
            read[:] = 9.0
        assert store.rows(k).tolist() == [[1.0] * COLUMNS] * 2
    store.sizes[:] = 0
    assert store.sizes[0] == 2


def test_threads_read_and_split_at_once(make):
    leaf, rows = rows_of(rows=2_000)
    store = filled(make(), leaf, rows)

    def check(k):
        return all(np.array_equal(store.rows(k), rows[leaf == k]) for _ in range(20))

    with ThreadPoolExecutor(2) as pool:
        assert all(pool.map(check, range(LEAVES)))
        split = list(pool.map(lambda k: store.replace(k, np.split(store.rows(k), [7])), range(11)))
    assert sorted(number for pair in split for number in pair) == sorted(
        {*range(LEAVES - 1), *range(LEAVES, LEAVES + 11)}
    )
    for k, (first, second) in enumerate(split):
        together = np.concatenate([store.rows(first), store.rows(second)])
        np.testing.assert_array_equal(together, rows[leaf == k])


def test_wrong_calls_are_refused(make):
    store = make()
    with pytest.raises(RuntimeError, match="only after finish"):
        store.rows(0)
    with pytest.raises(ValueError, match=r"must have 3 columns.*\(2, 2\)"):
        store.append(np.array([0, 1]), np.ones((2, 2)))
    with pytest.raises(ValueError, match="leaf must be 2 integers"):
        store.append(np.array([0]), np.ones((2, COLUMNS)))
    with pytest.raises(ValueError, match="leaf must be 2 integers"):
        store.append(np.array([0.0, 1.0]), np.ones((2, COLUMNS)))
    for wrong in (-1, LEAVES):
        with pytest.raises(ValueError, match="from 0 to 11"):
            store.append(np.array([0, wrong]), np.ones((2, COLUMNS)))
    assert store.sizes.sum() == 0
    store.finish()
    with pytest.raises(RuntimeError, match="cannot be appended after finish"):
        store.append(np.array([0]), np.ones((1, COLUMNS)))
    for wrong in (-1, LEAVES):
        with pytest.raises(ValueError, match="from 0 to 11"):
            store.rows(wrong)
    with pytest.raises(ValueError, match="at least one array"):
        store.replace(0, [])
    with pytest.raises(ValueError, match="3 columns"):
        store.replace(0, [np.ones((1, 2))])
    with pytest.raises(ValueError, match="at least one leaf"):
        make(0, 1)
    with pytest.raises(ValueError, match="one column"):
        make(1, 0)


# ------------------------------------------------------------------------------- vectors


@pytest.fixture(params=["memory", "disk"])
def vectors(request, tmp_path):
    """Vectors of leaves with 3, 0, 2 and 4 values."""
    if request.param == "memory":
        yield LeafVectors([3, 0, 2, 4])
    else:
        with LeavesOnDisk(4, 1, tmp_path) as store:
            yield LeafVectors(np.array([3, 0, 2, 4]), store)


def test_vectors_keep_their_parts(vectors):
    assert [vectors.get("w", k).tolist() for k in range(4)] == [[0.0] * n for n in (3, 0, 2, 4)]
    vectors.set("w", 2, [5, 6])
    vectors.set("w", 0, np.array([1.0, 2.0, 3.0]))
    vectors.set("w", 1, [])
    vectors.set("v", 3, np.arange(8.0)[::2])
    assert [vectors.get("w", k).tolist() for k in range(4)] == [[1, 2, 3], [], [5, 6], [0] * 4]
    assert vectors.get("v", 3).tolist() == [0, 2, 4, 6]
    assert vectors.get("v", 0).tolist() == [0, 0, 0]


def test_vectors_are_copied(vectors):
    given = np.array([5.0, 6.0])
    vectors.set("w", 2, given)
    given[:] = 0.0
    vectors.get("w", 2)[:] = 0.0
    assert vectors.get("w", 2).tolist() == [5.0, 6.0]
    vectors.copy("w", "best")
    vectors.copy("w", "w")
    vectors.set("w", 2, [7.0, 8.0])
    assert vectors.get("best", 2).tolist() == [5.0, 6.0]
    assert vectors.get("w", 2).tolist() == [7.0, 8.0]
    vectors.set("best", 3, np.ones(4))
    vectors.copy("w", "best")
    assert vectors.get("best", 3).tolist() == [0.0] * 4
    vectors.copy("never set", "best")
    vectors.copy("never set", "nor this")
    assert vectors.get("best", 2).tolist() == [0.0, 0.0]
    vectors.set("best", 0, np.ones(3))
    vectors.set("other", 0, np.zeros(3))
    assert vectors.get("best", 0).tolist() == [1.0] * 3


def test_vectors_of_one_store_do_not_meet(tmp_path):
    with LeavesOnDisk(1, 1, tmp_path) as store:
        one, two = LeafVectors([2], store), LeafVectors([2], store)
        one.set("w", 0, [1.0, 2.0])
        assert two.get("w", 0).tolist() == [0.0, 0.0]
        two.set("w", 0, [3.0, 4.0])
        assert one.get("w", 0).tolist() == [1.0, 2.0]


def test_threads_set_the_parts_of_a_vector(vectors):
    with ThreadPoolExecutor(2) as pool:
        for value in range(50):
            parts = [(k, np.full(n, value + k)) for k, n in enumerate((3, 0, 2, 4))]
            list(pool.map(lambda part: vectors.set(f"{value}", *part), parts))  # noqa: B023
            for k, part in parts:
                np.testing.assert_array_equal(vectors.get(f"{value}", k), part)


def test_wrong_parts_are_refused(vectors):
    with pytest.raises(ValueError, match=r"Leaf 2 has 2 values.*'w' is \(3,\)"):
        vectors.set("w", 2, np.ones(3))
    for k in (-1, 4):
        with pytest.raises(ValueError, match="from 0 to 3"):
            vectors.get("w", k)
