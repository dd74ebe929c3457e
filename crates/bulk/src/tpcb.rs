//! The rows of `pgbench -i`, as COPY's text format has them.

use std::ops::Range;

use crate::config::TpcbGenerator;

/// A table that is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Table {
    Branches,
    Tellers,
    Accounts,
}

const TELLERS_PER_BRANCH: u64 = 10;
const ACCOUNTS_PER_BRANCH: u64 = 100_000;

/// No row is longer: two numbers of at most 20 digits, a balance of 0, tabs, an empty or null filler and a newline.
pub(crate) const LONGEST_ROW_BYTES: usize = 48;

impl Table {
    pub(crate) const ALL: [Self; 3] = [Self::Branches, Self::Tellers, Self::Accounts];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Branches => "pgbench_branches",
            Self::Tellers => "pgbench_tellers",
            Self::Accounts => "pgbench_accounts",
        }
    }

    /// Rows of the table.
    pub(crate) fn rows(self, generator: TpcbGenerator) -> u64 {
        generator.scale * self.rows_per_branch()
    }

    fn rows_per_branch(self) -> u64 {
        match self {
            Self::Branches => 1,
            Self::Tellers => TELLERS_PER_BRANCH,
            Self::Accounts => ACCOUNTS_PER_BRANCH,
        }
    }

    /// Appends rows, counted from 0. Text, not binary: it suits keys of 32 and of 64 bits, has less than half the bytes,
    /// and costs the server the same.
    pub(crate) fn write_rows(self, rows: Range<u64>, out: &mut Vec<u8>) {
        let mut key = itoa::Buffer::new();
        let mut branch = itoa::Buffer::new();
        for row in rows {
            out.extend_from_slice(key.format(row + 1).as_bytes());
            if self != Self::Branches {
                out.push(b'\t');
                out.extend_from_slice(branch.format(row / self.rows_per_branch() + 1).as_bytes());
            }
            // Fillers are null, but for that of accounts, which is empty and which char(84) pads with blanks.
            let rest: &[u8] = if self == Self::Accounts {
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

    fn rows(table: Table, rows: Range<u64>) -> String {
        let mut out = Vec::new();
        table.write_rows(rows, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn rows_are_numbered_from_one_and_belong_to_branches() {
        assert_eq!(rows(Table::Branches, 0..2), "1\t0\t\\N\n2\t0\t\\N\n");
        assert_eq!(
            rows(Table::Tellers, 9..11),
            "10\t1\t0\t\\N\n11\t2\t0\t\\N\n"
        );
        assert_eq!(
            rows(Table::Accounts, 99_999..100_001),
            "100000\t1\t0\t\n100001\t2\t0\t\n"
        );
        assert_eq!(rows(Table::Accounts, 5..5), "");
    }

    #[test]
    fn the_greatest_scale_has_keys_beyond_32_bits_and_no_row_is_too_long() {
        let generator = TpcbGenerator {
            scale: 1_000_000,
            fillfactor: None,
        };
        let count = Table::Accounts.rows(generator);
        assert_eq!(
            rows(Table::Accounts, count - 1..count),
            "100000000000\t1000000\t0\t\n"
        );
        assert!(rows(Table::Tellers, u64::MAX - 1..u64::MAX).len() <= LONGEST_ROW_BYTES);
        assert_eq!(
            Table::ALL.map(|table| table.rows(generator)),
            [1_000_000, 10_000_000, count]
        );
    }
}
