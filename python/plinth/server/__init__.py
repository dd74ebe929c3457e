"""The server under test: managed and external ones, installations, settings and replication."""
