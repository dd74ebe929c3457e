"""Copies and snapshots of a server's files, from which they are restored."""
