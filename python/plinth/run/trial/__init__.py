"""One trial, from its preparation to its result."""
