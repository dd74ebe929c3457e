"""Built-in datasets and workloads: what is loaded, what the clients run, and what must hold afterwards."""

from plinth.workload.dataset import Dataset, dataset_of
from plinth.workload.scripts import check_scripts, scripts_of

__all__ = ["Dataset", "check_scripts", "dataset_of", "scripts_of"]
