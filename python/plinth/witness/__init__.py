"""Power cuts of real drives: a witness on another machine records each commit, and the database is compared with its
records once the power is back."""
