//! pgbench's built-in scripts.

/// pgbench's default script, `-b tpcb-like`.
const TPCB_LIKE: &str = "\
\\set aid random(1, 100000 * :scale)
\\set bid random(1, 1 * :scale)
\\set tid random(1, 10 * :scale)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
";

/// `-b simple-update` (`-N`): without the two small, contended tables.
const SIMPLE_UPDATE: &str = "\
\\set aid random(1, 100000 * :scale)
\\set bid random(1, 1 * :scale)
\\set tid random(1, 10 * :scale)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
";

/// `-b select-only` (`-S`).
const SELECT_ONLY: &str = "\
\\set aid random(1, 100000 * :scale)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
";

/// A built-in script of pgbench.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Builtin {
    /// Its name for `-b`.
    pub name: &'static str,
    /// Its description in reports.
    pub description: &'static str,
    /// Its text.
    pub source: &'static str,
}

/// All of them, in pgbench's order.
pub const BUILTINS: [Builtin; 3] = [
    Builtin {
        name: "tpcb-like",
        description: "<builtin: TPC-B (sort of)>",
        source: TPCB_LIKE,
    },
    Builtin {
        name: "simple-update",
        description: "<builtin: simple update>",
        source: SIMPLE_UPDATE,
    },
    Builtin {
        name: "select-only",
        description: "<builtin: select only>",
        source: SELECT_ONLY,
    },
];

/// Source of a built-in script.
#[must_use]
pub fn builtin(name: &str) -> Option<&'static str> {
    let found = BUILTINS.iter().find(|known| known.name == name);
    found.map(|builtin| builtin.source)
}
