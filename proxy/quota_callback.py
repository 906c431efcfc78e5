"""Quotas computed by a class of yours, as with Kafka's ClientQuotaCallback (KIP-257), with the overload for
partitions of KAFKA-16042. docs/quota-callback.md has an example.
"""

import importlib
import inspect
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota.limits.limit_source import LimitSource, SourcedLimit
from proxy.wire.cursor import NO_PARTITION

PRODUCE: Final = "PRODUCE"
FETCH: Final = "FETCH"
REQUEST: Final = "REQUEST"
CONTROLLER_MUTATION: Final = "CONTROLLER_MUTATION"
QUOTA_TYPES: Final = {
    "producer_byte_rate": PRODUCE,
    "consumer_byte_rate": FETCH,
    "request_percentage": REQUEST,
    "controller_mutation_rate": CONTROLLER_MUTATION,
}
"""Kafka's ClientQuotaType by quota key."""
USER_TAG: Final = "user"
CLIENT_ID_TAG: Final = "client-id"
CLOSED_LIMIT: Final = 1.0
"""The limit per second of a client whose limit is unknown, with `quotas.callback_error: closed`. It stops the
client: a limit has to be above 0."""
FAILED_SECONDS: Final = 10.0
"""How long after a failure the callback is not called for the same client or partition. Callbacks run in the
proxy's only thread: one that fails slowly on every request would stop all clients."""
FAILED_AT_MOST: Final = 10_000
"""How many failures are remembered. When there are more, all are forgotten: clients choose their ids."""


class TopicPartition(NamedTuple):
    """A topic's name and a partition's number."""

    topic: str
    partition: int


class QuotaCallback:
    """The base class of callbacks: override what you need.

    The proxy calls both methods when a client, or its use of a partition, is first seen, and again after a
    change of the file's quotas, but not for every request. They run in the proxy's only thread: they have to
    return at once, without waiting for anything.
    """

    def quota_metric_tags(
        self,
        quota_type: str,
        principal: str,
        client_id: str,
        topic_partition: TopicPartition | None = None,
    ) -> Mapping[str, str] | None:
        """Return the tags of the bucket that applies to a client. Clients with the same tags share a bucket.

        Kafka's tags are `user` and `client-id`; an empty one counts as absent. Metrics show other tags as
        part of the user.

        quota_type       PRODUCE, FETCH, REQUEST or CONTROLLER_MUTATION
        topic_partition  set for the client's use of one partition: with PRODUCE and FETCH, and only if the
                         method takes this argument

        None: the configured quotas apply, and a partition has no limit. No tags: no limit.
        """
        return None

    def quota_limit(self, quota_type: str, tags: Mapping[str, str]) -> float | None:
        """Return the limit of the bucket with these tags: bytes, percent of a thread, or mutations, per
        second. None: no limit.
        """
        return None


class CallbackSource(LimitSource):
    """Calls a callback. If that raises, the client is unlimited or stopped, as configured, for a while."""

    def __init__(self, callback: QuotaCallback, on_error: Literal["open", "closed"]) -> None:
        self._takes_partitions: Final = _takes_partitions(callback)
        super().__init__(self._takes_partitions)
        self._callback: Final = callback
        self._on_error: Final = on_error
        self._failed: Final[dict[tuple[object, ...], float]] = {}
        """By what was looked up: when the callback failed."""
        self._failure = ""
        """The first failure that is not logged yet."""

    def find(
        self,
        key: str,
        user: str,
        client_id: str,
        now: float,
        topic: str = "",
        partition: int = NO_PARTITION,
    ) -> SourcedLimit | None:
        entity = (key, user, client_id, topic, partition)
        failed_at = self._failed.get(entity)
        if failed_at is not None and now - failed_at < FAILED_SECONDS:
            return self._unknown(user, client_id)
        try:
            found = self._call(QUOTA_TYPES[key], user, client_id, topic, partition)
        except Exception as error:  # noqa: BLE001 - a callback may raise anything
            self._note(entity, error, now)
            return self._unknown(user, client_id)
        self._failed.pop(entity, None)
        return found

    def _call(
        self, quota_type: str, user: str, client_id: str, topic: str, partition: int
    ) -> SourcedLimit | None:
        if topic:
            tags = self._callback.quota_metric_tags(
                quota_type, user, client_id, topic_partition=TopicPartition(topic, partition)
            )
        else:
            tags = self._callback.quota_metric_tags(quota_type, user, client_id)
        if tags is None:
            return None
        if not tags:
            return SourcedLimit(user, client_id, UNLIMITED)
        limit = self._callback.quota_limit(quota_type, tags)
        return SourcedLimit(*_names(tags), UNLIMITED if limit is None else _checked(limit))

    def _unknown(self, user: str, client_id: str) -> SourcedLimit:
        limit = UNLIMITED if self._on_error == "open" else CLOSED_LIMIT
        return SourcedLimit(user, client_id, limit, keep=False)

    def _note(self, entity: tuple[object, ...], error: Exception, now: float) -> None:
        if len(self._failed) >= FAILED_AT_MOST:
            self._failed.clear()
        self._failed[entity] = now
        if not self._failure:
            key, user, client_id, *_ = entity
            effect = "unlimited" if self._on_error == "open" else "stopped"
            self._failure = (
                f"quotas.callback failed for {key} of user {user}, client id {client_id!r}, "
                f"which is {effect} for {FAILED_SECONDS:.0f} s: {type(error).__name__}: {error}"
            )

    def take_failure(self) -> str:
        failure, self._failure = self._failure, ""
        return failure


def _takes_partitions(callback: QuotaCallback) -> bool:
    """Whether the callback's own quota_metric_tags() takes `topic_partition`, which older ones lack."""
    method = type(callback).quota_metric_tags
    if method is QuotaCallback.quota_metric_tags:
        return False
    parameters = inspect.signature(method).parameters.values()
    return any(each.name == "topic_partition" or each.kind is each.VAR_KEYWORD for each in parameters)


def _names(tags: Mapping[str, str]) -> tuple[str, str]:
    """The user and client id that name the bucket with these tags."""
    user = str(tags.get(USER_TAG, ""))
    others = [f"{tag}={value}" for tag, value in sorted(tags.items()) if tag not in (USER_TAG, CLIENT_ID_TAG)]
    return ",".join([user, *others] if user else others), str(tags.get(CLIENT_ID_TAG, ""))


def _checked(limit: Any) -> float:
    if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not limit > 0:
        raise ValueError(f"quota_limit() returned {limit!r}; expected a number above 0, or None for no limit")
    return float(limit)


def load_callback(spec: str, on_error: Literal["open", "closed"]) -> CallbackSource:
    """Make a source of the callback `package.module:Class`, with an empty cache. Raises ValueError."""
    return CallbackSource(_make(spec), on_error)


@lru_cache(maxsize=4)
def _make(spec: str) -> QuotaCallback:
    """Make the callback: once, also over reloads of the file."""
    module_name, colon, class_name = spec.partition(":")
    if not (module_name and colon and class_name):
        raise ValueError(f"expected package.module:Class, got {spec!r}")
    try:
        made = getattr(importlib.import_module(module_name), class_name)()
    except Exception as error:
        raise ValueError(f"{spec}: {type(error).__name__}: {error}") from error
    if not isinstance(made, QuotaCallback):
        raise ValueError(f"{spec} is not a proxy.quota_callback.QuotaCallback")
    return made
