"""SkippedRecords: the records of a topic of the proxy that this process cannot read or apply."""

import hashlib
import logging
from typing import Final

log = logging.getLogger(__name__)
MAX_REASONS: Final = 100
"""Reasons that are logged. A topic may hold any number of such records, each of any size."""
MAX_REASON_CHARACTERS: Final = 300
"""Characters of a reason that are logged and shown."""
MAX_KEYS: Final = 1000
"""Keys of such records that are remembered."""
_DIGEST_BYTES: Final = 16
"""A key may have any size, so its digest is remembered instead."""


class SkippedRecords:
    """Counts and logs skipped records. A record counts as skipped until a record with the same key, readable
    or a tombstone, supersedes it.
    """

    def __init__(
        self,
        topic: str,
        purpose: str = "quotas",
        remedy: str = "set these quotas again, or write a tombstone for each key",
    ) -> None:
        """`purpose` begins the lines of the log; `remedy` ends the warning."""
        self.total = 0
        """How often a record was skipped."""
        self._topic: Final = topic
        self._purpose: Final = purpose
        self._remedy: Final = remedy
        self._logged: Final[set[str]] = set()
        self._by_key: Final[dict[bytes, tuple[int, str]]] = {}
        """The offset and the reason of the last record of each key, which is skipped."""
        self._others = 0
        """Number of further skipped records, whose keys are not remembered."""

    @property
    def current(self) -> int:
        """The number of skipped records that nothing has superseded."""
        return len(self._by_key) + self._others

    @property
    def warning(self) -> str:
        """A sentence about these records, with the last of them; empty if there are none."""
        if not self._by_key:
            return ""
        offset, reason = next(reversed(self._by_key.values()))
        return (
            f"topic {self._topic}: {self.current} records are skipped, the last one at offset {offset}: "
            f"{reason}; {self._remedy}"
        )

    def forget(self) -> None:
        """Forget the skipped records, because the topic is read from its start."""
        self._by_key.clear()
        self._others = 0

    def supersede(self, key: bytes | None) -> None:
        """Forget the skipped record with this key: a later one was applied, or was a tombstone."""
        if self._by_key:
            self._by_key.pop(_digest(key), None)

    def skip(self, key: bytes | None, offset: int, reason: str) -> None:
        """Count a record, and log it, once for each reason."""
        reason = reason[:MAX_REASON_CHARACTERS]
        self.total += 1
        digest = _digest(key)
        self._by_key.pop(digest, None)
        if len(self._by_key) < MAX_KEYS:
            self._by_key[digest] = offset, reason
        else:
            self._others += 1
        self._log(offset, reason)

    def _log(self, offset: int, reason: str) -> None:
        if reason in self._logged or len(self._logged) == MAX_REASONS:
            return
        self._logged.add(reason)
        log.warning(
            "%s: topic %s: skipping the record at offset %d, and all like it: %s",
            self._purpose,
            self._topic,
            offset,
            reason,
        )
        if len(self._logged) == MAX_REASONS:
            log.warning(
                "%s: topic %s: further records that are skipped are not logged", self._purpose, self._topic
            )


def _digest(key: bytes | None) -> bytes:
    return b"" if key is None else hashlib.blake2b(key, digest_size=_DIGEST_BYTES).digest()
