//! The form `procedures`: a transaction is one call of a procedure in the server, which sends nothing but the inputs.
//!
//! A call is a whole transaction, which ends with the round trip, so that the procedure of a new order can roll it back.
//! With a ledger, its two statements follow the call in the same round trip and so in the same transaction.

use super::Profile;
use super::inputs::{Customer, Input, NewOrderInput};
use super::sequence::{Next, Part, Sequence, Step};
use crate::compiled::answers::{AnswerError, Answers};
use crate::compiled::batch::{Batch, Parameter};
use crate::compiled::commit_ledger;
use crate::compiled::workload::{CompiledStatement, TransactionType};
use Parameter::{Cents, Integer, Integers, LastName, Null};

/// What makes the procedures, in place of those that there are.
pub const PROCEDURES: [&str; 5] = [
    include_str!("procedures/new_order.sql"),
    include_str!("procedures/payment.sql"),
    include_str!("procedures/order_status.sql"),
    include_str!("procedures/delivery.sql"),
    include_str!("procedures/stock_level.sql"),
];

const CALL: u8 = 0;
const LEDGER_INSERT: u8 = 1;
const LEDGER_UPDATE: u8 = 2;

const PARTS: &[Part] = &[
    Part::Repeat(CALL),
    Part::Repeat(LEDGER_INSERT),
    Part::Repeat(LEDGER_UPDATE),
];

/// The types of transactions, in the order of [`super::Transactions`].
pub(super) fn transactions(keeps_ledger: bool) -> Vec<TransactionType> {
    vec![
        TransactionType::writing(
            "new-order",
            statements("tpcc_new_order", 7, 7, keeps_ledger),
        ),
        TransactionType::writing("payment", statements("tpcc_payment", 7, 24, keeps_ledger)),
        TransactionType::reading(
            "order-status",
            statements("tpcc_order_status", 4, 11, false),
        ),
        TransactionType::writing("delivery", statements("tpcc_delivery", 2, 1, keeps_ledger)),
        TransactionType::reading("stock-level", statements("tpcc_stock_level", 3, 1, false)),
    ]
}

/// A call with so many parameters, followed by so many that the procedure only sets.
fn statements(
    procedure: &str,
    given: usize,
    set: usize,
    keeps_ledger: bool,
) -> Vec<CompiledStatement> {
    let given_texts = (1..=given).map(|number| format!("${number}"));
    let set_texts = std::iter::repeat_n("NULL".to_owned(), set);
    let parameters: Vec<_> = given_texts.chain(set_texts).collect();
    let sql = format!("CALL {procedure}({})", parameters.join(", "));
    let mut statements = vec![CompiledStatement::new(sql, given)];
    if keeps_ledger {
        statements.extend(commit_ledger::statements());
    }
    statements
}

#[derive(Debug)]
pub(super) struct Call {
    input: Input,
    keeps_ledger: bool,
    sequence: Sequence,
}

impl Call {
    /// With `keeps_ledger`, a transaction that writes leaves the ledger's rows.
    pub(super) fn new(input: Input, keeps_ledger: bool) -> Self {
        let writes = match &input {
            Input::NewOrder(order) => !order.is_rolled_back,
            Input::Payment(_) | Input::Delivery(_) => true,
            Input::OrderStatus(_) | Input::StockLevel(_) => false,
        };
        Self {
            input,
            keeps_ledger: keeps_ledger && writes,
            sequence: Sequence::default(),
        }
    }

    fn call(&self, batch: &mut Batch<'_>) {
        let call = usize::from(CALL);
        match &self.input {
            Input::NewOrder(input) => call_new_order(input, batch),
            Input::Payment(input) => {
                let [number, name] = by(input.customer);
                let parameters = [
                    Integer(input.warehouse),
                    Integer(input.district),
                    Integer(input.customer_warehouse),
                    Integer(input.customer_district),
                    Cents(input.amount_cents),
                    number,
                    name,
                ];
                batch.add(call, &parameters);
            }
            Input::OrderStatus(input) => {
                let [number, name] = by(input.customer);
                let (warehouse, district) = (Integer(input.warehouse), Integer(input.district));
                batch.add(call, &[warehouse, district, number, name]);
            }
            Input::Delivery(input) => {
                batch.add(call, &[Integer(input.warehouse), Integer(input.carrier)]);
            }
            Input::StockLevel(input) => {
                let (warehouse, district) = (Integer(input.warehouse), Integer(input.district));
                batch.add(call, &[warehouse, district, Integer(input.threshold)]);
            }
        }
    }
}

