//! Statements that a transaction sends together.

use plinth_script::Value;
use plinth_tpcc::append_last_name;

use crate::pipeline::Pipeline;
use crate::statement::Statement;

/// A parameter of a statement; it is sent as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parameter<'a> {
    Integer(i64),
    /// A `numeric` of two decimal places that is not negative, as a number of hundredths.
    Cents(i64),
    Text(&'a [u8]),
    /// An array of integers.
    Integers(&'a [i64]),
    Null,
    /// The last name of a TPC-C customer, by its number.
    LastName(u64),
}

impl Parameter<'_> {
    /// Appends its text; `false` for null.
    pub(crate) fn write(self, out: &mut Vec<u8>) -> bool {
        match self {
            Self::Integer(number) => Value::Int(number).write_text(out),
            Self::Cents(cents) => {
                Value::Int(cents / 100).write_text(out);
                let [tens, ones] = [cents / 10 % 10, cents % 10].map(|digit| b'0' + digit as u8);
                out.extend_from_slice(&[b'.', tens, ones]);
            }
            Self::Text(text) => out.extend_from_slice(text),
            Self::Integers(numbers) => {
                for (place, &number) in numbers.iter().enumerate() {
                    out.push(if place == 0 { b'{' } else { b',' });
                    Value::Int(number).write_text(out);
                }
                out.extend_from_slice(if numbers.is_empty() { b"{}" } else { b"}" });
            }
            Self::Null => return false,
            Self::LastName(number) => append_last_name(number, out),
        }
        true
    }
}

/// Statements that are sent together, with one `Sync` behind them.
#[derive(Debug)]
pub(crate) struct Batch<'a> {
    /// All statements of the run.
    pub(crate) statements: &'a [Statement],
    pub(crate) prepared: &'a [bool],
    pub(crate) pipeline: &'a mut Pipeline,
    /// The first statement of the transaction among all of the run.
    pub(crate) first_statement: usize,
    pub(crate) now_ns: u64,
    /// How many there are.
    pub(crate) len: usize,
    /// With it a transaction commits, and there is a ledger to record that.
    pub(crate) commits: bool,
    /// The transaction is rolled back on purpose.
    pub(crate) rolls_back: bool,
    /// The number of the transaction in the ledger.
    pub(crate) ledger_number: u64,
}

impl Batch<'_> {
    /// Adds a statement, by its place among those of the transaction.
    pub(crate) fn add(&mut self, statement: usize, parameters: &[Parameter<'_>]) {
        let id = self.first_statement + statement;
        let out = self.pipeline.queue(id, self.now_ns);
        let prepare = !self.prepared[id];
        let write_parameter = |hole: usize, out: &mut Vec<u8>| parameters[hole].write(out);
        self.statements[id].write_queued(prepare, out, write_parameter);
        self.len += 1;
        self.commits |= self.statements[id].recorded.is_some();
    }

    /// Adds a statement that rolls the transaction back, as it is meant to be.
    pub(crate) fn roll_back(&mut self, statement: usize) {
        self.add(statement, &[]);
        self.rolls_back = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_written_as_sql_reads_them() {
        let of = |parameter: Parameter<'_>| {
            let mut out = Vec::new();
            assert!(parameter.write(&mut out));
            String::from_utf8(out).unwrap()
        };
        assert_eq!(of(Parameter::Integer(-7)), "-7");
        for (cents, text) in [
            (0, "0.00"),
            (5, "0.05"),
            (100, "1.00"),
            (500_000, "5000.00"),
        ] {
            assert_eq!(of(Parameter::Cents(cents)), text);
        }
        assert_eq!(of(Parameter::Text(b"a b")), "a b");
        assert_eq!(of(Parameter::LastName(371)), "PRICALLYOUGHT");
        assert_eq!(of(Parameter::Integers(&[])), "{}");
        assert_eq!(of(Parameter::Integers(&[7, -1])), "{7,-1}");
        assert!(!Parameter::Null.write(&mut Vec::new()));
    }
}
