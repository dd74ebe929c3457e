//! Authentication methods, by the names of libpq's `require_auth`.

use std::fmt;

/// An authentication method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// No authentication message, or a client certificate.
    None,
    /// The password in clear text.
    Password,
    /// The password, hashed with MD5.
    Md5,
    /// SCRAM-SHA-256, with or without channel binding.
    ScramSha256,
    /// GSSAPI, which is not supported here.
    Gss,
    /// SSPI, which is not supported here.
    Sspi,
    /// OAUTHBEARER, which is not supported here.
    Oauth,
}

impl Method {
    const ALL: [Self; 7] = [
        Self::None,
        Self::Password,
        Self::Md5,
        Self::ScramSha256,
        Self::Gss,
        Self::Sspi,
        Self::Oauth,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Password => "password",
            Self::Md5 => "md5",
            Self::ScramSha256 => "scram-sha-256",
            Self::Gss => "gss",
            Self::Sspi => "sspi",
            Self::Oauth => "oauth",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The set of allowed methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Methods(u8);

impl Default for Methods {
    /// All methods.
    fn default() -> Self {
        Self::ALL
    }
}

impl Methods {
    /// All methods.
    pub const ALL: Self = Self(u8::MAX);

    /// Reads libpq's `require_auth`: a comma-separated list of allowed methods, or of forbidden methods, each with `!`
    /// before it.
    ///
    /// # Errors
    /// The word that is not a method.
    pub fn parse(list: &str) -> Result<Self, String> {
        let mut methods = Self(0);
        let (mut allowed, mut forbidden) = (0, 0);
        for word in list.split(',').map(str::trim) {
            let (name, count) = match word.strip_prefix('!') {
                Some(name) => (name, &mut forbidden),
                None => (word, &mut allowed),
            };
            *count += 1;
            let method = Method::ALL.into_iter().find(|method| method.name() == name);
            methods.0 |= bit(method.ok_or_else(|| word.to_owned())?);
        }
        match (allowed, forbidden) {
            (_, 0) => Ok(methods),
            (0, _) => Ok(Self(!methods.0)),
            _ => Err(list.to_owned()),
        }
    }

    pub(crate) fn allows(self, method: Method) -> bool {
        self.0 & bit(method) != 0
    }
}

fn bit(method: Method) -> u8 {
    1 << method as u8
}

impl fmt::Display for Methods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let allowed = Method::ALL
            .into_iter()
            .filter(|&method| self.allows(method));
        let names: Vec<_> = allowed.map(Method::name).collect();
        f.write_str(&names.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_libpq_reads_them() {
        for (list, allowed) in [
            ("scram-sha-256", "scram-sha-256"),
            ("md5, none", "none,md5"),
            ("!password,!md5", "none,scram-sha-256,gss,sspi,oauth"),
            ("!none", "password,md5,scram-sha-256,gss,sspi,oauth"),
        ] {
            assert_eq!(Methods::parse(list).unwrap().to_string(), allowed, "{list}");
        }
        for wrong in ["", "cert", "md5,!none", "md5,,none", "MD5"] {
            assert!(Methods::parse(wrong).is_err(), "{wrong:?}");
        }
        assert!(
            Method::ALL
                .into_iter()
                .all(|method| Methods::default().allows(method))
        );
    }
}
