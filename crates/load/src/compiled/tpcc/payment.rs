//! Payment: a customer pays an amount (clause 2.5).

use super::Profile;
use super::inputs::{Customer, PaymentInput};
use super::sequence::{Next, Part, Sequence, Step};
use crate::compiled::answers::{AnswerError, Answers};
use crate::compiled::batch::{Batch, Parameter};
use crate::compiled::commit_ledger;
use crate::compiled::workload::{CompiledStatement, TransactionType};
use Parameter::{Cents, Integer, LastName, Text};

const BEGIN: u8 = 0;
const WAREHOUSE: u8 = 1;
const DISTRICT: u8 = 2;
const BY_NAME: u8 = 3;
const CUSTOMER: u8 = 4;
const HISTORY: u8 = 5;
const COMMIT: u8 = 6;
const LEDGER_INSERT: u8 = 7;
const LEDGER_UPDATE: u8 = 8;

const PARTS: &[Part] = &[
    Part::Repeat(BEGIN),
    Part::Repeat(WAREHOUSE),
    Part::Repeat(DISTRICT),
    Part::Repeat(BY_NAME),
    Part::Wait,
    Part::Repeat(CUSTOMER),
    Part::Repeat(HISTORY),
    Part::Repeat(LEDGER_INSERT),
    Part::Repeat(LEDGER_UPDATE),
    Part::Repeat(COMMIT),
];

const NAME_BYTES: usize = 10;
const BETWEEN_NAMES: &[u8] = b"    ";

pub(super) fn transaction(begin: &'static str, keeps_ledger: bool) -> TransactionType {
    let mut statements = vec![
        CompiledStatement::new(begin, 0),
        CompiledStatement::new(
            "UPDATE warehouse SET w_ytd = w_ytd + $1 WHERE w_id = $2 \
             RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip",
            2,
        ),
        CompiledStatement::new(
            "UPDATE district SET d_ytd = d_ytd + $1 WHERE d_w_id = $2 AND d_id = $3 \
             RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip",
            3,
        ),
        CompiledStatement::new(
            "SELECT c_id FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3 ORDER BY c_first",
            3,
        ),
        CompiledStatement::new(
            "UPDATE customer SET c_balance = c_balance - $1, c_ytd_payment = c_ytd_payment + $1, \
             c_payment_cnt = c_payment_cnt + 1, c_data = CASE WHEN c_credit = 'BC' \
             THEN left(concat_ws(' ', c_id, c_d_id, c_w_id, $2::int, $3::int, $1, c_data), 500) ELSE c_data END \
             WHERE c_w_id = $4 AND c_d_id = $5 AND c_id = $6 \
             RETURNING c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, \
             c_credit, c_credit_lim, c_discount, c_balance, CASE WHEN c_credit = 'BC' THEN left(c_data, 200) END",
            6,
        ),
        CompiledStatement::new(
            "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
             VALUES ($1, $2, $3, $4, $5, localtimestamp, $6, $7)",
            7,
        ),
        CompiledStatement::new("COMMIT", 0),
    ];
    if keeps_ledger {
        statements.extend(commit_ledger::statements());
    }
    TransactionType::writing("payment", statements)
}

#[derive(Debug)]
pub(super) struct Payment {
    input: PaymentInput,
    keeps_ledger: bool,
    sequence: Sequence,
    customer: i64,
    /// `H_DATA`: the names of warehouse and district.
    data: [u8; 2 * NAME_BYTES + BETWEEN_NAMES.len()],
    data_bytes: usize,
}

impl Payment {
    pub(super) fn new(input: PaymentInput, keeps_ledger: bool) -> Self {
        Self {
            customer: input.customer.number(),
            input,
            keeps_ledger,
            sequence: Sequence::default(),
            data: [0; _],
            data_bytes: 0,
        }
    }

    fn add_data(&mut self, bytes: &[u8]) {
        let rest = &mut self.data[self.data_bytes..];
        let count = bytes.len().min(rest.len());
        rest[..count].copy_from_slice(&bytes[..count]);
        self.data_bytes += count;
    }
}

impl Profile for Payment {
    fn next_step(&mut self) -> Next {
        let (is_by_name, ledger) = (self.input.customer.is_by_name(), self.keeps_ledger);
        self.sequence.next(PARTS, |statement| match statement {
            BY_NAME => usize::from(is_by_name),
            LEDGER_INSERT | LEDGER_UPDATE => usize::from(ledger),
            _ => 1,
        })
    }

    fn send(&self, step: Step, client: usize, batch: &mut Batch<'_>) {
        let statement = usize::from(step.statement);
        let input = &self.input;
        let (warehouse, district) = (Integer(input.warehouse), Integer(input.district));
        let of_customer = [
            input.customer_warehouse,
            input.customer_district,
            self.customer,
        ];
        let [customer_warehouse, customer_district, customer] = of_customer.map(Integer);
        let amount = Cents(input.amount_cents);
        match step.statement {
            WAREHOUSE => batch.add(statement, &[amount, warehouse]),
            DISTRICT => batch.add(statement, &[amount, warehouse, district]),
            BY_NAME => {
                if let Customer::Name(name) = input.customer {
                    let name = LastName(name);
                    batch.add(statement, &[customer_warehouse, customer_district, name]);
                }
            }
            CUSTOMER => batch.add(
                statement,
                &[
                    amount,
                    district,
                    warehouse,
                    customer_warehouse,
                    customer_district,
                    customer,
                ],
            ),
            HISTORY => batch.add(
                statement,
                &[
                    customer,
                    customer_district,
                    customer_warehouse,
                    district,
                    warehouse,
                    amount,
                    Text(&self.data[..self.data_bytes]),
                ],
            ),
            LEDGER_INSERT | LEDGER_UPDATE => commit_ledger::add(statement, client, batch),
            _ => batch.add(statement, &[]),
        }
    }

    fn take(&mut self, step: Step, answers: &Answers, place: usize) -> Result<(), AnswerError> {
        match step.statement {
            WAREHOUSE => self.add_data(answers.row(place)?.text(0)?),
            DISTRICT => {
                self.add_data(BETWEEN_NAMES);
                self.add_data(answers.row(place)?.text(0)?);
            }
            BY_NAME => self.customer = answers.middle_row(place)?.integer(0)?,
            CUSTOMER => {
                answers.row(place)?;
            }
            _ => {}
        }
        Ok(())
    }
}
