"""LimitSource: limits that are computed per client and take precedence over the configured ones, as those of
Kafka's ClientQuotaCallback.

The engine calls a source while it charges a request, because only the request names the partitions that a
client uses. The rings do no I/O, so the engine gets the source as an argument. The results of the source
depend only on the arguments of find(), which include the time. The source keeps its failures until the shell
reads them (take_failure()).
"""

from typing import Final, final

from mypy_extensions import mypyc_attr

from proxy.wire.cursor import NO_PARTITION

SOURCED_KEYS: Final = frozenset(
    ["producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"]
)
"""The quotas that a source may give: those for which Kafka has a ClientQuotaType."""


@final
class SourcedLimit:
    """The bucket of a client, and its limit."""

    __slots__ = ("client_id", "keep", "limit", "user")

    def __init__(self, user: str, client_id: str, limit: float, *, keep: bool = True) -> None:
        self.user: Final = user
        """With `client_id`, the name of the bucket: clients with the same names share it."""
        self.client_id: Final = client_id
        self.limit: Final = limit
        """Per second, in the quota's unit; UNLIMITED for none."""
        self.keep: Final = keep
        """Whether the result may be cached; otherwise the source is called for the next request as well."""


@mypyc_attr(allow_interpreted_subclasses=True)
class LimitSource:
    """Called when a client, or a partition that a client uses, is first seen; the results are cached.

    A subclass must not wait, read a clock, or log: see above.
    """

    def __init__(self, by_partition: bool = False) -> None:
        self.by_partition: Final = by_partition
        """Whether it is called for partitions too."""

    def find(
        self,
        key: str,
        user: str,
        client_id: str,
        now: float,
        topic: str = "",
        partition: int = NO_PARTITION,
    ) -> SourcedLimit | None:
        """The limit of a client, or of a client's use of one partition; `key` is one of SOURCED_KEYS.

        None: the configured quotas apply to the client; the partition has no limit.
        """
        return None

    def take_failure(self) -> str:
        """The first failure since the last call, for the log; empty if there was none."""
        return ""
