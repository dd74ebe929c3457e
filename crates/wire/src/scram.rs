//! SCRAM-SHA-256 (RFC 5802, RFC 7677), the client's side, with and without channel binding.
//!
//! Salting a password is slow by design (4096 iterations take about a millisecond), and gives the same key for the same
//! salt, so a thousand sessions of one role need it once. [`SaltedPasswords`] keeps the keys.
//!
//! That is why this is not `postgres_protocol::authentication::sasl`: its `ScramSha256` takes only a password and salts it
//! in each exchange: a millisecond of CPU time for each connection of a load. It also reports every failure as an
//! `io::Error`, where a login here distinguishes a wrong server from a malformed message.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SecureRandom;
use ring::{digest, hmac, pbkdf2};
use thiserror::Error;

/// The mechanism's name.
pub(crate) const SCRAM_SHA_256: &str = "SCRAM-SHA-256";
/// With channel binding.
pub(crate) const SCRAM_SHA_256_PLUS: &str = "SCRAM-SHA-256-PLUS";

/// The maximum number of iterations, which protects clients from a malicious server: 244 times PostgreSQL's default,
/// and a second of CPU time.
const MOST_ITERATIONS: u32 = 1_000_000;

/// Maximum number of entries of [`SaltedPasswords`]: one for each role on each server, of which there are seldom more
/// than a few.
const KEPT_PASSWORDS: usize = 16;

const KEY_BYTES: usize = digest::SHA256_OUTPUT_LEN;
type Key = [u8; KEY_BYTES];

/// The reason why a SCRAM exchange failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ScramError {
    /// A message that does not follow RFC 5802.
    #[error("the server's {0} is not as RFC 5802 has it")]
    Malformed(&'static str),
    /// The server's nonce does not extend the client's.
    #[error("the server's nonce does not begin with ours")]
    Nonce,
    /// The server asks for too many iterations.
    #[error("the server asks for {0} iterations, at most {MOST_ITERATIONS} are allowed")]
    Iterations(u32),
    /// The server reported an error within the exchange.
    #[error("the server says: {0}")]
    Rejected(String),
    /// The server cannot prove that it knows the password.
    #[error("the server does not know the password that it asked for: is it the right server?")]
    Signature,
    /// The system provided no random numbers.
    #[error("no random numbers are to be had")]
    Random,
}

/// A cache of salted passwords, for further logins of the same role.
#[derive(Default)]
pub struct SaltedPasswords(Mutex<Vec<Salted>>);

struct Salted {
    password: Vec<u8>,
    salt: Vec<u8>,
    iterations: NonZeroU32,
    key: Key,
}

impl fmt::Debug for SaltedPasswords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SaltedPasswords(***)")
    }
}

