"""The kinds of storage, one module a kind; `plinth.storage.registry` has the table of them."""
