"""Errors of storage after the trials of a run, and what the server and its commits make of them."""
