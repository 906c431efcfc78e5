"""The error for an unknown configuration key."""

from collections.abc import Iterable

from proxy.errors import KeyPath, SettingsError, suggestion


def unknown(key: KeyPath, known: Iterable[str]) -> SettingsError:
    """The error for a key whose last part is not one of `known`."""
    return SettingsError(f"unknown key; {suggestion(str(key[-1]), known)}", key)
