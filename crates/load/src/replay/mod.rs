//! Replays a recorded workload: a class of statements takes the place of a script, a statement that of a transaction.
//!
//! A statement is due at its time in the recording divided by the speed, and its latency counts from then: a stall of the
//! server shows in all statements that were due meanwhile (there is no coordinated omission). A statement that its session sent
//! right after the one before, within what the times of a log resolve, is sent when that has ended: otherwise a transaction would
//! last longer than it did, and hold its locks. Without a speed, each session does so with all of its statements.

mod ahead;
mod answer;
mod connection;
mod player;
mod statement;
