//! The pgbench script language: parser, evaluator, random numbers and distributions. Pure: no I/O, no clock.
