//! Defaults and bounds of a configuration are declared once, in `plinth.model.load_config`: `docs/reference/load.schema.json`
//! is made of them, and the engine's own are held to it here.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::Path;

use plinth_load::Config;
use serde_json::{Map, Value, json};

fn schema() -> Value {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/load.schema.json");
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

/// The object's schema: the whole, or one of its definitions.
fn properties<'a>(schema: &'a Value, of: Option<&str>) -> &'a Map<String, Value> {
    let object = of.map_or(schema, |name| &schema["$defs"][name]);
    object["properties"].as_object().unwrap()
}

/// Whether a property is an integer, which may be null besides; None when it is no number.
fn is_integer(property: &Value) -> Option<bool> {
    let either = property["anyOf"].as_array().cloned();
    let types = either.unwrap_or_else(|| vec![property.clone()]);
    types.iter().find_map(|one| match one["type"].as_str() {
        Some("integer") => Some(true),
        Some("number") => Some(false),
        _ => None,
    })
}

fn least() -> Map<String, Value> {
    let config = json!({
        "connection": {"host": "/tmp", "port": 5432, "user": "u", "database": "d"},
        "clients": 1, "threads": 1, "protocol": "prepared",
        "scripts": [{"name": "a", "source": "SELECT 1;"}, {"name": "b", "source": "SELECT 2;"}], "duration_s": 5.0, "seed": 0,
    });
    config.as_object().unwrap().clone()
}

fn is_taken(config: Map<String, Value>) -> bool {
    serde_json::from_value::<Config>(Value::Object(config))
        .is_ok_and(|config| config.validate().is_ok())
}

/// A configuration with `key` in the object that `of` names.
fn with(of: Option<&str>, key: &str, value: Value) -> Map<String, Value> {
    let mut config = least();
    if key == "transactions_per_client" {
        config.remove("duration_s");
    }
    let object = match of {
        None => &mut config,
        Some("LoadScript") => config["scripts"][0].as_object_mut().unwrap(),
        Some("CompiledTransaction") => {
            let native = json!({"workload": "account-mix", "keys": {"distribution": "uniform"}});
            config.insert("variables".into(), json!({"scale": "1"}));
            config["scripts"][0] = json!({"name": "lookup", "native": native});
            config["scripts"][0].as_object_mut().unwrap()
        }
        Some("LedgerFiles") => {
            config.insert("ledger".into(), json!({"folder": "l"}));
            config["ledger"].as_object_mut().unwrap()
        }
        Some("LoadPart") => {
            for key in ["clients", "threads"] {
                config.insert(key.into(), json!(200_000));
            }
            config.insert("part".into(), json!({"number": 0, "of": 100_000}));
            config["part"].as_object_mut().unwrap()
        }
        Some("LogFiles") => {
            config.insert("log".into(), json!({"prefix": "l"}));
            config["log"].as_object_mut().unwrap()
        }
        Some("Stage") => {
            let stages = json!([{"from_tps": 1.0, "to_tps": 1.0, "duration_s": 1.0}]);
            config.insert(
                "rate".into(),
                json!({"stages": stages, "arrivals": "poisson"}),
            );
            config["rate"]["stages"][0].as_object_mut().unwrap()
        }
        Some(other) => panic!("{other}: how is one made?"),
    };
    object.insert(key.into(), value);
    config
}

#[test]
fn every_default_is_the_schema_s() {
    let schema = schema();
    for (key, property) in properties(&schema, None) {
        let Some(default) = property.get("default") else {
            continue;
        };
        let mut told = least();
        if told.contains_key(key) {
            continue; // the engine asks for it
        }
        let silent: Config = serde_json::from_value(Value::Object(told.clone())).unwrap();
        told.insert(key.clone(), default.clone());
        let told: Config = serde_json::from_value(Value::Object(told)).unwrap();
        assert_eq!(format!("{silent:?}"), format!("{told:?}"), "{key}");
    }
}

#[test]
fn every_bound_is_the_schema_s() {
    let schema = schema();
    let mut checked = 0;
    for of in [
        None,
        Some("LoadScript"),
        Some("CompiledTransaction"),
        Some("LedgerFiles"),
        Some("LogFiles"),
        Some("Stage"),
    ] {
        for (key, property) in properties(&schema, of) {
            let Some(is_integer) = is_integer(property) else {
                continue;
            };
            for (bound, taken, refused) in bounds(property, is_integer) {
                assert!(
                    is_taken(with(of, key, taken.clone())),
                    "{key}: {bound} {taken}"
                );
                assert!(
                    !is_taken(with(of, key, refused.clone())),
                    "{key}: {bound}, {refused}"
                );
                checked += 1;
            }
        }
    }
    assert!(checked >= 20, "{checked}");
}

/// A value within each bound of a number, and one beyond it.
fn bounds(number: &Value, is_integer: bool) -> Vec<(&'static str, Value, Value)> {
    let near = |value: f64, by: f64| {
        if is_integer {
            json!((value + by) as i64)
        } else {
            json!(value + by * (value.abs() * 1e-9).max(1e-9))
        }
    };
    let of = |key: &str| number.get(key).and_then(Value::as_f64);
    let mut found = Vec::new();
    if let Some(least) = of("minimum") {
        found.push(("minimum", near(least, 0.0), near(least, -1.0)));
    }
    if let Some(most) = of("maximum") {
        found.push(("maximum", near(most, 0.0), near(most, 1.0)));
    }
    if let Some(below) = of("exclusiveMinimum") {
        found.push(("exclusiveMinimum", near(below, 1.0), near(below, 0.0)));
    }
    // 2^32 and 2^64, which the types of the engine's fields hold it to.
    if let Some(above) = of("exclusiveMaximum").filter(|above| *above < 1e18) {
        found.push(("exclusiveMaximum", near(above, -1.0), near(above, 0.0)));
    }
    found
}
