//! How a client handles the server's replies.

use plinth_script::lossless;
use plinth_wire::{Frame, FrameError, ServerError};

use crate::client::{Client, State};
use crate::commit_ledger::Class;
use crate::context::Context;
use crate::errors::{ClientError, ErrorKind, Failure};
use crate::program::Step;

impl Client {
    pub(super) fn frames(
        &mut self,
        mut bytes: &[u8],
        context: &mut Context<'_>,
        now_ns: u64,
    ) -> Result<(), ClientError> {
        while self.is_open() {
            let whole = self.scanner.next_whole(&mut bytes);
            match whole.map_err(no_frame)? {
                Some(frame) => self.frame(frame, context, now_ns)?,
                None if bytes.is_empty() => break,
                None => self.split_frame(&mut bytes, context, now_ns)?,
            }
        }
        self.scanner.keep_rows(self.keeps);
        Ok(())
    }

    /// A frame that comes in pieces. The scanner lends it, while handling it changes the rest of the client.
    #[cold]
    fn split_frame(
        &mut self,
        bytes: &mut &[u8],
        context: &mut Context<'_>,
        now_ns: u64,
    ) -> Result<(), ClientError> {
        let mut scanner = std::mem::take(&mut self.scanner);
        if let Some(frame) = scanner.next(bytes).map_err(no_frame)? {
            self.frame(frame, context, now_ns)?;
        }
        scanner.keep_rows(self.keeps);
        self.scanner = scanner;
        Ok(())
    }

    #[inline(always)] // measured: a call for each frame costs as much as most frames do
    fn frame(
        &mut self,
        frame: Frame<'_>,
        context: &mut Context<'_>,
        now_ns: u64,
    ) -> Result<(), ClientError> {
        match frame.tag {
            b'Z' => self.ready(frame.body.first() != Some(&b'I'), context, now_ns)?,
            b'E' => self.server_error(
                ServerError::parse(lossless::from_bytes(frame.body).as_bytes()),
                context,
                now_ns,
            )?,
            b'1' => self.parsed(context),
            b'C' | b'I' | b'D' | b'T' if self.keeps => {
                self.keep(frame.tag, frame.body, context, now_ns)?;
            }
            b'C' | b'I' if self.pipeline.is_open() => {
                if frame.body == b"ROLLBACK\0" {
                    self.pipeline_step_rolled_back(context, now_ns)?;
                } else {
                    self.pipeline_step_ended(context, now_ns)?;
                }
            }
            b'C' | b'I' => {
                if self.commit.is_some() {
                    self.statement_answered(frame.body, context, now_ns);
                }
                self.result_ended();
            }
            b'N' => self.noticed(frame.body, context, now_ns),
            b'G' | b'H' | b'W' => {
                return Err(ClientError::protocol(
                    "the statement is a COPY, which a load cannot run",
                ));
            }
            // Rows, and what a server may say at any time.
            b'2' | b'3' | b'D' | b'n' | b's' | b'T' | b't' | b'A' | b'S' => {}
            other => {
                return Err(ClientError::protocol(format!(
                    "unexpected message '{}'",
                    other as char
                )));
            }
        }
        Ok(())
    }

    /// Errors are reported with the number of the query, which a `ROLLBACK` after them must not change. In a pipeline, pgbench
    /// counts the ends of parts since the last statement.
    #[inline]
    pub(super) fn result_ended(&mut self) {
        self.results_ended += u32::from(self.failed.is_none());
    }

