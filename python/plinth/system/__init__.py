"""What Plinth does to the machine, made safe: folders, users, commands, the journal. Below the stages, above the model."""
