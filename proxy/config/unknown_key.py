"""What to say about a key that nothing takes."""

from collections.abc import Iterable
from difflib import get_close_matches

from proxy.errors import KeyPath, SettingsError


def unknown(key: KeyPath, known: Iterable[str]) -> SettingsError:
    """The error for a key that is not among the `known` ones at its place."""
    return SettingsError(f"unknown key; {meant(str(key[-1]), known)}", key)


def meant(name: str, known: Iterable[str]) -> str:
    """The one that a wrong name may be meant for, or all that there are."""
    names = sorted(known)
    close = get_close_matches(name, names, n=1)
    return f"did you mean {close[0]}?" if close else f"expected one of {', '.join(names)}"
