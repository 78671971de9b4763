"""The parts of a fit on a cluster, in this process."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import dask
import numpy as np
import pytest
from reference.clusters import class_rows, in_chunks

from tessella.dask import _tasks as tasks
from tessella.dask._arguments import LARGE, packed, unpacked
from tessella.dask._chunks import Chunks
from tessella.dask._rows import DaskRows
from tessella.estimators import _leaf_store
from tessella.estimators._leaf_rows import LocalRows
from tessella.estimators._leaf_scan import ScanSettings, Seen, scan
from tessella.estimators._leaf_store import Cuts, Spread
from tessella.kernels import UnitBox
from tessella.rows import ArraySource, Batch


@dataclass
class Inline:
    """A cluster whose futures are results, and that counts its tasks."""

    count: int = 0

    def key(self, function):
        self.count += 1
        return f"{function.__name__}-{self.count}"

    def submit(self, function, *arguments):
        self.key(function)
        return function(*arguments)

    def compute(self, parts):
        return list(dask.compute(*parts, scheduler="sync"))

    def result(self, value):
        return value

    def results(self, values):
        return iter(values)

    def ordered(self, items, submit):
        for item in items:
            yield item, submit(item)


def code(y, weight):
    return np.searchsorted(["high", "low", "mid"], y).astype(float), weight


def no_base(X, n_jobs):
    assert n_jobs == 1 or n_jobs is None
    return np.zeros((len(X), 2))


@pytest.fixture(scope="module")
def rows():
    X, y = class_rows(2000, 3)
    X[:, 2] = np.arange(len(X)) % 4
    weight = np.random.default_rng(3).choice([0.0, 1.0, 2.5], len(X))
    return X, y, weight


def batches(X, y, weight, ends):
    return [Batch(X[a:b], y[a:b], weight[a:b], a) for a, b in pairwise([0, *ends, len(X)])]


@pytest.mark.parametrize("ends", [[], [1000], [1, 2, 700, 701, 1900], list(range(5, 2000, 5))])
@pytest.mark.parametrize("classify", [True, False])
def test_what_parts_tell_adds_up(rows, ends, classify):
    X, y, weight = rows
    y = y if classify else X[:, 0]
    wanted = ScanSettings(100, classify, 2)
    expected = scan(ArraySource(X, y, weight), 100, classify=classify, column=2)
    seen = [Seen.of(batch, wanted) for batch in batches(X, y, weight, ends)]
    while len(seen) > 1:
        groups = [seen[k : k + 3] for k in range(0, len(seen), 3)]
        seen = [tasks.join_seen(group, wanted) for group in groups]
    for name, value in vars(seen[0].scan(wanted)).items():
        np.testing.assert_allclose(value, getattr(expected, name), rtol=1e-12) if name in (
            "total_weight",
            "class_weight",
        ) else np.testing.assert_array_equal(value, getattr(expected, name))


def test_the_sample_of_many_chunks(rows):
    X, y, weight = rows
    cluster = Inline()
    own = DaskRows(cluster, Chunks.of(cluster, *in_chunks(X, y, weight, rows=20)))
    found = own.scan(100, classify=True, column=-1)
    expected = scan(ArraySource(X, y, weight), 100, classify=True)
    assert found.n_rows == expected.n_rows
    np.testing.assert_array_equal(found.X, expected.X)


def test_the_sample_of_a_scan(rows):
    """It has the rows of each class and the ends of the range, and those of the smallest rank."""
    X, y, weight = rows
    seen = scan(ArraySource(X, y, weight), 100, classify=True)
    used = weight > 0
    assert seen.n_rows == used.sum()
    np.testing.assert_array_equal(seen.low, X[used].min(axis=0))
    np.testing.assert_array_equal(seen.high, X[used].max(axis=0))
    np.testing.assert_array_equal(seen.X.min(axis=0), seen.low)
    np.testing.assert_array_equal(seen.X.max(axis=0), seen.high)
    assert all((seen.y == label).sum() >= 50 for label in seen.classes)
    for label, total in zip(seen.classes, seen.class_weight, strict=True):
        assert total == pytest.approx(weight[y == label].sum())


def cuts_of(X, groups):
    box = UnitBox.fit(X)
    sample = X[::4]
    return box, Cuts(
        largest=50,
        n_trees=2,
        column=2 if groups else -1,
        groups=np.unique(X[:, 2]) if groups else np.empty(0),
        rows=None,
        gradients=None,
        sample=box.apply(sample),
        sample_groups=sample[:, 2] if groups else np.empty(0),
    )


@pytest.mark.parametrize("size", [1, 20_000, 10**9])
@pytest.mark.parametrize("groups", [False, True])
def test_leaves_are_those_of_one_process(rows, size, groups, monkeypatch):
    """With one coarse leaf, with some, and with more than one task splits rows into."""
    monkeypatch.setattr(_leaf_store, "_COARSE_BYTES", size)
    X, y, weight = rows
    box, cuts = cuts_of(X, groups)
    used = int((weight > 0).sum())
    coarse = cuts.coarse(used, X.shape[1] + 5).n_leaves
    assert coarse > 64 if size == 1 else coarse >= 2
    spread = Spread(box, code, no_base, 2, None)
    local = LocalRows(ArraySource(X, y, weight), 1, on_disk=False)
    expected = local.divide(used, cuts, spread)
    cluster = Inline()
    chunks = Chunks.of(cluster, *in_chunks(X, y, weight, rows=130))
    own = DaskRows(cluster, chunks)
    found = own.divide(used, cuts, spread)
    for tree, other in zip(found.trees, expected.trees, strict=True):
        for name, value in vars(other).items():
            np.testing.assert_array_equal(getattr(tree, name), value)
    for k in range(expected.n_leaves):
        np.testing.assert_array_equal(own._leaves[k], local.store.leaf(k).block)
    assert own.digest() == local.digest()


def test_the_number_of_tasks_grows_with_chunks_and_not_with_leaves(rows, monkeypatch):
    monkeypatch.setattr(_leaf_store, "_COARSE_BYTES", 1)
    X, y, weight = rows
    box, cuts = cuts_of(X, False)
    cluster = Inline()
    own = DaskRows(cluster, Chunks.of(cluster, *in_chunks(X, y, weight, rows=20)))
    partition = own.divide(int((weight > 0).sum()), cuts, Spread(box, code, no_base, 2, None))
    chunks, coarse = 100, cuts.coarse(int((weight > 0).sum()), X.shape[1] + 5).n_leaves
    # One to split each chunk and one for each of 32 ranges, then the same for pieces of 32 chunks.
    most = 34 * chunks + 2 * chunks // 32 * coarse + 34 * 32 + 3 * coarse + partition.n_leaves
    assert cluster.count <= most < chunks * coarse


@pytest.mark.parametrize("on", [ScanSettings(3, True), [1, "two"], None])
def test_arguments_come_back(on):
    small, large = np.arange(10.0), np.arange(LARGE / 4)
    content, arrays = packed((on, {"a": small}, [large, large], large[:20]))
    assert len(content) < LARGE
    assert len(arrays) == 1
    assert arrays[0] is large
    back = unpacked(content, tuple(arrays))
    assert back[0] == on
    np.testing.assert_array_equal(back[1]["a"], small)
    assert back[2][0] is back[2][1] is large


def test_empty_chunks(rows):
    X, y, _ = rows
    nothing = tasks.scan_chunk(X[:0], y[:0], None, 0, None, ScanSettings(5, False))
    assert nothing.n_rows == 0
    box, cuts = cuts_of(X, False)
    content = packed((Spread(box, code, no_base, 2, None), cuts.coarse(10, 8)))[0]
    leaf, block = tasks.spread_chunk(X[:0], y[:0], None, 0, None, content)
    assert leaf.shape == (0,)
    assert block.shape == (0, X.shape[1] + 5)
    with pytest.raises(ValueError, match="repartition"):
        tasks.chunk_length(X[:3], y[:2], None)


def test_the_library_does_not_import_dask():
    code = "import tessella, sys; print({'dask', 'distributed'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "set()"


def test_without_dask_the_error_says_what_to_install():
    code = "import sys; sys.modules['distributed'] = None; import tessella.dask"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert 'pip install "tessella[dask]"' in done.stderr


def test_a_partition_of_any_type(rows: Any):
    """Chunks of X in several columns, and columns with other chunks than X."""
    X, y, weight = rows
    X, y = *in_chunks(X, rows=300, columns=2), *in_chunks(y, rows=170)
    chunks = Chunks.of(Inline(), X, y, weight)
    assert chunks.firsts == list(range(0, 2000, 300))
    assert chunks.n_features == 3
    parts = dask.compute(*chunks.parts, scheduler="sync")
    assert all(len(own) == len(part) == len(w) for own, part, w in parts)
