"""Installations of PostgreSQL: where they are, and copies that the server's user can run."""
