"""Synthetic runs, analysed and reported once for all tests."""

import pytest

import report_bundles
import tpcc_bundles
from reported import Reported, reported


@pytest.fixture(scope="session")
def ramdisk() -> Reported:
    """Disk and memory, five trials each, nothing wrong."""
    return reported(report_bundles.ramdisk())


@pytest.fixture(scope="session")
def studied() -> Reported:
    """The same, with a published study."""
    return reported(report_bundles.with_reference(report_bundles.ramdisk()))


@pytest.fixture(scope="session")
def probed() -> Reported:
    """The same, with what the I/O probe measured."""
    return reported(report_bundles.with_io(report_bundles.with_reference(report_bundles.ramdisk())))


@pytest.fixture(scope="session")
def mixed() -> Reported:
    """The same of two types of transactions, lookup and transfer."""
    return reported(report_bundles.with_types(report_bundles.ramdisk()))


@pytest.fixture(scope="session")
def new_orders() -> Reported:
    """The same of the TPC-C-derived workload."""
    return reported(tpcc_bundles.of_tpcc())


@pytest.fixture(scope="session")
def trouble() -> Reported:
    """The same with a failed trial (4), an excluded one (7), and a gap, errors and a failed check in trial 1."""
    return reported(report_bundles.ramdisk(trouble=True))


@pytest.fixture(scope="session")
def many() -> Reported:
    """60 variants, 3 trials of 5 s each."""
    return reported(report_bundles.many(repeats=3, seconds=5))
