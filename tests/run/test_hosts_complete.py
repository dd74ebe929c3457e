"""Near and far are siblings: what a protocol asks for is on both sides, or the import of their modules fails."""

from abc import ABC, abstractmethod
from pathlib import Path

import pytest

from plinth.common.complete import complete
from plinth.observe.sampler import LocalSampler, Sampler
from plinth.run.host import Host
from plinth.run.hosts import remote_object
from plinth.run.hosts.calls import Method
from plinth.run.hosts.remote_copies import RemoteCopy, RemoteSnapshot
from plinth.run.hosts.remote_files import RemoteFiles
from plinth.run.hosts.remote_host import RemoteHost
from plinth.run.hosts.remote_object import RemoteObject, remote
from plinth.run.hosts.remote_patroni import RemotePatroniMachine
from plinth.run.hosts.remote_sampler import RemoteSampler
from plinth.run.hosts.remote_server import RemoteServer, RemoteStandby
from plinth.run.hosts.remote_storage import RemoteStorage
from plinth.run.local_host import LocalHost
from plinth.server.copies.live_snapshot import LiveSnapshot, LocalSnapshot
from plinth.server.copies.loaded_copy import LoadedCopy, LocalCopy
from plinth.server.integrity.server_files import LocalServerFiles, ServerFiles
from plinth.server.node import Server, Standby
from plinth.server.replication.patroni_machine import LocalPatroniMachine, PatroniMachine
from plinth.server.replication.standby import LocalStandby
from plinth.server.server import LocalServer
from plinth.storage import Storage
from plinth.storage.protocol import LocalStorage
from plinth.system.runner import Runner

SIBLINGS: list[tuple[type, type, type]] = [
    (Host, LocalHost, RemoteHost),
    (Server, LocalServer, RemoteServer),
    (Standby, LocalStandby, RemoteStandby),
    (Storage, LocalStorage, RemoteStorage),
    (ServerFiles, LocalServerFiles, RemoteFiles),
    (LoadedCopy, LocalCopy, RemoteCopy),
    (LiveSnapshot, LocalSnapshot, RemoteSnapshot),
    (PatroniMachine, LocalPatroniMachine, RemotePatroniMachine),
    (Sampler, LocalSampler, RemoteSampler),
]


@pytest.mark.parametrize(("protocol", "near", "far"), SIBLINGS)
def test_neither_side_inherits_from_the_other(protocol: type, near: type, far: type) -> None:
    assert protocol in near.__mro__ and protocol in far.__mro__
    assert not issubclass(far, near) and not issubclass(near, far)
    locals_ = {one for _, one, _ in SIBLINGS}
    assert not locals_ & set(far.__mro__)


class Wanted(ABC):
    @abstractmethod
    def weigh(self, path: Path, runner: Runner, factor: int = 2) -> int:
        """Return what it weighs."""

    @abstractmethod
    def carry(self) -> None:
        """Carry it."""


class Near(Wanted):
    def weigh(self, path: Path, runner: Runner, factor: int = 2) -> int:
        return len(str(path)) * factor

    def carry(self) -> None: ...


class Link:
    """Notes what it is asked for."""

    def call(self, on: tuple[str, ...], method: str, arguments: dict[str, object], report: object = None) -> object:
        return on, method, arguments, report


def _table(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    methods = {name: Method.of(getattr(Near, name), {}, 1.0, "work") for name in names}
    monkeypatch.setattr(remote_object, "METHODS", {"load": methods})


def test_a_method_of_the_table_is_one_of_the_far_side_and_others_are_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    _table(monkeypatch, "weigh", "carry")
    far = remote("load")(type("Far", (RemoteObject, Wanted), {}))(Link(), ("load", "x"))
    asked = {"path": Path("/p"), "factor": 3}
    assert far.weigh(Path("/p"), Runner(), factor=3) == (("load", "x"), "weigh", asked, None), "its runner stays here"
    with pytest.raises(TypeError, match="missing a required argument"):
        far.weigh()
    _table(monkeypatch, "weigh")
    with pytest.raises(TypeError, match="Far has no carry"):
        remote("load")(type("Far", (RemoteObject, Wanted), {}))


def test_a_near_side_without_a_method_is_an_error_before_one_is_made() -> None:
    assert complete(Near) is Near
    with pytest.raises(TypeError, match="Half has no weigh"):
        complete(type("Half", (Wanted,), {"carry": Near.carry}))
