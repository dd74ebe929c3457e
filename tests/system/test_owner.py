"""Which user runs servers, and whether their processes can be seen."""

import pytest

from plinth.model.errors import MissingCapability
from plinth.system.owner import Owner, check_sees_servers, current_user

OTHER = Owner("postgres", 4_000_000, 4_000_000, "")


def status(tmp_path, effective):
    file = tmp_path / "status"
    file.write_text(f"Name:\tplinth\nCapPrm:\t000001ffffffffff\nCapEff:\t{effective}\nCapBnd:\t0\n")
    return file


def test_root_of_an_unprivileged_container_is_refused_since_it_cannot_see_its_servers(tmp_path):
    with pytest.raises(
        MissingCapability, match=r"lacks the capability CAP_SYS_PTRACE here.* run as postgres"
    ) as caught:
        check_sees_servers(OTHER, status(tmp_path, "00000000a80425fb"))  # Docker's default
    assert "--cap-add SYS_PTRACE" in (caught.value.hint or "")


def test_root_with_the_capability_and_ordinary_users_are_not(tmp_path):
    check_sees_servers(OTHER, status(tmp_path, "0000000000080000"))
    check_sees_servers(current_user(), status(tmp_path, "0000000000000000"))
