//! The leaf that Python imports as `plinth._native`: conversion and exceptions, nothing else.
//! `python/plinth/_native.pyi` says what is here, and in which form.

mod bulk;
mod errors;
mod json;
mod load;
mod patience;
mod script;

use pyo3::prelude::*;

/// The native module: the load engine, the bulk loader and the script language.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("EngineError", py.get_type::<errors::EngineError>())?;
    module.add("ConfigError", py.get_type::<errors::ConfigError>())?;
    module.add("ConnectError", py.get_type::<errors::ConnectError>())?;
    module.add("ScriptError", py.get_type::<errors::ScriptError>())?;
    module.add_class::<bulk::BulkLoad>()?;
    module.add_class::<load::LoadRun>()?;
    module.add_function(wrap_pyfunction!(script::parse_script, module)?)?;
    module.add_function(wrap_pyfunction!(script::builtin_script, module)?)
}
