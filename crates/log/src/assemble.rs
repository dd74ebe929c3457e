//! Builds statements and sessions from the entries of a log. One statement may take several entries of its session.

use std::collections::HashMap;

use crate::entry::{Entry, Place, SessionKey, Severity};
use crate::message::{Executed, Said, read};
use crate::session::Session;
use crate::statement::{Form, Further, Sink};

/// Limit on the memory for statements that have not ended, so that a hostile log cannot exhaust it.
const MAX_HELD_BYTES: usize = 128 << 20;
/// How many sessions may be open at once; PostgreSQL allows 262,143 connections.
const MAX_OPEN_SESSIONS: usize = 1 << 18;

/// Puts entries together. They must come in the order of the log.
#[derive(Default)]
pub(crate) struct Assembler {
    sessions: HashMap<SessionKey, Session>,
    count: u32,
    /// Memory that the open statements of all sessions take.
    held_bytes: usize,
}

impl Assembler {
    /// Takes the next entry. Ignores entries of processes without a client.
    pub(crate) fn entry(&mut self, entry: &Entry<'_>, place: Place, sink: &mut impl Sink) {
        let before_bytes = self.held_bytes_of(entry.session);
        self.take(entry, place, sink);
        self.held_bytes += self.held_bytes_of(entry.session);
        self.held_bytes -= before_bytes;
        if self.sessions.len() > MAX_OPEN_SESSIONS {
            self.finish(sink);
        } else if self.held_bytes > MAX_HELD_BYTES {
            self.hand_over(sink);
        }
    }

    fn held_bytes_of(&self, key: SessionKey) -> usize {
        self.sessions.get(&key).map_or(0, Session::held_bytes)
    }

    /// Hands over all open statements. Their durations stay unknown.
    fn hand_over(&mut self, sink: &mut impl Sink) {
        let mut sessions: Vec<&mut Session> = self.sessions.values_mut().collect();
        sessions.sort_unstable_by_key(|session| session.facts.number);
        for session in sessions {
            session.hand_over(sink);
        }
        self.held_bytes = 0;
    }

    fn take(&mut self, entry: &Entry<'_>, place: Place, sink: &mut impl Sink) {
        if entry.session == SessionKey::None || !entry.is_of_client {
            return;
        }
        let said = read(&entry.message);
        let is_new_process = matches!(said, Said::ConnectionReceived)
            || (matches!(said, Said::ConnectionAuthorized(..))
                && !self.has_just_begun(entry.session));
        if is_new_process {
            self.end(entry.session, sink); // the pid is used again
        }
        if matches!(said, Said::Other)
            && entry.severity == Severity::Log
            && !self.sessions.contains_key(&entry.session)
        {
            return; // a process of the server, or a session with nothing to replay yet
        }
        let session = self.session(entry);
        session.facts.last_us = session.facts.last_us.max(entry.time_us);
        match said {
            Said::ConnectionReceived => session.facts.has_beginning = true,
            Said::ConnectionAuthorized(user, database, application) => {
                session.facts.has_beginning = true;
                session.is_authorized = true;
                if entry.end_is_known {
                    session.name(user, database, application);
                }
            }
            Said::Disconnection => {
                session.facts.has_end = true;
                self.end(entry.session, sink);
            }
            Said::ReplicationCommand => sink.further(Further::ReplicationCommand),
            Said::FastpathCall => {
                session.flush(None, sink);
                sink.further(Further::FastpathCall(place));
            }
            Said::Statement(text) => session.begin(Form::Simple, text, entry, place, sink),
            Said::Execute(Executed { is_fetch: true, .. }) => {
                session.flush(None, sink);
                sink.further(Further::Fetch);
            }
            Said::Execute(executed) => {
                session.begin(Form::of(&executed), executed.text, entry, place, sink)
            }
            Said::Duration(duration_us, timed) => {
                session.took(duration_us, &timed, entry, place, sink)
            }
            Said::Other if entry.severity != Severity::Log => {
                session.failed(entry, place, sink);
                // Its disconnection may follow.
                session.facts.has_end |= entry.severity == Severity::Fatal;
            }
            Said::Other => {}
        }
    }

    /// Ends all sessions that are left.
    pub(crate) fn finish(&mut self, sink: &mut impl Sink) {
        self.held_bytes = 0;
        let mut rest: Vec<Session> = self.sessions.drain().map(|(_, session)| session).collect();
        rest.sort_unstable_by_key(|session| session.facts.number);
        for session in rest {
            session.end(sink);
        }
    }

