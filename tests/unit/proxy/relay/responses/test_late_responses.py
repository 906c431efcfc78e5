"""Quotas by topic take back what a broker has not appended, though the client never sees the response."""

from dataclasses import replace

import pytest
from kio.schema.errors import ErrorCode

from proxy.quota.engine import QuotaEngine
from proxy.quota.limits.config_keys import PRODUCER_BYTE_RATE
from proxy.quota.limits.resources import Resources
from proxy.relay.budgets.read_turns import FRAMES, PAUSE_SECONDS
from proxy.relay.close_reasons import BROKER_CLOSED
from proxy.relay.counters.traffic import Traffic
from proxy.wire.frames import CUT_THROUGH_BYTES
from tests.support.messages.exchanges import TOPIC, fetch, fetched, opaque, produce, produced, responded
from tests.support.messages.kio_messages import Ports, read_frame, response_frame, response_type
from tests.support.quotas.buckets import live_buckets
from tests.support.stories.playbook import EVERYONE, START, Playbook, Quotas, drive, engine

LIMITED = Resources({TOPIC: {PRODUCER_BYTE_RATE.name: "1000"}})
AMPLE = Resources({TOPIC: {PRODUCER_BYTE_RATE.name: "200000"}})
VERSIONS = [3, 8, 9, 12]
DENIED = ErrorCode.topic_authorization_failed


class Topic:
    """A topic with a limit, and connections that write to it."""

    def __init__(self, resources: Resources = LIMITED) -> None:
        self.limits = engine({}, resources=resources)
        self.traffic = Traffic(topic_partitions=True)

    def connection(self) -> Playbook:
        return Playbook(drive(self.limits, Ports(), self.traffic))

    @property
    def used(self) -> float:
        """The bytes that the buckets have counted."""
        return sum(bucket.used for bucket in live_buckets(self.limits))


def rejected(correlation_id: int, version: int = 7, error: ErrorCode = DENIED) -> bytes:
    """The response of a broker that has appended nothing."""
    response = read_frame(response_type(0, version), produced(correlation_id, version=version))
    [topic] = response.responses
    [partition] = topic.partition_responses
    topic = replace(topic, partition_responses=(replace(partition, error_code=error),))
    return response_frame(replace(response, responses=(topic,)), correlation_id)


@pytest.mark.parametrize("version", [0, 2, *VERSIONS])
def test_without_acks_the_proxy_requests_the_response_and_keeps_it(version: int) -> None:
    topic = Topic()
    play = topic.connection().client(produce(1, size=800, version=version, acks=0))
    play.to_broker(produce(1, size=800, version=version, acks=1)).busy()
    used = topic.used
    assert used > 0
    play.broker(produced(1, version=version)).to_client().idle()
    assert topic.used == used
    assert topic.traffic.total.bytes_out == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_without_acks_what_is_not_appended_costs_nothing_and_ends_the_connection(version: int) -> None:
    topic = Topic()
    play = topic.connection().client(produce(1, size=800, version=version, acks=0))
    play.broker_fails(rejected(1, version), reason=BROKER_CLOSED, says="error 29")
    assert topic.used == 0


def test_other_responses_keep_their_order() -> None:
    play = Topic().connection().client(opaque(1), produce(2, acks=0), opaque(3), produce(4, size=200))
    play.broker(responded(1), produced(2), responded(3), produced(4))
    play.to_client(responded(1), responded(3), produced(4)).idle()


@pytest.mark.parametrize("resources", [Resources({}), Resources({TOPIC: {"consumer.byte.rate": "1000"}})])
def test_without_a_limit_by_topic_the_request_is_forwarded_as_it_is(resources: Resources) -> None:
    request = produce(1, acks=0)
    Topic(resources).connection().client(request).to_broker(request).idle()


