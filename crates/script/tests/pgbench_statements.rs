//! Splitting and sending of statements, against the real pgbench: its debugging output has the text that it sends.

mod support;

use plinth_script::{Command, Prng, Segment, Symbols, Value, Variables, parse};
use support::Server;

/// Valid SQL with everything that can contain a semicolon or a colon.
const SCRIPT: &str = r#"
-- a comment; 'with a quote
/* and /* a nested; */ one ' */ SELECT 1;SELECT 2;  SELECT 'a;b', "c;d".* FROM (SELECT 1) AS "c;d";
SELECT 3 -- in the middle; of '
, 4;
SELECT $$a;b'$$ || $t$;$$ $x$ ;$t$ || 'x$$', 1 AS a$b$, 2 AS c$b$;
SELECT E'it\'s;x''\';' || e'\\' AS "E'";
SELECT 'one;'
  -- between; the parts
  'two;';
SELECT E'one\';'
  'two\';', N'n;', U&'d\0061t\+000061;' UESCAPE '\';
SELECT b'1010', B'11' || x'1F' = X'1';
SELECT 5 \; SELECT 6;
\set n 5
\set double 1.5e300
\set big -9223372036854775808
\set yes true
\set nil null
SELECT :n, 1::int, ':n', :n::int, 2 AS ":n", '12:34:56', ':1', :double, :big, :yes, :nil, ':undefined', '::n', ': n';
SELECT $$:n$$ /* :n */ -- :n
;
SELECT (SELECT 7), ('x;'), (8);
CREATE OR REPLACE FUNCTION pg_temp.f(n int) RETURNS int LANGUAGE sql
BEGIN ATOMIC
  SELECT CASE WHEN n > 1 THEN 1 ELSE 2 END;
  SELECT 2;
END;
CREATE TEMP TABLE IF NOT EXISTS begin_here (replace int);
BEGIN;
SELECT pg_temp.f(1);
END;
SELECT (array[1, 2])[1:2], 'grün:n', 1 AS "größe;";
SELECT 9 \set n \
  6 + \
  :n
SELECT :n
"#;

#[test]
fn statements_are_cut_and_filled_as_pgbench_does() {
    let server = Server::start();
    let output = server.pgbench(&["-t", "1", "--debug", "--protocol=simple"], &[(SCRIPT, 1)]);
    let stderr = String::from_utf8(output.stderr).expect("text");
    assert!(output.status.success(), "{stderr}");
    assert_eq!(simple_texts(SCRIPT), sent(&stderr));
}

#[test]
fn parameters_are_numbered_as_pgbench_does() {
    let script = "\\set n 5\nSELECT :n::int + 1::int,\n  :n::int;\nSELECT :n::text || '12:30' -- 1:2\n;SELECT 1\n";
    let server = Server::start();
    for protocol in ["extended", "prepared"] {
        let args = ["-t", "1", "--debug", "--protocol", protocol];
        let output = server.pgbench(&args, &[(script, 1)]);
        let stderr = String::from_utf8(output.stderr).expect("text");
        assert!(output.status.success(), "{stderr}");
        if protocol == "extended" {
            assert_eq!(prepared_texts(script), sent(&stderr));
        }
    }
}

/// What pgbench sent, by its debugging output, which leaves out a newline at the end.
fn sent(stderr: &str) -> Vec<String> {
    stderr
        .split("pgbench: ")
        .filter_map(|message| message.strip_prefix("client 0 sending "))
        .map(without_newline)
        .collect()
}

fn without_newline(text: &str) -> String {
    text.strip_suffix('\n').unwrap_or(text).to_owned()
}

/// What Plinth sends in the simple protocol.
fn simple_texts(script: &str) -> Vec<String> {
    let mut symbols = Symbols::new();
    let script = parse("script", script, &mut symbols).expect("a script");
    let mut variables = Variables::new(&symbols);
    let mut rng = Prng::seeded(1);
    let mut texts = Vec::new();
    for command in &script.commands {
        match command {
            Command::Set { target, expr } => {
                let value: Value = expr.eval(&variables, &mut rng).expect("a value");
                variables.set(target.slot("set").expect("a name"), value);
            }
            Command::Sql(sql) => {
                let mut text = Vec::new();
                for segment in &sql.segments {
                    match segment {
                        Segment::Text(piece) => text.extend_from_slice(piece.as_bytes()),
                        Segment::Var(slot) => {
                            if !variables.write_text(*slot, &mut text) {
                                text.extend_from_slice(
                                    format!(":{}", symbols.name(*slot)).as_bytes(),
                                );
                            }
                        }
                    }
                }
                texts.push(without_newline(std::str::from_utf8(&text).expect("text")));
            }
            other => panic!("unexpected {other:?}"),
        }
    }
    texts
}

/// What Plinth prepares for the extended protocol.
fn prepared_texts(script: &str) -> Vec<String> {
    let script = parse("script", script, &mut Symbols::new()).expect("a script");
    let sql = |command: &Command| match command {
        Command::Sql(sql) => Some(without_newline(&sql.prepared_text)),
        _ => None,
    };
    script.commands.iter().filter_map(sql).collect()
}
