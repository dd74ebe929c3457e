//! Reports of the threads of a load, and their sum.

use std::time::Instant;

use plinth_thread::CpuTime;

/// The result of one thread.
#[derive(Debug)]
pub(crate) struct Report<F> {
    pub(crate) rows: u64,
    pub(crate) failure: Option<F>,
    /// The stream ended before its work was done, because another thread failed or the run was stopped.
    pub(crate) is_withdrawn: bool,
    pub(crate) cpu: CpuTime,
    pub(crate) ended: Option<Instant>,
}

impl<F> Default for Report<F> {
    fn default() -> Self {
        Self {
            rows: 0,
            failure: None,
            is_withdrawn: false,
            cpu: CpuTime::default(),
            ended: None,
        }
    }
}

/// The result of all threads.
#[derive(Debug, Clone)]
pub(crate) struct Sum<F> {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    /// From the instant at which all threads were ready to the end of the last one.
    pub(crate) elapsed_ns: u64,
    pub(crate) user_cpu_ns: u64,
    pub(crate) system_cpu_ns: u64,
    /// The run was stopped before its work was done.
    pub(crate) interrupted: bool,
    /// Failures of threads, without the withdrawals that they caused.
    pub(crate) failures: Vec<F>,
}
