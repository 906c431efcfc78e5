"""Quotas from a callback of the operator."""

from collections.abc import Mapping
from typing import Any, Literal

import pytest

from proxy.quota.engine import QuotaEngine
from proxy.quota.identity import DEFAULT, Identity, QuotaEntity
from proxy.quota.kinds import load_kinds
from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota.limits.limits import Limits
from proxy.quota_callback import (
    CLOSED_LIMIT,
    FAILED_SECONDS,
    FETCH,
    PRODUCE,
    CallbackSource,
    QuotaCallback,
    TopicPartition,
    load_callback,
)
from proxy.wire.cursor import NO_ID
from proxy.wire.views import Item, RequestView, ResponseView
from tests.support.quotas.buckets import bucket_states

ALICE = Identity("alice", "app", "127.0.0.1")
BOB = Identity("bob", "app", "127.0.0.1")


class ByTeam(QuotaCallback):
    """Every team shares 1000 bytes per second; asked as often as it says."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str]] = []

    def quota_metric_tags(  # type: ignore[override]
        self, quota_type: str, principal: str, client_id: str
    ) -> Mapping[str, str] | None:
        self.asked.append((quota_type, principal, client_id))
        if principal == "configured":
            return None
        return {} if principal == "free" else {"team": "one"}

    def quota_limit(self, quota_type: str, tags: Mapping[str, str]) -> int | None:
        return 1000 if quota_type == PRODUCE else None


class ByPartition(QuotaCallback):
    """Each partition of orders takes 1000 bytes per second from a user, and gives 500."""

    def __init__(self) -> None:
        self.asked = 0

    def quota_metric_tags(
        self, quota_type: str, principal: str, client_id: str, topic_partition: TopicPartition | None = None
    ) -> Mapping[str, str]:
        self.asked += 1
        if topic_partition is None or topic_partition.topic != "orders":
            return {}
        return {"user": principal, "partition": f"{topic_partition.topic}-{topic_partition.partition}"}

    def quota_limit(self, quota_type: str, tags: Mapping[str, str]) -> int:
        return 1000 if quota_type == PRODUCE else 500


class Failing(QuotaCallback):
    def __init__(self) -> None:
        self.limit: Any = RuntimeError("no such thing")

    def quota_metric_tags(  # type: ignore[override]
        self, quota_type: str, principal: str, client_id: str
    ) -> Mapping[str, str] | None:
        if isinstance(self.limit, Exception):
            raise self.limit
        return {"user": principal}

    def quota_limit(self, quota_type: str, tags: Mapping[str, str]) -> Any:
        return self.limit


def engine_of(
    callback: QuotaCallback | CallbackSource,
    on_error: Literal["open", "closed"] = "open",
    quotas: dict[QuotaEntity, dict[str, float]] | None = None,
) -> QuotaEngine:
    """`callback`: a callback, or the source of one."""
    engine = QuotaEngine([kind.build() for kind in load_kinds()])
    source = callback if isinstance(callback, CallbackSource) else CallbackSource(callback, on_error)
    engine.configure(Limits(quotas or {}, source=source), 0.0)
    return engine


def produce(
    engine: QuotaEngine, size: int, who: Identity = ALICE, now: float = 0.0, **partitions: list[int]
) -> float:
    request = RequestView(0, 9, 1, who.client_id, size)
    request.items = [
        Item(topic, NO_ID, partition, each)
        for topic, sizes in partitions.items()
        for partition, each in enumerate(sizes)
    ]
    return engine.admit(request, who, now).throttle_seconds


def test_clients_with_the_same_tags_share_a_bucket() -> None:
    engine = engine_of(ByTeam())
    assert produce(engine, 1000) == 0.0
    assert produce(engine, 500, BOB) == pytest.approx(0.5)
    (state,) = bucket_states(engine, 0.0)
    assert (state.quota, state.user, state.client_id, state.limit) == (
        "producer_byte_rate",
        "team=one",
        "",
        1000,
    )


def test_the_callback_is_called_when_a_client_is_first_seen() -> None:
    callback = ByTeam()
    engine = engine_of(callback)
    for _ in range(5):
        produce(engine, 1)
    assert callback.asked == [(PRODUCE, "alice", "app")]
    engine.configure(Limits({}, source=CallbackSource(callback, "open")), 1.0)
    produce(engine, 1)
    assert len(callback.asked) == 2


def test_no_tags_are_no_limit_and_none_leaves_it_to_what_is_configured() -> None:
    engine = engine_of(ByTeam(), quotas={QuotaEntity(DEFAULT, None): {"producer_byte_rate": 100.0}})
    assert produce(engine, 5000, Identity("free", "app", "127.0.0.1")) == 0.0
    assert produce(engine, 200, Identity("configured", "app", "127.0.0.1")) == pytest.approx(1.0)
    assert produce(engine, 1000) == 0.0


def test_a_type_without_a_limit_is_unlimited() -> None:
    engine = engine_of(ByTeam())
    request = RequestView(1, 12, 1, "app", 100)
    assert engine.charge(request, ResponseView(12, True, 50_000), ALICE, 0.0).throttle_seconds == 0.0


def test_older_callbacks_are_not_called_for_partitions() -> None:
    callback = ByTeam()
    engine = engine_of(callback)
    assert not engine.any_items
    assert not CallbackSource(QuotaCallback(), "open").by_partition
    assert produce(engine, 1, orders=[5000]) == 0.0


def test_partitions_of_a_client() -> None:
    callback = ByPartition()
    engine = engine_of(callback)
    assert [key for key in range(100) if engine.wants_items(key)] == [0, 1, 78]
    assert produce(engine, 1, orders=[1000, 2000], others=[9000]) == pytest.approx(1.0)
    asked = callback.asked
    assert produce(engine, 1, orders=[500, 0], others=[9000]) == pytest.approx(0.5)
    assert callback.asked == asked
    assert produce(engine, 1, BOB, orders=[1000]) == 0.0
    request, response = RequestView(1, 12, 1, "app", 100), ResponseView(12, True, 50)
    response.items = [Item("orders", NO_ID, 0, 1000)]
    assert engine.charge(request, response, ALICE, 0.0).throttle_seconds == pytest.approx(1.0)
    assert ("alice,partition=orders-0", 500) in {
        (state.user, state.limit) for state in bucket_states(engine, 0.0)
    }


def test_open_clients_are_unlimited_while_it_fails() -> None:
    source = CallbackSource(Failing(), "open")
    engine = engine_of(source)
    assert produce(engine, 5000) == 0.0
    assert produce(engine, 5000, BOB) == 0.0
    failure = source.take_failure()
    for part in ("alice", "unlimited", "RuntimeError: no such thing"):
        assert part in failure
    assert source.take_failure() == ""


@pytest.mark.parametrize("limit", [RuntimeError("x"), "many", 0, -1, float("nan"), True])
def test_closed_clients_are_stopped_while_it_fails(limit: object) -> None:
    callback = Failing()
    callback.limit = limit
    engine = engine_of(callback, "closed")
    assert produce(engine, 11) == pytest.approx((11 - CLOSED_LIMIT) / CLOSED_LIMIT)


def test_it_is_called_again_a_while_after_a_failure() -> None:
    callback = Failing()
    source = CallbackSource(callback, "open")

    def find(user: str, now: float) -> Any:
        return source.find("producer_byte_rate", user, "app", now)

    assert find("alice", 100.0).limit == UNLIMITED
    callback.limit = 70
    assert not find("alice", 100.0 + FAILED_SECONDS - 0.1).keep
    assert find("bob", 100.0).limit == 70
    assert find("alice", 100.0 + FAILED_SECONDS).limit == 70


def test_a_partition_is_a_pair() -> None:
    assert TopicPartition("orders", 3) == ("orders", 3)
    assert FETCH == "FETCH"


def test_loading() -> None:
    assert not load_callback("proxy.quota_callback:QuotaCallback", "open").by_partition
    with pytest.raises(ValueError, match="'ByTeam'"):
        load_callback("ByTeam", "open")
    with pytest.raises(ValueError, match="no_such_module:Class: ModuleNotFoundError"):
        load_callback("no_such_module:Class", "open")
    with pytest.raises(ValueError, match=r"builtins:dict .*\bQuotaCallback"):
        load_callback("builtins:dict", "open")
