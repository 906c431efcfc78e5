"""IP addresses and networks (CIDR notation), in one spelling each, and which networks an address is in."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_interface
from typing import Final, final

_IPV4_BITS: Final = 32
_CARRIED_FROM: Final = 96
"""Length of ::ffff:0:0/96, the IPv6 network that carries all IPv4 addresses."""
_REMEMBERED_AT_MOST: Final = 1 << 16


def canonical_address(text: str) -> str:
    """The address in its one spelling: an IPv4 address that IPv6 carries is that address. ValueError."""
    return str(_parse(text))


def one_spelling(address: str) -> str:
    """A client's address as canonical_address() has it; what is no address stays as it is."""
    try:
        return canonical_address(address)
    except ValueError:
        return address


def canonical_network(text: str) -> str:
    """The network in its one spelling, as ADDRESS/LENGTH; a single address is one too. Raises ValueError."""
    try:
        interface = ip_interface(text)
    except ValueError:
        raise ValueError(f"{text!r} is no IPv4 or IPv6 network") from None
    network = interface.network
    if interface.ip != network.network_address:
        raise ValueError(f"{text!r} has bits beyond its length; the network is {network}")
    carried = _carried(interface)
    if carried is None or network.prefixlen < _CARRIED_FROM:
        return str(network)
    return f"{carried}/{network.prefixlen - _CARRIED_FROM}"


def _parse(text: str) -> IPv4Address | IPv6Address:
    try:
        # An IPv6 address that a socket gives may name its link: fe80::1%eth0.
        address = ip_address(text.split("%")[0])
    except ValueError:
        raise ValueError(f"{text!r} is no IPv4 or IPv6 address") from None
    return _carried(address) or address


def _carried(address: IPv4Address | IPv6Address) -> IPv4Address | None:
    """The IPv4 address in one such as ::ffff:10.0.0.1."""
    return address.ipv4_mapped if isinstance(address, IPv6Address) else None


@final
class Networks:
    """A set of networks. A look-up costs the same with one as with thousands of the same length."""

    def __init__(self, cidrs: list[str]) -> None:
        """Networks or single addresses; raises ValueError for what is neither."""
        self._names: Final = {canonical_network(cidr) for cidr in cidrs}
        self._lengths: Final = prefix_lengths(self._names)
        self._remembered: Final[dict[str, bool]] = {}

    def contain(self, address: str) -> bool:
        """Whether an address is in one of them; what is no address is in none."""
        if not self._names:
            return False
        known = self._remembered.get(address)
        if known is not None:
            return known
        if len(self._remembered) >= _REMEMBERED_AT_MOST:
            self._remembered.clear()
        around = networks_around(address, self._lengths)
        known = len(self._names.intersection(around)) > 0
        self._remembered[address] = known
        return known


def prefix_lengths(names: set[str]) -> list[int]:
    """The lengths that networks have, each once, the longest first."""
    return sorted({int(name.split("/")[1]) for name in names}, reverse=True)


def networks_around(address: str, lengths: list[int]) -> list[str]:
    """The networks of these lengths that an address is in, in the order of `lengths`; none for no address."""
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
