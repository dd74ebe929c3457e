//! Stock-Level: how many items of the last 20 orders of a district are low in stock (clause 2.8).

use super::Profile;
use super::inputs::StockLevelInput;
use super::sequence::{Next, Part, Sequence, Step};
use crate::compiled::answers::{AnswerError, Answers};
use crate::compiled::batch::{Batch, Parameter::Integer};
use crate::compiled::workload::{CompiledStatement, TransactionType};

const BEGIN: u8 = 0;
const DISTRICT: u8 = 1;
const COUNT: u8 = 2;
const COMMIT: u8 = 3;

const PARTS: &[Part] = &[
    Part::Repeat(BEGIN),
    Part::Repeat(DISTRICT),
    Part::Wait,
    Part::Repeat(COUNT),
    Part::Repeat(COMMIT),
];

pub(super) fn transaction(begin: &'static str) -> TransactionType {
    let statements = vec![
        CompiledStatement::new(begin, 0),
        CompiledStatement::new(
            "SELECT d_next_o_id FROM district WHERE d_w_id = $1 AND d_id = $2",
            2,
        ),
        CompiledStatement::new(
            "SELECT count(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = $1 AND s_i_id = ol_i_id \
             WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id >= $3 - 20 AND ol_o_id < $3 AND s_quantity < $4",
            4,
        ),
        CompiledStatement::new("COMMIT", 0),
    ];
    TransactionType::reading("stock-level", statements)
}

#[derive(Debug)]
pub(super) struct StockLevel {
    input: StockLevelInput,
    sequence: Sequence,
    next_order: i64,
}

impl StockLevel {
    pub(super) fn new(input: StockLevelInput) -> Self {
        Self {
            input,
            sequence: Sequence::default(),
            next_order: 0,
        }
    }
}

impl Profile for StockLevel {
    fn next_step(&mut self) -> Next {
        self.sequence.next(PARTS, |_| 1)
    }

    fn send(&self, step: Step, _client: usize, batch: &mut Batch<'_>) {
        let statement = usize::from(step.statement);
        let (warehouse, district) = (Integer(self.input.warehouse), Integer(self.input.district));
        match step.statement {
            DISTRICT => batch.add(statement, &[warehouse, district]),
            COUNT => {
                let (next, threshold) = (Integer(self.next_order), Integer(self.input.threshold));
                batch.add(statement, &[warehouse, district, next, threshold]);
            }
            _ => batch.add(statement, &[]),
        }
    }

    fn take(&mut self, step: Step, answers: &Answers, place: usize) -> Result<(), AnswerError> {
        match step.statement {
            DISTRICT => self.next_order = answers.row(place)?.integer(0)?,
            COUNT => {
                answers.row(place)?.integer(0)?;
            }
            _ => {}
        }
        Ok(())
    }
}
