//! The statements that a script gets for the ledger.

use plinth_script::{BlockStatement, Command, ParseError, Script, Symbols, parse};

/// What a transaction of a script does before its `COMMIT` or `PREPARE TRANSACTION`; it stays on the line of that. The levels of synchronous_commit
/// that a client's transactions had are bits of a number: nothing but the transaction itself sees what it has set.
const ADDED: &str = "INSERT INTO plinth_ledger_commits (client, number) \
    VALUES (:plinth_ledger_client, :plinth_ledger_number); \
    UPDATE plinth_ledger_clients SET last_number = :plinth_ledger_number, commit_levels = commit_levels \
    | CASE current_setting('synchronous_commit') WHEN 'off' THEN 1 WHEN 'local' THEN 2 WHEN 'remote_write' THEN 4 \
    WHEN 'on' THEN 8 ELSE 16 END WHERE client = :plinth_ledger_client; ";

/// The script with two more statements before the end of each transaction block. Lines stay what they are.
///
/// # Errors
/// What cannot be parsed; a script without a transaction block, or with a pipeline.
pub(crate) fn with_ledger(name: &str, source: &str) -> Result<String, ParseError> {
    let script = parse(name, source, &mut Symbols::new())?;
    refuse_pipelines(&script)?;
    let commits = commits(&script)?;
    let mut text = source.to_owned();
    for start in commits.into_iter().rev() {
        text.insert_str(start, ADDED);
    }
    Ok(text)
}

fn refuse_pipelines(script: &Script) -> Result<(), ParseError> {
    let mut written = script.commands.iter().zip(&script.written);
    match written.find(|(command, _)| **command == Command::StartPipeline) {
        None => Ok(()),
        Some((_, written)) => Err(refused(
            script,
            written.line,
            "a ledger is kept of scripts without \\startpipeline only",
            "leave out \\startpipeline and \\endpipeline, or the ledger",
        )),
    }
}

/// Where the statements begin that end a transaction block.
fn commits(script: &Script) -> Result<Vec<usize>, ParseError> {
    let (mut has_begun, mut commits) = (false, Vec::new());
    let mut unfinished = None;
    for (command, written) in script.commands.iter().zip(&script.written) {
        let Command::Sql(sql) = command else { continue };
        match BlockStatement::of(&sql.text) {
            Some(BlockStatement::Begin) => has_begun = true,
            Some(end @ (BlockStatement::Commit | BlockStatement::Prepare)) if has_begun => {
                commits.push(written.start);
                if end == BlockStatement::Prepare {
                    unfinished = Some(written.line);
                }
            }
            Some(end @ (BlockStatement::Commit | BlockStatement::Prepare)) => {
                let statement = if end == BlockStatement::Commit {
                    "COMMIT"
                } else {
                    "PREPARE TRANSACTION"
                };
                return Err(refused(
                    script,
                    written.line,
                    &format!(
                        "there is no BEGIN before this {statement}, so that the ledger's statements would be transactions of their own"
                    ),
                    "begin the transaction with BEGIN",
                ));
            }
            Some(BlockStatement::CommitPrepared | BlockStatement::RollbackPrepared) => {
                unfinished = None;
            }
            None => {}
        }
    }
    if let Some(line) = unfinished {
        return Err(refused(
            script,
            line,
            "no COMMIT PREPARED or ROLLBACK PREPARED follows this PREPARE TRANSACTION, so that the client's next transaction would \
             wait for the row of the ledger that this one has locked",
            "finish the prepared transaction in the same script",
        ));
    }
    if commits.is_empty() {
        return Err(refused(
            script,
            1,
            "the script has no transaction block, to which the ledger's two statements could be added",
            "put its statements between BEGIN; and COMMIT;, or leave out the ledger",
        ));
    }
    Ok(commits)
}

fn refused(script: &Script, line: usize, message: &str, hint: &str) -> ParseError {
    ParseError {
        file: script.name.clone(),
        line,
        column: 1,
        message: message.to_owned(),
        hint: Some(hint.to_owned()),
        condition: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_commit_of_a_block_gets_two_statements_before_it_on_its_line() {
        let source = "BEGIN;\n\\if 1 = 1\nSELECT 'ä'; END;\n\\else\n  COMMIT;\n\\endif\n";
        let text = with_ledger("s", source).unwrap();
        let expected = format!(
            "BEGIN;\n\\if 1 = 1\nSELECT 'ä'; {ADDED}END;\n\\else\n  {ADDED}COMMIT;\n\\endif\n"
        );
        assert_eq!(text, expected);
        let script = parse("s", &text, &mut Symbols::new()).unwrap();
        let lines: Vec<_> = script.written.iter().map(|written| written.line).collect();
        assert_eq!(lines, [1, 2, 3, 3, 3, 3, 4, 5, 5, 5, 6]);
    }

    #[test]
    fn a_prepared_transaction_has_them_before_it_is_prepared() {
        let source = "BEGIN;\nPREPARE TRANSACTION 'x';\nCOMMIT PREPARED 'x';\n";
        let expected = format!("BEGIN;\n{ADDED}PREPARE TRANSACTION 'x';\nCOMMIT PREPARED 'x';\n");
        assert_eq!(with_ledger("s", source).unwrap(), expected);
    }

    #[test]
    fn what_has_no_block_is_refused_with_its_line() {
        let cases = [
            ("SELECT 1;", 1, "no transaction block"),
            ("BEGIN\\; SELECT 1\\; COMMIT;", 1, "no transaction block"),
            ("SELECT 1;\nEND;\nBEGIN;", 2, "no BEGIN before"),
            ("PREPARE TRANSACTION 'x';", 1, "no BEGIN before"),
            (
                "BEGIN;\nPREPARE TRANSACTION 'x';\n",
                2,
                "no COMMIT PREPARED or ROLLBACK PREPARED follows",
            ),
            (
                "BEGIN;\n\\startpipeline\nCOMMIT;\n\\endpipeline",
                2,
                "\\startpipeline",
            ),
            ("SELECT 'x", 1, "unterminated"),
        ];
        for (source, line, message) in cases {
            let error = with_ledger("s", source).unwrap_err();
            assert_eq!(error.line, line, "{source}");
            assert!(error.message.contains(message), "{error}");
        }
    }
}
