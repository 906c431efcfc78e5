"""Consumers at their quota, over half a minute: what they get, and that they get it whatever they try.

A rate is what all consumers have got by what their quota allows. The burst of a second is a thirtieth.
"""

from collections.abc import Callable
from typing import Any

import pytest

from proxy.quota.limits.config_keys import (
    CONSUMER_BYTE_RATE,
    CONSUMER_BYTE_RATE_ACTION,
    OMIT,
    TOPIC_CONSUMER_BYTE_RATE,
    TOPIC_CONSUMER_BYTE_RATE_ACTION,
)
from proxy.quota.limits.enforcement import PACE, WINDOW
from proxy.quota.limits.resources import NO_RESOURCES, ConfigKey, Resources
from tests.support.messages.exchanges import (
    TOPIC,
)
from tests.support.simulations.consumers import Consumer, Log, World
from tests.support.stories.playbook import EVERYONE, engine

QUOTA = 100_000.0
SECONDS = 30.0
Attack = Callable[[], list[Consumer]]
"""Makes the consumers that take part in it."""
Configs = tuple[ConfigKey, ConfigKey]
"""The limit, and what becomes of a fetch beyond it."""


def rate(
    consumers: list[Consumer],
    seconds: float = SECONDS,
    algorithm: str = "pace",
    resources: Resources | None = None,
) -> float:
    """Of what the quota allows; by partition if `resources` are given."""
    quotas = {EVERYONE: {"consumer_byte_rate": QUOTA}} if resources is None else {}
    world = World(engine(quotas, algorithm, resources or NO_RESOURCES), consumers)
    world.run(seconds)
    return world.got / (QUOTA * seconds)


def rude(**how: Any) -> Consumer:
    return Consumer(honest=False, **how)


