"""Consumers at their quota, over half a minute: what they get, and that they get it whatever they try.

A rate is what all consumers have got by what their quota allows. The burst of a second is a thirtieth.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from proxy.quota.engine import QuotaEngine
from proxy.quota.limits.config_keys import (
    CONSUMER_BYTE_RATE,
    CONSUMER_BYTE_RATE_ACTION,
    OMIT,
    TOPIC_CONSUMER_BYTE_RATE,
    TOPIC_CONSUMER_BYTE_RATE_ACTION,
)
from proxy.quota.limits.enforcement import OBSERVE, PACE, WINDOW
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import NO_RESOURCES, ConfigKey, Resources
from proxy.relay.counters.traffic import Traffic
from proxy.wire.fetch.rewrite import fetch_response
from tests.support.messages.exchanges import (
    TOPIC,
    chunks,
    fetch,
    fetched,
    milliseconds,
    opaque,
    record_batch,
)
from tests.support.messages.exchanges import fetch_response as fetch_message
from tests.support.messages.kio_messages import (
    Ports,
    read_frame,
    request_frame,
    request_type,
    response_frame,
    response_type,
    versions,
)
from tests.support.quotas.enforcement import enforcement
from tests.support.simulations.consumers import Consumer, Log, World
from tests.support.simulations.share_consumers import share_fetch
from tests.support.stories.playbook import EVERYONE, START, Playbook, drive, engine

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


SLOW = {EVERYONE: {"consumer_byte_rate": 1000.0}}


def connected(quotas: QuotaEngine) -> Playbook:
    return Playbook(drive(quotas, Ports(), Traffic()))


def in_debt(size: int = 5000) -> QuotaEngine:
    """An engine whose bucket of 1000 B/s owes what is beyond 1000 bytes."""
    made = engine(SLOW)
    other = connected(made).client(fetch(1)).to_broker(fetch(1, max_bytes=1000))
    other.broker(fetched(1, size=size)).relay.end()
    return made


def nothing(correlation_id: int, throttle_ms: int, version: int = 11, session_id: int = 0) -> bytes:
    return fetch_response(version, correlation_id, session_id=session_id, throttle_time_ms=throttle_ms)


def session(
    correlation_id: int,
    session_id: int,
    epoch: int,
    max_bytes: int = 50 << 20,
    max_wait_ms: int = 500,
    version: int = 12,
) -> bytes:
    """A fetch of a session."""
    request = read_frame(request_type(1, version), fetch(correlation_id, max_bytes, version=version))
    changed = replace(request, session_id=session_id, session_epoch=epoch, max_wait=milliseconds(max_wait_ms))
    return request_frame(changed, correlation_id, "client")


@pytest.mark.parametrize("version", [version for version in versions(1) if version <= 18])
def test_who_is_over_gets_an_empty_response_after_its_max_wait(version: int) -> None:
    story = connected(in_debt()).client(fetch(7, version=version)).at(0.49).to_client().to_broker()
    story.at(0.5).to_client(nothing(7, 3500, version)).to_broker()
    # It comes again when it has been told to, and later requests are read.
    story.client(fetch(8, version=version)).at(3.9).to_client().to_broker()


def test_the_wait_that_is_announced_is_that_of_the_debt() -> None:
    story = connected(in_debt(3000)).client(fetch(7)).at(0.5).to_client(nothing(7, 1500)).muted(2.0)
    story.client(fetch(8)).at(1.99).to_broker().at(2.0).to_broker(fetch(8, max_bytes=250)).unmuted()


def test_a_debt_that_is_soon_paid_is_waited_for() -> None:
    story = connected(in_debt(1400)).client(fetch(7)).to_broker().muted(0.4)
    story.at(0.4).to_broker(fetch(7, max_bytes=250)).to_client().unmuted()


def test_the_fetch_of_a_session_waits_for_longer_and_goes_on_with_its_epoch() -> None:
    """The broker counts the session's fetches, so this one has to reach it."""
    story = connected(in_debt(9000)).client(session(7, 99, 3)).at(4.99).to_broker().to_client()
    story.at(5.0).to_broker(session(7, 99, 3, max_bytes=1, max_wait_ms=0))
    brought = session_response(7, 99)
    story.broker(brought).to_client(nothing(7, 3000, 12, 99)).muted(8.0)
    story.client(session(8, 99, 4)).at(8.0).to_broker(session(8, 99, 4, max_bytes=250)).unmuted()


def session_response(
    correlation_id: int, session_id: int, size: int = 700, error_code: int = 0, version: int = 12
) -> bytes:
    response = fetch_message(
        version, record_batch(size), session_id=session_id, error_code=ErrorCode(error_code)
    )
    return response_frame(response, correlation_id)


