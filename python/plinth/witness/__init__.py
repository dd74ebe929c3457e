"""Power cuts of real drives: a witness on another machine hears of each commit, and the database is compared with what it
knows once the power is back."""