def test_a_large_request_without_acks() -> None:
    topic = Topic()
    asked, wanted = (produce(1, size=2 * CUT_THROUGH_BYTES, version=9, acks=acks) for acks in (0, 1))
    play = topic.connection().client(asked[:CUT_THROUGH_BYTES]).client(asked[CUT_THROUGH_BYTES:])
    play.to_broker(wanted)
    assert topic.used > CUT_THROUGH_BYTES
    play.broker_fails(rejected(1, 9), reason=BROKER_CLOSED, says="error 29")
    assert topic.used == 0


@pytest.mark.parametrize("acks", [-1, 0])
def test_a_client_that_does_not_await_the_response_leaves_the_limit_to_others(acks: int) -> None:
    topic = Topic()
    play = topic.connection().client(opaque(1) + produce(2, size=800, acks=acks) + produce(3, acks=acks))
    relay = play.relay.relay
    relay.end()
    assert relay.awaits_late
    first = responded(1) + rejected(2)
    assert not relay.receive_late(first[:20], START)
    assert not relay.receive_late(first[20:], START)
    assert relay.awaits_late
    used = topic.used
    assert 0 < used < 800
    relay.receive_late(produced(3), START)
    assert not relay.awaits_late
    assert topic.used == used
    relay.receive_late(b"\xff" * 50, START)  # is not read


