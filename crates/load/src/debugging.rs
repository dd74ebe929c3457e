//! `debug()`: shows values while a script runs, as pgbench does.

use std::io::Write;

use plinth_script::Value;

/// What pgbench prints for a value that `debug()` gets in a command of a script, which count from 0 and from 1.
fn line(script: usize, command: usize, value: Value) -> Vec<u8> {
    let mut line = format!("debug(script={script},command={command}): ").into_bytes();
    match value {
        Value::Null => line.extend_from_slice(b"null"),
        value => {
            line.extend_from_slice(value.type_name().as_bytes());
            line.push(b' ');
            value.write_text(&mut line);
        }
    }
    line.push(b'\n');
    line
}

/// Prints it to the standard error. `step` counts from 0.
pub(crate) fn show(script: usize, step: usize, value: Value) {
    // In one write, since threads print at the same time. An error means that nobody reads it.
    let _ = std::io::stderr().write_all(&line(script, step + 1, value));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_with_their_types() {
        let table = [
            (Value::Null, "debug(script=0,command=3): null\n"),
            (
                Value::Bool(true),
                "debug(script=0,command=3): boolean true\n",
            ),
            (Value::Int(-1), "debug(script=0,command=3): int -1\n"),
            (
                Value::Double(0.1),
                "debug(script=0,command=3): double 0.1\n",
            ),
        ];
        for (value, wanted) in table {
            assert_eq!(line(0, 3, value), wanted.as_bytes());
        }
    }
}
