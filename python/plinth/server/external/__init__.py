"""External servers, which Plinth reaches by a connection string and works on in its own schema."""
