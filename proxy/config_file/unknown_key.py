"""What to say about a key that nothing takes."""

from collections.abc import Iterable
from difflib import get_close_matches

from proxy.errors import Key, SettingsError


def unknown(key: Key, known: Iterable[str]) -> SettingsError:
    """The error for a key that is not among the `known` ones at its place."""
    names = sorted(known)
    close = get_close_matches(str(key[-1]), names, n=1)
    hint = f"did you mean {close[0]}?" if close else f"expected one of {', '.join(names)}"
    return SettingsError(f"unknown key; {hint}", key)
