"""Probes, which measure storage without a server.

`fsync` measures the latency of durable writes; `plausible` checks whether it is physically possible; `notes` adds caveats.
`io_jobs`, `job_file`, `own_file` and `fio` measure raw I/O.
"""
