//! Statements whose answers are read: results become variables, and a transaction may not have been prepared.

use crate::client::{Client, State};
use crate::context::Context;
use crate::errors::{ClientError, Failure};
use crate::program::Step;

impl Client {
    /// A part of a result that is kept.
    #[inline(never)] // what few statements need must not make the way of all others longer
    pub(super) fn keep(
        &mut self,
        tag: u8,
        body: &[u8],
        context: &mut Context<'_>,
        now_ns: u64,
    ) -> Result<(), ClientError> {
        if tag == b'C' && self.commit.is_some() {
            self.statement_answered(body, context, now_ns);
        }
        if self.state == State::Batch {
            return self.take_answer(tag, body, context, now_ns);
        }
        match tag {
            b'T' => self.results.columns(body),
            b'D' => self.results.row(body),
            _ => {
                let is_rollback = tag == b'C' && body == b"ROLLBACK\0" && self.results_ended == 0;
                if is_rollback && self.has_not_prepared(context, now_ns) {
                    return Ok(());
                }
                self.with_results(context, false)?;
                self.result_ended();
            }
        }
        Ok(())
    }

    /// The server answered `ROLLBACK` and no error: whether that was to `PREPARE TRANSACTION`, which has failed then.
    pub(super) fn has_not_prepared(&mut self, context: &mut Context<'_>, now_ns: u64) -> bool {
        let statement = self.statement(context);
        let prepares = statement.is_some_and(|id| context.programs.statements[id].prepares);
        if prepares {
            self.statement_failed(Failure::without_commit(), None, context, now_ns);
        }
        prepares
    }

    /// The statement has ended well.
    pub(super) fn kept(&mut self, context: &Context<'_>) -> Result<(), ClientError> {
        // The last result counts, and is the one reported.
        self.results_ended = self.results_ended.saturating_sub(1);
        self.with_results(context, true)
    }

    fn with_results(&mut self, context: &Context<'_>, is_all: bool) -> Result<(), ClientError> {
        let programs = context.programs;
        let step = programs.programs[self.script].steps.get(self.step);
        let Some(Step::Statement(id)) = step else {
            return Ok(());
        };
        let Some(keep) = &programs.statements[*id].keep else {
            return Ok(());
        };
        let (symbols, variables) = (&programs.symbols, &mut self.variables);
        let kept = if is_all {
            self.results.end_all(keep, symbols, variables)
        } else {
            self.results.end(keep, symbols, variables)
        };
        kept.map_err(|error| self.error(context, error))
    }
}
