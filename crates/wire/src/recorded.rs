//! Messages of statements that are known only while the load runs: they are written into a buffer, texts as bytes of any
//! encoding. Texts must not have zero bytes, which the protocol cannot carry.

/// Runs the unnamed portal, for all of its rows.
pub const EXECUTE: [u8; 10] = [b'E', 0, 0, 0, 9, 0, 0, 0, 0, 0];

/// Appends a message of `tag`, whose body `write` appends.
fn write_message(tag: u8, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    let length_at = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    let length = (out.len() - length_at) as u32;
    out[length_at..length_at + 4].copy_from_slice(&length.to_be_bytes());
}

fn write_text(text: &[u8], out: &mut Vec<u8>) {
    debug_assert!(!text.contains(&0));
    out.extend_from_slice(text);
    out.push(0);
}

/// Appends `Query`: a statement of the simple protocol.
pub fn write_query(sql: &[u8], out: &mut Vec<u8>) {
    write_message(b'Q', out, |out| write_text(sql, out));
}

/// Appends `Parse`, by which the server infers all types; an empty name is the unnamed statement.
pub fn write_parse(name: &[u8], sql: &[u8], out: &mut Vec<u8>) {
    write_message(b'P', out, |out| {
        write_text(name, out);
        write_text(sql, out);
        out.extend_from_slice(&[0; 2]);
    });
}

/// Appends `Bind` of the unnamed portal to a statement: `count` parameters as text, None for NULL; results come as text, too.
pub fn write_bind<'a>(
    name: &[u8],
    count: u16,
    parameters: impl Iterator<Item = Option<&'a [u8]>>,
    out: &mut Vec<u8>,
) {
    write_message(b'B', out, |out| {
        out.push(0);
        write_text(name, out);
        out.extend_from_slice(&[0; 2]);
        out.extend_from_slice(&count.to_be_bytes());
        for parameter in parameters {
            match parameter {
                None => out.extend_from_slice(&(-1_i32).to_be_bytes()),
                Some(value) => {
                    out.extend_from_slice(&(value.len() as u32).to_be_bytes());
                    out.extend_from_slice(value);
                }
            }
        }
        out.extend_from_slice(&[0; 2]);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Template, frontend};

    #[test]
    fn messages_are_those_of_templates() {
        let mut out = Vec::new();
        write_query(b"SELECT 1", &mut out);
        assert_eq!(out, frontend::query("SELECT 1").unwrap());

        out.clear();
        write_parse(b"s", b"SELECT $1, $2", &mut out);
        assert_eq!(out, Template::parse("s", b"SELECT $1, $2").unwrap());

        out.clear();
        write_bind(b"s", 2, [Some(&b"7"[..]), None].into_iter(), &mut out);
        out.extend_from_slice(&EXECUTE);
        out.extend_from_slice(&frontend::SYNC);
        let mut expected = Vec::new();
        let template = Template::bind("s", 2, false).unwrap();
        template.write(&mut expected, |hole, out| {
            if hole == 0 {
                out.push(b'7');
            }
            hole == 0
        });
        assert_eq!(out, expected);
    }
}
