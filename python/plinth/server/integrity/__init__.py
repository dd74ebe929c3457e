"""Checks of a database after a power cut, and what they need to know from before it."""
