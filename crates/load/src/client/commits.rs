//! How a client's commits are recorded in the ledger.

use plinth_wire::ServerError;

use crate::client::Client;
use crate::commit_ledger::{Class, LedgerError, Recorded};
use crate::context::Context;
use crate::errors::ClientError;

impl Client {
    /// A message with a `COMMIT`, or with a step of a two-phase commit, is about to be sent: what is not on record is not sent.
    pub(super) fn record_commit(
        &mut self,
        recorded: Recorded,
        context: &mut Context<'_>,
        now_ns: u64,
    ) -> Result<(), ClientError> {
        let Some(ledger) = &mut context.ledger else {
            return Err(self.error(context, "the ledger could not be begun"));
        };
        if self.commit.is_some() {
            let message = "a COMMIT is sent while another is not answered, of which the ledger keeps no record";
            return Err(self.error(context, message));
        }
        let is_end = recorded == Recorded::EndOfBlock;
        // The next transaction of the client waits for the row lock of its prepared one: that is always its last one.
        let number = self.ledger_number - u64::from(!is_end);
        match ledger.sent(self.number, number, now_ns, recorded) {
            Ok(slot) => self.commit = Some(slot),
            Err(error) => {
                context.control.fail_ledger(error);
                return Err(self.error(context, "the ledger cannot be written"));
            }
        }
        self.ledger_number += u64::from(is_end);
        self.give_ledger_number(context);
        Ok(())
    }

    /// A statement has ended well while a commit was on its way: was it that?
    #[inline(never)] // what few loads need must not make the way of all others longer
    pub(super) fn statement_answered(
        &mut self,
        tag: &[u8],
        context: &mut Context<'_>,
        now_ns: u64,
    ) {
        match tag {
            b"COMMIT\0" | b"COMMIT PREPARED\0" | b"ROLLBACK PREPARED\0" => {
                self.commit_answered(Class::Acknowledged, context, now_ns);
            }
            b"PREPARE TRANSACTION\0" => self.commit_answered(Class::Prepared, context, now_ns),
            // Of a block that had failed.
            b"ROLLBACK\0" => self.commit_answered(Class::Aborted, context, now_ns),
            _ => {}
        }
    }

    /// The server has said something in addition to its answers.
    #[cold]
    pub(super) fn noticed(&mut self, body: &[u8], context: &mut Context<'_>, now_ns: u64) {
        if self.commit.is_some() && ServerError::parse(body).is_synchronous_wait_cancelled() {
            self.commit_answered(Class::LocalOnly, context, now_ns);
        }
    }

    /// The commit on its way, if there is one, is answered.
    pub(super) fn commit_answered(&mut self, class: Class, context: &mut Context<'_>, now_ns: u64) {
        if let (Some(slot), Some(ledger)) = (self.commit.take(), &mut context.ledger) {
            let answered = ledger.answered(slot, class, now_ns);
            answered.unwrap_or_else(|error: LedgerError| context.control.fail_ledger(error));
        }
    }

    /// Scripts insert by variables.
    pub(super) fn give_ledger_number(&mut self, context: &Context<'_>) {
        if let Some(slot) = context.programs.ledger_number {
            let number = plinth_script::Value::Int(self.ledger_number as i64);
            self.variables.set(slot, number);
        }
    }
}