def test_an_error_is_not_withheld() -> None:
    story = connected(in_debt(9000)).client(session(7, 99, 3)).at(5.0)
    story.to_broker(session(7, 99, 3, max_bytes=1, max_wait_ms=0))
    error = session_response(7, 99, error_code=71)
    story.broker(error)
    response = b"".join(story.relay.take_to_client())
    assert read_frame(response_type(1, 12), response).error_code == 71


def test_a_response_that_comes_when_others_have_spent_all_is_withheld() -> None:
    quotas = engine(SLOW)
    story = connected(quotas).client(session(7, 0, 0)).to_broker(session(7, 0, 0, max_bytes=1000))
    other = connected(quotas).client(fetch(1))
    other.broker(fetched(1, size=4000)).relay.end()
    story.broker(session_response(7, 99)).to_client(nothing(7, 3000, 12)).muted(3.0)


def test_a_large_response_is_withheld_as_it_arrives() -> None:
    quotas = engine(SLOW)
    story = connected(quotas).client(session(7, 99, 5)).to_broker(session(7, 99, 5, max_bytes=1000))
    other = connected(quotas).client(fetch(1))
    other.broker(fetched(1, size=4000)).relay.end()
    large = chunks(session_response(7, 99, size=3 << 20))
    story.broker(*large[:5]).to_client(nothing(7, 3000, 12, 99)).broker(*large[5:]).to_client().muted(3.0)
    story.at(3.0).client(session(8, 99, 6)).to_broker(session(8, 99, 6, max_bytes=250)).busy()


@pytest.mark.parametrize("how", ["raised", "removed"])
def test_a_changed_limit_frees_who_waits(how: str) -> None:
    quotas = in_debt(90_000)
    story = connected(quotas).client(session(7, 99, 3)).at(0.5).to_broker()
    limits = {EVERYONE: {"consumer_byte_rate": 1e9}} if how == "raised" else {}
    quotas.configure(Limits(limits), START + 0.5)
    story.at(1.6)
    assert len(story.relay.take_to_broker()) > 0
    story.unmuted()


def test_observed_nobody_waits_and_nothing_is_withheld() -> None:
    quotas = engine(SLOW)
    settings = enforcement(modes={"consumer_byte_rate": OBSERVE})
    quotas.configure(Limits(SLOW, settings=settings), START)
    for at in range(3):
        story = connected(quotas).client(fetch(at)).to_broker(fetch(at))
        story.broker(fetched(at, size=9000)).to_client(fetched(at, size=9000)).unmuted()


def test_the_drain_of_a_proxy_answers_who_waits() -> None:
    story = connected(in_debt()).client(fetch(7)).to_broker().drain().to_broker()
    assert len(story.relay.take_to_client()) == 1
    session_story = connected(in_debt(9000)).client(session(7, 99, 3)).to_broker().drain()
    session_story.to_broker(session(7, 99, 3, max_bytes=1, max_wait_ms=0))


@pytest.mark.parametrize("earlier", [False, True])
def test_a_drain_forwards_no_fetch_that_may_bring_records_over_the_quota(earlier: bool) -> None:
    """Neither one over its quota nor one that waits for earlier responses has a grant."""
    whole, in_session, share = fetch(8), session(8, 99, 3), share_fetch(2)
    nothing = share_fetch(2, max_records=0, max_wait_seconds=0.0)
    empty_session = session(8, 99, 3, max_bytes=1, max_wait_ms=0)
    for request, forwarded in ((whole, b""), (in_session, empty_session), (share, nothing)):
        story = connected(engine(SLOW) if earlier else in_debt(9000))
        if earlier:
            story.client(fetch(7))
            story.relay.take_to_broker()
        story.client(request).to_broker().drain().to_broker(forwarded)


def test_requests_behind_a_fetch_that_waits_are_read_after_it() -> None:
    story = connected(in_debt(1400)).client(fetch(7) + opaque(8)).to_broker().at(0.4)
    story.to_broker(fetch(7, max_bytes=250), opaque(8))


def test_who_waits_and_goes_leaves_no_place_in_the_line() -> None:
    quotas = in_debt(1400)
    gone = connected(quotas).client(fetch(7)).to_broker()
    gone.relay.end()
    connected(quotas).client(fetch(8)).at(0.4).to_broker(fetch(8, max_bytes=250))


def test_a_share_fetch_waits_until_the_debt_is_paid() -> None:
    """Its records would be locked for a consumer that does not get them. It also waits for the tokens of a
    second, because its batch may cost as much.
    """
    story = connected(in_debt(9000)).at(4.1).client(share_fetch(1)).at(8.9).to_broker().to_client()
    story.at(9.01).to_broker(share_fetch(1, max_bytes=1000))


def test_a_share_fetch_asks_for_no_records_while_there_is_a_debt() -> None:
    """It does not wait for longer than clients wait for a response."""
    story = connected(in_debt(9000)).client(share_fetch(1)).at(4.9).to_broker().to_client()
    story.at(8.9).to_broker(share_fetch(1, max_records=0, max_wait_seconds=0.0))


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
