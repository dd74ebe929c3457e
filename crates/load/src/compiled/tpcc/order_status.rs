//! Order-Status: a customer's last order (clause 2.6).

use super::Profile;
use super::inputs::{Customer, OrderStatusInput};
use super::sequence::{Next, Part, Sequence, Step};
use crate::compiled::answers::{AnswerError, Answers};
use crate::compiled::batch::{Batch, Parameter};
use crate::compiled::workload::{CompiledStatement, TransactionType};
use Parameter::{Integer, LastName};

const BEGIN: u8 = 0;
const BY_NAME: u8 = 1;
const BY_NUMBER: u8 = 2;
const ORDER: u8 = 3;
const LINES: u8 = 4;
const COMMIT: u8 = 5;

const PARTS: &[Part] = &[
    Part::Repeat(BEGIN),
    Part::Repeat(BY_NAME),
    Part::Repeat(BY_NUMBER),
    Part::Wait,
    Part::Repeat(ORDER),
    Part::Wait,
    Part::Repeat(LINES),
    Part::Repeat(COMMIT),
];

pub(super) fn transaction(begin: &'static str) -> TransactionType {
    let statements = vec![
        CompiledStatement::new(begin, 0),
        CompiledStatement::new(
            "SELECT c_id, c_balance, c_first, c_middle, c_last FROM customer \
             WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3 ORDER BY c_first",
            3,
        ),
        CompiledStatement::new(
            "SELECT c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
            3,
        ),
        CompiledStatement::new(
            "SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = $3 \
             ORDER BY o_id DESC LIMIT 1",
            3,
        ),
        CompiledStatement::new(
            "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
             WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3",
            3,
        ),
        CompiledStatement::new("COMMIT", 0),
    ];
    TransactionType::reading("order-status", statements)
}

#[derive(Debug)]
pub(super) struct OrderStatus {
    input: OrderStatusInput,
    sequence: Sequence,
    customer: i64,
    order: i64,
}

impl OrderStatus {
    pub(super) fn new(input: OrderStatusInput) -> Self {
        Self {
            customer: input.customer.number(),
            input,
            sequence: Sequence::default(),
            order: 0,
        }
    }
}

impl Profile for OrderStatus {
    fn next_step(&mut self) -> Next {
        let is_by_name = self.input.customer.is_by_name();
        self.sequence.next(PARTS, |statement| match statement {
            BY_NAME => usize::from(is_by_name),
            BY_NUMBER => usize::from(!is_by_name),
            _ => 1,
        })
    }

    fn send(&self, step: Step, _client: usize, batch: &mut Batch<'_>) {
        let statement = usize::from(step.statement);
        let (warehouse, district) = (Integer(self.input.warehouse), Integer(self.input.district));
        match step.statement {
            BY_NAME => {
                if let Customer::Name(name) = self.input.customer {
                    batch.add(statement, &[warehouse, district, LastName(name)]);
                }
            }
            BY_NUMBER | ORDER => {
                batch.add(statement, &[warehouse, district, Integer(self.customer)]);
            }
            LINES => batch.add(statement, &[warehouse, district, Integer(self.order)]),
            _ => batch.add(statement, &[]),
        }
    }

    fn take(&mut self, step: Step, answers: &Answers, place: usize) -> Result<(), AnswerError> {
        match step.statement {
            BY_NAME => self.customer = answers.middle_row(place)?.integer(0)?,
            BY_NUMBER => {
                answers.row(place)?;
            }
            ORDER => self.order = answers.row(place)?.integer(0)?,
            _ => {}
        }
        Ok(())
    }
}
