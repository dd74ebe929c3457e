//! The lifecycle of runs whose threads end well, break, panic, or are stopped.

use std::io;
use std::time::Duration;

use plinth_thread::lifecycle::{
    Arrival, Job, Lifecycle, LifecycleError, Run, StartGate, StopReason,
};

#[derive(Debug, Default)]
struct Gate {
    arrived: usize,
    all_arrived: bool,
}

impl StartGate for Gate {
    type Verdict = bool;
    const OPENS_ON_STOP: bool = true;

    fn all_arrived(&mut self, is_stopping: bool) {
        self.all_arrived = !is_stopping;
    }

    fn verdict(&self, _: bool) -> bool {
        self.all_arrived
    }
}

/// What a thread does.
#[derive(Debug, Clone, Copy)]
enum Act {
    End,
    UntilStopped,
    Break,
    PanicBeforeTheGate,
    Panic,
    WaitForAStopBeforeTheGate,
}

#[derive(Debug)]
struct Acts {
    lifecycle: Lifecycle<Gate, (usize, bool)>,
}

impl Acts {
    fn wait_for_a_stop(&self) {
        while !self.lifecycle.is_stopping() {
            std::thread::yield_now();
        }
    }
}

impl Job for Acts {
    type Gate = Gate;
    type Input = Act;
    type Report = (usize, bool);
    type Output = Vec<(usize, bool)>;

    fn lifecycle(&self) -> &Lifecycle<Gate, (usize, bool)> {
        &self.lifecycle
    }

    fn work(
        &self,
        number: usize,
        act: Act,
        arrival: &mut Arrival<'_, Gate, (usize, bool)>,
    ) -> io::Result<Option<(usize, bool)>> {
        match act {
            Act::PanicBeforeTheGate => panic!("before the gate"),
            Act::WaitForAStopBeforeTheGate => self.wait_for_a_stop(),
            _ => {}
        }
        let has_begun = arrival.arrive(|gate| gate.arrived += 1);
        match act {
            Act::Break => return Err(io::Error::other("no disk")),
            Act::Panic => panic!("behind the gate"),
            Act::UntilStopped => self.wait_for_a_stop(),
            _ => {}
        }
        Ok(Some((number, has_begun)))
    }
}

type Result<T> = std::result::Result<T, LifecycleError>;

fn new_run(threads: usize) -> Run<Acts> {
    let lifecycle = Lifecycle::new(threads, Gate::default());
    Run::new("acts", Acts { lifecycle })
}

fn start(run: &Run<Acts>, acts: &[Act]) -> Result<()> {
    run.start(|_| Ok(acts.to_vec()), || true, |_| Ok(()))
}

fn sorted(run: &Run<Acts>) -> Result<Vec<(usize, bool)>> {
    let result = run.result(|_, mut reports| {
        reports.sort_unstable();
        Ok::<_, LifecycleError>(reports)
    })?;
    Ok(result.to_vec())
}

fn ends(run: &Run<Acts>) -> bool {
    run.wait(Duration::from_secs(60), || true)
}

fn broken(run: &Run<Acts>) -> String {
    match sorted(run) {
        Err(LifecycleError::Broken(message)) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn threads_begin_together_and_give_one_result() -> Result<()> {
    let run = new_run(3);
    assert!(!run.has_ended());
    start(&run, &[Act::End; 3])?;
    let arrived = run.job().lifecycle().with_gate(|gate| gate.arrived);
    assert_eq!(arrived, 3);
    assert!(ends(&run) && run.has_ended());
    let expected = vec![(0, true), (1, true), (2, true)];
    assert_eq!(sorted(&run)?, expected);
    assert_eq!(sorted(&run)?, expected, "again");
    Ok(())
}

#[test]
fn calls_at_the_wrong_time_are_errors() -> Result<()> {
    let run = new_run(1);
    let state = |result: Result<()>| match result {
        Err(LifecycleError::State(message)) => message,
        other => panic!("{other:?}"),
    };
    assert!(state(sorted(&run).map(drop)).contains("was not started"));
    start(&run, &[Act::UntilStopped])?;
    assert!(!run.wait(Duration::ZERO, || true));
    assert!(state(sorted(&run).map(drop)).contains("has not ended"));
    assert!(state(start(&run, &[Act::End])).contains("started before"));
    run.stop();
    assert!(ends(&run));
    assert_eq!(sorted(&run)?, [(0, true)]);
    Ok(())
}

#[test]
fn a_start_that_could_not_be_prepared_may_be_tried_again() -> Result<()> {
    let run = new_run(1);
    let refused = run.start(
        |_| Err(LifecycleError::State("not yet")),
        || true,
        |_| Ok(()),
    );
    assert!(refused.is_err() && !run.job().lifecycle().is_started());
    assert!(run.wait(Duration::MAX, || true), "nothing runs");
    start(&run, &[Act::End])
}

#[test]
fn a_thread_that_breaks_stops_the_others_and_is_the_result() -> Result<()> {
    for (act, message) in [
        (Act::Break, "no disk"),
        (Act::Panic, "a thread panicked"),
        (Act::PanicBeforeTheGate, "a thread panicked"),
    ] {
        let run = new_run(2);
        start(&run, &[Act::UntilStopped, act])?;
        assert!(ends(&run), "{act:?}");
        let reason = run.job().lifecycle().stop_reason();
        assert!(matches!(reason, Some((StopReason::ThreadFailed, _))));
        assert_eq!(broken(&run), message);
        assert_eq!(broken(&run), message, "again");
    }
    Ok(())
}

#[test]
fn a_start_that_is_no_longer_waited_for_is_stopped() -> Result<()> {
    let run = new_run(2);
    let acts = vec![Act::UntilStopped, Act::WaitForAStopBeforeTheGate];
    run.start(|_| Ok::<_, LifecycleError>(acts), || false, |_| Ok(()))?;
    assert!(ends(&run));
    let reason = run.job().lifecycle().stop_reason();
    assert!(matches!(reason, Some((StopReason::Requested, _))));
    assert_eq!(sorted(&run)?, [(0, false), (1, false)]);
    Ok(())
}
