"""Settings of a server: checked before it starts, written to its configuration, and read back from it."""
