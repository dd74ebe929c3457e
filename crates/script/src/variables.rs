//! Names of variables, numbered once, and the values that a client holds for them.

use crate::error::{EvalError, EvalReason};
use crate::value::Value;

/// The variables of all scripts of a run: name to slot and back. pgbench's clients keep their
/// variables from one script to the next, so all scripts share one table.
#[derive(Debug, Clone, Default)]
pub struct Symbols {
    names: Vec<String>,
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
            self.names.push(name.to_owned());
            self.names.len() - 1
        })
    }

    /// Slot of `name` if it is known.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
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

/// What one client's variable holds.
#[derive(Debug, Clone)]
enum Slot {
    Unset,
    Value(Value),
    /// Text as given, with the value it has in an expression if it has one.
    Text(Box<str>, Option<Value>),
}

/// The variables of one client.
#[derive(Debug, Clone)]
pub struct Variables {
    slots: Vec<Slot>,
}

impl Variables {
    /// One unset variable for every name in `symbols`: make it after all scripts are parsed.
    #[must_use]
    pub fn new(symbols: &Symbols) -> Self {
        Self {
            slots: vec![Slot::Unset; symbols.names().len()],
        }
    }

    /// Gives a variable a value.
    pub fn set(&mut self, slot: usize, value: Value) {
        self.slots[slot] = Slot::Value(value);
    }

    /// Gives a variable text, from `-D name=text` or from a column. SQL gets the text as it is;
    /// an expression gets the null, boolean, integer or double that it spells.
    pub fn set_text(&mut self, slot: usize, text: &str) {
        self.slots[slot] = Slot::Text(text.into(), Value::from_text(text));
    }

    /// Whether the variable has been set.
    #[must_use]
    pub fn is_set(&self, slot: usize) -> bool {
        !matches!(self.slots[slot], Slot::Unset)
    }

    /// The value in an expression; `None` when unset, or when its text is no value.
    #[must_use]
    pub fn get(&self, slot: usize) -> Option<Value> {
        match &self.slots[slot] {
            Slot::Unset => None,
            Slot::Value(value) => Some(*value),
            Slot::Text(_, value) => *value,
        }
    }

    /// Appends the variable's text, without allocating when `out` has room. `false` when unset,
    /// and then nothing is written.
    #[must_use]
    pub fn write_text(&self, slot: usize, out: &mut Vec<u8>) -> bool {
        match &self.slots[slot] {
            Slot::Unset => return false,
            Slot::Value(value) => value.write_text(out),
            Slot::Text(text, _) => out.extend_from_slice(text.as_bytes()),
        }
        true
    }

    /// The error of reading `slot` when [`Variables::get`] found no value.
    pub(crate) fn read_error(&self, slot: usize, name: &str) -> EvalError {
        let name = name.into();
        match &self.slots[slot] {
            Slot::Text(text, _) => EvalReason::MalformedVariable {
                name,
                text: text.clone(),
            },
            _ => EvalReason::UndefinedVariable(name),
        }
        .into()
    }
}
