"""LimitSource: rules of somebody else's before the configured ones, as Kafka's ClientQuotaCallback."""

from typing import Final, final

from mypy_extensions import mypyc_attr

SOURCED_KEYS: Final = frozenset(
    ["producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"]
)
"""The quotas that it may give; Kafka's callback has a quota type for each."""


@final
class SourcedLimit:
    """A bucket and its limit."""

    __slots__ = ("client_id", "keep", "limit", "user")

    def __init__(self, user: str, client_id: str, limit: float, keep: bool = True) -> None:
        self.user: Final = user
        """What the bucket is called; who has the same names shares it. client_id likewise."""
        self.client_id: Final = client_id
        self.limit: Final = limit
        """Per second, in the quota's unit; UNLIMITED for none."""
        self.keep: Final = keep
        """Whether the answer holds for good; else it is asked for again with the next request."""


@mypyc_attr(allow_interpreted_subclasses=True)
class LimitSource:
    """Asked once for each client, and each partition that a client uses, when it is first seen."""

    def __init__(self, by_partition: bool = False) -> None:
        self.by_partition: Final = by_partition
        """Whether partitions are to be asked for."""

    def find(
        self, key: str, user: str, client_id: str, topic: str = "", partition: int = -1
    ) -> SourcedLimit | None:
        """The limit of a client, or of one partition for it; None: what is configured holds, and a partition
        has no limit. `key` is one of SOURCED_KEYS.
        """
        return None
