"""The random seed, from the option or the environment variable that pgbench reads it from."""

from plinth.bench.failure import BenchFailure


def read_seed(text: str, source: str) -> int:
    """Return the seed of 64 bits that `text` asks for: "time", "rand", or an unsigned number. BenchFailure names `source`."""
    from plinth._native import random_seed

    try:
        return random_seed(text)
    except ValueError as error:
        message, _, detail = str(error).partition("\n")
        raise BenchFailure(
            message,
            detail=detail or 'Expecting an unsigned integer, "time" or "rand".',
            then=f"error while setting random seed from {source}",
        ) from error
