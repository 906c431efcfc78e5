"""Addresses as text: HOST:PORT, an IPv6 address in brackets."""

import re


def split_address(text: str) -> tuple[str, int]:
    """HOST:PORT as (host, port), an IPv6 host in brackets. Raises ValueError for anything else."""
    match = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/\[\]]+)):(\d{1,5})", text)
    if match is None or not 1 <= int(match[3]) <= 65535:
        raise ValueError(f"expected HOST:PORT, got {text!r}")
    return match[1] or match[2], int(match[3])


def is_address(text: str) -> bool:
    """Whether split_address() can read the text."""
    try:
        split_address(text)
    except ValueError:
        return False
    return True


def join_address(host: str, port: int | str) -> str:
    """HOST:PORT, as split_address() reads it; `port` may be words, such as `any free port`."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
