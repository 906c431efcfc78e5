"""The entries of `quotas.clients` as the file has them, which only the reading of quotas needs.

With 100,000 entries they take 67 MB. What stays of them for the life of the process is a fingerprint: it
tells whether another file has the same ones.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

import msgspec

from proxy.config.settings import Settings

_SLICE: Final = 500
"""Entries that are encoded at once; other threads run in between."""
_ENCODER: Final = msgspec.json.Encoder()


def without_entries(settings: Settings) -> Settings:
    """Copy settings without the entries of clients."""
    quotas = msgspec.structs.replace(settings.quotas, clients=())
    return msgspec.structs.replace(settings, quotas=quotas)


def fingerprint(entries: Sequence[dict[str, object]]) -> bytes:
    """Return 32 bytes that differ for other entries, which are valid ones."""
    digest = blake2b(digest_size=32)
    for start in range(0, len(entries), _SLICE):
        digest.update(_encoded(entries[start : start + _SLICE]))
    return digest.digest()


def _encoded(entries: Sequence[dict[str, object]]) -> bytes:
    try:
        return _ENCODER.encode(entries)
    except OverflowError:
        # JSON of msgspec has no integers of more than 64 bits, but quotas may be as large.
        return repr(entries).encode()
