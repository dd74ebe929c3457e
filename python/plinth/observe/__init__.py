"""Observation during the load: the host, its devices and PostgreSQL's own statistics.

What cannot be read is a gap with its reason, never a zero. Counters are kept as read, since whenever they began;
those marked (gauge) are the state of the moment. Names are the kernel's and PostgreSQL's; times are in seconds and
end in `_s`, sizes in bytes; a figure that moved between versions has its newest name in all of them.

| source        | object             | metrics |
|---------------|--------------------|---------|
| host_cpu      | all                | user_s nice_s system_s idle_s iowait_s irq_s softirq_s steal_s guest_s guest_nice_s (guest is within user) |
| host_memory   | all                | (gauges) total_bytes free_bytes available_bytes buffers_bytes cached_bytes dirty_bytes writeback_bytes anon_bytes shmem_bytes slab_bytes page_tables_bytes swap_total_bytes swap_free_bytes |
| host          | all                | context_switches interrupts forks; (gauges) procs_running procs_blocked |
| host          | all                | major_faults swap_in_bytes swap_out_bytes dirtied_bytes written_bytes |
| host          | cpu, memory, io    | some_s full_s: pressure stall time |
| process_cpu   | a process group    | user_s system_s; of the server's groups also (gauge) processes |
| process_delay | a process group    | run_delay_s: runnable but not running, of the server's groups and the load engine |
| process_io    | a process group    | rchar wchar syscr syscw read_bytes write_bytes cancelled_write_bytes, as /proc/PID/io |
| device        | a kernel name      | reads reads_merged read_bytes read_time_s, the same of writes and discards; flushes flush_time_s; io_time_s weighted_io_time_s; (gauge) in_flight |
| md            | a kernel name      | (gauges) degraded mismatch_bytes syncing (0 or 1) synced_bytes to_sync_bytes |
| zfs           | arc, zil           | of the kernel's ZFS: (gauges) size_bytes target_bytes most_bytes; the counters of arcstats and zil |
| pg_database   | the load's database | the columns of pg_stat_database |
| pg_bgwriter   | all                | buffers_clean maxwritten_clean buffers_alloc; up to 16 also buffers_backend buffers_backend_fsync |
| pg_checkpointer | all              | num_timed num_requested write_time_s sync_time_s buffers_written; 17: restartpoints_*; 18: num_done slru_written |
| pg_wal        | all                | insert_lsn_bytes; from 14 wal_records wal_fpi wal_bytes wal_buffers_full wal_write wal_sync wal_write_time_s wal_sync_time_s; 19: wal_fpi_bytes |
| pg_io         | backend type/object/context | the columns of pg_stat_io, sizes as *_bytes; times of WAL are in pg_wal |
| pg_slru       | name               | the columns of pg_stat_slru |
| pg_archiver   | all                | archived_count failed_count |
| pg_replication | name/pid          | (gauges, of each standby) sent_behind_bytes and the same of write, flush, replay; write_lag_s flush_lag_s replay_lag_s |
| pg_slots      | slot               | (gauges) active retained_bytes safe_wal_bytes; from 14 spill_* stream_* total_* |
| pg_wal_receiver | all              | written_lsn_bytes flushed_lsn_bytes latest_end_lsn_bytes: on a standby |
| read_your_writes | standby         | 19: (gauges) wait_s: how long WAIT FOR LSN takes there for what the primary has flushed; timed_out: 1 where that is more than 0.9 s |
| pg_progress   | command and what of | (gauges) blocks_done blocks_total, or bytes_done bytes_total, of vacuum, analyze, create index, cluster, base backup, copy |
| pg_aios       | operation/target/state | 18: (gauges) handles length_bytes: I/O under way |
| pg_lock       | locktype           | 19: waits fastpath_exceeded wait_time_s of pg_stat_lock: waits longer than deadlock_timeout |
| pg_wait       | kind/type:event, or kind/CPU | (gauge) backends: processes of a kind; CPU: wait for nothing. Of clients' only the active |
| pg_wait       | all                | (gauges) active idle idle_in_transaction: clients' backends and parallel workers; looks |
| pg_size       | the load's database | (gauge) size_bytes |
| pg_wal_files  | all                | (gauges) files size_bytes |
| pg_table      | schema.table       | (gauges) heap_bytes index_bytes total_bytes n_live_tup n_dead_tup n_mod_since_analyze n_ins_since_vacuum; counts of pg_stat_user_tables |
| pg_statements | id, user, text     | the columns of pg_stat_statements, where it is loaded |

Everything is read once a second, but for pg_wait, which is the mean of ten looks a second (`looks` says how many), and
sizes, tables and statements, which are read every ten seconds. Of pg_io, pg_slru, pg_aios, pg_lock and pg_wait, what was zero
throughout is left out; what was seen once is there at every reading.

Process groups: backends, checkpointer, background writer, walwriter, autovacuum, walsender, walreceiver, io workers,
logger, other postgres, load engine, observer; CPU only: short-lived backends (sessions that came and went between two
readings, whose CPU time the postmaster has), rest of run (the run's other processes on this machine: other nodes, daemons of emulated
disks and networks), rest of host. Ours are left out of all PostgreSQL figures
that can be separated: the observer's connections are to another database than the load's, where there is one, but
for one that reads tables and statements, whose transactions are rolled back.

Events: checkpoint_start, checkpoint_end, checkpoint_warning, gap, gap_end.
"""
