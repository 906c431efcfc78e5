"""What CreateTopics and CreatePartitions get once their client's tokens are used up: the same errors from the
proxy and from a real controller, which checks most before the quota.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from proxy.demo.embedded_kafka import EmbeddedKafka
from proxy.wire.api_keys import CREATE_TOPICS
from tests.support.kafka.admin_requests import alter, ask, describe
from tests.support.kafka.topics import drop_topic, make_topic
from tests.support.messages.kio_messages import request_type
from tests.support.messages.mutations import create_partitions, create_topics, results
from tests.support.messages.requests import build, part
from tests.support.process.proxy_process import ProxyProcess, ProxyRunner
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka
CLIENT_ID = "used-up"
RATE = 0.01
"""Partitions per second: no token returns during a test."""
REQUESTS = 60
UNKNOWN, TOO_LARGE, THROTTLED = -1, 44, 89
TOO_MANY_ID = "too-many"
THERE = "errors-there.a"
NAMES = (
    "",
    ".",
    "..",
    "errors-" + "x" * 243,
    "errors a",
    "errors/a",
    THERE,
    "errors-there_a",
    "errors-1",
    "errors-2",
)
COUNTS = (1, 1, 2, -1, 0, -2, 10_001)
FACTORS = (1, 1, -1, 0, -2, 2)
ASSIGNMENTS: tuple[tuple[tuple[int, tuple[int, ...]], ...], ...] = (
    ((0, (1,)),),
    ((0, (1,)), (1, (1,))),
    ((0, (1,)), (0, (1,))),
    ((0, (1,)), (2, (1,))),
    ((0, (1, 1)),),
    ((0, (9,)),),
    ((0, ()),),
    ((-1, (1,)),),
)
CONFIGS = ((), (("retention.ms", "1000"),), (("retention.ms", "long"),), (("no.such", "1"),))


@dataclass(frozen=True)
class New:
    """A topic of a request."""

    name: str
    partitions: int
    factor: int
    assignments: tuple[tuple[int, tuple[int, ...]], ...]
    configs: tuple[tuple[str, str], ...]


def generated(dice: random.Random) -> list[New]:
    """Some topics, with more errors than one; some names are in the request twice."""
    topics = []
    for _ in range(dice.randint(1, 4)):
        manual = dice.random() < 0.3
        partitions, factor = dice.choice(COUNTS), dice.choice(FACTORS)
        if manual and dice.random() < 0.8:
            partitions = factor = -1
        configs = dice.choice(CONFIGS) if dice.random() < 0.3 else ()
        topics.append(
            New(dice.choice(NAMES), partitions, factor, dice.choice(ASSIGNMENTS) if manual else (), configs)
        )
    return topics


def request_of(topics: list[New], validate_only: bool) -> Any:
    schema = request_type(CREATE_TOPICS, 7)
    creatable = [
        part(
            schema,
            "CreatableTopic",
            name=topic.name,
            num_partitions=topic.partitions,
            replication_factor=topic.factor,
            assignments=tuple(
                part(schema, "CreatableReplicaAssignment", partition_index=index, broker_ids=brokers)
                for index, brokers in topic.assignments
            ),
            configs=tuple(
                part(schema, "CreatableTopicConfig", name=name, value=value) for name, value in topic.configs
            ),
        )
        for topic in topics
    ]
    return build(schema, topics=tuple(creatable), timeout=timedelta(seconds=30), validate_only=validate_only)


@pytest.fixture
def native(kafka: EmbeddedKafka) -> Iterator[int]:
    """The port of a broker whose client CLIENT_ID has used up its tokens."""
    _set_rate(kafka.port(1), RATE)
    _use_up(kafka.port(1))
    yield kafka.port(1)
    _set_rate(kafka.port(1), None)
    wait_until(lambda: describe(kafka.port(1)) == {}, "the broker to forget its quota")


@pytest.fixture
def proxy(kafka: EmbeddedKafka, run_proxy: ProxyRunner) -> ProxyProcess:
    """A proxy whose client CLIENT_ID-proxy has used up its tokens; the broker has no quota for it."""
    limit = {"entity": {"client-id": f"{CLIENT_ID}-proxy"}, "controller_mutation_rate": RATE}
    proxy = run_proxy(kafka.bootstrap, [limit])
    _use_up(proxy.broker_port(1), f"{CLIENT_ID}-proxy")
    return proxy


def _use_up(port: int, client_id: str = CLIENT_ID) -> None:
    request = create_topics({"errors-used-up": 2}, validate_only=True)
    while results(ask(port, request, client_id)) != [("errors-used-up", THROTTLED)]:
        pass


def _set_rate(port: int, rate: float | None, client_id: str = CLIENT_ID) -> None:
    assert alter(port, {"client-id": client_id}, controller_mutation_rate=rate) == ErrorCode.none


def test_a_topics_own_error_takes_precedence_over_the_quota(
    kafka: EmbeddedKafka, proxy: ProxyProcess, native: int
) -> None:
    make_topic(kafka, THERE)
    dice = random.Random(7)
    seen: set[int] = set()
    for number in range(REQUESTS):
        topics = generated(dice)
        request = request_of(topics, validate_only=number % 2 == 0)
        ours = ask(proxy.broker_port(1), request, f"{CLIENT_ID}-proxy")
        theirs = ask(native, request, CLIENT_ID)
        assert sorted(results(ours)) == sorted(results(theirs)), topics
        assert (ours.throttle_time > timedelta()) == (theirs.throttle_time > timedelta()), topics
        seen.update(code for _, code in results(theirs))
    # Invalid name, there already, bad partitions, factor, assignment and config, and twice in the request.
    assert seen >= {17, 36, 37, 38, 39, 40, 42, THROTTLED}
    drop_topic(kafka, THERE)


GROWN = ("errors-grown.a", "errors-grown.b", "errors-grown.c", "errors-missing")
PLACES: tuple[tuple[tuple[int, ...], ...] | None, ...] = (
    *(None, None, (), ((1,),), ((1,), (1,)), ((9,), (9,)), ((9,),), ((1, 1), (1, 1)), ((), ())),
)


def test_a_topic_that_cannot_grow_gets_its_own_error(
    kafka: EmbeddedKafka, proxy: ProxyProcess, native: int
) -> None:
    for name in GROWN[:3]:
        make_topic(kafka, name, 2)
    dice = random.Random(7)
    seen: set[int] = set()
    for number in range(REQUESTS):
        names = dice.sample(GROWN, dice.randint(1, 3))
        counts = {name: dice.choice((4, 4, 3, 2, 1, 0, -1)) for name in names}
        placed = {name: where for name in names if (where := dice.choice(PLACES)) is not None}
        request = create_partitions(counts, validate_only=number % 2 == 0, assignments=placed)
        ours = ask(proxy.broker_port(1), request, f"{CLIENT_ID}-proxy")
        theirs = ask(native, request, CLIENT_ID)
        assert sorted(results(ours)) == sorted(results(theirs)), (counts, placed)
        assert (ours.throttle_time > timedelta()) == (theirs.throttle_time > timedelta()), (counts, placed)
        seen.update(code for _, code in results(theirs))
    # No such topic, no more partitions than there are, an assignment of another number of partitions.
    assert seen >= {3, 37, 39, THROTTLED}
    for name in GROWN[:3]:
        drop_topic(kafka, name)


def test_a_request_of_too_many_changes_is_charged(kafka: EmbeddedKafka, run_proxy: ProxyRunner) -> None:
    """The controller finds that it is too large when it has charged it."""
    limit = {"entity": {"client-id": TOO_MANY_ID}, "controller_mutation_rate": RATE}
    proxy = run_proxy(kafka.bootstrap, [limit])
    request = create_topics({"errors-too-many": 9_999}, validate_only=True)
    wanted = [("errors-too-many", TOO_LARGE)]
    assert results(ask(proxy.broker_port(1), request, TOO_MANY_ID)) == wanted
    assert _codes_of_one(proxy.broker_port(1), TOO_MANY_ID) == [THROTTLED]
    _set_rate(kafka.port(1), RATE, TOO_MANY_ID)
    wait_until(lambda: describe(kafka.port(1)), "the broker to have its quota")
    assert results(ask(kafka.port(1), request, TOO_MANY_ID)) == wanted
    assert _codes_of_one(kafka.port(1), TOO_MANY_ID) == [THROTTLED]
    _set_rate(kafka.port(1), None, TOO_MANY_ID)
    wait_until(lambda: describe(kafka.port(1)) == {}, "the broker to forget its quota")


def _codes_of_one(port: int, client_id: str) -> list[int]:
    """The error code of a new topic with one partition."""
    response = ask(port, create_topics({"errors-one": 1}, validate_only=True), client_id)
    return [code for _, code in results(response)]


@pytest.mark.parametrize("limited", [False, True])
def test_very_many_partitions_do_not_reach_the_controller(
    kafka: EmbeddedKafka, run_proxy: ProxyRunner, limited: bool
) -> None:
    """A controller fails with them after a time in proportion to their number. If another topic of the
    request gets partitions, it creates 10,000 of them nevertheless: it is asked to validate only.
    """
    limit = {"entity": {"client-id": TOO_MANY_ID}, "controller_mutation_rate": RATE}
    proxy = run_proxy(kafka.bootstrap, [limit] if limited else [])
    make_topic(kafka, GROWN[0], 2)
    make_topic(kafka, GROWN[1], 2)
    request = create_partitions({GROWN[0]: 100_000, GROWN[1]: 4}, validate_only=True)
    assert sorted(results(ask(kafka.port(1), request))) == [(GROWN[0], UNKNOWN), (GROWN[1], 0)]
    request = create_partitions({GROWN[0]: 100_000, GROWN[1]: 4})
    ours = ask(proxy.broker_port(1), request, TOO_MANY_ID)
    assert sorted(results(ours)) == [(GROWN[0], TOO_LARGE), (GROWN[1], 0)]
    for name in GROWN[:2]:
        drop_topic(kafka, name)
