"""Titles and explanations of the sections, shared by the terminal, Markdown and, by report.json, the HTML page."""

from plinth.model.section_texts import SectionText, SectionTexts
from plinth.model.sweep import Sweep

_KNEE = (
    "Two straight lines are fitted to the medians on logarithmic axes; the knee is where they meet and bend downwards, with an "
    "interval for its position."
)
_LAW = (
    "The scalability law is Gunther's, for clients in a closed loop: contention is work that waits its turn, coherency is what each "
    "pair of clients costs."
)

SECTIONS = SectionTexts(
    published=SectionText(
        title="Comparison with the published study",
        note="The published results come from another machine: compare orders and ratios rather than transactions per second.",
    ),
    objectives=SectionText(
        title="Objectives",
        note="Met or not met: the whole 95 % interval lies on that side of the bound. Of a latency the figure is the median of the "
        "trials' own percentiles.",
    ),
    groups=SectionText(
        title="Groups",
        note="Variants that share a letter were not told apart; a is of the fastest. All pairs, corrected together at 5 %.",
    ),
    pareto=SectionText(
        title="Trade-offs",
        note="A variant is dominated if another is shown better in one metric at least and worse by more than 5 % in none, by "
        "intervals that hold together for all ratios of all metrics. What the noise leaves open stays on the front.",
    ),
    sweep=SectionText(
        title="Scaling",
        note="Throughput over the levels of each numeric factor.",
    ),
    effects=SectionText(
        title="Effects of factors",
        note="Each effect is a ratio, averaged over the levels of all other factors on a logarithmic scale; intervals are not "
        "corrected for the number of effects. For a numeric factor: the highest level compared with the lowest. An interaction "
        "of 1x means that one factor has the same effect at every level of the other.",
    ),
    durability=SectionText(
        title="Power cuts",
        note="After the trials the power of the variant's emulated disks was cut while clients worked; the server recovered, and "
        "every acknowledged commit was looked for, then every table, index and page was checked. The bound is the exact one of "
        "Clopper and Pearson.",
    ),
    new_orders=SectionText(
        title="New orders per minute",
        note="NOPM: new orders that were committed, a minute of the measured phase; those that are rolled back on purpose are not "
        "counted. The median of the trials with its 95 % interval.",
    ),
    transactions=SectionText(
        title="Transactions by type",
        note="Share: of all transactions done, beside the share that the workload asks for. Throughput is the median of the trials "
        "with its 95 % interval; each percentile is the median of the trials' own, of transactions "
        "that were done. Retried: transactions that were tried more than once.",
    ),
    bottlenecks=SectionText(
        title="Bottleneck by variant",
        note="Judged from where the clients' time went in the measured phase, sampled ten times a second, and from how busy "
        "the resources were.",
    ),
    server_work=SectionText(
        title="Server work per transaction", note="From the server's own counters, for the measured phase."
    ),
    process_io=SectionText(
        title="I/O by process group",
        note="From /proc/PID/io, for the measured phase: medians of the trials with their 95 % intervals. Read: fetched from "
        "storage, not found in the page cache. Written: passed to the kernel by write(), whether or not it has reached "
        "storage. Groups that read and wrote nothing are left out.",
    ),
    ceilings=SectionText(
        title="Commit ceiling",
        note="Measured by the fsync probe before any server was started there. One client commits at most once per flush; "
        "several clients can share a flush. A transaction costs more than its flush.",
    ),
    io=SectionText(
        title="Storage I/O measured by fio",
        note="Measured on a file of its own while no server ran. Empty: before anything was put on the storage; loaded: with "
        "all datasets; measured: after the last trial. Latency is from submission to completion.",
    ),
    loaded=SectionText(title="Loaded datasets", note="Time to load each cluster, and the size of what was loaded."),
    standbys=SectionText(
        title="Standbys",
        note="The base backup as pg_basebackup took it, with its checkpoint and its fsync of all files. The states are those of "
        "pg_stat_replication before each trial, once the standby had replayed all WAL. Lags are the means of its columns in the measured time "
        "(lowest to highest of the variants), without the moments in which nothing was behind; the charts of the trials show them over time.",
    ),
    network=SectionText(
        title="Emulated network",
        note="Links between nodes that replication uses. Round trips of packets of 64 bytes were measured before each load, through "
        "the same links; what they take beyond the delays is the emulation and this machine, and is named where it is more than 100 us or 2 % "
        "each way. How late packets came, after they were due, is of all of them since the network was made.",
    ),
    commits=SectionText(
        title="Commits that wait for standbys",
        note="Predicted: a commit of the variant that waits for no standby, the round trip to the standby that decides, and a durable write "
        "there, each measured by itself; medians. Of several clients also what it makes, by simulation, that flushes are shared on both "
        "sides. Beside it the median of the commits. The replay, for which remote_apply waits, is taken to need no time.",
    ),
    outages=SectionText(
        title="Faults and failover",
        note="Without writes is the clients' own time, from the last commit that was acknowledged before the fault to the first that was "
        "sent and acknowledged after it. Its parts are timed by the steps of the failover: detect from the fault on, promote until the "
        "standby is out of recovery, first write until a client's commit is acknowledged there. Lost commits are those of the ledger "
        "that the node which takes writes in the end does not have.",
    ),
    flashbacks=SectionText(
        title="Flashback",
        note="Snapshots of the data directory that its storage took while the load ran. When the load had ended the files went back to each, "
        "the last first, and the server recovered. Undone are the commits that came after the snapshot, as meant. Every commit that was "
        "acknowledged before it was begun has to be there, none that was sent after it was taken, and the database has to be whole.",
    ),
    machines=SectionText(
        title="Load machines",
        note="Each machine's own part of the load; medians over the trials that count. Busy is the share of their time in which the "
        "threads of its load engine worked or waited for a CPU, and the share of its cores' time that was not idle. A trial in which "
        "machines began further apart than allowed is excluded.",
    ),
    endurance=SectionText(
        title="Endurance",
        note="Medians of the trials' measured phases with their 95 % intervals; bytes per day assume the rate shown. "
        "Amplification: bytes written by the devices directly below the file system for each byte that PostgreSQL wrote to "
        "what is stored on them. A disk that others use counts their writes, too; devices on top of one another each count "
        "the same bytes.",
    ),
    wear=SectionText(
        title="Written to disks", note="From the kernel's counters, which include the writes of other programs."
    ),
)


def sections_of(sweep: Sweep | None) -> SectionTexts:
    """Return the texts of a report: knees and the scalability law are explained only where one was found or fitted."""
    curves = sweep.curves if sweep else ()
    found = [
        *([_KNEE] if any(curve.knee for curve in curves) else []),
        *([_LAW] if any(curve.fit and curve.fit.holds for curve in curves) else []),
    ]
    note = " ".join([SECTIONS.sweep.note, *found])
    return SECTIONS.model_copy(update={"sweep": SECTIONS.sweep.model_copy(update={"note": note})})
