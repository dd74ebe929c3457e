use super::*;

const LOGIN: Login<'_> = Login {
    user: "u",
    password: Some("secret"),
    parameters: &[("database", "d")],
    methods: Methods::ALL,
    channel_binding: ChannelBinding::Prefer,
    encryption: Encryption::None,
};

fn frame(tag: u8, body: &[u8]) -> Vec<u8> {
    [
        &[tag],
        (body.len() as i32 + 4).to_be_bytes().as_slice(),
        body,
    ]
    .concat()
}

fn authentication(code: i32, data: &[u8]) -> Vec<u8> {
    frame(b'R', &[code.to_be_bytes().as_slice(), data].concat())
}

fn started(login: &Login<'_>) -> Startup {
    Startup::new(login, &Arc::default(), &mut Vec::new()).unwrap()
}

#[test]
fn trust_byte_by_byte() {
    let mut startup = started(&Login {
        password: None,
        ..LOGIN
    });
    let bytes = [
        authentication(0, &[]),
        frame(b'S', b"server_version\x0018.6\0"),
        frame(b'K', &[0, 0, 0, 7, 1, 2, 3, 4]),
        frame(b'Z', b"I"),
    ]
    .concat();
    let (last, head) = bytes.split_last().unwrap();
    let mut out = Vec::new();
    for byte in head {
        assert!(startup.receive(&[*byte], &mut out).unwrap().is_none());
    }
    let session = startup.receive(&[*last], &mut out).unwrap().unwrap();
    assert_eq!(session.parameter("server_version"), Some("18.6"));
    assert_eq!(
        (session.process_id, session.secret_key.as_slice()),
        (7, [1, 2, 3, 4].as_slice())
    );
    assert!(out.is_empty());
}

#[test]
fn md5_and_cleartext_answers() {
    let mut out = Vec::new();
    started(&LOGIN)
        .receive(&authentication(3, &[]), &mut out)
        .unwrap();
    assert_eq!(out, frame(b'p', b"secret\0"));
    out.clear();
    started(&LOGIN)
        .receive(&authentication(5, &[1, 2, 3, 4]), &mut out)
        .unwrap();
    let hash = format!("{}\0", md5_hash(b"u", b"secret", [1, 2, 3, 4]));
    assert_eq!(out, frame(b'p', hash.as_bytes()));
}

#[test]
fn failures_are_typed() {
    let no_password = Login {
        password: None,
        ..LOGIN
    };
    let cases: [(&Login<'_>, Vec<u8>, &str); 8] = [
        (
            &LOGIN,
            frame(b'E', b"VFATAL\0C28P01\0Mno\0\0"),
            "FATAL: no (SQLSTATE 28P01)",
        ),
        (
            &no_password,
            authentication(10, b"SCRAM-SHA-256\0\0"),
            "asks for a password (scram-sha-256)",
        ),
        (
            &LOGIN,
            authentication(10, b"OAUTHBEARER\0\0"),
            "SASL with OAUTHBEARER",
        ),
        (&LOGIN, authentication(7, &[]), "asks for GSSAPI"),
        (&LOGIN, frame(b'Z', b"I"), "unexpected message 'Z'"),
        (&LOGIN, frame(b'D', b""), "unexpected message 'D'"),
        (&LOGIN, frame(b'R', b"\0"), "unexpected message 'R'"),
        (
            &LOGIN,
            b"HTTP/1.1 400 Bad Request".to_vec(),
            "not a PostgreSQL server?",
        ),
    ];
    for (login, bytes, message) in cases {
        let error = started(login)
            .receive(&bytes, &mut Vec::new())
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(message),
            "{error:?} does not contain {message:?}"
        );
    }
}

#[test]
fn a_server_that_cuts_scram_short_is_not_believed() {
    let mut startup = started(&LOGIN);
    startup
        .receive(&authentication(10, b"SCRAM-SHA-256\0\0"), &mut Vec::new())
        .unwrap();
    let error = startup
        .receive(&authentication(0, &[]), &mut Vec::new())
        .unwrap_err();
    assert!(matches!(error, StartupError::Unexpected(b'R')));
}