impl SaltedPasswords {
    /// The salted password. It is computed without holding the lock, so two threads may compute the same one at the
    /// same time.
    fn salt(&self, password: &[u8], salt: &[u8], iterations: NonZeroU32) -> Key {
        let known = self.with(|kept| {
            kept.iter()
                .find(|entry| {
                    entry.salt == salt
                        && entry.iterations == iterations
                        && entry.password == password
                })
                .map(|entry| entry.key)
        });
        known.unwrap_or_else(|| {
            let mut key = [0; KEY_BYTES];
            let algorithm = pbkdf2::PBKDF2_HMAC_SHA256;
            pbkdf2::derive(algorithm, iterations, salt, password, &mut key);
            let (password, salt) = (password.to_vec(), salt.to_vec());
            self.with(|kept| {
                if kept.len() == KEPT_PASSWORDS {
                    kept.remove(0);
                }
                kept.push(Salted {
                    password,
                    salt,
                    iterations,
                    key,
                });
            });
            key
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut Vec<Salted>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The channel binding: it ties the exchange to the encrypted connection that it uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Binding {
    /// There is no encryption, or the user disabled channel binding.
    None,
    /// The client supports it, but the server did not offer it.
    NotOffered,
    /// `tls-server-end-point`: the hash of the server's certificate.
    ServerEndPoint(Vec<u8>),
}

impl Binding {
    fn header(&self) -> &'static str {
        match self {
            Self::None => "n,,",
            Self::NotOffered => "y,,",
            Self::ServerEndPoint(_) => "p=tls-server-end-point,,",
        }
    }

    /// The mechanism's name.
    pub(crate) fn mechanism(&self) -> &'static str {
        match self {
            Self::ServerEndPoint(_) => SCRAM_SHA_256_PLUS,
            Self::None | Self::NotOffered => SCRAM_SHA_256,
        }
    }
}

/// A SCRAM exchange in progress.
pub(crate) struct Scram {
    password: Vec<u8>,
    binding: Binding,
    nonce: String,
    /// The expected signature in the server's last message; known after its first message.
    server_signature: Option<Key>,
}

impl Scram {
    pub(crate) fn new(password: &str, binding: Binding) -> Result<Self, ScramError> {
        let mut bytes = [0; 18];
        let random = ring::rand::SystemRandom::new();
        random.fill(&mut bytes).map_err(|_| ScramError::Random)?;
        Ok(Self::with_nonce(password, binding, STANDARD.encode(bytes)))
    }

    fn with_nonce(password: &str, binding: Binding, nonce: String) -> Self {
        // A password that SASLprep refuses is used unchanged, as PostgreSQL does on both sides.
        let prepared = stringprep::saslprep(password);
        let password = prepared.map_or_else(
            |_| password.as_bytes().to_vec(),
            |text| text.as_bytes().to_vec(),
        );
        Self {
            password,
            binding,
            nonce,
            server_signature: None,
        }
    }

    pub(crate) fn mechanism(&self) -> &'static str {
        self.binding.mechanism()
    }

    /// Whether the exchange rules out a man in the middle.
    pub(crate) fn binds_channel(&self) -> bool {
        matches!(self.binding, Binding::ServerEndPoint(_))
    }

    /// `client-first-message`.
    pub(crate) fn first(&self) -> String {
        format!("{}{}", self.binding.header(), self.first_bare())
    }

    /// PostgreSQL takes the role from the startup message.
    fn first_bare(&self) -> String {
        format!("n=,r={}", self.nonce)
    }

    /// `client-final-message`, the answer to the server's first message.
    pub(crate) fn last(
        &mut self,
        server_first: &[u8],
        salted: &SaltedPasswords,
    ) -> Result<String, ScramError> {
        const MESSAGE: ScramError = ScramError::Malformed("first message");
        let server_first = std::str::from_utf8(server_first).map_err(|_| MESSAGE)?;
        let mut attributes = server_first.split(',');
        let mut attribute = |name| attributes.next().and_then(|word| word.strip_prefix(name));
        let nonce = attribute("r=").ok_or(MESSAGE)?;
        let salt = attribute("s=").ok_or(MESSAGE)?;
        let iterations = attribute("i=").ok_or(MESSAGE)?;
        if nonce.len() <= self.nonce.len() || !nonce.starts_with(&self.nonce) {
            return Err(ScramError::Nonce);
        }
        let salt = STANDARD.decode(salt).map_err(|_| MESSAGE)?;
        let iterations: NonZeroU32 = iterations.parse().map_err(|_| MESSAGE)?;
        if iterations.get() > MOST_ITERATIONS {
            return Err(ScramError::Iterations(iterations.get()));
        }
        let mut bound = self.binding.header().as_bytes().to_vec();
        if let Binding::ServerEndPoint(hash) = &self.binding {
            bound.extend_from_slice(hash);
        }
        let without_proof = format!("c={},r={nonce}", STANDARD.encode(bound));
        let all = format!("{},{server_first},{without_proof}", self.first_bare());

        let key = salted.salt(&self.password, &salt, iterations);
        let client_key = sign(&key, b"Client Key");
        let stored_key = digest::digest(&digest::SHA256, &client_key);
        let mut proof = sign(stored_key.as_ref(), all.as_bytes());
        for (byte, key) in proof.iter_mut().zip(client_key) {
            *byte ^= key;
        }
        self.server_signature = Some(sign(&sign(&key, b"Server Key"), all.as_bytes()));
        Ok(format!("{without_proof},p={}", STANDARD.encode(proof)))
    }

    /// Checks the server's last message.
    pub(crate) fn finish(&self, server_final: &[u8]) -> Result<(), ScramError> {
        const MESSAGE: ScramError = ScramError::Malformed("last message");
        let server_final = std::str::from_utf8(server_final).map_err(|_| MESSAGE)?;
        let first = server_final.split(',').next().unwrap_or_default();
        if let Some(error) = first.strip_prefix("e=") {
            return Err(ScramError::Rejected(error.to_owned()));
        }
        let signature = first.strip_prefix("v=").ok_or(MESSAGE)?;
        let signature = STANDARD.decode(signature).map_err(|_| MESSAGE)?;
        match self.server_signature {
            Some(expected) if signature == expected => Ok(()),
            _ => Err(ScramError::Signature),
        }
    }
}

fn sign(key: &[u8], message: &[u8]) -> Key {
    let mut signature = [0; KEY_BYTES];
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    signature.copy_from_slice(hmac::sign(&key, message).as_ref());
    signature
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: &str = "9IZ2O01zb9IgiIZ1WJ/zgpJB";
    const SERVER_FIRST: &[u8] =
        b"r=9IZ2O01zb9IgiIZ1WJ/zgpJBjx/oIRLs02gGSHcw1KEty3eY,s=fs3IXBy7U7+IvVjZ,i=4096";

    fn exchange() -> Scram {
        Scram::with_nonce("foobar", Binding::None, NONCE.to_owned())
    }

    /// A recorded exchange between psql and a server (the example of the crate `postgres-protocol`).
    #[test]
    fn a_whole_exchange() {
        let mut scram = exchange();
        assert_eq!(scram.first(), "n,,n=,r=9IZ2O01zb9IgiIZ1WJ/zgpJB");
        let last = scram.last(SERVER_FIRST, &SaltedPasswords::default());
        assert_eq!(
            last.unwrap(),
            "c=biws,r=9IZ2O01zb9IgiIZ1WJ/zgpJBjx/oIRLs02gGSHcw1KEty3eY,\
             p=AmNKosjJzS31NTlQYNs5BTeQjdHdk7lOflDo5re2an8="
        );
        let right = b"v=U+ppxD5XUKtradnv8e2MkeupiA8FU87Sg8CXzXHDAzw=";
        assert_eq!(scram.finish(right), Ok(()));
        assert_eq!(scram.finish(b"v=AAAA"), Err(ScramError::Signature));
    }

    #[test]
    fn binding_is_in_the_header_and_in_the_proof() {
        let binding = Binding::ServerEndPoint(vec![1, 2, 3]);
        let mut scram = Scram::with_nonce("foobar", binding, NONCE.to_owned());
        assert_eq!(scram.mechanism(), SCRAM_SHA_256_PLUS);
        assert!(scram.first().starts_with("p=tls-server-end-point,,n=,r="));
        let last = scram
            .last(SERVER_FIRST, &SaltedPasswords::default())
            .unwrap();
        let header = last.strip_prefix("c=").unwrap().split(',').next().unwrap();
        let bound = [b"p=tls-server-end-point,,".as_slice(), &[1, 2, 3]].concat();
        assert_eq!(STANDARD.decode(header).unwrap(), bound);
        let able = Scram::with_nonce("", Binding::NotOffered, NONCE.to_owned());
        assert!(able.first().starts_with("y,,"));
    }

    #[test]
    fn salted_passwords_are_kept_and_not_mixed_up() {
        let kept = SaltedPasswords::default();
        let rounds = |count| NonZeroU32::new(count).unwrap();
        let first = kept.salt(b"a", b"salt", rounds(2));
        assert_eq!(kept.salt(b"a", b"salt", rounds(2)), first);
        for (password, salt, count) in [(b"b", b"salt", 2), (b"a", b"tlas", 2), (b"a", b"salt", 3)]
        {
            assert_ne!(kept.salt(password, salt, rounds(count)), first);
        }
        assert_eq!(kept.with(|entries| entries.len()), 4);
        for number in 0..100_u8 {
            kept.salt(b"a", &[number], rounds(1));
        }
        assert_eq!(kept.with(|entries| entries.len()), KEPT_PASSWORDS);
    }

    #[test]
    fn messages_that_are_none() {
        let long = format!("r={NONCE}x,s=AAAA,i=4000000000");
        let cases: [(&[u8], ScramError); 8] = [
            (b"", ScramError::Malformed("first message")),
            (b"\xff", ScramError::Malformed("first message")),
            (b"r=abc,s=AAAA", ScramError::Malformed("first message")),
            (b"r=abc,s=AAAA,i=4096", ScramError::Nonce),
            (
                b"r=9IZ2O01zb9IgiIZ1WJ/zgpJB,s=AAAA,i=4096",
                ScramError::Nonce,
            ),
            (
                b"r=9IZ2O01zb9IgiIZ1WJ/zgpJBx,s=?,i=4096",
                ScramError::Malformed("first message"),
            ),
            (
                b"r=9IZ2O01zb9IgiIZ1WJ/zgpJBx,s=AAAA,i=0",
                ScramError::Malformed("first message"),
            ),
            (long.as_bytes(), ScramError::Iterations(4_000_000_000)),
        ];
        for (message, error) in cases {
            let got = exchange().last(message, &SaltedPasswords::default());
            assert_eq!(got.unwrap_err(), error);
        }
        let last = |message: &[u8]| exchange().finish(message).unwrap_err();
        assert_eq!(
            last(b"e=invalid-proof"),
            ScramError::Rejected("invalid-proof".to_owned())
        );
        assert_eq!(last(b"v=?"), ScramError::Malformed("last message"));
        assert_eq!(last(b""), ScramError::Malformed("last message"));
        // Before the server's first message, no signature is valid.
        assert_eq!(last(b"v="), ScramError::Signature);
    }
}
