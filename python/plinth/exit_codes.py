"""The exit codes of `plinth`, as `plinth --help` lists them."""

OK = 0
FAILED = 1
"""A run, a trial or a command failed."""
USAGE = 2
"""Bad usage, or a bad experiment file."""
UNDECIDED = 3
"""Measured, but the question could not be decided."""
REFUSED = 4
"""Refused for safety."""
MISSING = 5
"""A needed capability is missing: a program, a right, space."""
FINDING = 99
"""A finding of --fail-on, as k6 ends for a crossed threshold, or damage that `plinth durability verify` found."""
INTERRUPTED = 130
"""Ended by a signal; results so far are kept."""
BROKEN_PIPE = 141
"""The reader of standard output has gone, as in `plinth plan | head`."""
