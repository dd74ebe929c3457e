//! The lines with which libpq shows a position in a statement: `LINE 2: ...` and a caret.

use std::iter::repeat_n;

/// Maximum number of characters of the line that are shown, and minimum number of them after the position.
const SHOWN: usize = 60;
const SHOWN_BEHIND: usize = 10;

/// Both lines, each after a newline; `None` when `position`, in characters from 1, is not in the statement.
pub(crate) fn lines(statement: &str, position: usize) -> Option<String> {
    let place = position.checked_sub(1)?;
    let text: Vec<char> = statement.chars().collect();
    if place > text.len() {
        return None;
    }
    let is_end = |&c: &char| matches!(c, '\n' | '\r');
    let mut begin = text[..place]
        .iter()
        .rposition(is_end)
        .map_or(0, |at| at + 1);
    let behind = text[place..].iter().position(is_end);
    let mut end = behind.map_or(text.len(), |length| place + length);
    let number = 1 + line_ends(&text[..place]);

    let line_end = end;
    let line_begin = begin;
    if end - begin > SHOWN {
        if begin + SHOWN < place + SHOWN_BEHIND {
            end = end.min(place + SHOWN_BEHIND);
            begin = begin.max(end.saturating_sub(SHOWN));
        } else {
            end = begin + SHOWN;
        }
    }
    let dots = |is_cut| if is_cut { "..." } else { "" };
    let head = format!("LINE {number}: {}", dots(begin > line_begin));
    let shown: String = text[begin..end]
        .iter()
        .map(|&c| if c == '\t' { ' ' } else { c })
        .collect();
    let indent: String = repeat_n(' ', head.chars().count() + place - begin).collect();
    Some(format!(
        "\n{head}{shown}{}\n{indent}^",
        dots(end < line_end)
    ))
}

/// The number of line ends in `text`; a carriage return and a newline together are one.
fn line_ends(text: &[char]) -> usize {
    let ends = text
        .iter()
        .enumerate()
        .filter(|&(at, &c)| c == '\r' || (c == '\n' && (at == 0 || text[at - 1] != '\r')));
    ends.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_place_is_shown_and_cut_as_libpq_does() {
        let digits = "0123456789".repeat(10);
        let table = [
            ("select x", 8, Some(("LINE 1: select x", 15))),
            ("select x", 9, Some(("LINE 1: select x", 16))),
            ("select x", 10, None),
            ("select x", 0, None),
            ("", 1, Some(("LINE 1: ", 8))),
            ("select\r\n\n\tx\ny", 11, Some(("LINE 3:  x", 9))),
            ("a\rb", 3, Some(("LINE 2: b", 8))),
            ("\u{e9}\u{e9} x", 4, Some(("LINE 1: \u{e9}\u{e9} x", 11))),
        ];
        let long = [
            (1, format!("LINE 1: {}...", &digits[..60]), 8),
            (51, format!("LINE 1: {}...", &digits[..60]), 58),
            (52, format!("LINE 1: ...{}...", &digits[1..61]), 61),
            (100, format!("LINE 1: ...{}", &digits[40..]), 70),
        ];
        for (statement, position, shown) in table {
            let shown = shown.map(|(line, caret)| format!("\n{line}\n{}^", " ".repeat(caret)));
            assert_eq!(
                lines(statement, position),
                shown,
                "{statement:?} {position}"
            );
        }
        for (position, line, caret) in long {
            let shown = format!("\n{line}\n{}^", " ".repeat(caret));
            assert_eq!(lines(&digits, position), Some(shown), "{position}");
        }
    }
}
