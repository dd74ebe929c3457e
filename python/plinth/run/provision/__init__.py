"""What makes the storages and clusters of a run, and undoes them."""
