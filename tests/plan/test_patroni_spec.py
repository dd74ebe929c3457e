"""Patroni's settings: what it takes, and how long a failover is expected to take with them."""

import re

import pytest
from pydantic import ValidationError

from plinth.model.patroni import PatroniSpec, etcd_machines


def test_with_its_defaults_the_loss_of_a_machine_takes_20_to_42_s() -> None:
    assert PatroniSpec().expected_s == (20, 42)
    assert PatroniSpec().words() == (
        "Patroni (ttl 30 s, loop_wait 10 s, retry_timeout 10 s, primary_start_timeout 300 s; "
        "published for the loss of a machine: 20 to 42 s)"
    )


def test_the_range_follows_the_settings() -> None:
    assert PatroniSpec(ttl=20, loop_wait=2, retry_timeout=3).expected_s == (18, 24)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"ttl": "29s"}, "no less than loop_wait + 2 * retry_timeout, 30 s"),
        ({"ttl": "19s"}, "greater than or equal to 20"),
        ({"loop_wait": "1500ms"}, "loop_wait: got 1.5 s; Patroni counts whole seconds"),
    ],
)
def test_what_patroni_would_change_on_its_own_is_refused(settings: dict[str, str], said: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(said)):
        PatroniSpec.model_validate(settings)


@pytest.mark.parametrize(
    ("nodes", "etcds"),
    [
        ([None, None], [None]),
        (["a", "a"], ["a"]),
        (["a", "b"], ["a", "b", None]),
        ([None, "a"], [None, "a", None]),
        (["a", "b", "c"], ["a", "b", "c"]),
        (["a", "b", "a", "c"], ["a", "b", "c"]),
        (["a", "b", "c", None], ["a", "b", "c", None, None]),
    ],
)
def test_there_is_an_etcd_on_each_machine_and_an_odd_number_of_them(
    nodes: list[str | None], etcds: list[str | None]
) -> None:
    assert etcd_machines(nodes) == etcds
