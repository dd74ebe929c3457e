//! New-Order: an order of 5 to 15 lines (clause 2.4).

use super::Profile;
use super::inputs::NewOrderInput;
use super::sequence::{Next, Part, Sequence, Step};
use crate::compiled::answers::{AnswerError, Answers};
use crate::compiled::batch::{Batch, Parameter};
use crate::compiled::commit_ledger;
use crate::compiled::workload::{CompiledStatement, TransactionType};
use Parameter::{Cents, Integer, Text};

const BEGIN: u8 = 0;
const CUSTOMER: u8 = 1;
const DISTRICT: u8 = 2;
const ITEM: u8 = 3;
const ORDER: u8 = 4;
const NEW_ORDER: u8 = 5;
const STOCK: u8 = 6;
const LINE: u8 = 7;
const COMMIT: u8 = 8;
const ROLLBACK: u8 = 9;
const LEDGER_INSERT: u8 = 10;
const LEDGER_UPDATE: u8 = 11;

/// The order of the statements is immaterial (clause 2.3); all valid items are processed before a rollback (2.4.2.3).
const PARTS: &[Part] = &[
    Part::Repeat(BEGIN),
    Part::Repeat(CUSTOMER),
    Part::Repeat(DISTRICT),
    Part::Repeat(ITEM),
    Part::Wait,
    Part::Repeat(ORDER),
    Part::Repeat(NEW_ORDER),
    Part::Repeat(STOCK),
    Part::Wait,
    Part::Repeat(LINE),
    Part::Repeat(LEDGER_INSERT),
    Part::Repeat(LEDGER_UPDATE),
    Part::Repeat(COMMIT),
    Part::Repeat(ROLLBACK),
];

const MOST_LINES: usize = plinth_tpcc::MOST_LINES as usize;
const DIST_INFO_BYTES: usize = 24;

pub(super) fn transaction(begin: &'static str, keeps_ledger: bool) -> TransactionType {
    let mut statements = vec![
        CompiledStatement::new(begin, 0),
        CompiledStatement::new(
            "SELECT c_discount, c_last, c_credit, w_tax FROM customer JOIN warehouse ON w_id = c_w_id \
             WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
            3,
        ),
        CompiledStatement::new(
            "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = $1 AND d_id = $2 \
             RETURNING d_next_o_id - 1, d_tax",
            2,
        ),
        CompiledStatement::new(
            "SELECT i_price, i_name, i_data FROM item WHERE i_id = $1",
            1,
        ),
        CompiledStatement::new(
            "INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_carrier_id, o_ol_cnt, o_all_local, o_entry_d) \
             VALUES ($1, $2, $3, $4, NULL, $5, $6, localtimestamp)",
            6,
        ),
        CompiledStatement::new(
            "INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES ($1, $2, $3)",
            3,
        ),
        CompiledStatement::new(
            "UPDATE stock SET s_quantity = s_quantity - $1 + CASE WHEN s_quantity >= $1 + 10 THEN 0 ELSE 91 END, \
             s_ytd = s_ytd + $1, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + $2 \
             WHERE s_w_id = $3 AND s_i_id = $4 RETURNING CASE $5::int WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 \
             WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 \
             WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09 ELSE s_dist_10 END, s_quantity, s_data",
            5,
        ),
        CompiledStatement::new(
            "INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, \
             ol_quantity, ol_amount, ol_dist_info) VALUES ($1, $2, $3, $4, $5, $6, NULL, $7, $8, $9)",
            9,
        ),
        CompiledStatement::new("COMMIT", 0),
        CompiledStatement::new("ROLLBACK", 0),
    ];
    if keeps_ledger {
        statements.extend(commit_ledger::statements());
    }
    TransactionType::writing("new-order", statements)
}

#[derive(Debug)]
pub(super) struct NewOrder {
    input: NewOrderInput,
    keeps_ledger: bool,
    sequence: Sequence,
    order: i64,
    /// Places of the lines in `input`, in the order in which their stock is changed.
    sorted: [u8; MOST_LINES],
    prices_cents: [i64; MOST_LINES],
    dist_info: [[u8; DIST_INFO_BYTES]; MOST_LINES],
}

