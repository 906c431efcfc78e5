"""Quotas by rules of your own, as Kafka's ClientQuotaCallback (KIP-257) with the topic-partition overload of
KAFKA-16042. docs/quota-callback.md has an example.
"""

import importlib
import inspect
import logging
import math
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota.limits.limit_source import LimitSource, SourcedLimit

log = logging.getLogger(__name__)
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
"""Kafka's ClientQuotaType of each quota."""
USER_TAG: Final = "user"
CLIENT_ID_TAG: Final = "client-id"
CLOSED_LIMIT: Final = 1.0
"""What a client may have per second whose limit is not known, where that is to stop it."""
FAILED_SECONDS: Final = 10.0
"""So long after a failure an entity is not asked about again."""
FAILED_AT_MOST: Final = 10_000
LOG_EVERY_SECONDS: Final = 10.0


class TopicPartition(NamedTuple):
    """A topic's name and a partition's number."""

    topic: str
    partition: int


class QuotaCallback:
    """Override what you need. Both methods are asked when a client, or its use of a partition, is first seen,
    and again when the file's quotas have changed; never for every request. They run in the proxy's only
    thread: be quick, and wait for nothing.
    """

    def quota_metric_tags(
        self,
        quota_type: str,
        principal: str,
        client_id: str,
        topic_partition: TopicPartition | None = None,
    ) -> Mapping[str, str] | None:
        """The bucket that holds for a client: those with the same tags share it. Kafka's tags are `user` and
        `client-id`, of which an empty one is no part of it; others are shown as the user.

        quota_type       PRODUCE, FETCH, REQUEST or CONTROLLER_MUTATION
        topic_partition  where it is asked about one partition that the client uses: PRODUCE and FETCH alone,
                         and only of callbacks that take this argument

        None: the configured quotas hold, and a partition has no limit. No tags at all: no limit.
        """
        return None

    def quota_limit(self, quota_type: str, tags: Mapping[str, str]) -> float | None:
        """The limit of the bucket with these tags, per second: bytes, percent of a thread, or mutations.
        None: no limit.
        """
        return None


class CallbackSource(LimitSource):
    """Asks a callback. What it raises is logged, and its clients are unlimited or stopped, as configured."""

    def __init__(self, callback: QuotaCallback, on_error: Literal["open", "closed"]) -> None:
        self._takes_partitions: Final = _takes_partitions(callback)
        super().__init__(self._takes_partitions)
        self._callback: Final = callback
        self._on_error: Final = on_error
        self._failed: Final[dict[tuple[object, ...], float]] = {}
        """When asking about an entity failed."""
        self._logged_at = -math.inf

    def find(
        self, key: str, user: str, client_id: str, topic: str = "", partition: int = -1
    ) -> SourcedLimit | None:
        entity = (key, user, client_id, topic, partition)
        failed_at = self._failed.get(entity)
        if failed_at is not None and time.monotonic() - failed_at < FAILED_SECONDS:
            return self._unknown(user, client_id)
        try:
            found = self._ask(QUOTA_TYPES[key], user, client_id, topic, partition)
        except Exception as error:  # noqa: BLE001 - whatever somebody else's code raises
            self._note(entity, error)
            return self._unknown(user, client_id)
        self._failed.pop(entity, None)
        return found

    def _ask(
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

    def _note(self, entity: tuple[object, ...], error: Exception) -> None:
        now = time.monotonic()
        if len(self._failed) >= FAILED_AT_MOST:
            self._failed.clear()
        self._failed[entity] = now
        if now - self._logged_at >= LOG_EVERY_SECONDS:
            self._logged_at = now
            key, user, client_id, *_ = entity
            what = "unlimited" if self._on_error == "open" else "stopped"
            log.error(
                "quotas.callback failed for %s of user %s, client id %r, which is %s for now: %s: %s",
                *(key, user, client_id, what, type(error).__name__, error),
            )


def _takes_partitions(callback: QuotaCallback) -> bool:
    """Whether it has a method of its own that takes `topic_partition`; the base class ignores it, and older
    callbacks do not know it.
    """
    method = type(callback).quota_metric_tags
    if method is QuotaCallback.quota_metric_tags:
        return False
    parameters = inspect.signature(method).parameters.values()
    return any(each.name == "topic_partition" or each.kind is each.VAR_KEYWORD for each in parameters)


def _names(tags: Mapping[str, str]) -> tuple[str, str]:
    """A bucket's user and client id, by its tags."""
    user = str(tags.get(USER_TAG, ""))
    others = [f"{tag}={value}" for tag, value in sorted(tags.items()) if tag not in (USER_TAG, CLIENT_ID_TAG)]
    return ",".join([user, *others] if user else others), str(tags.get(CLIENT_ID_TAG, ""))


def _checked(limit: Any) -> float:
    if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not limit > 0:
        raise ValueError(f"quota_limit() gave {limit!r}; it is a number above 0, or None for no limit")
    return float(limit)


def load_callback(spec: str, on_error: Literal["open", "closed"]) -> CallbackSource:
    """A source that asks the callback `package.module:Class` about everybody anew. ValueError where there is
    none says why.
    """
    return CallbackSource(_make(spec), on_error)


@lru_cache(maxsize=4)
def _make(spec: str) -> QuotaCallback:
    """The callback, made once, without arguments."""
    module_name, colon, class_name = spec.partition(":")
    if not (module_name and colon and class_name):
        raise ValueError(f"expected package.module:Class, got {spec!r}")
    try:
        made = getattr(importlib.import_module(module_name), class_name)()
    except Exception as error:
        raise ValueError(f"{spec} cannot be made: {type(error).__name__}: {error}") from error
    if not isinstance(made, QuotaCallback):
        raise ValueError(f"{spec} is not a proxy.quota_callback.QuotaCallback")
    return made
