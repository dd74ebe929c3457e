//! The order of a transaction's statements.

/// A statement that is sent, by its place among those of its transaction, and for which of its repetitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) statement: u8,
    pub(super) place: u8,
}

/// What comes next in a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Send(Step),
    /// What follows needs answers to what was sent before.
    Wait,
    Over,
}

/// A part of a transaction.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    /// A statement, as often as the transaction says.
    Repeat(u8),
    Wait,
}

/// How far a transaction has come.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sequence {
    part: usize,
    place: u8,
}

impl Sequence {
    /// What comes next of `parts`; `places` tells how often a statement is sent.
    pub(super) fn next(&mut self, parts: &[Part], places: impl Fn(u8) -> usize) -> Next {
        while let Some(part) = parts.get(self.part) {
            match *part {
                Part::Repeat(statement) if usize::from(self.place) < places(statement) => {
                    let place = self.place;
                    self.place += 1;
                    return Next::Send(Step { statement, place });
                }
                Part::Repeat(_) => self.go_to(self.part + 1),
                Part::Wait => {
                    self.go_to(self.part + 1);
                    return Next::Wait;
                }
            }
        }
        Next::Over
    }

    /// The next part is this.
    pub(super) fn go_to(&mut self, part: usize) {
        (self.part, self.place) = (part, 0);
    }

    /// Whether this part comes next, from its beginning.
    pub(super) fn is_at(&self, part: usize) -> bool {
        (self.part, self.place) == (part, 0)
    }
}
