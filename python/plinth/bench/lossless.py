"""Bytes in any encoding as text, and back: pgbench sends and prints what it is given, whatever it is.

A byte that is not UTF-8 is a lone surrogate (PEP 383); the native module takes and gives text in this form.
"""

import os


def text_of(raw: bytes) -> str:
    """`raw` as text; `raw_of` gives it back."""
    return raw.decode("utf-8", "surrogateescape")


def raw_of(text: str) -> bytes:
    """The bytes of `text`."""
    return text.encode("utf-8", "surrogateescape")


def word_of(word: str) -> str:
    """A word of the command line, which Python has decoded by the locale, as `text_of` its bytes."""
    return text_of(os.fsencode(word))


def file_name(word: str) -> str:
    """What `word_of` gave, as Python takes the names of files: decoded by the locale."""
    return os.fsdecode(raw_of(word))
