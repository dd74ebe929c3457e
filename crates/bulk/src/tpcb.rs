//! The rows of `pgbench -i`, as COPY's text format has them.

use std::ops::Range;

use plinth_config::ConfigError;
use serde::Deserialize;

use crate::table::Table;

/// Greatest scale: 100 billion accounts, some 15 TB.
const GREATEST_SCALE: u64 = 1_000_000;
const TELLERS_PER_BRANCH: u64 = 10;
const ACCOUNTS_PER_BRANCH: u64 = 100_000;

/// The rows of `pgbench -i`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TpcbGenerator {
    /// Branches; each has 10 tellers and 100,000 accounts.
    pub scale: u64,
    /// Only null: tables get their fill factor when they are created.
    #[serde(default)]
    pub fillfactor: Option<u8>,
}

impl TpcbGenerator {
    pub(crate) const TRUNCATE: &str =
        "TRUNCATE pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers";

    pub(crate) fn tables(self) -> Vec<Box<dyn Table>> {
        let table = |kind| -> Box<dyn Table> {
            Box::new(TpcbTable {
                kind,
                scale: self.scale,
            })
        };
        Kind::ALL.map(table).into()
    }

    pub(crate) fn validate(self) -> Result<(), ConfigError> {
        if !(1..=GREATEST_SCALE).contains(&self.scale) {
            let message = format!("got {}, allowed are 1 to {GREATEST_SCALE}", self.scale);
            return Err(ConfigError::new("generator.scale", message));
        }
        if let Some(fillfactor) = self.fillfactor {
            let message =
                format!("got {fillfactor}, only null is allowed: set it when creating the tables");
            return Err(ConfigError::new("generator.fillfactor", message));
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Branches,
    Tellers,
    Accounts,
}

impl Kind {
    /// The accounts, which are many, come last.
    const ALL: [Self; 3] = [Self::Branches, Self::Tellers, Self::Accounts];

    fn rows_per_branch(self) -> u64 {
        match self {
            Self::Branches => 1,
            Self::Tellers => TELLERS_PER_BRANCH,
            Self::Accounts => ACCOUNTS_PER_BRANCH,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct TpcbTable {
    kind: Kind,
    scale: u64,
}

impl Table for TpcbTable {
    fn name(&self) -> &str {
        match self.kind {
            Kind::Branches => "pgbench_branches",
            Kind::Tellers => "pgbench_tellers",
            Kind::Accounts => "pgbench_accounts",
        }
    }

    fn rows(&self) -> u64 {
        self.scale * self.kind.rows_per_branch()
    }

    /// Text, not binary: it suits keys of 32 and of 64 bits, has less than half the bytes, and costs the server the
    /// same.
    fn write_rows(&self, rows: Range<u64>, out: &mut Vec<u8>) {
        let mut key = itoa::Buffer::new();
        let mut branch = itoa::Buffer::new();
        for row in rows {
            out.extend_from_slice(key.format(row + 1).as_bytes());
            if self.kind != Kind::Branches {
                out.push(b'\t');
                let number = row / self.kind.rows_per_branch() + 1;
                out.extend_from_slice(branch.format(number).as_bytes());
            }
            // Fillers are null, but for that of accounts, which is empty and which char(84) pads with blanks.
            let rest: &[u8] = if self.kind == Kind::Accounts {
                b"\t0\t\n"
            } else {
                b"\t0\t\\N\n"
            };
            out.extend_from_slice(rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(kind: Kind, rows: Range<u64>) -> String {
        let mut out = Vec::new();
        TpcbTable { kind, scale: 1 }.write_rows(rows, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn rows_are_numbered_from_one_and_belong_to_branches() {
        assert_eq!(rows(Kind::Branches, 0..2), "1\t0\t\\N\n2\t0\t\\N\n");
        assert_eq!(rows(Kind::Tellers, 9..11), "10\t1\t0\t\\N\n11\t2\t0\t\\N\n");
        assert_eq!(
            rows(Kind::Accounts, 99_999..100_001),
            "100000\t1\t0\t\n100001\t2\t0\t\n"
        );
        assert_eq!(rows(Kind::Accounts, 5..5), "");
    }

    #[test]
    fn the_greatest_scale_has_keys_beyond_32_bits() {
        let generator = TpcbGenerator {
            scale: 1_000_000,
            fillfactor: None,
        };
        let counts: Vec<u64> = generator
            .tables()
            .iter()
            .map(|table| table.rows())
            .collect();
        assert_eq!(counts, [1_000_000, 10_000_000, 100_000_000_000]);
        assert_eq!(
            rows(Kind::Accounts, counts[2] - 1..counts[2]),
            "100000000000\t1000000\t0\t\n"
        );
    }
}
