"""Bytes in any encoding as text, and back: pgbench sends and prints any bytes that it is given.

A byte that is not UTF-8 is a lone surrogate (PEP 383); the native module takes and gives text in this form.
"""

import os


def text_of(raw: bytes) -> str:
    """Return `raw` as text; `raw_of` is the inverse."""
    return raw.decode("utf-8", "surrogateescape")


def raw_of(text: str) -> bytes:
    """Return the bytes of `text`."""
    return text.encode("utf-8", "surrogateescape")


def word_of(word: str) -> str:
    """Return a word of the command line, which Python has decoded by the locale, as `text_of` its bytes."""
    return text_of(os.fsencode(word))


def file_name(word: str) -> str:
    """Return what `word_of` gave, as Python takes the names of files: decoded by the locale."""
    return os.fsdecode(raw_of(word))
