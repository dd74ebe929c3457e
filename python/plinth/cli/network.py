"""Commands that emulate a network between network namespaces, and change its links."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from plinth.cli.changes import parse_changes, validated
from plinth.cli.options import AsJson
from plinth.cli.printing import print_json, print_plain
from plinth.model.errors import UsageError

if TYPE_CHECKING:
    from plinth.model.network import Direction, NodePlace

_EXAMPLE = """
Example for a shell (as root): two namespaces, 5 ms away from each other in each direction.

  for n in 1 2; do
    ip netns add n$n
    ip -n n$n tuntap add dev plinth0 mode tun
    ip -n n$n address add 10.119.0.$n/24 dev plinth0
    ip -n n$n link set plinth0 up
  done
  plinth network serve --control /tmp/net \\
      --node a=/run/netns/n1:plinth0:10.119.0.1 --node b=/run/netns/n2:plinth0:10.119.0.2 &
  plinth network set /tmp/net delay=5ms
  ip netns exec n1 ping 10.119.0.2
  plinth network set /tmp/net partitioned=true --from a --to b
  kill %1; ip netns delete n1; ip netns delete n2
"""

network = App(
    name="network",
    help="Emulate a network between network namespaces: delay, jitter, loss, rate, partitions.",
    help_epilogue=_EXAMPLE,
    help_format="plaintext",
)

Socket = Annotated[Path, Parameter(help="The network's control socket.")]


@network.command
def serve(
    *,
    node: Annotated[
        tuple[str, ...],
        Parameter(
            help="NAME=NAMESPACE:DEVICE:ADDRESS: the file of a network namespace, a persistent TUN device in it, and the IPv4 "
            "address of that. Two or more.",
        ),
    ],
    control: Annotated[Path, Parameter(help="Path of the control socket.")],
    label: Annotated[str, Parameter(help="Whose it is, for those who look at processes.")] = "plinth-network",
    seed: Annotated[int, Parameter(help="Seed of jitter and loss.")] = 1,
) -> int:
    """Forward packets in the foreground, until SIGTERM or Ctrl-C arrives. As yet, links neither delay nor lose.

    One line of JSON on stdout says that it is ready.
    """
    from plinth.model.network import NetworkConfig, NetworkStatus
    from plinth.network.daemon import serve as serve_network

    def ready(found: NetworkStatus) -> None:
        print_json(json.dumps({"ready": True, "pid": found.pid, "control": found.control}), flush=True)

    places = tuple(map(_place, node))
    given = {"label": label, "control": str(control.absolute()), "seed": seed, "nodes": places}
    serve_network(validated(NetworkConfig, given, {"seed": "--seed"}), ready)
    return 0


@network.command
def status(socket: Socket, /, *, as_json: AsJson = False) -> int:
    """Show each direction of each link with its counters, and how late packets were."""
    from plinth.model.units import format_duration
    from plinth.network.daemon import NetworkControl

    found = NetworkControl(socket).status()
    if as_json:
        print_json(found.model_dump_json(indent=1))
        return 0
    print_plain(f"{found.label}: {', '.join(f'{node.name} {node.address}' for node in found.nodes)}, pid {found.pid}")
    for link in found.links:
        counted = ", ".join(f"{name} {count}" for name, count in link.counters.model_dump().items())
        print_plain(f"  {link.sender} to {link.receiver}: {link.settings.words}; {counted}")
    late = found.lateness
    p50, p99, most = (format_duration(ns / 1e9) for ns in (late.p50_ns, late.p99_ns, late.max_ns))
    print_plain(f"  late: p50 {p50}, p99 {p99}, max {most} of {late.packets} packets")
    return 0


@network.command(name="set")
def set_links(
    socket: Socket,
    changes: Annotated[
        tuple[str, ...],
        Parameter(help="Such as delay=5ms jitter=1ms loss=0.1% rate=100Mbit/s queue=1MiB partitioned=true."),
    ],
    /,
    *,
    sender: Annotated[str | None, Parameter(name="--from", help="Only from this node.")] = None,
    receiver: Annotated[str | None, Parameter(name="--to", help="Only to this node.")] = None,
) -> int:
    """Change all links, or some, for packets that are sent from now on, and show the result."""
    from plinth.model.network import LinkChanges, all_directions
    from plinth.network.daemon import NetworkControl

    wanted: LinkChanges = validated(LinkChanges, parse_changes(changes), {})
    control = NetworkControl(socket)
    names = [node.name for node in control.status().nodes]
    for name in (sender, receiver):
        if name not in (None, *names):
            raise UsageError(f"no node {name!r}; there are {', '.join(names)}", where="network set")
    chosen: list[Direction] = [
        one
        for one in all_directions(names)
        if (sender is None or one.sender == sender) and (receiver is None or one.receiver == receiver)
    ]
    control.change(dict.fromkeys(chosen, wanted))
    for link in control.status().links:
        print_plain(f"{link.sender} to {link.receiver}: {link.settings.words}")
    return 0


def _place(words: str) -> "NodePlace":
    """Parse NAME=NAMESPACE:DEVICE:ADDRESS."""
    from plinth.model.network import NodePlace

    name, equals, place = words.partition("=")
    namespace, first, rest = place.partition(":")
    device, second, address = rest.partition(":")
    if not (equals and first and second):
        raise UsageError(
            f"--node: got {words!r}, NAME=NAMESPACE:DEVICE:ADDRESS is needed",
            hint="as in a=/run/netns/n1:plinth0:10.119.0.1",
        )
    return NodePlace(name=name, namespace=namespace, device=device, address=address)
