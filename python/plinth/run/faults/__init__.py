"""Faults of servers and storages while a load runs: what they are, how they are noticed, and what is recorded of them."""
