"""Standbys, promotion and pg_rewind, and Patroni as the cluster manager."""
