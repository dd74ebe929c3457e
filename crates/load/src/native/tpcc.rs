//! `tpcc`: the five transactions of the TPC-C-derived workload, as clauses 2.4 to 2.8 of the TPC-C specification, revision
//! 5.11, describe them.
//!
//! This workload is derived from the TPC-C Benchmark and is not comparable to published TPC-C Benchmark results, as this
//! implementation does not comply with all requirements of the TPC-C Benchmark.

mod delivery;
mod inputs;
mod new_order;
mod options;
mod order_status;
mod payment;
mod sequence;
mod stock_level;

use plinth_script::Prng;

use super::answers::{AnswerError, Answers};
use super::batch::Batch;
use super::workload::{TransactionType, Workload, WorkloadClient};
use delivery::Delivery;
use inputs::{Draws, Terminal};
use new_order::NewOrder;
pub(crate) use options::Tpcc;
use order_status::OrderStatus;
use payment::Payment;
use sequence::{Next, Step};
use stock_level::StockLevel;

/// The workload of a run.
#[derive(Debug)]
struct Transactions {
    draws: Draws,
    /// Statements that do not depend on an earlier answer are sent together.
    pipeline: bool,
    /// The statement that begins each transaction.
    begin: &'static str,
    keeps_ledger: bool,
}

impl Workload for Transactions {
    fn transactions(&self) -> Vec<TransactionType> {
        let (begin, ledger) = (self.begin, self.keeps_ledger);
        vec![
            new_order::transaction(begin, ledger),
            payment::transaction(begin, ledger),
            order_status::transaction(begin),
            delivery::transaction(begin, ledger),
            stock_level::transaction(begin),
        ]
    }

    fn client(&self, number: usize) -> Box<dyn WorkloadClient> {
        Box::new(TpccClient {
            draws: self.draws,
            terminal: self.draws.terminal(number),
            pipeline: self.pipeline,
            keeps_ledger: self.keeps_ledger,
            transaction: Transaction::None,
            sent: Vec::new(),
        })
    }
}

/// What a client keeps.
#[derive(Debug)]
struct TpccClient {
    draws: Draws,
    terminal: Terminal,
    pipeline: bool,
    keeps_ledger: bool,
    transaction: Transaction,
    /// The statements of the batch under way, in order.
    sent: Vec<Step>,
}

/// The transaction under way.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one a client, and a box would be allocated for each transaction"
)]
enum Transaction {
    None,
    NewOrder(NewOrder),
    Payment(Payment),
    OrderStatus(OrderStatus),
    Delivery(Delivery),
    StockLevel(StockLevel),
}

/// A transaction: which statements it sends in which order, and what it needs of their answers.
trait Profile {
    /// What comes next. Answers to all statements before a [`Next::Wait`] have been taken by then.
    fn next_step(&mut self) -> Next;

    /// Adds the statement of a step.
    fn send(&self, step: Step, client: usize, batch: &mut Batch<'_>);

    /// Takes the answer to a step, which was the statement at `place` of its batch.
    fn take(&mut self, step: Step, answers: &Answers, place: usize) -> Result<(), AnswerError>;
}

impl WorkloadClient for TpccClient {
    fn begin(&mut self, transaction: usize, random: &mut Prng) {
        self.sent.clear();
        let ledger = self.keeps_ledger;
        let home = self.draws.home(&self.terminal, random);
        self.transaction = match transaction {
            0 => Transaction::NewOrder(NewOrder::new(self.draws.new_order(home, random), ledger)),
            1 => Transaction::Payment(Payment::new(self.draws.payment(home, random), ledger)),
            2 => Transaction::OrderStatus(OrderStatus::new(self.draws.order_status(home, random))),
            3 => Transaction::Delivery(Delivery::new(self.draws.delivery(home, random), ledger)),
            _ => Transaction::StockLevel(StockLevel::new(self.draws.stock_level(home, random))),
        };
    }

    fn next(&mut self, answers: &Answers, batch: &mut Batch<'_>) -> Result<(), AnswerError> {
        let Self {
            sent,
            pipeline,
            terminal,
            ..
        } = self;
        let mut exchange = Exchange {
            sent,
            pipeline: *pipeline,
            client: terminal.number,
        };
        match &mut self.transaction {
            Transaction::None => Ok(()),
            Transaction::NewOrder(profile) => exchange.advance(profile, answers, batch),
            Transaction::Payment(profile) => exchange.advance(profile, answers, batch),
            Transaction::OrderStatus(profile) => exchange.advance(profile, answers, batch),
            Transaction::Delivery(profile) => exchange.advance(profile, answers, batch),
            Transaction::StockLevel(profile) => exchange.advance(profile, answers, batch),
        }
    }
}

/// An exchange with the server: the answers to one batch, and the statements of the next.
struct Exchange<'a> {
    sent: &'a mut Vec<Step>,
    pipeline: bool,
    client: usize,
}

impl Exchange<'_> {
    /// Takes the answers to the batch before, and adds the next statement; with `pipeline`, all that need no further answer.
    fn advance(
        &mut self,
        profile: &mut impl Profile,
        answers: &Answers,
        batch: &mut Batch<'_>,
    ) -> Result<(), AnswerError> {
        for (place, step) in self.sent.drain(..).enumerate() {
            profile.take(step, answers, place)?;
        }
        loop {
            match profile.next_step() {
                Next::Send(step) => {
                    profile.send(step, self.client, batch);
                    self.sent.push(step);
                    if !self.pipeline {
                        return Ok(());
                    }
                }
                Next::Wait if self.sent.is_empty() => {}
                Next::Wait | Next::Over => return Ok(()),
            }
        }
    }
}
