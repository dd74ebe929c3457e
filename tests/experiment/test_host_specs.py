"""[host.NAME]: what reaches a machine, and what is no address of one."""

import pytest

from plinth.experiment import read_experiment_text
from plinth.model.errors import ExperimentError

TEXT = """\
spec = 1
name = "x"
question = "Which?"
[storage.far]
host = "db1"
kind = "directory"
[server]
storage = "far"
[workload]
builtin = "ledger"
[dataset]
kind = "none"
[host.db1]
"""


@pytest.mark.parametrize(
    ("keys", "destination", "port"),
    [
        ('address = "ssh://db1"', "db1", None),
        ('address = "ssh://bench@db1:2222"', "bench@db1", 2222),
        ('address = "ssh://[2001:db8::1]:22"', "2001:db8::1", 22),
    ],
)
def test_where_ssh_connects(keys, destination, port, tmp_path):
    (spec,) = read_experiment_text(TEXT + keys, "x.toml", tmp_path).experiment.host.values()
    assert (spec.ssh.destination, spec.ssh.port, spec.is_on_ray) == (destination, port, False)


@pytest.mark.parametrize("address", ["auto", "ray://head:10001"])
def test_a_machine_of_a_ray_cluster_survives_being_written_and_read(address, tmp_path):
    keys = f'address = "{address}"\nnode = "192.0.2.12"'
    experiment = read_experiment_text(TEXT + keys, "x.toml", tmp_path).experiment
    assert experiment.host["db1"].is_on_ray
    assert type(experiment).model_validate(experiment.model_dump(by_alias=True, exclude_none=True)) == experiment


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ('address = "db1"', 'allowed: "ssh://[USER@]HOST[:PORT]"'),
        ('address = "ssh://-oProxyCommand=x"', "allowed: "),
        ('address = "ssh://-u@db1"', "allowed: "),
        ('address = "ssh://db1:0"', "port: got 0"),
        ('address = "ssh://db1 x"', "allowed: "),
        ('address = "auto"', "node: "),
        ('address = "auto"\nnode = ""', "node"),
        ('address = "auto"\nnode = "a b"', "node"),
        ('address = "ssh://db1"\nnode = "192.0.2.12"', "node: got '192.0.2.12'; with ssh"),
        ('address = "auto"\nnode = "n"\nbecome = "sudo"', "become: "),
        ('address = "auto"\nnode = "n"\ncommand = "/opt/plinth"', "command: "),
        ('address = "ssh://db1"\ncommand = "plinth; rm -rf /"', "without arguments"),
        ('address = "ssh://db1"\nlisten_address = "0.0.0.0"', "one address of this machine"),
        ('address = "ssh://db1"\nlisten_address = "db1"', "a numeric address is needed"),
        ('address = "ssh://db1"\nlease = "1s"', "lease"),
    ],
)
def test_what_is_no_host(keys, said, tmp_path):
    with pytest.raises(ExperimentError) as caught:
        read_experiment_text(TEXT + keys, "x.toml", tmp_path)
    found = [f"{one.key}: {one.message}" for one in caught.value.problems]
    assert any(said in one for one in found), found