    /// The server is ready for the next query.
    pub(super) fn ready(
        &mut self,
        in_block: bool,
        context: &mut Context<'_>,
        now_ns: u64,
    ) -> Result<(), ClientError> {
        self.in_block = in_block;
        // What was sent has begun a transaction of its own at least; only the end of a pipeline can have nothing before it.
        let has_run = !self.pipeline.is_open() || self.pipeline.take_has_run();
        context.server_transactions += u64::from(has_run && !in_block);
        let keeps = std::mem::take(&mut self.keeps);
        if self.pipeline.is_open() {
            if !self.pipeline.synced() {
                return Err(ClientError::protocol(
                    "ReadyForQuery, and the end of the pipeline was not sent",
                ));
            }
            self.result_ended();
        }
        match (self.state, self.failed) {
            _ if !self.pipeline.is_answered() => Ok(()),
            (State::Preparing, None) => {
                self.pipeline.open();
                self.command_ended(context);
                self.run(context, now_ns)
            }
            (State::Pipeline, None) => {
                self.pipeline.close();
                self.command_ended(context);
                self.run(context, now_ns)
            }
            (State::Batch, None) => self.batch_ended(context, now_ns),
            (State::Statement, None) => {
                if keeps {
                    self.kept(context)?;
                }
                if let Some(Step::Statement(id)) =
                    context.programs.programs[self.script].steps.get(self.step)
                {
                    context
                        .recorder
                        .statement(*id, now_ns - self.statement_began_ns);
                }
                self.step += 1;
                self.run(context, now_ns)
            }
            (State::Statement | State::Preparing | State::Pipeline | State::Batch, Some(_))
                if in_block =>
            {
                self.pipeline.close();
                self.state = State::Rollback;
                let rollback = std::mem::take(&mut context.rollback);
                let result = self.send(&rollback, context);
                context.rollback = rollback;
                result
            }
            (
                State::Statement
                | State::Preparing
                | State::Pipeline
                | State::Batch
                | State::Rollback,
                Some((kind, place)),
            ) => {
                self.pipeline.close();
                self.after_failure(kind, place, context, now_ns)
            }
            // A part of a pipeline was so long that it was sent before its end was reached.
            _ if self.pipeline.is_open() => Ok(()),
            _ => Err(ClientError::protocol(
                "ReadyForQuery, and no statement was sent",
            )),
        }
    }

    pub(super) fn server_error(
        &mut self,
        error: ServerError,
        context: &mut Context<'_>,
        now_ns: u64,
    ) -> Result<(), ClientError> {
        let sqlstate = (!error.sqlstate.is_empty()).then(|| error.sqlstate.clone());
        let is_asked = matches!(self.state, State::Statement | State::Preparing);
        if error.is_fatal() || !(is_asked || self.pipeline.is_open()) {
            let failure = Failure {
                kind: ErrorKind::ConnectionLost,
                sqlstate,
                message: error.to_string(),
                in_full: Some(error.in_full(None)),
            };
            return Err(ClientError {
                failure,
                line: None,
            });
        }
        // In a batch, what follows the statement that failed is left out, and with it the COMMIT.
        self.commit_answered(Class::Aborted, context, now_ns);
        let kind = ErrorKind::of_sqlstate(&error.sqlstate);
        let failure = Failure {
            kind,
            sqlstate,
            message: error.to_string(),
            in_full: None,
        };
        self.statement_failed(failure, Some(&error), context, now_ns);
        Ok(())
    }

    /// The statement under way has failed: by an error of the server, or by an answer that says so.
    pub(super) fn statement_failed(
        &mut self,
        failure: Failure,
        error: Option<&ServerError>,
        context: &mut Context<'_>,
        now_ns: u64,
    ) {
        // What fails in a later part of a pipeline fails because of the first.
        if self.failed.is_some() {
            return;
        }
        if context.tells_errors() {
            let in_full = error.map(|error| error.in_full(self.sent(context).as_deref()));
            self.failure = Some(Box::new(Failure {
                in_full,
                ..failure.clone()
            }));
        }
        let (kind, place) = (failure.kind, self.place(context));
        context.recorder.error(place, failure, now_ns);
        self.failed = Some((kind, place));
    }

    /// The text of the statement that the server is at; none when it was prepared before.
    fn sent(&self, context: &Context<'_>) -> Option<String> {
        let id = self.statement(context)?;
        if self.prepared[id] {
            return None;
        }
        context.programs.sent(id, &self.variables)
    }

    /// `ParseComplete`: the statement under way is prepared, also when it fails later.
    pub(super) fn parsed(&mut self, context: &Context<'_>) {
        if let Some(id) = self.statement(context) {
            self.prepared[id] = context.programs.keeps_prepared();
        }
    }
}

fn no_frame(error: FrameError) -> ClientError {
    ClientError::protocol(error.to_string())
}
