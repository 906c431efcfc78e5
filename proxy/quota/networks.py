"""IP addresses and networks (CIDR) in canonical spelling, and the networks that contain an address."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_interface
from typing import Final, final

_IPV4_BITS: Final = 32
_MAPPED_LENGTH: Final = 96
"""The length of ::ffff:0:0/96, the IPv6 network of IPv4-mapped addresses."""
REMEMBERED_AT_MOST: Final = 1 << 16
"""Addresses with a cached result, a few MiB. If there are more, the cache is cleared."""


def canonical_address(text: str) -> str:
    """The address in canonical spelling: an IPv4-mapped IPv6 address becomes IPv4. Raises ValueError."""
    return str(_parse(text))


def one_spelling(address: str) -> str:
    """canonical_address(), or the text unchanged if it is not an address."""
    try:
        return canonical_address(address)
    except ValueError:
        return address


def canonical_network(text: str) -> str:
    """The network as ADDRESS/LENGTH in canonical spelling; `text` may be one address. Raises ValueError."""
    try:
        interface = ip_interface(text)
    except ValueError:
        raise ValueError(f"{text!r} is not an IPv4 or IPv6 network") from None
    network = interface.network
    if interface.ip != network.network_address:
        raise ValueError(f"{text!r} has host bits set; the network is {network}")
    mapped = _mapped(interface)
    if mapped is None or network.prefixlen < _MAPPED_LENGTH:
        return str(network)
    return f"{mapped}/{network.prefixlen - _MAPPED_LENGTH}"


def _parse(text: str) -> IPv4Address | IPv6Address:
    try:
        # A socket may return an IPv6 address with its zone: fe80::1%eth0.
        address = ip_address(text.split("%")[0])
    except ValueError:
        raise ValueError(f"{text!r} is not an IPv4 or IPv6 address") from None
    return _mapped(address) or address


def _mapped(address: IPv4Address | IPv6Address) -> IPv4Address | None:
    """The IPv4 address of an IPv4-mapped one, such as ::ffff:10.0.0.1."""
    return address.ipv4_mapped if isinstance(address, IPv6Address) else None


@final
class Networks:
    """A set of networks. The cost of a look-up depends on the number of different lengths, not on the number
    of networks.
    """

    def __init__(self, cidrs: list[str]) -> None:
        """`cidrs`: networks or single addresses; ValueError for anything else."""
        self._names: Final = {canonical_network(cidr) for cidr in cidrs}
        self._lengths: Final = prefix_lengths(self._names)
        self._remembered: Final[dict[str, bool]] = {}

    def contain(self, address: str) -> bool:
        """Whether one of the networks contains the address; False if it is not an address."""
        if not self._names:
            return False
        known = self._remembered.get(address)
        if known is not None:
            return known
        if len(self._remembered) >= REMEMBERED_AT_MOST:
            self._remembered.clear()
        around = networks_around(address, self._lengths)
        known = len(self._names.intersection(around)) > 0
        self._remembered[address] = known
        return known


def prefix_lengths(names: set[str]) -> list[int]:
    """The distinct lengths of networks, the longest first."""
    return sorted({int(name.split("/")[1]) for name in names}, reverse=True)


def networks_around(address: str, lengths: list[int]) -> list[str]:
    """The networks of these lengths around an address, in the order of `lengths`; empty if it is not one."""
    try:
        parsed = _parse(address)
    except ValueError:
        return []
    bits = parsed.max_prefixlen
    names: list[str] = []
    for length in lengths:
        if length <= bits:
            first = int(parsed) >> (bits - length) << (bits - length)
            network = IPv4Address(first) if bits == _IPV4_BITS else IPv6Address(first)
            names.append(f"{network}/{length}")
    return names
