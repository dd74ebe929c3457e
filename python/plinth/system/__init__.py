"""Access to the operating system: directories, users, commands, the journal. Used by all stages; depends only on the model."""
