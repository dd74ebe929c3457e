//! `tpcc`: the five transactions of the TPC-C-derived workload, as clauses 2.4 to 2.8 of the TPC-C specification, revision
//! 5.11, describe them.
//!
//! This workload is derived from the TPC-C Benchmark and is not comparable to published TPC-C Benchmark results, as this
//! implementation does not comply with all requirements of the TPC-C Benchmark.

mod call;
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
use call::Call;
pub use call::PROCEDURES;
use delivery::Delivery;
use inputs::{Draws, Input, Terminal};
use new_order::NewOrder;
pub(crate) use options::Tpcc;
use options::{Form, Isolation};
use order_status::OrderStatus;
use payment::Payment;
use sequence::{Next, Step};
use stock_level::StockLevel;

/// The workload of a run.
#[derive(Debug)]
struct Transactions {
    draws: Draws,
    form: Form,
    isolation: Isolation,
    keeps_ledger: bool,
}

impl Workload for Transactions {
    fn transactions(&self) -> Vec<TransactionType> {
        let (begin, ledger) = (self.isolation.begin(), self.keeps_ledger);
        if self.form == Form::Procedures {
            return call::transactions(ledger);
        }
        vec![
            new_order::transaction(begin, ledger),
            payment::transaction(begin, ledger),
            order_status::transaction(begin),
            delivery::transaction(begin, ledger),
            stock_level::transaction(begin),
        ]
    }

    fn session_options(&self) -> Option<&'static str> {
        // A call is a whole transaction, and there is no BEGIN that could name its isolation.
        (self.form == Form::Procedures).then(|| self.isolation.session_option())
    }

    fn client(&self, number: usize) -> Box<dyn WorkloadClient> {
        Box::new(TpccClient {
            draws: self.draws,
            terminal: self.draws.terminal(number),
            form: self.form,
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
    form: Form,
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
    Call(Call),
}

impl Transaction {
    fn new(input: Input, form: Form, ledger: bool) -> Self {
        match input {
            input if form == Form::Procedures => Self::Call(Call::new(input, ledger)),
            Input::NewOrder(input) => Self::NewOrder(NewOrder::new(input, ledger)),
            Input::Payment(input) => Self::Payment(Payment::new(input, ledger)),
            Input::OrderStatus(input) => Self::OrderStatus(OrderStatus::new(input)),
            Input::Delivery(input) => Self::Delivery(Delivery::new(input, ledger)),
            Input::StockLevel(input) => Self::StockLevel(StockLevel::new(input)),
        }
    }
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
        let home = self.draws.home(&self.terminal, random);
        let input = self.draws.input(transaction, home, random);
        self.transaction = Transaction::new(input, self.form, self.keeps_ledger);
    }

    fn next(&mut self, answers: &Answers, batch: &mut Batch<'_>) -> Result<(), AnswerError> {
        let Self {
            sent,
            form,
            terminal,
            ..
        } = self;
        let mut exchange = Exchange {
            sent,
            pipeline: *form != Form::Statements,
            client: terminal.number,
        };
        match &mut self.transaction {
            Transaction::None => Ok(()),
            Transaction::NewOrder(profile) => exchange.advance(profile, answers, batch),
            Transaction::Payment(profile) => exchange.advance(profile, answers, batch),
            Transaction::OrderStatus(profile) => exchange.advance(profile, answers, batch),
            Transaction::Delivery(profile) => exchange.advance(profile, answers, batch),
            Transaction::StockLevel(profile) => exchange.advance(profile, answers, batch),
            Transaction::Call(profile) => exchange.advance(profile, answers, batch),
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
