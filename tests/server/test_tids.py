"""Rows by their place: which are among others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plinth.server.integrity.table_scan import is_among, tid_list

TIDS = st.lists(
    st.one_of(
        st.tuples(st.integers(0, 20), st.integers(0, 8)),
        st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**16 - 1)),  # as a damaged page may have them
    ),
    max_size=60,
)


def packed(tids: list[tuple[int, int]]) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return np.array([block << 16 | item for block, item in tids], np.int64)


@given(TIDS, TIDS)
def test_a_row_is_among_others_if_a_set_of_them_has_it(tids: list[tuple[int, int]], others: list[tuple[int, int]]):
    assert is_among(packed(tids), packed(others)).tolist() == [tid in set(others) for tid in tids]


@pytest.mark.parametrize("count", [0, 8, 9])
def test_a_list_of_rows_ends_after_eight(count: int):
    shown = tid_list(packed([(7, item) for item in range(count)]))
    assert shown == ", ".join(f"(7,{item})" for item in range(min(count, 8))) + (", ..." if count > 8 else "")
