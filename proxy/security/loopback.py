"""Recognizing addresses that only this host can connect to."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether `host` is `localhost` or a loopback address, IPv4-mapped ones included."""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return address.is_loopback or (mapped is not None and mapped.is_loopback)
