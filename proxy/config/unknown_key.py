"""The error for an unknown configuration key."""

from collections.abc import Iterable

from proxy.errors import KeyPath, SettingsError, suggestion


def unknown(key: KeyPath, known: Iterable[str]) -> SettingsError:
    """Return the error for a key that is not among the `known` ones at its place."""
    return SettingsError(f"unknown key; {suggestion(str(key[-1]), known)}", key)