ATTACKS: dict[str, Attack] = {
    "hangs up and comes again": lambda: [rude(hangs_up=True)],
    "fifty hang up and come again": lambda: [rude(hangs_up=True) for _ in range(50)],
    "sends 300 fetches ahead": lambda: [rude(ahead=300)],
    "fifty at once": lambda: [rude() for _ in range(50)],
    "fifty at once, in sessions": lambda: [rude(sessions=True) for _ in range(50)],
    "large batches": lambda: [rude(log=Log(batch=250_000)) for _ in range(20)],
    "versions side by side": lambda: [rude(version=version) for version in (4, 6, 7, 11, 12)],
    "asks for as much as it gets": lambda: [rude(min_bytes=1 << 20) for _ in range(10)],
    "does not wait for records": lambda: [rude(max_wait=0.0) for _ in range(10)],
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_nobody_gets_more_than_the_quota(attack: str) -> None:
    assert 0.95 < rate(ATTACKS[attack]()) < 1.2


@pytest.mark.parametrize("attack", ATTACKS)
def test_nor_with_kafkas_window(attack: str) -> None:
    """Of which the burst is ten seconds."""
    assert 0.95 < rate(ATTACKS[attack](), 60.0, WINDOW) < 1.25


OF_PARTITIONS = (CONSUMER_BYTE_RATE, CONSUMER_BYTE_RATE_ACTION)
OF_TOPICS = (TOPIC_CONSUMER_BYTE_RATE, TOPIC_CONSUMER_BYTE_RATE_ACTION)
TEN_PARTITIONS = "one of each of ten partitions"
OF_A_TOPIC: dict[str, Attack] = {
    **{
        name: ATTACKS[name]
        for name in ("hangs up and comes again", "sends 300 fetches ahead", "fifty at once")
    },
    TEN_PARTITIONS: lambda: [rude(log=Log(partition=partition)) for partition in range(10)],
}


@pytest.mark.parametrize("attack", OF_A_TOPIC)
@pytest.mark.parametrize(
    "config", [CONSUMER_BYTE_RATE, TOPIC_CONSUMER_BYTE_RATE], ids=lambda config: config.name
)
def test_nor_of_a_topic_or_partition(config: ConfigKey, attack: str) -> None:
    limited = Resources({TOPIC: {config.name: str(int(QUOTA))}})
    allowed = 10.0 if attack == TEN_PARTITIONS and config is CONSUMER_BYTE_RATE else 1.0
    assert 0.85 * allowed < rate(OF_A_TOPIC[attack](), 10.0, PACE, limited) < 1.25 * allowed


@pytest.mark.parametrize("attack", ["sends 300 fetches ahead", "fifty at once", TEN_PARTITIONS])
def test_nor_of_a_topic_with_kafkas_window(attack: str) -> None:
    limited = Resources({TOPIC: {TOPIC_CONSUMER_BYTE_RATE.name: str(int(QUOTA))}})
    assert 0.85 < rate(OF_A_TOPIC[attack](), 45.0, WINDOW, limited) < 1.25


@pytest.mark.parametrize("sessions", [False, True])
def test_nor_of_a_partition_in_batches_as_small_as_responses_without_records(sessions: bool) -> None:
    """Each on a new connection, before whose first response it is not known what the fetch will be charged
    to.
    """
    limited = Resources({TOPIC: {CONSUMER_BYTE_RATE.name: str(int(QUOTA / 10))}})
    small = [rude(hangs_up=True, sessions=sessions, log=Log(batch=300), max_bytes=350) for _ in range(10)]
    assert rate(small, 5.0, PACE, limited) < 1.25 / 10


def omitting(quota: float = QUOTA, configs: Configs = OF_PARTITIONS) -> Resources:
    limit, action = configs
    return Resources({TOPIC: {limit.name: str(int(quota)), action.name: OMIT}})


OMITTED: dict[str, Attack] = {
    "a connection for each fetch": lambda: [rude(hangs_up=True)],
    "many connections for each fetch": lambda: [rude(hangs_up=True) for _ in range(20)],
    "a session for each fetch": lambda: [rude(hangs_up=True, sessions=True) for _ in range(5)],
    "other leader epochs": lambda: [rude(alternates=True)],
    "other leader epochs and connections": lambda: [rude(alternates=True, hangs_up=True) for _ in range(5)],
    "twenty at once": lambda: [rude(sessions=True) for _ in range(20)],
    "sends 300 fetches ahead": lambda: [rude(ahead=300)],
}


@pytest.mark.parametrize("attack", OMITTED)
def test_nobody_gets_more_of_a_partition_that_is_omitted(attack: str) -> None:
    assert 0.9 < rate(OMITTED[attack](), resources=omitting()) < 1.2


@pytest.mark.parametrize("attack", ["a connection for each fetch", "other leader epochs", TEN_PARTITIONS])
def test_nor_of_a_topic_whose_partitions_are_omitted(attack: str) -> None:
    consumers = {**OMITTED, **OF_A_TOPIC}[attack]()
    assert 0.85 < rate(consumers, resources=omitting(configs=OF_TOPICS)) < 1.2


@pytest.mark.parametrize("attack", ["a connection for each fetch", "twenty at once"])
def test_nor_with_kafkas_window_of_one_that_is_omitted(attack: str) -> None:
    assert 0.85 < rate(OMITTED[attack](), 45.0, WINDOW, omitting()) < 1.25


@pytest.mark.parametrize("sessions", [False, True])
def test_a_consumer_of_a_partition_that_is_omitted_gets_all_of_its_limit(sessions: bool) -> None:
    assert 0.95 < rate([Consumer(sessions=sessions)], resources=omitting()) < 1.1


@pytest.mark.parametrize("sessions", [False, True])
@pytest.mark.parametrize("batch", [1000, 20_000, 90_000])
def test_a_consumer_gets_all_of_its_quota(sessions: bool, batch: int) -> None:
    consumer = Consumer(sessions=sessions, log=Log(batch=batch))
    assert 0.95 < rate([consumer]) < 1.1
    assert consumer.empty == 0


@pytest.mark.parametrize("sessions", [False, True])
def test_consumers_without_records_leave_the_quota_to_the_others(sessions: bool) -> None:
    idle = [Consumer(sessions=sessions, log=Log(available=0), starts_at=0.01 * at) for at in range(50)]
    busy = Consumer(sessions=sessions)
    # The empty responses of the others are 6 % of this quota.
    assert 0.9 < rate([*idle, busy]) < 1.1


def test_consumers_share_their_quota_equally_whatever_the_size_of_their_batches() -> None:
    consumers = [Consumer(log=Log(batch=2000)), Consumer(log=Log(batch=100_000)), Consumer()]
    rate(consumers, 60.0)
    assert min(one.got for one in consumers) > 0.8 * max(one.got for one in consumers)


def test_each_of_fifty_gets_on() -> None:
    consumers = [Consumer(sessions=True) for _ in range(50)]
    rate(consumers, 60.0)
    assert min(one.got for one in consumers) > 0.5 * max(one.got for one in consumers)


def test_a_batch_above_the_quota_arrives_and_is_paid_for() -> None:
    consumers = [Consumer(log=Log(batch=400_000)) for _ in range(3)]
    assert rate(consumers, 60.0) < 1.2
    assert min(one.got for one in consumers) >= 3 * 400_000


def test_a_consumer_within_its_quota_waits_for_nothing() -> None:
    log = Log(batch=1000, available=0)
    consumer = Consumer(log=log)
    others = [Consumer(log=Log(available=0), starts_at=0.013 * at) for at in range(20)]
    world = World(engine({EVERYONE: {"consumer_byte_rate": QUOTA}}), [consumer, *others])
    world.run(5.0)
    for _ in range(100):
        log.available += 5000
        world.run(0.1)
    assert consumer.got == 100 * 5000
    assert consumer.longest_wait < 0.6, "no longer than its max_wait"


DENIED: dict[str, Callable[[int], Consumer]] = {
    "a fetch on each of many connections": lambda number: rude(
        denied=True, pause=SECONDS, starts_at=number / 50
    ),
    "fetches without a pause": lambda number: rude(denied=True, starts_at=number / 50),
}


@pytest.mark.parametrize("config", [OF_PARTITIONS, OF_TOPICS])
@pytest.mark.parametrize("attack", DENIED)
def test_who_may_not_read_a_partition_that_is_omitted_delays_nobody(attack: str, config: Configs) -> None:
    """Only the broker knows who may read it."""
    reader = Consumer(sessions=True)
    rest = [DENIED[attack](number) for number in range(500 if "many" in attack else 30)]
    World(engine({}, resources=omitting(configs=config)), [reader, *rest]).run(12.0)
    assert reader.got > 0.95 * QUOTA * 12.0


def test_consumers_of_a_partition_that_is_omitted_share_its_limit() -> None:
    """Also one that takes half a second to fetch again."""
    consumers = [Consumer(), Consumer(sessions=True), Consumer(pause=0.4), rude()]
    rate(consumers, 60.0, resources=omitting())
    assert min(one.got for one in consumers) > 0.4 * max(one.got for one in consumers)
