"""Client ids as quotas, metrics and usage events have them: a long one is represented by a digest.

A client id may have 32,767 bytes, and a client may send another with every request. One of more than
MAX_BYTES bytes is represented by its first bytes and the SHA-256 of all:

    FIRST 200 BYTES~sha256:64 HEXADECIMAL DIGITS

This is longer than MAX_BYTES, so no client id that is kept whole is equal to one. Requests are forwarded with
the client id that the client has sent.
"""

from typing import Final

from proxy.wire.long_names import DIGITS, KEPT_BYTES, MARK, digest

MAX_BYTES: Final = 255
"""The largest client id that is kept whole, in bytes of UTF-8."""
_HEXADECIMAL: Final = frozenset("0123456789abcdef")


def represented(client_id: str) -> str:
    """Return the client id of a request, or the text that represents it."""
    # No character has more than four bytes.
    if len(client_id) * 4 <= MAX_BYTES:
        return client_id
    raw = client_id.encode()
    if len(raw) <= MAX_BYTES:
        return client_id
    return digest(raw)


def configured(client_id: str) -> str:
    """Return the client id of a quota: as a client sends it, or as metrics show it."""
    return client_id if _is_digest(client_id) else represented(client_id)


def _is_digest(client_id: str) -> bool:
    size = len(client_id.encode())
    longest = KEPT_BYTES + len(MARK) + DIGITS
    return (
        MAX_BYTES < size <= longest
        and client_id[-DIGITS - len(MARK) : -DIGITS] == MARK
        and _HEXADECIMAL.issuperset(client_id[-DIGITS:])
    )
