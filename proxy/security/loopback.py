"""Which addresses nobody but this host has."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether an address, IPv4 in IPv6 too, or `localhost` is this host's own; False for what is neither."""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return address.is_loopback or (mapped is not None and mapped.is_loopback)
