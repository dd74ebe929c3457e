//! What the server's answer to a replayed statement means: its errors, and the tag of what it did.

use crate::errors::{ErrorKind, Failure};

/// SQLSTATE of a write in a read-only transaction, and of a statement in a transaction that has failed.
const READ_ONLY: &str = "25006";
const IN_FAILED_TRANSACTION: &str = "25P02";
/// SQLSTATEs of types, values and encodings that the server does not take: functions and operators that do not exist for the types
/// or are ambiguous, parameters of no or another type, and texts that are no value of their type or not in the encoding.
const REFUSED: [&str; 10] = [
    "22021", "22P02", "22P03", "22P05", "42725", "42804", "42846", "42883", "42P08", "42P18",
];

/// Returns the kind of a statement's error.
pub(super) fn kind_of(sqlstate: &str) -> ErrorKind {
    if REFUSED.contains(&sqlstate) {
        ErrorKind::Refused
    } else {
        ErrorKind::of_sqlstate(sqlstate)
    }
}

/// Whether a write was refused because the transaction is read-only.
pub(super) fn is_refused_write(failure: &Failure) -> bool {
    failure.sqlstate.as_deref() == Some(READ_ONLY)
}

/// Whether a statement failed because its transaction had failed before.
pub(super) fn follows_another(failure: &Failure) -> bool {
    match failure.sqlstate.as_deref() {
        None => *failure == Failure::without_commit(),
        Some(sqlstate) => sqlstate == IN_FAILED_TRANSACTION,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_does_not_take_is_refused() {
        for (sqlstate, expected) in [
            ("42725", ErrorKind::Refused),
            ("42883", ErrorKind::Refused),
            ("22021", ErrorKind::Refused),
            ("42804", ErrorKind::Refused),
            ("42P18", ErrorKind::Refused),
            ("22P02", ErrorKind::Refused),
            ("22P05", ErrorKind::Refused),
            ("42P08", ErrorKind::Refused),
            ("42P01", ErrorKind::Sql),
            ("22012", ErrorKind::Sql),
            ("25P02", ErrorKind::Sql),
            ("57014", ErrorKind::Sql),
            ("40001", ErrorKind::SerializationFailure),
            ("40P01", ErrorKind::DeadlockDetected),
        ] {
            assert_eq!(kind_of(sqlstate), expected, "{sqlstate}");
        }
    }
}
