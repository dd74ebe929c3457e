"""Other machines that storages and servers of a run are on: agents there do what a local run does here."""
