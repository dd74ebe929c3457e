//! Delivery: the oldest undelivered order of each district of a warehouse is delivered (clause 2.7).
//!
//! Two deliveries of a warehouse may find the same order. The one that comes second deletes no row of NEW_ORDER once the
//! first has committed, and looks for the next order then; skipping rows that are locked would leave gaps when the first rolls
//! back. At stricter isolation it fails, and is tried again as a whole.

use plinth_tpcc::DISTRICTS;

use super::Profile;
use super::inputs::DeliveryInput;
use super::sequence::{Next, Part, Sequence, Step};
use crate::compiled::answers::{AnswerError, Answers};
use crate::compiled::batch::{Batch, Parameter};
use crate::compiled::commit_ledger;
use crate::compiled::workload::{CompiledStatement, TransactionType};
use Parameter::{Cents, Integer};

const BEGIN: u8 = 0;
const OLDEST: u8 = 1;
const TAKE: u8 = 2;
const ORDER: u8 = 3;
const LINES: u8 = 4;
const CUSTOMER: u8 = 5;
const COMMIT: u8 = 6;
const LEDGER_INSERT: u8 = 7;
const LEDGER_UPDATE: u8 = 8;

/// Orders are taken of one district after the other, in ascending order, so that two deliveries of a warehouse do not wait for
/// each other in turn; everything further is of all districts.
const PARTS: &[Part] = &[
    Part::Repeat(BEGIN),
    Part::Repeat(OLDEST),
    Part::Wait,
    Part::Repeat(TAKE),
    Part::Wait,
    Part::Repeat(ORDER),
    Part::Repeat(LINES),
    Part::Wait,
    Part::Repeat(CUSTOMER),
    Part::Repeat(LEDGER_INSERT),
    Part::Repeat(LEDGER_UPDATE),
    Part::Repeat(COMMIT),
];
const OLDEST_PART: usize = 1;
const AFTER_TAKE_PART: usize = 5;

const MOST: usize = DISTRICTS as usize;

pub(super) fn transaction(begin: &'static str, keeps_ledger: bool) -> TransactionType {
    let mut statements = vec![
        CompiledStatement::new(begin, 0),
        CompiledStatement::new(
            "SELECT no_o_id FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 ORDER BY no_o_id LIMIT 1",
            2,
        ),
        CompiledStatement::new(
            "DELETE FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 AND no_o_id = $3 RETURNING no_o_id",
            3,
        ),
        CompiledStatement::new(
            "UPDATE orders SET o_carrier_id = $1 WHERE o_w_id = $2 AND o_d_id = $3 AND o_id = $4 RETURNING o_c_id",
            4,
        ),
        CompiledStatement::new(
            "UPDATE order_line SET ol_delivery_d = localtimestamp WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3 \
             RETURNING ol_amount",
            3,
        ),
        CompiledStatement::new(
            "UPDATE customer SET c_balance = c_balance + $1, c_delivery_cnt = c_delivery_cnt + 1 \
             WHERE c_w_id = $2 AND c_d_id = $3 AND c_id = $4",
            4,
        ),
        CompiledStatement::new("COMMIT", 0),
    ];
    if keeps_ledger {
        statements.extend(commit_ledger::statements());
    }
    TransactionType::writing("delivery", statements)
}

/// An order that is delivered.
#[derive(Debug, Clone, Copy, Default)]
struct Taken {
    district: i64,
    order: i64,
    customer: i64,
    amount_cents: i64,
}

#[derive(Debug)]
pub(super) struct Delivery {
    input: DeliveryInput,
    keeps_ledger: bool,
    sequence: Sequence,
    /// The district whose order is looked for.
    district: i64,
    /// Its oldest undelivered order; 0 for none.
    oldest: i64,
    /// Whether it was this delivery that took it.
    is_taken: bool,
    taken: [Taken; MOST],
    count: usize,
}

impl Delivery {
    pub(super) fn new(input: DeliveryInput, keeps_ledger: bool) -> Self {
        Self {
            input,
            keeps_ledger,
            sequence: Sequence::default(),
            district: 1,
            oldest: 0,
            is_taken: false,
            taken: [Taken::default(); MOST],
            count: 0,
        }
    }

    /// Goes to the next district, unless another delivery took the order first, and looks for its order.
    fn look_on(&mut self) {
        if self.is_taken {
            self.taken[self.count].district = self.district;
            self.taken[self.count].order = self.oldest;
            self.count += 1;
        }
        if self.is_taken || self.oldest == 0 {
            self.district += 1;
        }
        self.is_taken = false;
        if self.district <= DISTRICTS as i64 {
            self.sequence.go_to(OLDEST_PART);
        }
    }
}

impl Profile for Delivery {
    fn next_step(&mut self) -> Next {
        if self.sequence.is_at(AFTER_TAKE_PART) {
            self.look_on();
        }
        let (found, count, ledger) = (self.oldest > 0, self.count, self.keeps_ledger);
        self.sequence.next(PARTS, |statement| match statement {
            TAKE => usize::from(found),
            ORDER | LINES | CUSTOMER => count,
            LEDGER_INSERT | LEDGER_UPDATE => usize::from(ledger),
            _ => 1,
        })
    }

    fn send(&self, step: Step, client: usize, batch: &mut Batch<'_>) {
        let statement = usize::from(step.statement);
        let warehouse = Integer(self.input.warehouse);
        // Of what is sent for each order that was taken; there is room for one of each district.
        let taken = &self.taken[usize::from(step.place)];
        let (district, order) = (Integer(taken.district), Integer(taken.order));
        match step.statement {
            OLDEST => batch.add(statement, &[warehouse, Integer(self.district)]),
            TAKE => {
                let (district, oldest) = (Integer(self.district), Integer(self.oldest));
                batch.add(statement, &[warehouse, district, oldest]);
            }
            ORDER => {
                let carrier = Integer(self.input.carrier);
                batch.add(statement, &[carrier, warehouse, district, order]);
            }
            LINES => batch.add(statement, &[warehouse, district, order]),
            CUSTOMER => {
                let amount = Cents(taken.amount_cents);
                let customer = Integer(taken.customer);
                batch.add(statement, &[amount, warehouse, district, customer]);
            }
            LEDGER_INSERT | LEDGER_UPDATE => commit_ledger::add(statement, client, batch),
            _ => batch.add(statement, &[]),
        }
    }

    fn take(&mut self, step: Step, answers: &Answers, place: usize) -> Result<(), AnswerError> {
        let taken = &mut self.taken[usize::from(step.place)];
        match step.statement {
            OLDEST => {
                let oldest = answers.rows(place).next();
                self.oldest = oldest.map_or(Ok(0), |row| row.integer(0))?;
            }
            TAKE => self.is_taken = answers.rows(place).len() > 0,
            ORDER => taken.customer = answers.row(place)?.integer(0)?,
            LINES => {
                for row in answers.rows(place) {
                    taken.amount_cents += row.cents(0)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}
