"""Built-in datasets and workloads: what is loaded, what the clients run, and what must hold afterwards."""

from plinth.workload.dataset import Dataset
from plinth.workload.loaded import loaded_tables
from plinth.workload.registry import dataset_of, is_resumable, load_settings
from plinth.workload.scripts import check_scripts, check_working_set, scripts_of, shell_commands
from plinth.workload.server import LoadServer
from plinth.workload.written import await_sessions

__all__ = [
    "Dataset",
    "LoadServer",
    "await_sessions",
    "check_scripts",
    "check_working_set",
    "dataset_of",
    "is_resumable",
    "load_settings",
    "loaded_tables",
    "scripts_of",
    "shell_commands",
]
