"""All that is refused before anything is made, collected into one list."""
