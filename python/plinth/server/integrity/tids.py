"""Rows by their place in a table: a TID as one number, block << 16 | item, in arrays of millions."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MOST_SHOWN = 8
_ITEM = 0xFFFF


def tid_list(tids: "NDArray[np.int64]") -> str:
    """Write the first of these rows as the server writes a ctid: "(0,1), (0,2), ..."."""
    shown = [f"({tid >> 16},{tid & _ITEM})" for tid in tids[:_MOST_SHOWN].tolist()]
    return ", ".join(shown) + (", ..." if len(tids) > _MOST_SHOWN else "")


def is_among(tids: "NDArray[np.int64]", others: "NDArray[np.int64]") -> "NDArray[np.bool_]":
    """Return whether each of `tids` is one of `others`, in any order and with repetitions.

    A page has far fewer items than its numbers allow. Numbered without the gaps, the others fit into a table to look them up in, which
    takes a hundredth of the time of a set (numpy.isin decides; it sorts where a damaged block number would make the table too large).
    """
    import numpy as np

    width = max(int((some & _ITEM).max(initial=0)) for some in (tids, others)) + 1

    def without_gaps(some: "NDArray[np.int64]") -> "NDArray[np.int64]":
        return (some >> 16) * width + (some & _ITEM)

    return np.isin(without_gaps(tids), without_gaps(others))
