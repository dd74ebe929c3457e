"""Probes, which measure storage without a server.

`fsync_probe` measures the latency of durable writes; `plausible` checks whether it is physically possible.
`io_jobs`, `job_file`, `own_file` and `fio` measure raw I/O.
"""
