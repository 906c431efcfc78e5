"""Errors for the operator. `proxy.wire.errors` has those of the wire protocol.

QuotaProxyError          base class: str() is one sentence for the operator, shown without a traceback
  SettingsError          the configuration is wrong: the key, what was expected, file and line if known
  UpstreamUnavailable    a request to a cluster or a broker failed
    BadResponse            the response is not that of a Kafka broker, or of a proxy's admin port
  PortInUse              another process uses a port of a listener, or the admin port
"""

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Self

KeyPath = tuple[str | int, ...]
"""Path to a value in a configuration file: keys of mappings and indexes of lists."""


def spell(key: KeyPath) -> str:
    """The key as operators write it: `("listeners", 0, "bind")` is `listeners[0].bind`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in key)
    return "".join(parts).removeprefix(".")


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return the known name that an unknown one is probably meant for, or all known names."""
    names = sorted(known)
    close = get_close_matches(name, names, n=1)
    return f"did you mean {close[0]}?" if close else f"expected one of {', '.join(names)}"


class QuotaProxyError(Exception):
    """Base class of the errors for the operator. str() is the sentence to show."""


class SettingsError(QuotaProxyError):
    """The configuration is not valid.

    `expected` says what was expected and found; `key` is empty if the error is about the whole file.
    """

    def __init__(
        self, expected: str, key: KeyPath = (), file: Path | None = None, line: int | None = None
    ) -> None:
        super().__init__(expected, key, file, line)
        self.expected = expected
        self.key = key
        self.file = file
        self.line = line

    def at(self, file: Path, line: int | None) -> Self:
        """The error with the file and the line (from 1)."""
        return type(self)(self.expected, self.key, file, line)

    def __str__(self) -> str:
        place = "" if self.file is None else f"{self.file}: "
        if self.file is not None and self.line is not None:
            place = f"{self.file}:{self.line}: "
        return place + (f"{spell(self.key)}: " if self.key else "") + self.expected


class UpstreamUnavailable(QuotaProxyError):
    """A request to a cluster or a broker failed; str() says which and why."""


class BadResponse(UpstreamUnavailable):
    """A response is not what was requested: the peer is no broker, or no proxy."""


class PortInUse(QuotaProxyError):
    """Another process uses a port of a listener, or the admin port."""
