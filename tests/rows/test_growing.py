"""Arrays that grow by blocks of rows, in memory or in a file."""

from __future__ import annotations

import numpy as np
import pytest

from tessella.rows import GrowingArray


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.intp])
def test_blocks_are_rows_of_one_array(on_disk, dtype):
    values = np.arange(60).reshape(20, 3)
    array = GrowingArray(3, dtype, on_disk=on_disk)
    block = values[:7].astype(dtype)
    array.append(block)
    block[:] = -1  # was copied
    array.append(values[7:7])
    array.append(np.asfortranarray(values[7:15]))
    array.append(values[15:].tolist())
    found = array.finish()
    assert type(found) is np.ndarray
    assert found.dtype == dtype
    assert np.array_equal(found, values)


@pytest.mark.parametrize("on_disk", [False, True])
def test_numbers_are_rows_of_one_column(on_disk):
    array = GrowingArray(1, np.intp, on_disk=on_disk)
    for block in (np.arange(4), np.arange(4, 6)):
        array.append(block)
    assert np.array_equal(array.finish(), np.arange(6)[:, None])


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("n_blocks", [0, 2])
def test_without_rows_the_array_is_empty(on_disk, n_blocks):
    array = GrowingArray(3, np.float64, on_disk=on_disk)
    for _ in range(n_blocks):
        array.append(np.empty((0, 3)))
    found = array.finish()
    assert found.shape == (0, 3)
    assert found.dtype == np.float64


def test_rows_on_disk_are_mapped_and_leave_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    array = GrowingArray(2, np.float64, on_disk=True)
    array.append(np.ones((5, 2)))
    found = array.finish()
    assert isinstance(found.base, np.memmap)
    assert not found.flags.writeable
    del array
    assert np.array_equal(found, np.ones((5, 2)))
    del found
    assert list(tmp_path.iterdir()) == []