/// The lines go in the order in which their stock is changed; that of an unused item is the last.
fn call_new_order(input: &NewOrderInput, batch: &mut Batch<'_>) {
    let order = input.order_of_stock();
    let order = &order[..input.count];
    let mut columns = [[0; plinth_tpcc::MOST_LINES as usize]; 4];
    for (row, &place) in order.iter().enumerate() {
        let line = &input.lines[usize::from(place)];
        let number = i64::from(place) + 1;
        let values = [number, line.item, line.supply_warehouse, line.quantity];
        for (column, value) in columns.iter_mut().zip(values) {
            column[row] = value;
        }
    }
    let [numbers, items, supply_warehouses, quantities] = columns
        .each_ref()
        .map(|column| Integers(&column[..input.count]));
    let parameters = [
        Integer(input.warehouse),
        Integer(input.district),
        Integer(input.customer),
        numbers,
        items,
        supply_warehouses,
        quantities,
    ];
    batch.add(usize::from(CALL), &parameters);
    batch.rolls_back |= input.is_rolled_back;
}

/// A customer's number and last name, of which the other is null.
fn by(customer: Customer) -> [Parameter<'static>; 2] {
    match customer {
        Customer::Number(number) => [Integer(number), Null],
        Customer::Name(name) => [Null, LastName(name)],
    }
}

impl Profile for Call {
    fn next_step(&mut self) -> Next {
        let ledger = self.keeps_ledger;
        self.sequence.next(PARTS, |statement| match statement {
            LEDGER_INSERT | LEDGER_UPDATE => usize::from(ledger),
            _ => 1,
        })
    }

    fn send(&self, step: Step, client: usize, batch: &mut Batch<'_>) {
        match step.statement {
            LEDGER_INSERT | LEDGER_UPDATE => {
                commit_ledger::add(usize::from(step.statement), client, batch);
                batch.commits = true;
            }
            _ => self.call(batch),
        }
    }

    fn take(&mut self, step: Step, answers: &Answers, place: usize) -> Result<(), AnswerError> {
        if step.statement != CALL {
            return Ok(());
        }
        let row = answers.row(place)?;
        match &self.input {
            Input::NewOrder(input) => {
                // A procedure that rolls back has no number to give.
                let order = row.integer(0)?;
                if (order == 0) == input.is_rolled_back {
                    return Ok(());
                }
                let wanted = if input.is_rolled_back {
                    "0 of an order that is rolled back"
                } else {
                    "the number of an order"
                };
                Err(AnswerError::WrongField {
                    column: 0,
                    found: order.to_string(),
                    wanted,
                })
            }
            Input::Payment(_) | Input::OrderStatus(_) | Input::StockLevel(_) => {
                row.integer(0).map(drop)
            }
            Input::Delivery(_) => row.text(0).map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_as_many_parameters_as_their_procedures() {
        for (transaction, sql) in transactions(false).iter().zip(PROCEDURES) {
            let call = &transaction.statements[0];
            let (procedure, values) = call
                .sql
                .strip_prefix("CALL ")
                .unwrap()
                .split_once('(')
                .unwrap();
            let header = sql.strip_prefix("CREATE OR REPLACE PROCEDURE ").unwrap();
            let (name, rest) = header.split_once('(').unwrap();
            let (parameters, _) = rest.split_once(')').unwrap();
            assert_eq!(name, procedure);
            let parameters: Vec<_> = parameters.split(',').map(str::trim).collect();
            let values: Vec<_> = values.trim_end_matches(')').split(", ").collect();
            assert_eq!(values.len(), parameters.len(), "{name}");
            for (value, parameter) in values.iter().zip(parameters) {
                // What is not given must be what the procedure sets.
                assert!(
                    *value != "NULL" || parameter.starts_with("INOUT "),
                    "{parameter}"
                );
            }
            assert_eq!(
                values.iter().filter(|value| value.starts_with('$')).count(),
                call.parameters
            );
        }
    }
}
