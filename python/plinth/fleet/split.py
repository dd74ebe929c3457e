"""How a load is divided among the machines of a fleet."""

from plinth.model.errors import UsageError
from plinth.model.load_config import LoadConfig, LoadPart


def threads_of_fleet(clients: int, threads: int, machines: int) -> int:
    """Return the threads of a load on `machines`, `threads` on each: no more than clients, and where possible equally many on each."""
    return min(threads * machines, max(clients // machines, 1) * machines, clients)


def parts_of(config: LoadConfig, machines: int) -> list[LoadConfig]:
    """Return the part of each machine of a load whose `threads` are for each machine. Raises UsageError with fewer clients than machines."""
    if config.clients < machines:
        raise UsageError(
            f"got {config.clients} for a fleet of {machines} machines; each needs a client",
            where="workload.clients",
            hint="more clients, or fewer machines",
        )
    threads = threads_of_fleet(config.clients, config.threads, machines)
    return [
        config.model_copy(update={"threads": threads, "part": LoadPart(number=number, of=machines)})
        for number in range(machines)
    ]


def clients_of(part: LoadConfig) -> tuple[int, int]:
    """Return the clients and the threads of a part, as `plinth_script::Seeds` deals clients to threads."""
    own = threads_of(part)
    base, more = divmod(part.clients, part.threads)
    return sum(base + (thread < more) for thread in own), len(own)


def threads_of(part: LoadConfig) -> range:
    """Return the numbers of a part's threads among those of the whole load."""
    assert part.part is not None, "it is a part"
    return range(part.part.number, part.threads, part.part.of)
