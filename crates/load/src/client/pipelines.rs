//! Statements that are sent without waiting for the one before.

use std::ops::Range;

use plinth_wire::frontend::SYNC;

use crate::client::{Client, State};
use crate::context::Context;
use crate::errors::ClientError;
use crate::protocol::Protocol;

impl Client {
    /// `\startpipeline`; whether there is something to wait for. Statements that are not prepared yet are prepared
    /// before the pipeline begins, as pgbench does: in a pipeline, preparing one would take the snapshot that a
    /// `BEGIN ISOLATION LEVEL` in it must come before.
    pub(super) fn start_pipeline(
        &mut self,
        statements: Range<usize>,
        context: &mut Context<'_>,
    ) -> Result<bool, ClientError> {
        if context.programs.protocol == Protocol::Simple {
            let message = "cannot use pipeline mode with the simple query protocol";
            return Err(self.error(context, message));
        }
        if self.pipeline.is_open() {
            return Err(self.error(context, "already in pipeline mode"));
        }
        self.results_ended = 0;
        let programs = context.programs;
        let mut unprepared = statements
            .filter(|id| programs.keeps_prepared() && !self.prepared[*id])
            .peekable();
        if unprepared.peek().is_none() {
            self.pipeline.open();
            self.step += 1;
            return Ok(false);
        }
        let mut out = std::mem::take(&mut context.out);
        out.clear();
        unprepared.for_each(|id| programs.statements[id].write_prepare(&mut out));
        out.extend_from_slice(&SYNC);
        self.state = State::Preparing;
        let result = self.send(&out, context);
        context.out = out;
        result.map(|()| true)
    }

    /// A statement in a pipeline.
    pub(super) fn queue_statement(
        &mut self,
        id: usize,
        context: &mut Context<'_>,
        now_ns: u64,
    ) -> Result<(), ClientError> {
        let statement = &context.programs.statements[id];
        if let Some(keep) = &statement.keep {
            let message = format!("\\{} is not allowed in pipeline mode", keep.command());
            return Err(self.error(context, message));
        }
        if let Some(recorded) = statement.recorded {
            self.record_commit(recorded, context, now_ns)?;
        }
        let out = self.pipeline.queue(id, now_ns);
        statement.write_queued(!self.prepared[id], out, |hole, out| {
            self.variables.write_text(statement.params[hole], out)
        });
        self.step += 1;
        self.send_pipeline(false, context)
    }

    /// `\syncpipeline`
    pub(super) fn sync_pipeline(&mut self, context: &mut Context<'_>) -> Result<(), ClientError> {
        self.check_pipeline(context)?;
        self.pipeline.sync();
        self.step += 1;
        self.send_pipeline(false, context)
    }

    /// `\endpipeline`
    pub(super) fn end_pipeline(&mut self, context: &mut Context<'_>) -> Result<(), ClientError> {
        self.check_pipeline(context)?;
        self.pipeline.sync();
        self.state = State::Pipeline;
        self.send_pipeline(true, context)
    }

    fn check_pipeline(&self, context: &Context<'_>) -> Result<(), ClientError> {
        if self.pipeline.is_open() {
            return Ok(());
        }
        Err(self.error(context, "not in pipeline mode"))
    }

    pub(super) fn send_pipeline(
        &mut self,
        all: bool,
        context: &mut Context<'_>,
    ) -> Result<(), ClientError> {
        let Some(messages) = self.pipeline.unsent(all) else {
            return Ok(());
        };
        let result = self.send(&messages, context);
        self.pipeline.sent(messages);
        result
    }

    /// A statement in a pipeline was answered by `ROLLBACK`.
    #[cold]
    pub(super) fn pipeline_step_rolled_back(
        &mut self,
        context: &mut Context<'_>,
        now_ns: u64,
    ) -> Result<(), ClientError> {
        if !self.has_not_prepared(context, now_ns) {
            return self.pipeline_step_ended(context, now_ns);
        }
        self.pipeline.ended();
        Ok(())
    }

    /// A statement in a pipeline has ended well.
    #[inline]
    pub(super) fn pipeline_step_ended(
        &mut self,
        context: &mut Context<'_>,
        now_ns: u64,
    ) -> Result<(), ClientError> {
        let ended = self.pipeline.ended();
        let (id, queued_ns) =
            ended.ok_or_else(|| ClientError::protocol("a result, and no statement was sent"))?;
        context.recorder.statement(id, now_ns - queued_ns);
        if self.failed.is_none() {
            self.results_ended = 0;
        }
        Ok(())
    }
}
