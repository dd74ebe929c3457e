//! A client's way through its script.

use std::cmp::Reverse;

use plinth_script::{Command, EvalError, Expr, Value};

use crate::client::{Client, State};
use crate::conditional::branch;
use crate::context::Context;
use crate::debugging;
use crate::errors::ClientError;
use crate::program::Step;
use crate::recorder::Outcome;

impl Client {
    /// Takes steps until one has to wait.
    pub(super) fn run(
        &mut self,
        context: &mut Context<'_>,
        now_ns: u64,
    ) -> Result<(), ClientError> {
        let programs = context.programs;
        let times_commands = context.recorder.times_commands();
        let mut has_ended_one = false;
        loop {
            let program = &programs.programs[self.script];
            let at = self.step;
            // What is timed begins no earlier than what was timed before it has ended.
            let now_ns = if times_commands {
                self.command_began_ns = context.clock.now_ns();
                self.command_began_ns
            } else {
                now_ns
            };
            match program.steps.get(self.step) {
                Some(Step::Meta(Command::Set { target, expr })) => {
                    let value = self.evaluate(self.step, expr, program.debugs);
                    let value = value.map_err(|error| self.error(context, error))?;
                    let slot = target.slot("set");
                    let slot = slot.map_err(|error| self.error(context, error))?;
                    self.variables.set(slot, value);
                    self.step += 1;
                }
                Some(Step::Statement(id)) if self.pipeline.is_open() => {
                    self.queue_statement(*id, context, now_ns)?;
                    continue;
                }
                Some(Step::Statement(id)) => return self.send_statement(*id, context, now_ns),
                Some(Step::Meta(Command::If { .. })) => {
                    let evaluate = |at, expr: &Expr| self.evaluate(at, expr, program.debugs);
                    let next = branch(&program.steps, at, evaluate);
                    self.step = next.map_err(|(at, error)| {
                        self.step = at; // perhaps an \elif, which is to be named
                        self.error(context, error)
                    })?;
                }
                Some(Step::Meta(Command::Elif { end, .. } | Command::Else { end })) => {
                    self.step = *end + 1;
                }
                Some(Step::StartPipeline(statements)) => {
                    if self.start_pipeline(statements.clone(), context)? {
                        return Ok(());
                    }
                }
                Some(Step::Compiled(compiled)) => {
                    if self.begin_compiled(*compiled, context, now_ns)? {
                        return Ok(());
                    }
                    continue;
                }
                Some(Step::Meta(Command::SyncPipeline)) => self.sync_pipeline(context)?,
                Some(Step::Meta(Command::EndPipeline)) => return self.end_pipeline(context),
                Some(Step::Meta(Command::Sleep(sleep))) => {
                    let sleep_us = sleep.microseconds(&self.variables);
                    let sleep_us = sleep_us.map_err(|error| self.error(context, error))?;
                    let until_ns = now_ns.saturating_add(sleep_us.saturating_mul(1_000));
                    self.state = State::Sleep { until_ns };
                    context.sleepers.push(Reverse((until_ns, self.index)));
                    return Ok(());
                }
                Some(Step::Meta(Command::Shell(shell) | Command::SetShell { shell, .. })) => {
                    return self.start_shell(shell, context);
                }
                Some(Step::Meta(_)) => self.step += 1,
                None => {
                    let ending = self.check_end(context);
                    if ending.is_err() && context.abort_on_error && !self.pipeline.is_open() {
                        // pgbench has counted the transaction when it sees that it is still open.
                        self.end_transaction(Outcome::Done, context, now_ns);
                        self.state = State::New;
                    }
                    ending?;
                    self.end_transaction(Outcome::Done, context, now_ns);
                    if !self.begin(context, now_ns)? {
                        return Ok(());
                    }
                    // A transaction that waits for nothing must not keep its thread forever.
                    if has_ended_one {
                        context.waiting_for_turn.push(self.index);
                        return Ok(());
                    }
                    has_ended_one = true;
                    continue;
                }
            }
            if times_commands {
                context.command_ended(self.script, at, self.command_began_ns);
            }
        }
    }

    /// What has to be so at the end of a script.
    pub(super) fn check_end(&self, context: &Context<'_>) -> Result<(), ClientError> {
        let programs = context.programs;
        let last = || {
            let mut statements = programs.statements.iter();
            let last = statements.rfind(|statement| statement.script == self.script);
            last.map_or(1, |statement| statement.line)
        };
        if self.pipeline.is_open() {
            let message = "end of script reached with pipeline open; end it with \\endpipeline";
            return Err(ClientError::script(last(), message));
        }
        if self.in_block {
            let message = "end of script reached without completing the last transaction; end it with COMMIT or ROLLBACK";
            return Err(ClientError::script(last(), message));
        }
        Ok(())
    }

    #[inline]
    pub(super) fn evaluate(
        &mut self,
        step: usize,
        expr: &Expr,
        debugs: bool,
    ) -> Result<Value, EvalError> {
        if debugs {
            let mut show = |value| debugging::show(self.script, step, value);
            return expr.eval_observed(&self.variables, &mut self.random, &mut show);
        }
        expr.eval(&self.variables, &mut self.random)
    }

    /// The current step cannot be taken.
    pub(super) fn error(&self, context: &Context<'_>, why: impl ToString) -> ClientError {
        let line = context.programs.programs[self.script].lines[self.step];
        ClientError::script(line, why.to_string())
    }

    #[inline]
    pub(super) fn send_statement(
        &mut self,
        id: usize,
        context: &mut Context<'_>,
        now_ns: u64,
    ) -> Result<(), ClientError> {
        let mut out = std::mem::take(&mut context.out);
        out.clear();
        let programs = context.programs;
        if let Some(recorded) = programs.statements[id].recorded {
            self.record_commit(recorded, context, now_ns)?;
        }
        programs.write(id, !self.prepared[id], &self.variables, &mut out);
        self.keeps = programs.statements[id].is_answer_read;
        if self.keeps {
            self.scanner.keep_rows(true);
            self.results.clear();
        }
        self.state = State::Statement;
        self.statement_began_ns = now_ns;
        self.results_ended = 0;
        let result = self.send(&out, context);
        context.out = out;
        result
    }

    #[inline]
    pub(super) fn send(
        &mut self,
        bytes: &[u8],
        context: &mut Context<'_>,
    ) -> Result<(), ClientError> {
        let Some(link) = &mut self.link else {
            return Err(ClientError::lost("there is no connection"));
        };
        let sent = link.send(bytes, &context.registry);
        context.bytes_sent +=
            sent.map_err(|error| ClientError::lost(format!("cannot send: {error}")))? as u64;
        Ok(())
    }
}
