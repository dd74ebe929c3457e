//! Meta commands: `\set` and its kin.

use crate::error::ParseError;
use crate::expr::Expr;
use crate::grammar::parse_expression;
use crate::script::{Command, SleepUnit};
use crate::source::{Source, continuation_length, did_you_mean, is_blank, is_name};
use crate::value::Value;
use crate::variables::Symbols;

/// Meta commands of pgbench that are not yet run here.
const UNSUPPORTED: [&str; 11] = [
    "if",
    "elif",
    "else",
    "endif",
    "gset",
    "aset",
    "shell",
    "setshell",
    "startpipeline",
    "syncpipeline",
    "endpipeline",
];

/// Meta commands that are.
const SUPPORTED: [&str; 2] = ["set", "sleep"];

/// A word of a meta command, and where it begins.
#[derive(Clone, Copy)]
struct Word<'a> {
    text: &'a str,
    start: usize,
}

/// A variable that an expression or a command reads, and where.
pub(crate) type ReadNote<'r> = dyn FnMut(usize, usize) + 'r;

/// Parses the meta command behind the backslash before `offset`. Yields it, unless the line is empty, and where it ends.
pub(crate) fn meta_command(
    source: Source<'_>,
    offset: usize,
    symbols: &mut Symbols,
    note_read: &mut ReadNote<'_>,
) -> Result<(Option<Command>, usize), ParseError> {
    let mut offset = offset;
    let Some(command) = next_word(source, &mut offset) else {
        return Ok((None, offset));
    };
    let line = source.line(command.start - 1);
    let is = |name: &str| command.text.eq_ignore_ascii_case(name);
    let parsed = if is("set") {
        set(source, command, &mut offset, line, symbols, note_read)?
    } else if is("sleep") {
        sleep(source, command, &mut offset, line, symbols, note_read)?
    } else {
        return Err(unknown(source, command));
    };
    Ok((Some(parsed), offset))
}

fn unknown(source: Source<'_>, command: Word<'_>) -> ParseError {
    let name = command.text;
    let is_unsupported = UNSUPPORTED
        .iter()
        .any(|known| known.eq_ignore_ascii_case(name));
    if is_unsupported {
        return source
            .error(command.start - 1, format!("\\{name} is not supported yet"))
            .with_hint("meta commands that are supported: \\set, \\sleep");
    }
    let all = SUPPORTED.iter().chain(&UNSUPPORTED).copied();
    let near = did_you_mean(name, all, |near| format!("\\{near}"));
    source
        .error(command.start - 1, format!("unknown meta command \\{name}"))
        .with_hint(near.unwrap_or_else(|| "meta commands are \\set and \\sleep".to_owned()))
}

/// The next word before the end of the line, with `offset` moved behind it.
fn next_word<'a>(source: Source<'a>, offset: &mut usize) -> Option<Word<'a>> {
    let continues = |at: usize| continuation_length(source.bytes_from(at));
    loop {
        let skipped = match source.byte(*offset)? {
            b'\n' => return None,
            b if is_blank(b) => 1,
            _ => continues(*offset),
        };
        if skipped == 0 {
            break;
        }
        *offset += skipped;
    }
    let start = *offset;
    while source
        .byte(*offset)
        .is_some_and(|b| !is_blank(b) && b != b'\n')
        && continues(*offset) == 0
    {
        *offset += 1;
    }
    Some(Word {
        text: &source.text[start..*offset],
        start,
    })
}

fn set(
    source: Source<'_>,
    command: Word<'_>,
    offset: &mut usize,
    line: usize,
    symbols: &mut Symbols,
    note_read: &mut ReadNote<'_>,
) -> Result<Command, ParseError> {
    let Some(name) = next_word(source, offset) else {
        return Err(missing(
            source,
            command,
            "a variable's name",
            "\\set name expression",
        ));
    };
    if !is_name(name.text) {
        let error = source.error(
            name.start,
            format!("\"{}\" is no variable's name", name.text),
        );
        return Err(error.with_hint(match name.text.strip_prefix(':') {
            Some(bare) if is_name(bare) => format!("to set it, write {bare} without the colon"),
            _ => "names are letters, digits and underscores, and do not begin with a digit"
                .to_owned(),
        }));
    }
    let slot = symbols.slot(name.text);
    let mut resolve = |name: &str, at: usize| {
        let slot = symbols.slot(name);
        note_read(slot, at);
        slot
    };
    let (expr, end) = parse_expression(source, *offset, &mut resolve)?;
    *offset = end;
    Ok(Command::Set { slot, expr, line })
}

const SLEEP_USAGE: &str = "\\sleep number [us | ms | s]";

fn sleep(
    source: Source<'_>,
    command: Word<'_>,
    offset: &mut usize,
    line: usize,
    symbols: &mut Symbols,
    note_read: &mut ReadNote<'_>,
) -> Result<Command, ParseError> {
    let Some(mut number) = next_word(source, offset) else {
        return Err(missing(source, command, "a duration", SLEEP_USAGE));
    };
    let mut unit = next_word(source, offset);
    if let Some(extra) = next_word(source, offset) {
        return Err(source
            .error(
                extra.start,
                format!("unexpected \"{}\" after \\sleep's arguments", extra.text),
            )
            .with_hint(format!("write {SLEEP_USAGE}")));
    }
    let duration = if let Some(name) = number.text.strip_prefix(':').filter(|name| is_name(name)) {
        let slot = symbols.slot(name);
        note_read(slot, number.start);
        Expr::Variable {
            slot,
            name: name.into(),
        }
    } else {
        let digits = number_length(number.text);
        if digits < number.text.len() && unit.is_none() {
            // a unit may stick to its number, as in 10ms
            unit = Some(Word {
                text: &number.text[digits..],
                start: number.start + digits,
            });
            number.text = &number.text[..digits];
        }
        let literal = number.text.parse().map_err(|_| {
            source
                .error(
                    number.start,
                    format!("\"{}\" is no duration: an integer is wanted", number.text),
                )
                .with_hint(format!("write {SLEEP_USAGE}"))
        })?;
        Expr::Constant(Value::Int(literal))
    };
    let unit = unit.map_or(Ok(SleepUnit::Seconds), |unit| sleep_unit(source, unit))?;
    Ok(Command::Sleep {
        duration,
        unit,
        line,
    })
}

/// Length of a sign and digits at the start of `text`; all of it when there is no digit.
fn number_length(text: &str) -> usize {
    let sign = usize::from(text.starts_with(['+', '-']));
    let digits = text
        .bytes()
        .skip(sign)
        .take_while(u8::is_ascii_digit)
        .count();
    if digits == 0 {
        text.len()
    } else {
        sign + digits
    }
}

fn sleep_unit(source: Source<'_>, unit: Word<'_>) -> Result<SleepUnit, ParseError> {
    let is = |name: &str| unit.text.eq_ignore_ascii_case(name);
    if is("us") {
        Ok(SleepUnit::Microseconds)
    } else if is("ms") {
        Ok(SleepUnit::Milliseconds)
    } else if is("s") {
        Ok(SleepUnit::Seconds)
    } else {
        Err(source
            .error(unit.start, format!("\"{}\" is no unit of time", unit.text))
            .with_hint("units are us, ms and s"))
    }
}

fn missing(source: Source<'_>, command: Word<'_>, what: &str, usage: &str) -> ParseError {
    let end = command.start + command.text.len();
    source
        .error(end, format!("\\{} lacks {what}", command.text))
        .with_hint(format!("write {usage}"))
}
