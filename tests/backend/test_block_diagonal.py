"""Block diagonal matrices against the matrices with their zeros."""

import numpy as np

from tessella.backend import BlockDiagonal


def test_products_diagonal_and_sums_are_those_of_the_whole_matrix():
    rng = np.random.default_rng(0)
    roots = [rng.standard_normal((size, size)) for size in (3, 1, 5)]
    K = BlockDiagonal([root @ root.T for root in roots])
    expected = np.zeros((9, 9))
    for rows, root in zip((slice(0, 3), slice(3, 4), slice(4, 9)), roots, strict=True):
        expected[rows, rows] = root @ root.T
    assert len(K) == 9
    np.testing.assert_array_equal(K.whole(), expected)
    np.testing.assert_array_equal(K.whole(np.full((9, 9), np.nan)), expected)
    np.testing.assert_array_equal(K.diagonal(), expected.diagonal())
    for v in (rng.standard_normal(9), rng.standard_normal((9, 2))):
        np.testing.assert_allclose(K @ v, expected @ v, rtol=1e-13)
    added = K.added_to(np.ones((9, 9)))
    np.testing.assert_array_equal(added, expected + 1.0)


def test_the_type_is_that_of_the_blocks():
    assert BlockDiagonal([np.eye(2, dtype=np.float32)]).whole().dtype == np.float32
