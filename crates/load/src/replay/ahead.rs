//! Statements that have been read before they are due: each with those that its session sent right after it.

use std::collections::VecDeque;

use crate::replay::statement::Waiting;

/// A statement that is not due yet, and what follows it.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) due_ns: u64,
    pub(super) session: u32,
    pub(super) first: Waiting,
    /// They are sent as soon as those before them have ended.
    pub(super) followers: Vec<Waiting>,
}

/// All of them, in the order in which they are due.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    held: VecDeque<Held>,
    /// How many were held before the first of them.
    taken: u64,
}

impl Ahead {
    /// Holds a statement, which is due no earlier than those before it. Returns its number.
    pub(super) fn hold(&mut self, due_ns: u64, session: u32, first: Waiting) -> u64 {
        self.held.push_back(Held {
            due_ns,
            session,
            first,
            followers: Vec::new(),
        });
        self.taken + self.held.len() as u64 - 1
    }

    /// Whether the statement with a number is still held.
    pub(super) fn has(&self, number: u64) -> bool {
        number >= self.taken
    }

    /// Adds a statement to those that follow one that is held.
    pub(super) fn follow(&mut self, number: u64, waiting: Waiting) {
        let place = (number - self.taken) as usize;
        self.held[place].followers.push(waiting);
    }

    /// When the first of them is due.
    pub(super) fn due_ns(&self) -> Option<u64> {
        self.held.front().map(|held| held.due_ns)
    }

    /// Takes the first of them if it is due.
    pub(super) fn take_due(&mut self, now_ns: u64) -> Option<Held> {
        self.held.front().filter(|held| held.due_ns <= now_ns)?;
        self.taken += 1;
        self.held.pop_front()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Gives all of them up.
    pub(super) fn clear(&mut self) {
        self.taken += self.held.len() as u64;
        self.held.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::statement::Sent;

    fn waiting(label: usize) -> Waiting {
        Waiting {
            sent: Sent {
                label,
                rollbacks: 0,
                intended_ns: 0,
                recorded_ns: None,
                has_failed: false,
                sqlstate: None,
                prepared: None,
            },
            messages: Box::default(),
        }
    }

    fn labels(held: &Held) -> Vec<usize> {
        std::iter::once(&held.first)
            .chain(&held.followers)
            .map(|one| one.sent.label)
            .collect()
    }

    #[test]
    fn what_follows_a_statement_is_taken_with_it_and_no_sooner() {
        let mut ahead = Ahead::default();
        let first = ahead.hold(100, 1, waiting(1));
        let other = ahead.hold(150, 2, waiting(2));
        let second = ahead.hold(200, 1, waiting(3));
        ahead.follow(first, waiting(11));
        ahead.follow(second, waiting(31));
        ahead.follow(first, waiting(12));
        assert_eq!(ahead.due_ns(), Some(100));
        assert!(ahead.take_due(99).is_none());
        let taken = ahead.take_due(200).unwrap_or_else(|| panic!("it is due"));
        assert_eq!((taken.session, labels(&taken)), (1, vec![1, 11, 12]));
        assert!(!ahead.has(first) && ahead.has(other) && ahead.has(second));
        ahead.follow(other, waiting(21));
        let due = std::iter::from_fn(|| ahead.take_due(200));
        let rest: Vec<_> = due.map(|held| labels(&held)).collect();
        assert_eq!(rest, [vec![2, 21], vec![3, 31]]);
        assert!(ahead.is_empty());
    }

    #[test]
    fn numbers_stay_known_after_all_was_given_up() {
        let mut ahead = Ahead::default();
        let number = ahead.hold(100, 1, waiting(1));
        ahead.clear();
        assert!(ahead.is_empty() && !ahead.has(number));
        assert_eq!(ahead.hold(200, 1, waiting(2)), number + 1);
    }
}
