use super::*;

fn config(protocol: &str, source: &str, variables: &str) -> Config {
    serde_json::from_str(&format!(
        r#"{{"connection": {{"host": "/tmp", "port": 5432, "user": "u", "database": "d"}}, "clients": 1, "threads": 1,
            "protocol": "{protocol}", "scripts": [{{"name": "a", "source": {source:?}}}], "variables": {variables},
            "duration_s": 1, "seed": 7}}"#
    ))
    .unwrap()
}

fn compiled(config: &Config, default_seed: Option<i64>) -> Result<Programs, ScriptError> {
    Programs::compile(config, Workloads::new(config).unwrap(), default_seed)
}

fn written(protocol: &str, source: &str, variables: &str) -> Vec<u8> {
    let programs = compiled(&config(protocol, source, variables), Some(99)).unwrap();
    let mut out = Vec::new();
    programs.write(0, true, &programs.variables(3), &mut out);
    out
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn automatic_variables_are_there_and_give_way() {
    let source = "SELECT :client_id, :random_seed, :default_seed, :unset;";
    assert!(contains(
        &written("simple", source, "{}"),
        b"SELECT 3, 7, 99, :unset"
    ));
    let given = r#"{"client_id": "x", "random_seed": "y", "default_seed": "z"}"#;
    assert!(contains(
        &written("simple", source, given),
        b"SELECT x, y, z, :unset"
    ));
}

#[test]
fn parameters_are_bound_as_text_as_pgbench_does_null_too() {
    let bytes = written(
        "prepared",
        "SELECT 0 AS x \\; SELECT :client_id, :nothing, :unset \\gset",
        r#"{"nothing": "null"}"#,
    );
    assert!(contains(&bytes, b"SELECT $1, $2, $3"));
    assert!(contains(
        &bytes,
        b"\0\x03\0\0\0\x013\0\0\0\x04null\xff\xff\xff\xff\0\0D"
    ));
}

#[test]
fn a_pipeline_knows_its_statements() {
    let source = "SELECT 0; \\startpipeline\nSELECT 1;\n\\syncpipeline\nSELECT 2;\n\\endpipeline\n
        \\startpipeline\n\\endpipeline\nSELECT 3; \\startpipeline\nSELECT 4;";
    let programs = compiled(&config("prepared", source, "{}"), None).unwrap();
    let pipelines: Vec<_> = programs.programs[0]
        .steps
        .iter()
        .filter_map(|step| match step {
            Step::StartPipeline(statements) => Some(statements.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(pipelines, [1..3, 3..3, 4..5]);
}

#[test]
fn a_variable_that_nothing_sets_is_an_error_where_it_would_silently_be_null() {
    for protocol in ["extended", "prepared"] {
        let config = config(protocol, "SELECT 1;\nSELECT :aidd;", "{}");
        let error = compiled(&config, None).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("a:2:1: undefined variable \"aidd\""),
            "{error}"
        );
    }
}
