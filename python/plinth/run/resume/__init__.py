"""How a run that was killed is resumed."""
