//! Variables in statements.

use crate::script::{Segment, SqlCommand};
use crate::source::{is_name_part, is_name_start, is_space};
use crate::variables::Symbols;

/// Prepares a statement that begins at `line`. As in pgbench, `:name` is a variable everywhere, also in quotations; a
/// colon that follows a colon is skipped, which leaves `::type` unchanged.
pub(crate) fn sql_command(text: &str, line: usize, symbols: &mut Symbols) -> SqlCommand {
    let mut segments = Vec::new();
    let mut prepared_text = String::new();
    let mut params = Vec::new();
    let mut literal_start = 0;
    for (at, end) in references(text) {
        let slot = symbols.slot(&text[at + 1..end]);
        if literal_start < at {
            segments.push(Segment::Text(text[literal_start..at].to_owned()));
        }
        segments.push(Segment::Var(slot));
        params.push(slot);
        prepared_text.push_str(&text[literal_start..at]);
        prepared_text.push_str(&format!("${}", params.len()));
        literal_start = end;
    }
    if literal_start < text.len() {
        segments.push(Segment::Text(text[literal_start..].to_owned()));
    }
    prepared_text.push_str(&text[literal_start..]);
    SqlCommand {
        text: text.trim_end_matches(is_white).to_owned(),
        line,
        segments,
        prepared_text,
        params,
        keep: None,
    }
}

fn is_white(c: char) -> bool {
    u8::try_from(c).is_ok_and(is_space)
}

/// The ranges of variables in `text`: from the colon to the end of the name.
fn references(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let bytes = text.as_bytes();
    let mut offset = 0;
    std::iter::from_fn(move || {
        loop {
            let colon = offset + bytes[offset..].iter().position(|&b| b == b':')?;
            let name = bytes[colon + 1..]
                .iter()
                .take_while(|&&b| is_name_part(b))
                .count();
            if name > 0 && is_name_start(bytes[colon + 1]) {
                offset = colon + 1 + name;
                return Some((colon, offset));
            }
            offset = colon + bytes[colon..].iter().take_while(|&&b| b == b':').count();
        }
    })
}
