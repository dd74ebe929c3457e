//! Finds the class of a statement's text. An application sends the same texts over and over, so they are remembered.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use crate::normalise::{Normalised, normalise};

/// How many texts are remembered, and how long they may be; a log that is made to have more costs no memory.
const MAX_KNOWN_TEXTS: usize = 20_000;
const MAX_KNOWN_TEXT_BYTES: usize = 2_048;

/// A text without its constants.
#[derive(Debug)]
pub(crate) struct Classified {
    /// Hash of the normalised text, by which classes are told from one another.
    pub(crate) hash: u64,
    pub(crate) normalised: Normalised,
}

#[derive(Default)]
pub(crate) struct Classifier {
    known: HashMap<Vec<u8>, Rc<Classified>>,
}

impl Classifier {
    pub(crate) fn classify(&mut self, text: &[u8]) -> Rc<Classified> {
        if let Some(known) = self.known.get(text) {
            return Rc::clone(known);
        }
        let normalised = normalise(text);
        let mut hasher = DefaultHasher::new();
        normalised.text.hash(&mut hasher);
        let classified = Rc::new(Classified {
            hash: hasher.finish(),
            normalised,
        });
        if text.len() <= MAX_KNOWN_TEXT_BYTES && self.known.len() < MAX_KNOWN_TEXTS {
            self.known.insert(text.to_vec(), Rc::clone(&classified));
        }
        classified
    }
}
