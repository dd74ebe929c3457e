"""A fleet: one load that the engines of several machines drive together.

    coordinator (this process)                  agent, one a machine: `plinth agent`
    start     an executor starts the agents     hello: versions, cores
    prepare   each gets its part of the load    connects its clients
    go        T0, by the agent's own clock      waits for T0, then runs
    poll      seconds, histograms, its CPU      ...
    stop, collect                               result

Nothing but these messages passes between them: no sample, no tick. What an agent runs is `plinth.load`'s engine with a `part`:
the threads of one load are dealt to the agents in turn, so that seeds are disjoint and the i-th arrival goes to agent i modulo N.
Another driver has a process for each client, and the i-th client that goes to agent i modulo N.

protocol.py     the messages, and the connection that carries them (frames and TLS: `system/framed_tls.py`)
agent.py        what runs on each machine: its load, its part of a dataset's rows, its ledger of commits
split.py        how clients and threads are divided
asking.py       requests to all agents, and the offsets of their clocks
merge.py        one result of all agents': counts of equal buckets are added
task.py         what all agents do together: opened, polled, closed
load.py         `FleetLoad`, a `plinth.load.LoadDriver`
copying.py      `FleetCopy`: the rows of a dataset, sent by all machines
ledger.py       commit ledgers, collected from all
executors/      how agents are started: on this machine, by ssh, by Ray; executor.py is what they have in common
check.py        whether the machines of a fleet can drive a load
"""
