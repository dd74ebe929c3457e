"""Probes: what a place can do by itself, before any server uses it.

`fsync` asks how long it takes to make a write durable; `plausible` whether that can be true; `notes` what the place means.
`io_jobs`, `job_file`, `own_file` and `fio` measure raw I/O.
"""
