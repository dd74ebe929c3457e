//! PostgreSQL frontend/backend protocol 3: frames, authentication and prepared message templates. Sans-IO: no sockets, no clock.
