"""Values of options that several commands have."""

from plinth.model.errors import UsageError
from plinth.model.units import parse_duration


def seconds_of(option: str, seconds: float) -> float:
    """A time for which something is measured. Raises UsageError for none, and for one that never ends."""
    if not seconds > 0:  # which nan is not
        raise UsageError(f"{option}: got {seconds:g}; it must be above 0", hint="give a number of seconds, as in 2.5")
    try:
        return parse_duration(seconds)
    except ValueError as error:
        raise UsageError(f"{option}: got {seconds:g}; {error}", hint="give a number of seconds, as in 2.5") from error
