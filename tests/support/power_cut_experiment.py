"""Experiments on small emulated disks whose power is cut."""

DISK = """\
[storage.{name}]
kind = "emulated"
profile = "sata-ssd"
size = "512MiB"
{further}
"""
TPCB = 'kind = "tpcb"\nscale = 1', 'builtin = "tpcb-like"'
TPCB_WITH_LEDGER = TPCB[0], f"{TPCB[1]}\nledger = true"
LEDGER = 'kind = "none"', 'builtin = "ledger"'
EXPERIMENT = """\
spec = 1
name = "cuts"
question = "Are acknowledged commits kept?"

{storages}
[dataset]
{dataset}
[workload]
{workload}
clients = 2
[matrix]
storage = [{names}]
[measure]
warmup = "100ms"
duration = "300ms"
repeats = 1
aa = false
probe = "0s"
[durability]
cuts = {cuts}
within = "200ms"
{durability}
"""


def experiment(*, cuts: int = 4, durability: str = "", load: tuple[str, str] = TPCB, **storages: str) -> str:
    """`load` is what [dataset] and [workload] say."""
    return EXPERIMENT.format(
        storages="".join(DISK.format(name=name, further=further) for name, further in storages.items()),
        names=", ".join(f'"{name}"' for name in storages),
        cuts=cuts,
        durability=durability,
        dataset=load[0],
        workload=load[1],
    )
