//! Values as text, in both directions, and the text of variables.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use plinth_script::{EvalError, EvalReason, Expr, Prng, Symbols, Value, Variables, builtin, parse};
use proptest::prelude::*;

fn text_of(value: Value) -> String {
    let mut text = Vec::new();
    value.write_text(&mut text);
    String::from_utf8(text).unwrap()
}

#[test]
fn values_are_written_as_pgbench_writes_them() {
    let table = [
        (Value::Null, "NULL"),
        (Value::Bool(true), "true"),
        (Value::Bool(false), "false"),
        (Value::Int(i64::MIN), "-9223372036854775808"),
        (Value::Double(0.0), "0"),
        (Value::Double(-0.0), "-0"),
        (Value::Double(1.0), "1"),
        (Value::Double(-2.5), "-2.5"),
        (Value::Double(1.0 / 3.0), "0.333333333333333"),
        (Value::Double(0.0001), "0.0001"),
        (Value::Double(0.00001), "1e-05"),
        (Value::Double(123_456_789_012_345.0), "123456789012345"),
        (Value::Double(1e15), "1e+15"),
        (Value::Double(999_999_999_999_999.9), "1e+15"),
        (Value::Double(99999.999999999999), "100000"),
        (Value::Double(1.5e300), "1.5e+300"),
        (Value::Double(f64::MIN_POSITIVE), "2.2250738585072e-308"),
        (Value::Double(f64::INFINITY), "Infinity"),
        (Value::Double(f64::NEG_INFINITY), "-Infinity"),
        (Value::Double(f64::NAN), "NaN"),
    ];
    for (value, text) in table {
        assert_eq!(text_of(value), text);
    }
}

#[test]
fn text_is_read_as_pgbench_reads_it() {
    let table = [
        ("null", Some(Value::Null)),
        ("NULL", Some(Value::Null)),
        ("t", Some(Value::Bool(true))),
        ("Yes", Some(Value::Bool(true))),
        ("on", Some(Value::Bool(true))),
        ("fal", Some(Value::Bool(false))),
        ("n", Some(Value::Bool(false))),
        ("of", Some(Value::Bool(false))),
        ("o", None),
        ("truest", None),
        ("1", Some(Value::Int(1))),
        ("  -12", Some(Value::Int(-12))),
        ("+7", Some(Value::Int(7))),
        ("9223372036854775808", None),
        ("1.", Some(Value::Double(1.0))),
        ("-.5e1", Some(Value::Double(-5.0))),
        ("1e400", None),
        ("1e-320", None),
        ("0e-400", Some(Value::Double(0.0))),
        ("-Infinity", Some(Value::Double(f64::NEG_INFINITY))),
        ("inf", Some(Value::Double(f64::INFINITY))),
        ("12a", None),
        ("", None),
        ("-", None),
    ];
    for (text, value) in table {
        assert_eq!(Value::from_bytes(text.as_bytes()), value, "{text:?}");
    }
}

#[test]
fn variables_keep_their_text_until_they_are_computed_with() {
    let mut symbols = Symbols::new();
    let slot = symbols.slot("x");
    assert_eq!(
        (symbols.slot("x"), symbols.find("y"), symbols.name(slot)),
        (slot, None, "x")
    );
    let mut variables = Variables::new(&symbols);
    let read = Expr::Variable {
        slot,
        name: "x".into(),
    };
    let mut text = b"x=".to_vec();

    assert!(!variables.is_set(slot) && !variables.write_text(slot, &mut text));
    assert_eq!(
        read.eval(&variables, &mut Prng::seeded(0)),
        Err(EvalReason::UndefinedVariable("x".into()).into())
    );
    variables.set_text(slot, "007");
    assert!(variables.write_text(slot, &mut text));
    assert_eq!(variables.get(slot), Some(Value::Int(7)));
    variables.set_text(slot, "it's");
    assert!(variables.write_text(slot, &mut text));
    let error = read.eval(&variables, &mut Prng::seeded(0)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "malformed variable \"x\" value: \"it's\""
    );
    variables.set(slot, Value::Double(0.5));
    assert!(variables.write_text(slot, &mut text));
    assert_eq!(String::from_utf8(text).unwrap(), "x=007it's0.5");
}

#[test]
fn text_may_be_in_any_encoding() {
    let mut symbols = Symbols::new();
    let slot = symbols.slot("x");
    let mut variables = Variables::new(&symbols);
    variables.set_text(slot, b"gr\xfcn");
    let mut text = Vec::new();
    assert!(variables.write_text(slot, &mut text));
    assert_eq!(
        (text.as_slice(), variables.get(slot)),
        (&b"gr\xfcn"[..], None)
    );
}

#[test]
fn what_an_expression_yields_fits_in_two_registers() {
    assert_eq!(size_of::<Result<Value, EvalError>>(), 2 * size_of::<u64>());
}

#[test]
fn builtin_scripts_parse() {
    for known in plinth_script::BUILTINS {
        assert_eq!(builtin(known.name), Some(known.source));
        let mut symbols = Symbols::new();
        let script = parse(known.name, known.source, &mut symbols).unwrap();
        assert_eq!(
            plinth_script::check_variables(&[script], &symbols, &["scale"], true),
            Ok(())
        );
    }
    assert_eq!(builtin("tpcb"), None);
}

proptest! {
    #[test]
    fn integers_survive_text(i: i64) {
        prop_assert_eq!(Value::from_bytes(text_of(Value::Int(i)).as_bytes()), Some(Value::Int(i)));
    }

    #[test]
    fn doubles_survive_text_to_fifteen_digits(d in proptest::num::f64::NORMAL) {
        let text = text_of(Value::Double(d));
        let again: f64 = text.parse().unwrap();
        // The largest doubles round up beyond the range of doubles.
        prop_assume!(again.is_finite());
        prop_assert!(((again - d) / d).abs() <= 5e-15, "{} is written {}", d, text);
        prop_assert_eq!(text_of(Value::Double(again)), text);
    }
}
