"""The quota of a partition's bytes, and the requests that it admits and charges."""

from typing import Final, Unpack

from proxy.quota.engine import QuotaEngine
from proxy.quota.fetch.grant import FetchGrant
from proxy.quota.identity import Identity
from proxy.quota.kinds.topic_partition_bytes.kind import KIND, TopicPartitionBytes
from proxy.quota.limits.config_keys import (
    CONSUMER_BYTE_RATE,
    CONSUMER_BYTE_RATE_ACTION,
    OMIT,
    PRODUCER_BYTE_RATE,
)
from proxy.quota.limits.enforcement import PACE
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import Resources
from proxy.quota.quota import Quota
from proxy.quota.verdict import ALLOW, Verdict
from proxy.wire.api_keys import FETCH, PRODUCE
from proxy.wire.cursor import NO_ID
from proxy.wire.views import Item, RequestView, ResponseView
from tests.support.quotas.enforcement import EnforcementOptions, enforcement

WHO: Final = Identity("u", "c", "127.0.0.1")
IN: Final = PRODUCER_BYTE_RATE.name
OUT: Final = CONSUMER_BYTE_RATE.name
OMITTING: Final = {"orders": {OUT: "1000", CONSUMER_BYTE_RATE_ACTION.name: OMIT}}
MAX_BYTES: Final = 50 << 20


def limits(
    algorithm: str = PACE,
    topics: dict[str, dict[str, str]] | None = None,
    **settings: Unpack[EnforcementOptions],
) -> Limits:
    """Limits of topics; by default 1000 bytes per second in each direction for the topic `orders`."""
    topics = topics or {"orders": {IN: "1000", OUT: "1000"}}
    return Limits({}, resources=Resources(topics), settings=enforcement(algorithm=algorithm, **settings))


def quota(configured: Limits | None = None) -> TopicPartitionBytes:
    """The quota with these limits."""
    made = KIND.build()
    assert isinstance(made, TopicPartitionBytes)
    made.configure(configured or limits(), 0.0)
    return made


def items(*sizes: int, topic: str = "orders") -> list[Item]:
    """Items of partitions 0, 1 and so on."""
    return [Item(topic, NO_ID, partition, size) for partition, size in enumerate(sizes)]


def response(*sizes: int, topic: str = "orders") -> ResponseView:
    """A Fetch response with these sizes of its partitions."""
    made = ResponseView(12, True, 10_000)
    made.items = items(*sizes, topic=topic)
    return made


def produce(of: Quota | QuotaEngine, *sizes: int, now: float = 0.0, topic: str = "orders") -> Verdict:
    """Admit a Produce request with these sizes of its partitions."""
    request = RequestView(PRODUCE, 9, 1, "c", 10_000)
    request.items = items(*sizes, topic=topic)
    return of.admit(request, WHO, now)


def fetch(
    of: Quota, now: float = 0.0, api_key: int = FETCH, who: Identity = WHO, replica_id: int = -1
) -> FetchGrant:
    """Return the grant of a fetch, after it has been asked once."""
    request = RequestView(api_key, 12, 1, "c", 100)
    request.max_bytes = MAX_BYTES
    request.replica_id = replica_id
    assert of.admit(request, who, now) is ALLOW
    grant = FetchGrant()
    of.limit_fetch(request, who, grant, now)
    grant.places.complete()
    grant.ask(now)
    return grant


def charge(
    of: Quota | QuotaEngine,
    *sizes: int,
    now: float = 0.0,
    api_key: int = FETCH,
    topic: str = "orders",
    replica_id: int = -1,
) -> Verdict:
    """Charge a Fetch response with these sizes of its partitions."""
    request = RequestView(api_key, 12, 1, "c", 100)
    request.replica_id = replica_id
    return of.charge(request, response(*sizes, topic=topic), WHO, now)