impl NewOrder {
    pub(super) fn new(input: NewOrderInput, keeps_ledger: bool) -> Self {
        Self {
            sorted: input.order_of_stock(),
            input,
            keeps_ledger,
            sequence: Sequence::default(),
            order: 0,
            prices_cents: [0; MOST_LINES],
            dist_info: [[0; DIST_INFO_BYTES]; MOST_LINES],
        }
    }

    /// The place in the input of the line that a step is about.
    fn line(&self, step: Step) -> usize {
        usize::from(self.sorted[usize::from(step.place)])
    }
}

impl Profile for NewOrder {
    fn next_step(&mut self) -> Next {
        let Self {
            input,
            keeps_ledger,
            ..
        } = self;
        let commits = !input.is_rolled_back;
        self.sequence.next(PARTS, |statement| match statement {
            ITEM => input.count,
            STOCK | LINE => input.valid_lines(),
            LEDGER_INSERT | LEDGER_UPDATE => usize::from(*keeps_ledger && commits),
            COMMIT => usize::from(commits),
            ROLLBACK => usize::from(!commits),
            _ => 1,
        })
    }

    fn send(&self, step: Step, client: usize, batch: &mut Batch<'_>) {
        let statement = usize::from(step.statement);
        let input = &self.input;
        let (warehouse, district) = (Integer(input.warehouse), Integer(input.district));
        let order = Integer(self.order);
        match step.statement {
            CUSTOMER => batch.add(statement, &[warehouse, district, Integer(input.customer)]),
            DISTRICT => batch.add(statement, &[warehouse, district]),
            ITEM => batch.add(statement, &[Integer(input.lines[self.line(step)].item)]),
            ORDER => {
                let (count, is_local) = (input.count as i64, i64::from(input.is_local()));
                let customer = Integer(input.customer);
                let counts = [Integer(count), Integer(is_local)];
                let [count, is_local] = counts;
                batch.add(
                    statement,
                    &[warehouse, district, order, customer, count, is_local],
                );
            }
            NEW_ORDER => batch.add(statement, &[warehouse, district, order]),
            STOCK => {
                let line = &input.lines[self.line(step)];
                let is_remote = line.supply_warehouse != input.warehouse;
                batch.add(
                    statement,
                    &[
                        Integer(line.quantity),
                        Integer(i64::from(is_remote)),
                        Integer(line.supply_warehouse),
                        Integer(line.item),
                        district,
                    ],
                );
            }
            LINE => {
                let place = self.line(step);
                let line = &input.lines[place];
                batch.add(
                    statement,
                    &[
                        warehouse,
                        district,
                        order,
                        Integer(place as i64 + 1),
                        Integer(line.item),
                        Integer(line.supply_warehouse),
                        Integer(line.quantity),
                        Cents(line.quantity * self.prices_cents[place]),
                        Text(&self.dist_info[place]),
                    ],
                );
            }
            LEDGER_INSERT | LEDGER_UPDATE => commit_ledger::add(statement, client, batch),
            ROLLBACK => batch.roll_back(statement),
            _ => batch.add(statement, &[]),
        }
    }

    fn take(&mut self, step: Step, answers: &Answers, place: usize) -> Result<(), AnswerError> {
        match step.statement {
            CUSTOMER => {
                answers.row(place)?;
            }
            DISTRICT => self.order = answers.row(place)?.integer(0)?,
            ITEM => {
                let line = self.line(step);
                let is_unused = self.input.is_rolled_back && line + 1 == self.input.count;
                if is_unused {
                    answers.no_row(place)?;
                } else {
                    self.prices_cents[line] = answers.row(place)?.cents(0)?;
                }
            }
            STOCK => {
                let line = self.line(step);
                let text = answers.row(place)?.text(0)?;
                let length = text.len().min(DIST_INFO_BYTES);
                self.dist_info[line] = [b' '; DIST_INFO_BYTES];
                self.dist_info[line][..length].copy_from_slice(&text[..length]);
            }
            _ => {}
        }
        Ok(())
    }
}
