//! `ScriptDraws`: what a client's script draws, for a driver that sends its statements itself.

use std::collections::BTreeMap;

use plinth_load::AUTOMATIC_VARIABLES;
use plinth_script::{Command, Prng, Script, Seeds, Segment, Symbols, Value, Variables};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::errors::{EngineError, parse_error};

/// A client's variables and random numbers, and the script that uses them.
#[pyclass(module = "plinth._native")]
pub(crate) struct ScriptDraws {
    script: Script,
    variables: Variables,
    random: Prng,
}

type StatementParts = (usize, String, Vec<Option<String>>);

#[pymethods]
impl ScriptDraws {
    #[new]
    fn new(
        py: Python<'_>,
        name: &str,
        source: &str,
        variables: BTreeMap<String, String>,
        seed: u64,
        clients: usize,
        client: usize,
    ) -> PyResult<Self> {
        let mut symbols = Symbols::new();
        let script = plinth_script::parse(name, source, &mut symbols)
            .map_err(|error| parse_error(py, &error))?;
        let known = variables.keys().map(String::as_str);
        let known: Vec<&str> = known.chain(AUTOMATIC_VARIABLES).collect();
        plinth_script::check_variables(std::slice::from_ref(&script), &symbols, &known, true)
            .map_err(|error| parse_error(py, &error))?;
        let draws_default_seed = !variables.contains_key("default_seed");
        let mut seeds = Seeds::new(seed, clients, 1, draws_default_seed);
        if client >= seeds.clients.len() {
            return Err(EngineError::new_err(format!(
                "there is no client {client} of {clients}"
            )));
        }
        let given: Vec<_> = variables
            .iter()
            .map(|(name, text)| (symbols.slot(name), text))
            .collect();
        let mut values = Variables::new(&symbols);
        for (slot, text) in given {
            values.set_text(slot, text);
        }
        let automatic = [
            ("client_id", Some(client as i64)),
            ("random_seed", Some(seed as i64)),
            ("default_seed", seeds.default_seed),
        ];
        for (name, value) in automatic {
            if let (Some(slot), Some(value)) = (symbols.find(name), value)
                && !values.is_set(slot)
            {
                values.set(slot, Value::Int(value));
            }
        }
        Ok(Self {
            script,
            variables: values,
            random: seeds.clients.swap_remove(client),
        })
    }

    fn statements(&self) -> Vec<StatementParts> {
        let statements = self
            .script
            .commands
            .iter()
            .filter_map(|command| match command {
                Command::Sql(sql) => Some(sql),
                _ => None,
            });
        statements
            .map(|sql| {
                let parts = sql.segments.iter().map(|segment| match segment {
                    Segment::Text(text) => Some(text.clone()),
                    Segment::Var(_) => None,
                });
                (sql.line, sql.text.clone(), parts.collect())
            })
            .collect()
    }

    fn draw<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let drawn = PyList::empty(py);
        for (command, written) in self.script.commands.iter().zip(&self.script.written) {
            match command {
                Command::Set { target, expr } => {
                    let value = expr.eval(&self.variables, &mut self.random);
                    let set = |value| Ok((target.slot("set")?, value));
                    let (slot, value) = value.and_then(set).map_err(|error| {
                        EngineError::new_err(format!(
                            "{}:{}: {error}",
                            self.script.name, written.line
                        ))
                    })?;
                    self.variables.set(slot, value);
                }
                Command::Sql(sql) => {
                    let values = sql.params.iter().map(|&slot| self.value(py, slot));
                    drawn.append(PyTuple::new(py, values.collect::<PyResult<Vec<_>>>()?)?)?;
                }
                other => {
                    return Err(EngineError::new_err(format!(
                        "{}:{}: \\{} draws nothing",
                        self.script.name,
                        written.line,
                        other.name()
                    )));
                }
            }
        }
        Ok(drawn)
    }
}

impl ScriptDraws {
    /// A variable as Python has it: what spells a value is one, anything else text.
    fn value<'py>(&self, py: Python<'py>, slot: usize) -> PyResult<Bound<'py, PyAny>> {
        match self.variables.get(slot) {
            Some(Value::Null) => Ok(py.None().into_bound(py)),
            Some(Value::Bool(value)) => value.into_bound_py_any(py),
            Some(Value::Int(value)) => value.into_bound_py_any(py),
            Some(Value::Double(value)) => value.into_bound_py_any(py),
            None => {
                let mut text = Vec::new();
                let is_set = self.variables.write_text(slot, &mut text);
                debug_assert!(is_set, "variables were checked");
                String::from_utf8_lossy(&text).into_bound_py_any(py)
            }
        }
    }
}
