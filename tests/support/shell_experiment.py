"""The text of an experiment whose script, who.sql, starts commands of the system."""

SHELL = """\
spec = 1
name = "shell"
question = "Who am I?"
[storage.disk]
kind = "directory"
[dataset]
kind = "none"
[workload]
script = "who.sql"
clients = 1
[measure]
warmup = "0s"
duration = "500ms"
repeats = 1
aa = false
probe = "0s"
"""