def test_the_rest_of_a_large_response_is_skipped() -> None:
    topic = Topic()
    play = topic.connection().client(opaque(1), produce(2, size=800))
    large = responded(1, bytes(2 * CUT_THROUGH_BYTES))
    play.broker(large[: CUT_THROUGH_BYTES // 2])
    relay = play.relay.relay
    relay.end()
    relay.receive_late(large[CUT_THROUGH_BYTES // 2 :] + rejected(2), START)
    assert topic.used == 0


def test_a_broker_that_sends_nonsense_is_read_no_further() -> None:
    topic = Topic()
    relay = topic.connection().client(produce(1, size=800)).relay.relay
    relay.end()
    relay.receive_late(b"\xff" * 50, START)
    assert not relay.awaits_late
    assert topic.used > 0


@pytest.mark.parametrize("acks", [1, 0])
def test_what_the_broker_closes_the_connection_for_costs_nothing(acks: int) -> None:
    topic = Topic()
    play = topic.connection().client(opaque(1), produce(2, size=200), produce(3, size=800, acks=acks))
    play.broker(responded(1), produced(2))
    relay = play.relay.relay
    relay.end()
    relay.broker_closed(START)
    assert 0 < topic.used < 200


def test_a_large_request_that_the_broker_closes_the_connection_for_costs_nothing() -> None:
    for last in (None, -1):
        topic = Topic()
        request = produce(1, size=2 * CUT_THROUGH_BYTES, version=9)[:last]
        play = topic.connection().client(request[:CUT_THROUGH_BYTES], request[CUT_THROUGH_BYTES:])
        assert topic.used > CUT_THROUGH_BYTES
        play.relay.relay.end()
        play.relay.relay.broker_closed(START)
        assert topic.used == 0


def test_a_request_whose_end_never_comes_costs_nothing() -> None:
    topic = Topic()
    request = produce(1, size=2 * CUT_THROUGH_BYTES, version=9)
    play = topic.connection().client(request[:CUT_THROUGH_BYTES], request[CUT_THROUGH_BYTES:-1])
    assert topic.used > 0
    play.relay.relay.end()
    assert topic.used == 0


def test_records_count_once_in_usage() -> None:
    topic = Topic()
    play = topic.connection().client(produce(1, size=800))
    play.relay.relay.end()
    counted = {name: each.bytes_in for name, each in topic.traffic.partitions.items()}
    play.relay.relay.end()
    assert {name: each.bytes_in for name, each in topic.traffic.partitions.items()} == counted


def test_responses_that_arrive_together_let_others_have_their_turn() -> None:
    topic = Topic(AMPLE)
    frames = int(FRAMES)
    number = 2 * frames
    play = topic.connection()
    for at in range(0, number, frames):
        some = [produce(n, size=400) for n in range(at, min(at + frames, number))]
        play.at(at / frames * PAUSE_SECONDS).client(b"".join(some))
    relay = play.relay.relay
    relay.end()
    responses = b"".join(rejected(n) for n in range(number))
    now = START + 2 * PAUSE_SECONDS
    assert relay.receive_late(responses, now)
    assert topic.used > 0
    assert relay.awaits_late
    assert not relay.receive_late(b"", now + PAUSE_SECONDS)
    assert topic.used == 0
    assert not relay.awaits_late


def test_what_a_pause_has_left_at_the_end_is_read_after_it() -> None:
    topic = Topic(AMPLE)
    frames = int(FRAMES)
    number = 2 * frames
    play = topic.connection().client(b"".join(opaque(n, body=b"") for n in range(FRAMES)))
    play.at(PAUSE_SECONDS).client(b"".join(produce(n, size=400) for n in range(FRAMES, number)))
    forwarded, late = (range(FRAMES), range(FRAMES, number))
    play.broker(b"".join([*(responded(n) for n in forwarded), *(rejected(n) for n in late)]))
    assert play.relay.broker_paused
    relay = play.relay.relay
    relay.end()
    assert topic.used > 0
    assert not relay.receive_late(b"", START + 2 * PAUSE_SECONDS)
    assert topic.used == 0


TIMED = {EVERYONE: {"request_percentage": 10.0}}


def late_story(quotas: Quotas) -> tuple[QuotaEngine, Playbook]:
    limits = engine(quotas)
    return limits, Playbook(drive(limits, Ports(), Traffic()))


def percent_seconds(limits: QuotaEngine) -> float:
    return sum(bucket.used for bucket in live_buckets(limits))


def test_a_client_that_closes_early_is_charged_for_the_time_of_its_requests() -> None:
    limits, play = late_story(TIMED)
    play.client(opaque(1) + opaque(2))
    relay = play.relay.relay
    relay.end()
    assert relay.awaits_late
    relay.receive_late(responded(1), START + 0.5)
    assert percent_seconds(limits) == pytest.approx(50)
    assert relay.awaits_late
    relay.receive_late(responded(2)[:-1], START + 0.7)
    assert percent_seconds(limits) == pytest.approx(50)
    relay.receive_late(responded(2)[-1:], START + 0.8)
    assert percent_seconds(limits) == pytest.approx(80)
    assert not relay.awaits_late


def test_its_next_connection_waits() -> None:
    limits, play = late_story(TIMED)
    play.client(opaque(1))
    play.relay.relay.end()
    play.relay.relay.receive_late(responded(1), START + 0.5)
    again = Playbook(drive(limits, Ports(), Traffic())).at(0.5).client(opaque(1)).to_broker()
    again.at(4.49).to_broker().at(4.51).to_broker(opaque(1))


def test_a_large_response_is_charged_once() -> None:
    limits, play = late_story(TIMED)
    large = responded(1, bytes(2 * CUT_THROUGH_BYTES))
    play.client(opaque(1) + produce(2))
    relay = play.relay.relay
    relay.end()
    relay.receive_late(large[: 3 * CUT_THROUGH_BYTES // 2], START + 0.5)
    relay.receive_late(large[3 * CUT_THROUGH_BYTES // 2 :], START + 0.6)
    assert percent_seconds(limits) == pytest.approx(50)
    relay.receive_late(produced(2), START + 0.7)
    assert percent_seconds(limits) == pytest.approx(60)


def test_a_fetch_is_charged_as_one_that_is_read() -> None:
    limits, play = late_story(TIMED)
    play.client(fetch(1))
    play.relay.relay.end()
    play.relay.relay.receive_late(fetched(1), START + 0.75)
    # The response is 250 ms late; 1 ms and 10 us for its partition.
    assert percent_seconds(limits) == pytest.approx(25.101)


def test_without_such_a_quota_no_response_is_awaited() -> None:
    _, play = late_story({EVERYONE: {"producer_byte_rate": 1000.0}})
    play.client(opaque(1) + produce(2))
    play.relay.relay.end()
    assert not play.relay.relay.awaits_late
