//! What is written is read, and what is damaged is refused.

use std::collections::HashMap;
use std::path::Path;

use proptest::prelude::*;

use super::reader::{ReplayFile, ReplayFileError, parameters};
use super::writer::{MAX_TEXT_BYTES, Writer, Written};
use crate::classifier::Classifier;
use crate::entry::{Bytes, Place};
use crate::statement::{Form, SessionFacts, Statement};

#[derive(Clone, Debug, PartialEq)]
struct Case {
    session: u32,
    start_us: i64,
    duration_us: Option<u64>,
    text: Vec<u8>,
    form: Form,
    parameters: Vec<Option<Vec<u8>>>,
    code: Option<[u8; 5]>,
}

fn written(cases: &[Case]) -> (tempfile::NamedTempFile, Written) {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::new(folder.path());
    let mut classifier = Classifier::default();
    for case in cases {
        let facts = SessionFacts {
            number: case.session,
            user: b"app".to_vec(),
            ..SessionFacts::default()
        };
        let parameters: Vec<Option<Bytes<'_>>> = case
            .parameters
            .iter()
            .map(|one| one.as_deref().map(Bytes::Borrowed))
            .collect();
        let class = classifier.classify(&case.text);
        let statement = Statement {
            session: &facts,
            start_us: case.start_us,
            duration_us: case.duration_us,
            form: case.form,
            text: &case.text,
            detail: b"",
            has_failed: case.code.is_some(),
            sqlstate: case.code,
            place: Place::default(),
            end_is_known: true,
        };
        let parameters = (case.form != Form::Simple).then_some(&parameters[..]);
        writer.statement(&statement, &class, parameters).unwrap();
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    let written = writer.finish(file.as_file()).unwrap();
    (file, written)
}

fn read(path: &Path) -> Result<Vec<Case>, ReplayFileError> {
    let replay = ReplayFile::open(path)?;
    let mut statements = replay.statements()?;
    let mut cases = Vec::new();
    while let Some(one) = statements.next(&replay)? {
        let normalised = crate::normalise::normalise(one.text).text;
        assert!(normalised.starts_with(&replay.classes[one.class as usize].text));
        let bytes = one.parameters.map_or(&b""[..], |(_, bytes)| bytes);
        cases.push(Case {
            session: one.session,
            start_us: one.start_us as i64 + replay.first_us,
            duration_us: one.duration_us,
            text: one.text.to_vec(),
            form: match (one.parameters, one.is_prepared) {
                (None, _) => Form::Simple,
                (_, false) => Form::Extended,
                (_, true) => Form::Prepared,
            },
            parameters: parameters(bytes)
                .map(|one| one.map(<[u8]>::to_vec))
                .collect(),
            code: one.sqlstate,
        });
    }
    Ok(cases)
}

fn any_case() -> impl Strategy<Value = Case> {
    let text = prop_oneof![
        Just(b"SELECT 1".to_vec()),
        Just(b"UPDATE t SET a = 5".to_vec()),
        Just(vec![b'x'; MAX_TEXT_BYTES + 1]),
        Just(vec![0xff, b'\'', 0x80]),
    ];
    let form = prop_oneof![
        Just(Form::Simple),
        Just(Form::Extended),
        Just(Form::Prepared)
    ];
    let values = proptest::collection::vec(
        proptest::option::of(proptest::collection::vec(any::<u8>(), 0..200)),
        0..4,
    );
    (
        0_u32..4,
        -5_000_000_i64..5_000_000,
        proptest::option::of(0_u64..9_000_000),
        text,
        form,
        values,
        proptest::option::of(Just(*b"40001")),
    )
        .prop_map(
            |(session, start_us, duration_us, text, form, values, code)| Case {
                session,
                start_us,
                duration_us,
                text,
                parameters: if form == Form::Simple {
                    Vec::new()
                } else {
                    values
                },
                form,
                code,
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn statements_come_back_in_the_order_of_time(cases in proptest::collection::vec(any_case(), 0..30)) {
        let (file, written) = written(&cases);
        let mut expected = cases.clone();
        // Statements of a session keep their order.
        let mut latest = HashMap::new();
        for case in &mut expected {
            let latest_us = latest.entry(case.session).or_insert(case.start_us);
            *latest_us = case.start_us.max(*latest_us);
            case.start_us = *latest_us;
        }
        expected.sort_by_key(|case| (case.start_us, case.session));
        // Sessions without statements are left out, the others keep their order.
        let mut sessions: Vec<u32> = cases.iter().map(|case| case.session).collect();
        sessions.sort_unstable();
        sessions.dedup();
        for case in &mut expected {
            case.session = sessions.iter().position(|one| *one == case.session).unwrap() as u32;
        }
        prop_assert_eq!(read(file.path()).unwrap(), expected);
        prop_assert_eq!(written.sessions, sessions.len() as u64);
        prop_assert_eq!(written.size_bytes, file.as_file().metadata().unwrap().len());
    }

    #[test]
    fn a_damaged_file_is_refused_or_read(
        cases in proptest::collection::vec(any_case(), 1..5),
        at in any::<proptest::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<bool>(),
    ) {
        let (file, _) = written(&cases);
        let mut bytes = std::fs::read(file.path()).unwrap();
        let at = at.index(bytes.len());
        if cut {
            bytes.truncate(at);
        } else {
            bytes[at] = byte;
        }
        std::fs::write(file.path(), &bytes).unwrap();
        let opened = ReplayFile::open(file.path());
        prop_assert!(!cut || opened.is_err());
        if let Ok(replay) = opened {
            let mut statements = replay.statements().unwrap();
            while let Ok(Some(one)) = statements.next(&replay) {
                if let Some((count, bytes)) = one.parameters {
                    prop_assert_eq!(parameters(bytes).count(), usize::from(count));
                }
            }
        }
    }
}

#[test]
fn two_readers_do_not_disturb_each_other() {
    let case = Case {
        session: 0,
        start_us: 5,
        duration_us: Some(7),
        text: b"SELECT 1".to_vec(),
        form: Form::Simple,
        parameters: Vec::new(),
        code: None,
    };
    let (file, _) = written(&[case.clone(), case]);
    let replay = ReplayFile::open(file.path()).unwrap();
    let (mut a, mut b) = (replay.statements().unwrap(), replay.statements().unwrap());
    for _ in 0..2 {
        assert!(a.next(&replay).unwrap().is_some());
        assert!(b.next(&replay).unwrap().is_some());
    }
    assert!(a.next(&replay).unwrap().is_none() && b.next(&replay).unwrap().is_none());
}
