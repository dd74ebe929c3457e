"""The text of an experiment on an external server, whose connection has a password."""

EXTERNAL = """\
spec = 1
name = "external"
question = "What does this server do with one client, and with four?"

[server]
connection = "service=mine password='s3cr3t \\"word'"

[dataset]
kind = "tpcb"
scale = 1

[workload]
builtin = "tpcb-like"

[matrix]
workload.clients = [1, 4]

[measure]
warmup = "100ms"
duration = "400ms"
repeats = 1
"""
