"""HostPattern: an entry of `upstream.hosts`, and whether an address matches it."""

import re
from enum import Enum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, final

IpAddress = IPv4Address | IPv6Address
_ANY: Final = "*"
_IN_LABEL: Final = "[a-z0-9_-]*"
"""The characters that `*` matches. It matches no dot, for `broker-*` must not match
`broker-1.elsewhere.example`, and no character that IDNA turns into a dot.
"""
_LONGEST_LABEL: Final = 63
"""The maximum length of a label in DNS."""
_NAME: Final = re.compile(r"[A-Za-z0-9_*-]+(\.[A-Za-z0-9_*-]+)*\.?")
_NUMBER: Final = re.compile(r"\d+|0x[0-9a-f]*")
_PORT: Final = re.compile(r"(?:\[(?P<bracketed>[^\]]*)\]|(?P<host>[^:\[\]]*)):(?P<port>\d{1,5})")


class Decision(Enum):
    """Whether a broker may have an address."""

    ALLOWED = "allowed"
    REJECTED = "rejected"
    BY_RESOLUTION = "by resolution"
    """The host is a name that matches no pattern: its addresses decide."""


@final
class HostPattern:
    """One entry of `upstream.hosts`: `*`, a name with or without `*`, an address or a network, each with or
    without a port.
    """

    def __init__(self, text: str) -> None:
        """Parse the text. Raises ValueError if it is none of these."""
        self._network: IPv4Network | IPv6Network | None = None
        self._labels: list[re.Pattern[str]] | None = None
        host, self._port = _split(text)
        if host == _ANY:
            return
        try:
            self._network = ip_network(host)
        except ValueError as error:
            name = canonical(host)
            if not _NAME.fullmatch(host) or _is_number(name):
                raise ValueError(
                    f"expected a host name (`*` stands for a part of a label), an IP address or a network, "
                    f"with or without :PORT; got {text!r}"
                ) from error
            self._labels = [
                re.compile(_IN_LABEL.join(re.escape(part) for part in label.split("*")))
                for label in name.split(".")
            ]

    def decide(self, name: str, address: IpAddress | None, port: int) -> Decision:
        """Decide on a canonical name; `address` is what it stands for if it is an IP address."""
        if self._port is not None and port != self._port:
            return Decision.REJECTED
        if self._network is not None:
            if address is None:
                return Decision.BY_RESOLUTION
            return Decision.ALLOWED if address in self._network else Decision.REJECTED
        matches = self._labels is None or self._matches(name, self._labels)
        return Decision.ALLOWED if matches else Decision.REJECTED

    def _matches(self, name: str, patterns: list[re.Pattern[str]]) -> bool:
        labels = name.split(".")
        # Resolvers take a name that ends in a number for an IPv4 address: 127.1, 0x7f000001.
        if len(labels) != len(patterns) or _is_number(name):
            return False
        return all(
            len(label) <= _LONGEST_LABEL and pattern.fullmatch(label)
            for label, pattern in zip(labels, patterns, strict=True)
        )


def _split(text: str) -> tuple[str, int | None]:
    """Return the host and the port of a pattern; an IPv6 address with a port is in brackets."""
    match = _PORT.fullmatch(text)
    if match is None:
        return text, None
    if not 1 <= int(match["port"]) <= 65535:
        raise ValueError(f"expected a port from 1 to 65535, got {text!r}")
    return match["bracketed"] or match["host"], int(match["port"])


def canonical(host: str) -> str:
    """Return a host as patterns are compared with it. A name that is not ASCII matches none."""
    return host.lower().removesuffix(".") if host.isascii() else host


def _is_number(name: str) -> bool:
    """Whether resolvers take the name for an IPv4 address."""
    return _NUMBER.fullmatch(name.rpartition(".")[2]) is not None


def ip_of(name: str) -> IpAddress | None:
    """Return the IP address that a name is; None for a host name."""
    try:
        address = ip_address(name)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
