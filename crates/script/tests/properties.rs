//! Properties that hold for every text.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../wire/tests/support/allocator.rs"]
mod allocator;
#[path = "support/exercise.rs"]
mod exercise;

use std::fs::{self, DirEntry};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use exercise::exercise;
use plinth_script::{Command, Prng, Symbols, Variables, lossless, parse};
use proptest::prelude::*;
use proptest::sample::Index;

/// Tokens of the language, so that random sequences of them get further in the parser than random characters do.
fn jumble() -> impl Strategy<Value = String> {
    let pieces = [
        "\\set ",
        "\\set x ",
        "\\sleep ",
        "\\if ",
        "\\if true\n",
        "\\elif false\n",
        "\\else\n",
        "\\endif\n",
        "\\gset ",
        "\\aset x\n",
        "\\shell ",
        "\\setshell x ",
        "\\startpipeline\n",
        "\\syncpipeline\n",
        "\\endpipeline\n",
        "debug(",
        "\\",
        "\n",
        "\\\n",
        "\\\r\n",
        " ",
        ";",
        "'",
        "''",
        "\"",
        "E'",
        "\\'",
        "$$",
        "$a$",
        "$1",
        "--",
        "/*",
        "*/",
        "(",
        ")",
        ":",
        "::",
        ":x",
        ":größe",
        ":1",
        "x",
        "random",
        "random(1, 2)",
        ",",
        "1",
        "9223372036854775808",
        "1e5",
        ".5",
        "+",
        "-",
        "*",
        "/",
        "%",
        "<",
        "<=",
        "<>",
        "=",
        "and",
        "or",
        "not",
        "is null",
        "case when ",
        " then ",
        " else ",
        " end",
        "true",
        "null",
        "~",
        "#",
        "ms",
        "10ms",
        "SELECT ",
        "create function ",
        "begin ",
        "end ",
        "ü",
        "\u{a0}",
        "\t",
        "hash(",
        "permute(:x, 5, 6)",
    ];
    let piece = prop_oneof![
        20 => proptest::sample::select(pieces.to_vec()).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// The fuzzer's corpus, and scripts that people wrote.
fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/script");
    let read = |entry: io::Result<DirEntry>| fs::read(entry.unwrap().path()).unwrap();
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(read).collect();
    files.sort();
    files
}

#[test]
fn the_corpus_is_parsed_or_refused() {
    let corpus = corpus();
    assert!(corpus.len() > 20, "only {} files", corpus.len());
    for file in corpus {
        exercise(&lossless::from_bytes(&file));
    }
}

/// The maximum memory per byte of a script: a command takes some hundred bytes, and may be one word.
const MOST_BYTES_EACH: usize = 400;

/// A file of the corpus with a few parts removed, repeated many times or replaced by others.
fn mutant() -> impl Strategy<Value = Vec<u8>> {
    let cut = (any::<Index>(), 0_usize..20, any::<Index>(), 0_usize..60);
    let cuts = proptest::collection::vec(cut, 1..6);
    let corpus = corpus();
    let other = proptest::sample::select(corpus.clone());
    (proptest::sample::select(corpus), other, cuts).prop_map(|(mut text, other, cuts)| {
        for (at, length, from, times) in cuts {
            let start = at.index(text.len() + 1);
            let end = (start + length).min(text.len());
            let from = from.index(other.len() + 1);
            let piece = &other[from..(from + length).min(other.len())];
            text.splice(start..end, piece.repeat(times));
        }
        text
    })
}

#[test]
fn long_scripts_take_no_longer_than_their_length() {
    const PIECES: usize = 20_000;
    for piece in [
        "SELECT :x, :y; ",
        "SELECT 'a', ",
        "\\set x :x + 1\n",
        "\\if 1\n",
        "\\if 1\n\\endif\n",
        "SELECT 1 \\gset\n",
        ":a",
        "'",
        "$",
        "$a$",
        "(",
        "--",
        "/*",
        "/**/",
        "\\shell a\n",
        "a ",
        "\\\n",
        "E'\\",
    ] {
        let began = Instant::now();
        let repeated = piece.repeat(PIECES);
        let held_bytes = allocator::peak_bytes(|| exercise(&repeated));
        assert!(
            held_bytes <= MOST_BYTES_EACH * repeated.len(),
            "{piece:?}: {held_bytes} bytes are held for {}",
            repeated.len()
        );
        let one_line = format!("\\set x {}", piece.repeat(PIECES).replace('\n', " "));
        exercise(&one_line);
        let distinct: String = (0..PIECES).map(|n| format!("{piece}:v{n} ")).collect();
        exercise(&distinct);
        assert!(began.elapsed() < Duration::from_secs(10), "{piece:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn any_text_is_parsed_or_refused_at_a_place_in_it(source: String) {
        exercise(&source);
    }

    #[test]
    fn any_jumble_is_parsed_or_refused_at_a_place_in_it(source in jumble()) {
        exercise(&source);
    }

    #[test]
    fn any_expression_of_a_jumble_is_evaluated_or_refused(source in jumble()) {
        exercise(&format!("\\set x {source}"));
    }

    #[test]
    fn any_mutant_of_the_corpus_is_parsed_or_refused_in_memory_of_its_length(text in mutant()) {
        let held_bytes = allocator::peak_bytes(|| exercise(&lossless::from_bytes(&text)));
        prop_assert!(held_bytes <= MOST_BYTES_EACH * (text.len() + 100), "{held_bytes} bytes are held for {}", text.len());
    }

    #[test]
    fn permute_is_a_bijection(size in 1_i64..200, seed: i64) {
        let mut symbols = Symbols::new();
        let source = format!("\\set p permute(:i, {size}, {seed})");
        let script = parse("permute", &source, &mut symbols).unwrap();
        let Command::Set { expr, .. } = &script.commands[0] else { panic!("not a \\set") };
        let mut variables = Variables::new(&symbols);
        let mut images: Vec<i64> = (0..size)
            .map(|i| {
                variables.set(symbols.find("i").unwrap(), plinth_script::Value::Int(i));
                expr.eval(&variables, &mut Prng::seeded(0)).unwrap().to_int().unwrap()
            })
            .collect();
        images.sort_unstable();
        prop_assert_eq!(images, (0..size).collect::<Vec<_>>());
    }
}
