"""From an experiment to its plan."""
