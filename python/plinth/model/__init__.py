"""Frozen types of every artefact, with units in the names. No I/O, no clock."""
