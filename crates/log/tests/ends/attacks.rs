//! What happens to logs on their way.

use serde_json::json;

use crate::server_log::{Place, count, cr_lf, log, sent};

/// What happens to a log on its way: the format, what is done, and how it is read.
struct Attack {
    name: &'static str,
    format: &'static str,
    change: fn(&str) -> String,
    prefix: Option<&'static str>,
    /// How many statements are still replayed at least, and how many are said to have no certain end.
    replayed: usize,
    uncertain: u64,
}

const fn attack(
    name: &'static str,
    format: &'static str,
    change: fn(&str) -> String,
    replayed: usize,
    uncertain: u64,
) -> Attack {
    Attack {
        name,
        format,
        change,
        prefix: None,
        replayed,
        uncertain,
    }
}

/// The lines of a text changed one by one.
fn each_line(text: &str, change: impl FnMut(&str) -> String) -> String {
    text.split_inclusive('\n').map(change).collect()
}

/// Lines of at most so many characters, the rest of a longer one in lines of its own behind `mark`.
fn wrapped(text: &str, most: usize, mark: &str) -> String {
    let wrap = |line: &str| {
        let characters: Vec<char> = line.chars().collect();
        let parts: Vec<String> = characters
            .chunks(most)
            .map(|part| part.iter().collect())
            .collect();
        parts.join(&format!("\n{mark}"))
    };
    each_line(text, wrap)
}

fn cut_lines(text: &str, most: usize) -> String {
    each_line(text, |line| {
        let kept: String = line.trim_end_matches('\n').chars().take(most).collect();
        kept + "\n"
    })
}

