//! `\if`, `\elif`, `\else`, `\endif`: links the commands that belong together, so that running them is a jump.

use crate::error::ParseError;
use crate::script::Command;
use crate::source::Source;

/// An `\if` whose `\endif` has not been found yet.
struct Open {
    /// The offset of the `\if` in the source.
    start: usize,
    /// The latest condition, whose jump target for a false condition is still unknown; `None` after `\else`.
    condition: Option<usize>,
    /// The `\elif` and `\else` commands, which need the number of the `\endif`.
    branches: Vec<usize>,
}

/// Sets the jump targets of all conditional commands of a script. `starts` has the offset of each command in the
/// source.
pub(crate) fn link(
    source: Source<'_>,
    commands: &mut [Command],
    starts: &[usize],
) -> Result<(), ParseError> {
    let mut open: Vec<Open> = Vec::new();
    for at in 0..commands.len() {
        let command = &commands[at];
        match command {
            Command::If { .. } => open.push(Open {
                start: starts[at],
                condition: Some(at),
                branches: Vec::new(),
            }),
            Command::Elif { .. } | Command::Else { .. } => {
                let name = command.name();
                let wrong = |how| {
                    let error = source.error(starts[at], format!("\\{name} {how}"));
                    error.of_condition(at)
                };
                let is_condition = matches!(command, Command::Elif { .. });
                let last = open
                    .last_mut()
                    .ok_or_else(|| wrong("without matching \\if"))?;
                let before = last.condition.ok_or_else(|| wrong("after \\else"))?;
                last.condition = is_condition.then_some(at);
                last.branches.push(at);
                set_otherwise(&mut commands[before], at);
            }
            Command::EndIf => {
                let wrong = || {
                    let error = source.error(starts[at], "\\endif without matching \\if");
                    error.of_condition(at)
                };
                let closed = open.pop().ok_or_else(wrong)?;
                if let Some(condition) = closed.condition {
                    set_otherwise(&mut commands[condition], at);
                }
                for branch in closed.branches {
                    set_end(&mut commands[branch], at);
                }
            }
            _ => {}
        }
    }
    match open.last() {
        Some(unclosed) => Err(source
            .error(unclosed.start, "\\if without matching \\endif")
            .of_condition(commands.len())),
        None => Ok(()),
    }
}

fn set_otherwise(command: &mut Command, to: usize) {
    if let Command::If { otherwise, .. } | Command::Elif { otherwise, .. } = command {
        *otherwise = to;
    }
}

fn set_end(command: &mut Command, to: usize) {
    if let Command::Elif { end, .. } | Command::Else { end } = command {
        *end = to;
    }
}
