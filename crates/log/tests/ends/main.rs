//! No statement is replayed whose end is not certain: logs that were cut, split, wrapped, glued and written again on their way. What is
//! replayed is always a statement that was sent, whole.
#![allow(clippy::unwrap_used, reason = "a test")]

mod attacks;
mod server_log;

use server_log::{FORMATS, Place, SENT, count, cr_lf, log, malformed, sent};

/// The control: all of a whole log is replayed, but for what looks like two entries in one.
#[test]
fn of_a_whole_log_all_is_replayed() {
    let place = Place::new();
    for format in FORMATS {
        for text in [log(format), cr_lf(&log(format))] {
            let (found, said) = place.prepared(&[text.as_bytes()], None).unwrap();
            let mut expected = sent();
            let doubtful = match format {
                "stderr" => Some(&SENT[3]),
                "csvlog" => Some(&SENT[5]),
                _ => None,
            };
            if let Some((text, _)) = doubtful {
                expected.remove(&((*text).to_owned(), Vec::new()));
            }
            assert_eq!(found, expected, "{format}: {said:#}");
            assert_eq!(malformed(&said), 0);
            assert_eq!(count(&said, "end_uncertain"), u64::from(doubtful.is_some()));
        }
    }
}

/// Cut behind each byte, and before some; with CR LF at some.
fn cut_everywhere(format: &str) {
    let place = Place::new();
    let sent = sent();
    let check = |part: &[u8], at: usize| {
        let Some((found, said)) = place.prepared(&[part], None) else {
            return 0;
        };
        assert!(
            found.is_subset(&sent),
            "{format} cut at {at}: {found:#?} {said:#}"
        );
        found.len()
    };
    let text = log(format);
    let bytes = text.as_bytes();
    let most = (0..=bytes.len()).map(|at| check(&bytes[..at], at)).max();
    assert!(most >= Some(sent.len() - 1), "{format}: {most:?}");
    for at in (0..=bytes.len()).step_by(3) {
        check(&bytes[at..], at);
    }
    let text = cr_lf(&text);
    for at in (0..=text.len()).step_by(7) {
        check(&text.as_bytes()[..at], at);
        check(&text.as_bytes()[at..], at);
    }
}

#[test]
fn of_a_plain_log_that_is_cut_anywhere_only_what_was_sent_is_replayed() {
    cut_everywhere("stderr");
}

#[test]
fn of_a_csvlog_that_is_cut_anywhere_only_what_was_sent_is_replayed() {
    cut_everywhere("csvlog");
}

#[test]
fn of_a_jsonlog_that_is_cut_anywhere_only_what_was_sent_is_replayed() {
    cut_everywhere("jsonlog");
}

/// The two parts of a log that was cut, in two files and joined again with a line end between: neither is whole there.
#[test]
fn what_is_replayed_of_the_parts_of_a_log_was_sent() {
    let place = Place::new();
    let sent = sent();
    for format in FORMATS {
        let text = log(format);
        for at in (0..=text.len()).step_by(3) {
            let (first, second) = text.as_bytes().split_at(at);
            if let Some((found, _)) = place.prepared(&[first, second], None) {
                assert!(
                    found.is_subset(&sent),
                    "{format} in two files at {at}: {found:#?}"
                );
            }
        }
    }
}
