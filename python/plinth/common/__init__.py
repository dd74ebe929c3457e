"""What every package may use, the models included: no types of artefacts, no I/O, nothing of Plinth below it."""
