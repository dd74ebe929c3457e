//! The leaf that Python imports as `plinth._native`: conversion and exceptions, nothing else.
//! `python/plinth/_native.pyi` says what is here, and in which form.

mod bulk;
mod disk;
mod draws;
mod errors;
mod interruptible;
mod json;
mod load;
mod log;
mod network;
mod probe;
mod script;
mod text;

use pyo3::prelude::*;

/// The native module: the load engine, the bulk loader, the page writer, the script language, the emulated disk and network, the fsync probe, and the reader of servers' logs.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("EngineError", py.get_type::<errors::EngineError>())?;
    module.add("ConfigError", py.get_type::<errors::ConfigError>())?;
    module.add("ConnectError", py.get_type::<errors::ConnectError>())?;
    module.add("ScriptError", py.get_type::<errors::ScriptError>())?;
    module.add_class::<bulk::BulkLoad>()?;
    module.add_function(wrap_pyfunction!(bulk::tpcc_order_lines, module)?)?;
    module.add_function(wrap_pyfunction!(load::tpcc_procedures, module)?)?;
    module.add_class::<bulk::PageLoad>()?;
    module.add("DiskError", py.get_type::<errors::DiskError>())?;
    module.add_class::<disk::DiskServer>()?;
    module.add("NetworkError", py.get_type::<errors::NetworkError>())?;
    module.add_class::<network::NetworkServer>()?;
    module.add_function(wrap_pyfunction!(network::network_round_trips, module)?)?;
    module.add_class::<load::LoadRun>()?;
    module.add_class::<draws::ScriptDraws>()?;
    module.add("ProbeError", py.get_type::<errors::ProbeError>())?;
    module.add_class::<probe::FsyncProbe>()?;
    module.add_function(wrap_pyfunction!(probe::fsync_plan, module)?)?;
    module.add("LogError", py.get_type::<errors::LogError>())?;
    module.add_function(wrap_pyfunction!(log::check_log, module)?)?;
    module.add_function(wrap_pyfunction!(log::prepare_replay, module)?)?;
    module.add_function(wrap_pyfunction!(log::replay_facts, module)?)?;
    module.add_function(wrap_pyfunction!(disk::disk_profiles, module)?)?;
    module.add_function(wrap_pyfunction!(disk::read_disk_recording, module)?)?;
    module.add_function(wrap_pyfunction!(script::parse_script, module)?)?;
    module.add_function(wrap_pyfunction!(script::builtin_script, module)?)?;
    module.add_function(wrap_pyfunction!(script::builtin_scripts, module)?)?;
    module.add_function(wrap_pyfunction!(script::find_builtin, module)?)?;
    module.add_function(wrap_pyfunction!(script::script_weight, module)?)?;
    module.add_function(wrap_pyfunction!(script::random_seed, module)?)
}
