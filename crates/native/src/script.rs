//! The script language, for checking scripts before they run.

use plinth_load::AUTOMATIC_VARIABLES;
use plinth_script::{BUILTINS, Builtin, Command, OptionError, SeedOption, Symbols};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;

use crate::errors::parse_error;
use crate::json::to_json;
use crate::text::Text;

#[derive(Serialize)]
struct Parsed<'a> {
    commands: Vec<Listed<'a>>,
    statements: Vec<Statement<'a>>,
    variables_used: Vec<&'a str>,
}

#[derive(Serialize)]
struct Listed<'a> {
    name: &'a str,
    line: usize,
    text: &'a str,
}

#[derive(Serialize)]
struct Statement<'a> {
    index: usize,
    line: usize,
    text: &'a str,
}

#[pyfunction]
pub(crate) fn parse_script(
    py: Python<'_>,
    name: Text,
    source: Text,
    known_variables: Option<Vec<Text>>,
) -> PyResult<Text> {
    let mut symbols = Symbols::new();
    let script = plinth_script::parse(&name.0, &source.0, &mut symbols)
        .map_err(|error| parse_error(py, &error))?;
    if let Some(known) = known_variables {
        let given = known.iter().map(|name| name.0.as_str());
        let known: Vec<&str> = given.chain(AUTOMATIC_VARIABLES).collect();
        plinth_script::check_variables(std::slice::from_ref(&script), &symbols, &known, false)
            .map_err(|error| parse_error(py, &error))?;
    }
    let statements = script.commands.iter().filter_map(|command| match command {
        Command::Sql(sql) => Some(sql),
        _ => None,
    });
    let mut variables_used = Vec::new();
    for read in &script.reads {
        let name = symbols.name(read.slot);
        if !variables_used.contains(&name) {
            variables_used.push(name);
        }
    }
    let commands = script.commands.iter().zip(&script.written);
    to_json(&Parsed {
        commands: commands
            .map(|(command, written)| Listed {
                name: command.name(),
                line: written.line,
                text: &written.text,
            })
            .collect(),
        statements: statements
            .enumerate()
            .map(|(index, sql)| Statement {
                index,
                line: sql.line,
                text: &sql.text,
            })
            .collect(),
        variables_used,
    })
    .map(Text)
}

#[pyfunction]
pub(crate) fn builtin_script(name: &str) -> PyResult<&'static str> {
    plinth_script::builtin(name).ok_or_else(|| {
        let known: Vec<_> = BUILTINS.iter().map(|builtin| builtin.name).collect();
        PyValueError::new_err(format!(
            "no built-in script {name:?}; there are {}",
            known.join(", ")
        ))
    })
}

type NameDescriptionSource = (&'static str, &'static str, &'static str);

fn described(builtin: &Builtin) -> NameDescriptionSource {
    (builtin.name, builtin.description, builtin.source)
}

#[pyfunction]
pub(crate) fn builtin_scripts() -> Vec<NameDescriptionSource> {
    BUILTINS.iter().map(described).collect()
}

#[pyfunction]
pub(crate) fn find_builtin(prefix: Text) -> PyResult<NameDescriptionSource> {
    plinth_script::find_builtin(&prefix.0)
        .map(described)
        .map_err(option_error)
}

#[pyfunction]
pub(crate) fn script_weight(option: Text) -> PyResult<(Text, u32)> {
    let (name, weight) = plinth_script::script_weight(&option.0).map_err(option_error)?;
    Ok((Text(name.to_owned()), weight))
}

#[pyfunction]
pub(crate) fn random_seed(option: Text) -> PyResult<u64> {
    let option = SeedOption::parse(&option.0).map_err(option_error)?;
    Ok(plinth_load::seed(option)?)
}

fn option_error(error: OptionError) -> PyErr {
    PyValueError::new_err(Text(error.to_string()))
}
