"""What can go wrong outside Kafka's wire (`proxy.wire.errors` has the tree for that).

QuotaProxyError          every error that is meant for the operator's eyes: one sentence, no traceback
  SettingsError          the configuration is wrong: which key, what was expected, file and line where known
  UpstreamUnavailable    a cluster, or one of its brokers, cannot be asked
    BadResponse            somebody answers there, but not as a Kafka broker that the proxy can use
  PortInUse              a port of a listener, or the admin port, cannot be had
"""

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Self

KeyPath = tuple[str | int, ...]
"""Where a value stands in a configuration file: names of mappings and places in lists."""


def spell(key: KeyPath) -> str:
    """The key as an operator would write it: `("listeners", 0, "bind")` is `listeners[0].bind`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in key)
    return "".join(parts).removeprefix(".")


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return the known name that an unknown one is probably meant for, or all known names."""
    names = sorted(known)
    close = get_close_matches(name, names, n=1)
    return f"did you mean {close[0]}?" if close else f"expected one of {', '.join(names)}"


class QuotaProxyError(Exception):
    """Something that the operator has to know and can act on; str() is the sentence to show."""


class SettingsError(QuotaProxyError):
    """The configuration cannot be used as it is written.

    `expected` says what was expected (and what stood there); `key` is empty where the whole file is at fault.
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
        """The same error, now that the file and the line (from 1) are known."""
        return type(self)(self.expected, self.key, file, line)

    def __str__(self) -> str:
        place = "" if self.file is None else f"{self.file}: "
        if self.file is not None and self.line is not None:
            place = f"{self.file}:{self.line}: "
        return place + (f"{spell(self.key)}: " if self.key else "") + self.expected


class UpstreamUnavailable(QuotaProxyError):
    """A cluster, or one of its brokers, cannot be asked; the text says which and why."""


class BadResponse(UpstreamUnavailable):
    """What a broker answered is not what the proxy asked for."""


class PortInUse(QuotaProxyError):
    """A port of a listener, or the admin port, is taken by another process."""