const ATTACKS: &[Attack] = &[
    attack(
        "grep takes the lines of entries alone",
        "stderr",
        |text| {
            each_line(text, |line| {
                if line.starts_with('\t') {
                    String::new()
                } else {
                    line.to_owned()
                }
            })
        },
        0,
        9,
    ),
    attack(
        "grep takes the lines of entries alone, which log_statement logs",
        "stderr",
        |text| {
            let text = text.replace("duration: 1.234 ms  statement: ", "statement: ");
            each_line(&text, |line| {
                if line.starts_with('\t') {
                    String::new()
                } else {
                    line.to_owned()
                }
            })
        },
        0,
        9,
    ),
    attack(
        "tabs become blanks",
        "stderr",
        |text| text.replace("\n\t", "\n    "),
        2,
        5,
    ),
    attack(
        "tabs become #011",
        "stderr",
        |text| text.replace("\n\t", "\n#011"),
        2,
        5,
    ),
    attack(
        "tabs become \\t",
        "stderr",
        |text| text.replace("\n\t", "\n\\t"),
        2,
        5,
    ),
    attack(
        "tabs are stripped",
        "stderr",
        |text| text.replace("\n\t", "\n"),
        2,
        5,
    ),
    attack(
        "white space before lines is stripped, and empty lines with it",
        "stderr",
        |text| each_line(text, |line| line.trim_start().to_owned()),
        2,
        5,
    ),
    attack(
        "tabs become blanks, lines end with CR LF",
        "stderr",
        |text| cr_lf(&text.replace("\n\t", "\n  ")),
        2,
        5,
    ),
    attack(
        "one half has CR LF",
        "stderr",
        |text| {
            let (first, second) = text.split_at(text.find("2026-11-27 12:00:05").unwrap());
            first.to_owned() + &cr_lf(second)
        },
        3,
        4,
    ),
    attack(
        "further lines have CR LF, first lines LF",
        "stderr",
        |text| {
            each_line(text, |line| {
                if line.starts_with('\t') {
                    line.replace('\n', "\r\n")
                } else {
                    line.to_owned()
                }
            })
        },
        2,
        3,
    ),
    attack(
        "lines are wrapped",
        "stderr",
        |text| wrapped(text, 80, ""),
        0,
        5,
    ),
    attack(
        "lines are wrapped and indented with blanks",
        "stderr",
        |text| wrapped(text, 80, "    "),
        0,
        5,
    ),
    attack(
        "lines are numbered by syslog",
        "stderr",
        |text| {
            let mut number = 0;
            each_line(text, |line| {
                number += 1;
                format!(
                    "Nov 27 12:00:01 db postgres[7]: [{number}-1] {}",
                    line.replace('\t', "#011")
                )
            })
        },
        0,
        0,
    ),
    Attack {
        prefix: Some("db-1  | %m [%p] %q%u@%d "),
        ..attack(
            "docker compose names the container",
            "stderr",
            |text| each_line(text, |line| format!("db-1  | {line}")),
            2,
            5,
        )
    },
    Attack {
        prefix: Some("[%l-1] %m [%p] %q%u@%d "),
        ..attack(
            "chunks are numbered as by journald",
            "stderr",
            |text| {
                let mut number = 0;
                each_line(text, |line| match line.strip_prefix('\t') {
                    Some(rest) => format!("[{number}-2] {rest}"),
                    None => {
                        number += 1;
                        format!("[{number}-1] {line}")
                    }
                })
            },
            2,
            5,
        )
    },
    attack(
        "two entries are written into one line",
        "stderr",
        |text| text.replace("SELECT 1\n2026", "SELECT 12026"),
        3,
        2,
    ),
    attack(
        "an entry is written into the middle of another",
        "stderr",
        |text| {
            text.replace("DELETE FROM orders\n", "DELETE FROM 2026-11-27 12:00:00.000 UTC [8] b@shop LOG:  statement: COMMIT\norders\n")
        },
        3,
        2,
    ),
    attack(
        "an archive_command says something",
        "stderr",
        |text| {
            text.replace(
                "SELECT 1\n",
                "SELECT 1\ncp: cannot stat 'x': No such file or directory\n",
            )
        },
        3,
        2,
    ),
    attack(
        "an empty line follows each entry",
        "stderr",
        |text| text.replace("\n2026", "\n\n2026"),
        0,
        9,
    ),
    attack(
        "NUL bytes stand between entries, as after a crash",
        "stderr",
        |text| text.replace("SELECT 1\n", "SELECT 1\n\0\0\0\0"),
        3,
        1,
    ),
    attack(
        "NUL bytes stand in a statement",
        "stderr",
        |text| text.replace("SELECT 1\n", "SELECT 1\0\n"),
        3,
        1,
    ),
    attack(
        "only the last line has no line end",
        "stderr",
        |text| text.trim_end_matches('\n').to_owned(),
        6,
        1,
    ),
    attack(
        "the last entry is of a statement",
        "stderr",
        |text| text[..text.find("2026-11-27 12:00:12").unwrap()].to_owned(),
        6,
        1,
    ),
    attack(
        "the last line of the last statement is not written yet",
        "stderr",
        |text| text[..text.find("\tWHERE id = 1").unwrap()].to_owned(),
        6,
        2,
    ),
    attack(
        "a DETAIL comes twice",
        "stderr",
        |text| {
            text.replace("DETAIL:  Parameters: $1 = 'x''", "DETAIL:  Parameters: $1 = '1', $2 = '2'\n2026-11-27 12:00:08.123 UTC [7] app@shop DETAIL:  Parameters: $1 = 'x''")
        },
        5,
        2,
    ),
    attack(
        "lines are cut at 1,024 bytes",
        "stderr",
        |text| {
            let long = format!("DELETE FROM orders{} WHERE id = 1", " ".repeat(1200));
            cut_lines(&text.replace("SELECT 1\n", &format!("{long}\n")), 1024)
        },
        5,
        2,
    ),
    attack(
        "lines are cut at 1,023 bytes",
        "stderr",
        |text| {
            let long = format!("DELETE FROM orders{} WHERE id = 1", " ".repeat(1200));
            cut_lines(&text.replace("SELECT 1\n", &format!("{long}\n")), 1023)
        },
        5,
        2,
    ),
    attack(
        "a text is cut with dots",
        "stderr",
        |text| text.replace("FROM orders\n\tWHERE id = 7\n", "FROM orders...\n"),
        5,
        2,
    ),
    attack(
        "a text is cut with an ellipsis",
        "stderr",
        |text| text.replace("FROM orders\n\tWHERE id = 7\n", "FROM orders\u{2026}\n"),
        5,
        2,
    ),
    attack(
        "a text is cut with a mark",
        "stderr",
        |text| {
            text.replace(
                "FROM orders\n\tWHERE id = 7\n",
                "FROM orders [Truncated...]\n",
            )
        },
        5,
        2,
    ),
    attack(
        "a text is cut behind WHERE",
        "stderr",
        |text| text.replace("\n\tWHERE id = 7\n", "\n\tWHERE\n"),
        5,
        2,
    ),
    attack(
        "a text is cut within a string",
        "stderr",
        |text| text.replace("\n\t\n\t\ttwo'\n\tWHERE b = $1", ""),
        4,
        2,
    ),
    attack(
        "a whole log follows one that was cut in a line",
        "stderr",
        |text| {
            let cut = &text[..text.find("WHERE id = 7").unwrap()];
            cut.to_owned() + text
        },
        6,
        2,
    ),
    attack(
        "a csvlog is written again without quotes",
        "csvlog",
        |text| {
            text.replace(
                "\"duration: 1.234 ms  statement: SELECT 1\"",
                "duration: 1.234 ms  statement: SELECT 1",
            )
        },
        5,
        2,
    ),
    attack(
        "a quotation mark of a csvlog is lost",
        "csvlog",
        |text| text.replace("SELECT 1\",", "SELECT 1,"),
        5,
        1,
    ),
    attack(
        "a record of a csvlog is cut behind its message",
        "csvlog",
        |text| {
            text.replace(
                "id = 7\",,,,,,,,,\"psql\",\"client backend\",,0\n",
                "id = 7\"\n",
            )
        },
        5,
        1,
    ),
    attack(
        "a record of a csvlog is cut in its message",
        "csvlog",
        |text| {
            let (first, rest) = text.split_once("\nWHERE id = 7").unwrap();
            format!("{first}{}", &rest[rest.find('\n').unwrap()..])
        },
        5,
        1,
    ),
    attack(
        "a csvlog has no user, and a record is cut in its message",
        "csvlog",
        |text| {
            let text = text
                .replace("\"app\",\"shop\",7,\"[local]\"", ",,7,")
                .replace("\"SELECT\"", "");
            let (first, rest) = text.split_once("\nWHERE id = 7").unwrap();
            format!("{first}{}", &rest[rest.find('\n').unwrap()..])
        },
        5,
        1,
    ),
    attack(
        "one half of a csvlog has CR LF",
        "csvlog",
        |text| {
            let (first, second) = text.split_at(text.find("2026-11-27 12:00:05").unwrap());
            first.to_owned() + &cr_lf(second)
        },
        4,
        4,
    ),
    attack(
        "a line of a jsonlog is cut",
        "jsonlog",
        |text| text.replace("orders\\nWHERE id = 7", "orders\n"),
        6,
        0,
    ),
    attack(
        "a line of a jsonlog is split",
        "jsonlog",
        |text| text.replace("orders\\nWHERE", "orders\n\\nWHERE"),
        6,
        0,
    ),
    attack(
        "two lines of a jsonlog are joined",
        "jsonlog",
        |text| text.replacen("0}\n", "0}", 1),
        6,
        0,
    ),
    attack(
        "a jsonlog is wrapped by a collector",
        "jsonlog",
        |text| each_line(text, |line| format!("{{\"log\":{}}}\n", json!(line))),
        0,
        0,
    ),
    attack(
        "a jsonlog is written again with keys of its own",
        "jsonlog",
        |text| text.replace("{\"timestamp\"", "{\"host\":\"db\",\"timestamp\""),
        0,
        10,
    ),
    attack(
        "a jsonlog is written again with blanks",
        "jsonlog",
        |text| text.replace("\"timestamp\":", "\"timestamp\": "),
        0,
        10,
    ),
    attack(
        "a value is cut by the server",
        "jsonlog",
        |text| text.replace("$2 = '7'", "$2 = '7...'"),
        6,
        0,
    ),
];

#[test]
fn whatever_happens_to_a_log_only_what_was_sent_is_replayed() {
    let place = Place::new();
    let sent = sent();
    let mut wrong = Vec::new();
    for one in ATTACKS {
        let text = log(one.format);
        let changed = (one.change)(&text);
        assert!(changed != text, "{}: nothing happens", one.name);
        let (found, said) = place
            .prepared(&[changed.as_bytes()], one.prefix)
            .unwrap_or_default();
        let uncertain = if said.is_null() {
            0
        } else {
            count(&said, "end_uncertain")
        };
        let other: Vec<_> = found.difference(&sent).collect();
        if !other.is_empty() || found.len() < one.replayed || uncertain < one.uncertain {
            wrong.push(format!(
                "{}: {} replayed, {uncertain} uncertain, not sent: {other:#?}",
                one.name,
                found.len()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
