"""Built-in datasets and workloads: what is loaded, what the clients run, and what must hold afterwards."""

from plinth.workload.dataset import Dataset, DatasetServer
from plinth.workload.loaded import loaded_tables
from plinth.workload.registry import dataset_of, is_resumable, settings_while_loading
from plinth.workload.scripts import check_scripts, check_working_set, scripts_of, shell_commands
from plinth.workload.written import await_sessions

__all__ = [
    "Dataset",
    "DatasetServer",
    "await_sessions",
    "check_scripts",
    "check_working_set",
    "dataset_of",
    "is_resumable",
    "loaded_tables",
    "scripts_of",
    "settings_while_loading",
    "shell_commands",
]
