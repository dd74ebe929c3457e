//! Variables: their names, each numbered once, and the values that a client has for them.

use std::collections::HashMap;

use crate::error::{EvalError, EvalReason};
use crate::lossless;
use crate::value::Value;

/// A position where a variable is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    /// Slot of the variable.
    pub slot: usize,
    /// Line of the position, or of the statement's beginning; counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// Whether a statement reads it, rather than a meta command.
    pub in_sql: bool,
}

/// The variables of all scripts of a run: name to slot and back. pgbench's clients keep their
/// variables from one script to the next, so all scripts share one table.
#[derive(Debug, Clone, Default)]
pub struct Symbols {
    names: Vec<String>,
    slots: HashMap<String, usize>,
}

impl Symbols {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Slot of `name`, numbered now if it is new.
    pub fn slot(&mut self, name: &str) -> usize {
        self.find(name).unwrap_or_else(|| {
            let slot = self.names.len();
            self.names.push(name.to_owned());
            self.slots.insert(name.to_owned(), slot);
            slot
        })
    }

    /// Slot of `name` if it is known.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<usize> {
        self.slots.get(name).copied()
    }

    /// Name of a slot.
    ///
    /// # Panics
    /// When `slot` did not come from this table.
    #[must_use]
    pub fn name(&self, slot: usize) -> &str {
        &self.names[slot]
    }

    /// All names, in the order of their slots.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }
}

/// Whether a text consists of digits, with or without a sign.
fn is_integer(text: &str) -> bool {
    let text = text.trim_ascii_start();
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

/// The value of one client's variable.
#[derive(Debug, Clone, Copy)]
enum Holds {
    Nothing,
    Value(Value),
    /// The slot's text, and its value in an expression if it has one.
    Text(Option<Value>),
}

#[derive(Debug, Clone)]
struct Slot {
    holds: Holds,
    /// Kept when the variable holds something else, so that the next text needs no new memory.
    text: Vec<u8>,
}

/// The variables of one client.
#[derive(Debug, Clone)]
pub struct Variables {
    slots: Vec<Slot>,
}

impl Variables {
    /// One unset variable for every name in `symbols`. Create it after all scripts are parsed.
    #[must_use]
    pub fn new(symbols: &Symbols) -> Self {
        let unset = Slot {
            holds: Holds::Nothing,
            text: Vec::new(),
        };
        Self {
            slots: vec![unset; symbols.names().len()],
        }
    }

    /// Gives a variable a value.
    #[inline]
    pub fn set(&mut self, slot: usize, value: Value) {
        self.slots[slot].holds = Holds::Value(value);
    }

    /// Gives a variable text, from `-D name=text` or from a column, in any encoding. SQL gets the text unchanged; an
    /// expression gets the null, boolean, integer or double that it spells. Does not allocate if the variable has held
    /// a text of that length before.
    pub fn set_text(&mut self, slot: usize, text: impl AsRef<[u8]>) {
        let text = text.as_ref();
        let slot = &mut self.slots[slot];
        slot.text.clear();
        slot.text.extend_from_slice(text);
        slot.holds = Holds::Text(Value::from_bytes(text));
    }

    /// Whether the variable has been set.
    #[must_use]
    pub fn is_set(&self, slot: usize) -> bool {
        !matches!(self.slots[slot].holds, Holds::Nothing)
    }

    /// The value in an expression; `None` when unset, or when its text does not spell a value.
    #[inline]
    #[must_use]
    pub fn get(&self, slot: usize) -> Option<Value> {
        match self.slots[slot].holds {
            Holds::Nothing => None,
            Holds::Value(value) => Some(value),
            Holds::Text(value) => value,
        }
    }

    /// Appends the variable's text, without allocating when `out` has the capacity. Returns `false` and writes nothing
    /// when it is unset.
    #[inline]
    #[must_use]
    pub fn write_text(&self, slot: usize, out: &mut Vec<u8>) -> bool {
        let slot = &self.slots[slot];
        match slot.holds {
            Holds::Nothing => return false,
            Holds::Value(value) => value.write_text(out),
            Holds::Text(_) => out.extend_from_slice(&slot.text),
        }
        true
    }

    /// The text of a variable that was given text; `None` for all others.
    pub(crate) fn text(&self, slot: usize) -> Option<&[u8]> {
        let slot = &self.slots[slot];
        matches!(slot.holds, Holds::Text(_)).then_some(&slot.text)
    }

    /// The error of reading `slot` after [`Variables::get`] found no value.
    pub(crate) fn read_error(&self, slot: usize, name: &str) -> EvalError {
        let name = name.into();
        let text = self.text(slot).map(lossless::from_bytes);
        match text {
            Some(text) if is_integer(&text) => EvalReason::OutOfRange(text.into()),
            Some(text) => EvalReason::MalformedVariable {
                name,
                text: text.into(),
            },
            None => EvalReason::UndefinedVariable(name),
        }
        .into()
    }
}