    /// Returns whether a session's process has started and its user is not authorized yet.
    fn has_just_begun(&self, key: SessionKey) -> bool {
        self.sessions
            .get(&key)
            .is_some_and(|session| session.facts.has_beginning && !session.is_authorized)
    }

    fn session(&mut self, entry: &Entry<'_>) -> &mut Session {
        let count = &mut self.count;
        let session = self.sessions.entry(entry.session).or_insert_with(|| {
            let mut session = Session::default();
            session.facts.number = *count;
            session.facts.first_us = entry.time_us;
            session.facts.last_us = entry.time_us;
            *count += 1;
            session
        });
        session.name(&entry.user, &entry.database, &entry.application);
        session
    }

    fn end(&mut self, key: SessionKey, sink: &mut impl Sink) {
        if let Some(session) = self.sessions.remove(&key) {
            session.end(sink);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::statement::{SessionFacts, Statement};

    /// Notes what it is given, a line each.
    #[derive(Default)]
    struct Notes(Vec<String>);

    impl Sink for Notes {
        fn statement(&mut self, one: &Statement<'_>) {
            let text = String::from_utf8_lossy(one.text);
            let detail = String::from_utf8_lossy(one.detail);
            let code = one
                .has_failed
                .then(|| {
                    one.sqlstate
                        .map(|code| String::from_utf8(code.to_vec()).unwrap())
                })
                .flatten();
            let form = if one.form == Form::Simple {
                "simple"
            } else {
                "extended"
            };
            self.0.push(format!(
                "{} {form} {text} [{detail}] at {} took {:?} failed {code:?}",
                one.session.number, one.start_us, one.duration_us
            ));
        }
        fn session(&mut self, one: &SessionFacts) {
            self.0.push(format!(
                "{} of {} from {} to {}, beginning {}, end {}, {} statements",
                one.number,
                String::from_utf8_lossy(&one.user),
                one.first_us,
                one.last_us,
                one.has_beginning,
                one.has_end,
                one.statements
            ));
        }
        fn further(&mut self, further: Further) {
            self.0.push(
                match further {
                    Further::FastpathCall(_) => "fastpath",
                    Further::Fetch => "fetch",
                    Further::LoneDuration => "lone duration",
                    Further::ReplicationCommand => "replication",
                    Further::OtherError => "other error",
                }
                .into(),
            );
        }
    }

    struct Log {
        assembler: Assembler,
        notes: Notes,
    }

    impl Log {
        fn new() -> Self {
            Self {
                assembler: Assembler::default(),
                notes: Notes::default(),
            }
        }

        fn put(&mut self, mut entry: Entry<'_>) {
            entry.end_is_known = true;
            self.assembler
                .entry(&entry, Place::default(), &mut self.notes);
        }

        /// An entry of process `pid`, with a detail.
        fn detailed(&mut self, pid: u32, time_us: i64, message: &str, detail: &str) {
            self.put(Entry {
                time_us,
                session: SessionKey::Pid(pid),
                message: Cow::Borrowed(message.as_bytes()),
                detail: Cow::Borrowed(detail.as_bytes()),
                is_of_client: true,
                ..Entry::default()
            });
        }

        fn said(&mut self, pid: u32, time_us: i64, message: &str) {
            self.detailed(pid, time_us, message, "");
        }

        fn error(&mut self, time_us: i64, severity: Severity, statement: &str) {
            self.put(Entry {
                time_us,
                session: SessionKey::Pid(1),
                severity,
                sqlstate: Some(*b"23505"),
                message: Cow::Borrowed(b"no"),
                statement: Cow::Borrowed(statement.as_bytes()),
                is_of_client: true,
                ..Entry::default()
            });
        }

        fn notes(mut self) -> Vec<String> {
            self.assembler.finish(&mut self.notes);
            self.notes.0
        }
    }

    #[test]
    fn statements_and_durations_in_entries_of_their_own() {
        let mut log = Log::new();
        log.said(1, 10_000, "statement: BEGIN");
        log.said(2, 10_500, "statement: SELECT 2");
        log.said(1, 11_000, "duration: 0.9 ms");
        log.said(1, 12_000, "statement: SELECT 1");
        log.said(1, 13_000, "statement: COMMIT");
        assert_eq!(
            log.notes(),
            [
                "0 simple BEGIN [] at 10000 took Some(900) failed None",
                "0 simple SELECT 1 [] at 12000 took None failed None",
                "0 simple COMMIT [] at 13000 took None failed None",
                "0 of  from 10000 to 13000, beginning false, end false, 3 statements",
                "1 simple SELECT 2 [] at 10500 took None failed None",
                "1 of  from 10500 to 10500, beginning false, end false, 1 statements",
            ]
        );
    }

    #[test]
    fn parsing_and_binding_belong_to_the_execution() {
        let mut log = Log::new();
        log.said(1, 10_000, "duration: 0.100 ms  parse s1: SELECT $1");
        log.said(1, 10_200, "duration: 0.050 ms  bind s1: SELECT $1");
        log.detailed(
            1,
            10_500,
            "duration: 0.200 ms  execute s1: SELECT $1",
            "parameters: $1 = '7'",
        );
        log.said(1, 20_000, "duration: 0.100 ms  bind s1: SELECT $1");
        log.detailed(
            1,
            20_500,
            "duration: 0.200 ms  execute s1: SELECT $1",
            "parameters: $1 = '8'",
        );
        let notes = log.notes();
        assert_eq!(
            notes[..2],
            [
                "0 extended SELECT $1 [parameters: $1 = '7'] at 9900 took Some(350) failed None",
                "0 extended SELECT $1 [parameters: $1 = '8'] at 19900 took Some(300) failed None",
            ]
        );
    }

    #[test]
    fn durations_of_parsing_come_before_what_log_statement_logs() {
        let mut log = Log::new();
        log.said(1, 10_000, "duration: 0.100 ms");
        log.said(1, 10_100, "duration: 0.050 ms");
        log.detailed(
            1,
            10_200,
            "execute <unnamed>: SELECT $1",
            "parameters: $1 = '7'",
        );
        log.said(1, 10_900, "duration: 0.700 ms");
        assert_eq!(
            log.notes()[0],
            "0 extended SELECT $1 [parameters: $1 = '7'] at 9900 took Some(850) failed None"
        );
    }

    #[test]
    fn errors_are_of_the_open_statement_or_of_one_that_was_not_logged() {
        let mut log = Log::new();
        log.said(1, 10_000, "statement: INSERT");
        log.error(10_500, Severity::Error, "INSERT");
        log.error(11_000, Severity::Error, "UPDATE");
        log.error(12_000, Severity::Fatal, "");
        assert_eq!(
            log.notes(),
            [
                "0 simple INSERT [] at 10000 took None failed Some(\"23505\")",
                "0 simple UPDATE [] at 11000 took None failed Some(\"23505\")",
                "other error",
                "0 of  from 10000 to 12000, beginning false, end true, 2 statements",
            ]
        );
    }

    #[test]
    fn the_parameters_of_an_execution_that_failed_are_those_of_its_binding() {
        let mut log = Log::new();
        log.said(1, 10_000, "duration: 0.100 ms  parse <unnamed>: INSERT $1");
        log.detailed(
            1,
            10_200,
            "duration: 0.050 ms  bind <unnamed>: INSERT $1",
            "parameters: $1 = '7'",
        );
        log.error(10_500, Severity::Error, "INSERT $1");
        assert_eq!(
            log.notes()[0],
            "0 extended INSERT $1 [parameters: $1 = '7'] at 9900 took None failed Some(\"23505\")"
        );
    }

    #[test]
    fn a_session_that_is_ended_while_idle_has_no_failed_statement() {
        let mut log = Log::new();
        log.said(1, 10_000, "statement: SELECT 1");
        log.error(20_000, Severity::Fatal, "");
        let notes = log.notes();
        assert_eq!(notes[0], "other error");
        assert_eq!(
            notes[1],
            "0 simple SELECT 1 [] at 10000 took None failed None"
        );
    }

    #[test]
    fn a_session_that_is_terminated_is_one_session() {
        let mut log = Log::new();
        log.said(1, 10_000, "statement: SELECT 1");
        log.said(1, 11_000, "duration: 1.0 ms");
        log.error(20_000, Severity::Fatal, "");
        log.said(
            1,
            20_100,
            "disconnection: session time: 0:00:00.300 user=b database=d host=x port=2",
        );
        assert_eq!(
            log.notes(),
            [
                "0 simple SELECT 1 [] at 10000 took Some(1000) failed None",
                "other error",
                "0 of  from 10000 to 20100, beginning false, end true, 1 statements",
            ]
        );
    }

    #[test]
    fn durations_of_statements_that_are_not_logged_are_of_no_other() {
        let mut log = Log::new();
        log.said(1, 10_000, "duration: 5.0 ms");
        log.said(1, 11_000, "statement: INSERT");
        log.said(1, 12_000, "duration: 1.0 ms");
        for time_us in [20_000, 21_000, 22_000, 23_000] {
            log.said(1, time_us, "duration: 0.1 ms");
        }
        log.said(1, 24_000, "execute <unnamed>: UPDATE");
        log.said(1, 24_500, "duration: 0.5 ms");
        log.said(1, 30_000, "duration: 9.0 ms");
        assert_eq!(
            log.notes()[..6],
            [
                "lone duration",
                "0 simple INSERT [] at 11000 took Some(1000) failed None",
                "lone duration",
                "lone duration",
                "0 extended UPDATE [] at 21900 took Some(700) failed None",
                "lone duration",
            ]
        );
    }

    #[test]
    fn a_pid_that_is_used_again_is_another_session() {
        let mut log = Log::new();
        log.said(1, 1_000, "connection received: host=x port=1");
        log.said(
            1,
            1_050,
            "connection authenticated: user=\"a\" method=trust (pg_hba.conf:1)",
        );
        log.said(1, 1_100, "connection authorized: user=a database=d");
        log.said(1, 1_200, "statement: SELECT 1");
        log.said(1, 2_000, "connection received: host=x port=2");
        log.said(1, 2_100, "connection authorized: user=b database=d");
        log.said(1, 2_200, "statement: SELECT 2");
        log.said(
            1,
            2_300,
            "disconnection: session time: 0:00:00.300 user=b database=d host=x port=2",
        );
        let notes = log.notes();
        assert_eq!(
            notes[1],
            "0 of a from 1000 to 1200, beginning true, end false, 1 statements"
        );
        assert_eq!(
            notes[3],
            "1 of b from 2000 to 2300, beginning true, end true, 1 statements"
        );
    }

    #[test]
    fn statements_that_do_not_end_are_not_all_held() {
        let mut log = Log::new();
        let long = format!("statement: {}", "x".repeat(MAX_HELD_BYTES / 4));
        for pid in 1..=6 {
            log.said(pid, 1_000, &long);
            assert!(log.assembler.held_bytes <= MAX_HELD_BYTES);
        }
        log.said(1, 2_000, "duration: 1.0 ms");
        log.said(1, 3_000, "statement: SELECT 1");
        log.said(1, 4_000, "duration: 2.0 ms");
        let notes = log.notes();
        assert_eq!(notes.iter().filter(|note| note.contains("xxx")).count(), 6);
        let last = "0 simple SELECT 1 [] at 3000 took Some(2000) failed None";
        assert!(
            notes.iter().any(|note| note == last),
            "a duration is of its own statement"
        );
    }

    #[test]
    fn what_is_not_of_a_client_or_says_nothing_is_no_session() {
        let mut log = Log::new();
        log.said(9, 1_000, "checkpoint starting: time");
        log.put(Entry {
            session: SessionKey::Pid(8),
            message: Cow::Borrowed(b"statement: SELECT 1"),
            ..Entry::default()
        });
        assert!(log.notes().is_empty());
    }

    #[test]
    fn fetches_fastpath_calls_and_plans_are_no_statements() {
        let mut log = Log::new();
        log.said(1, 1_000, "duration: 5.0 ms  execute s/c: SELECT 1");
        log.said(
            1,
            2_000,
            "duration: 5.0 ms  execute fetch from s/c: SELECT 1",
        );
        log.said(1, 3_000, "execute fetch from s/c: SELECT 1");
        log.said(1, 4_000, "fastpath function call: \"lo_open\" (OID 952)");
        log.said(1, 5_000, "duration: 5.0 ms  plan:\nQuery Text: SELECT 1");
        let notes = log.notes();
        assert_eq!(notes[1..4], ["fetch", "fetch", "fastpath"]);
        assert_eq!(notes.len(), 5);
    }
}
