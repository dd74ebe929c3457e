//! A client's way through a transaction that is compiled in.

use crate::client::{Client, State};
use crate::commit_ledger::{Class, Recorded};
use crate::compiled::Batch;
use crate::context::Context;
use crate::errors::ClientError;
use crate::program::{CompiledStep, Step};

impl Client {
    /// Begins the transaction; whether there is something to wait for. Its statements are prepared, and the pipeline that
    /// they go through is open.
    #[inline(never)] // it must not make the way of scripts longer
    pub(super) fn begin_compiled(
        &mut self,
        compiled: CompiledStep,
        context: &mut Context<'_>,
        now_ns: u64,
    ) -> Result<bool, ClientError> {
        self.answers.clear();
        self.workloads[compiled.workload].begin(compiled.transaction, &mut self.random);
        self.next_batch(compiled, context, now_ns)
    }

    /// Sends the next batch; `false` when there is none, because the transaction is over.
    fn next_batch(
        &mut self,
        compiled: CompiledStep,
        context: &mut Context<'_>,
        now_ns: u64,
    ) -> Result<bool, ClientError> {
        let mut batch = Batch {
            statements: &context.programs.statements,
            prepared: &self.prepared,
            pipeline: &mut self.pipeline,
            first_statement: compiled.first_statement,
            now_ns,
            len: 0,
            commits: false,
            rolls_back: false,
            ledger_number: self.ledger_number,
        };
        let added = self.workloads[compiled.workload].next(&self.answers, &mut batch);
        let (is_over, commits) = (batch.len == 0, batch.commits);
        self.rolls_back |= batch.rolls_back;
        added.map_err(|error| self.error(context, error))?;
        if is_over {
            self.pipeline.close();
            self.step += 1;
            return Ok(false);
        }
        self.answers.clear();
        self.keeps = true;
        self.scanner.keep_rows(true);
        self.results_ended = 0;
        self.state = State::Batch;
        self.pipeline.sync();
        if commits {
            self.record_commit(Recorded::EndOfBlock, context, now_ns)?;
        }
        self.send_pipeline(true, context)?;
        Ok(true)
    }

    /// A part of what the server answers to a batch.
    pub(super) fn take_answer(
        &mut self,
        tag: u8,
        body: &[u8],
        context: &mut Context<'_>,
        now_ns: u64,
    ) -> Result<(), ClientError> {
        match tag {
            b'T' => Ok(()),
            b'D' => {
                self.answers.add_row(body);
                Ok(())
            }
            _ => {
                self.answers.end_statement();
                self.pipeline_step_ended(context, now_ns)
            }
        }
    }

    /// All answers to a batch have come, and no statement failed.
    #[inline(never)]
    pub(super) fn batch_ended(
        &mut self,
        context: &mut Context<'_>,
        now_ns: u64,
    ) -> Result<(), ClientError> {
        // Not answered by a COMMIT's own end: the transaction has ended with the batch.
        if self.commit.is_some() {
            self.commit_answered(Class::Acknowledged, context, now_ns);
        }
        let step = context.programs.programs[self.script].steps.get(self.step);
        if let Some(Step::Compiled(compiled)) = step
            && self.next_batch(*compiled, context, now_ns)?
        {
            return Ok(());
        }
        self.run(context, now_ns)
    }
}
