//! Statements whose results become variables.

use crate::client::{Client, State};
use crate::context::Context;
use crate::errors::ClientError;
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
                self.with_results(context, false)?;
                self.result_ended();
            }
        }
        Ok(())
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
