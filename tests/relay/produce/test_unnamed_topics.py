"""Produce requests with topic ids whose names are not known: they wait, and escape no quota."""

from itertools import pairwise
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from proxy.quota.limits.config_keys import (
    BYTES_IN_THRESHOLD,
    PRODUCER_BYTE_RATE_ACTION,
    REJECT,
    TOTAL_BYTES_IN_THRESHOLD,
)
from proxy.quota.limits.enforcement import OBSERVE
from proxy.quota.limits.resources import Resources
from proxy.relay.close_reasons import UNKNOWN_TOPIC
from proxy.relay.counters.traffic import Traffic
from proxy.relay.requests.unnamed_topics import FIRST_LOOK_SECONDS, LONGEST_LOOK_SECONDS, NAMES_SECONDS
from proxy.wire.edit import LENGTH_SIZE
from tests.support.messages.kio_messages import Ports
from tests.support.quotas.buckets import live_buckets
from tests.support.stories.playbook import EVERYONE, START, Playbook, drive, engine
from tests.support.stories.unnamed_topics import (
    COLD,
    HOT,
    IDS,
    LIMITED,
    RATE,
    TOPICS,
    UNKNOWN,
    Names,
    read,
    request,
    response,
    told,
)

MIB = 1 << 20
REJECTING = Resources({HOT: {RATE: "1000", PRODUCER_BYTE_RATE_ACTION.name: REJECT}})


def codes(play: Playbook) -> dict[str, dict[int, ErrorCode]]:
    """Error codes by topic and partition."""
    return {
        TOPICS[topic.topic_id]: {each.index: each.error_code for each in topic.partition_responses}
        for topic in read(play).responses
    }


def test_a_request_waits_for_a_name_and_is_then_counted() -> None:
    names = Names()
    play = told(names).client(request(1, {HOT: [3000]})).to_broker().timer(FIRST_LOOK_SECONDS).busy()
    assert play.relay.output.names_wanted
    assert names.take_wanted() == {IDS[HOT].bytes}
    names.learn(HOT)
    play.at(FIRST_LOOK_SECONDS).to_broker(request(1, {HOT: [3000]})).muted(2.0 + FIRST_LOOK_SECONDS)


def test_a_name_that_was_known_before_does_not_hide_those_that_the_request_has_waited_for() -> None:
    names = Names(COLD)
    asked = request(1, {COLD: [10], HOT: [3000]})
    play = told(names).client(asked).to_broker()
    names.learn(HOT)
    play.at(FIRST_LOOK_SECONDS).to_broker(asked).muted(2.0 + FIRST_LOOK_SECONDS)


def test_requests_behind_it_wait_too_and_keep_their_order() -> None:
    names = Names(COLD)
    play = told(names).client(request(1, {HOT: [10]}), request(2, {COLD: [10]})).to_broker()
    names.learn(HOT)
    play.at(1).to_broker(request(1, {HOT: [10]}), request(2, {COLD: [10]})).unmuted()


def test_it_looks_less_and_less_often_and_gives_up_in_the_end() -> None:
    play = told(Names()).client(request(1, {HOT: [10]}))
    looks = []
    while play.relay.next_timer > 0.0:
        looks.append(play.relay.next_timer - START)
        play.at(looks[-1])
    assert looks[0] == pytest.approx(FIRST_LOOK_SECONDS)
    assert max(after - before for before, after in pairwise(looks)) <= LONGEST_LOOK_SECONDS + 1e-6
    assert looks[-1] == pytest.approx(NAMES_SECONDS)
    assert len(looks) < 20
    play.to_broker()
    assert codes(play) == {HOT: {0: UNKNOWN}}


def test_partitions_of_an_unknown_topic_are_rejected_and_the_others_forwarded() -> None:
    names = Names(COLD)
    play = told(names).client(request(1, {"made up": [10, 20], COLD: [30]})).to_broker()
    names.learn(HOT)
    play.at(0.1).to_broker(request(1, {COLD: [30]})).broker(response(1, {COLD: [0]}))
    assert codes(play) == {COLD: {0: ErrorCode.none}, "made up": {0: UNKNOWN, 1: UNKNOWN}}
    play.idle()


def test_the_error_is_that_of_a_broker() -> None:
    names = Names()
    play = told(names).client(request(1, {"made up": [10]}))
    names.learn()
    [topic] = read(play.at(0.1)).responses
    [partition] = topic.partition_responses
    assert (partition.error_code, partition.base_offset, partition.error_message) == (UNKNOWN, -1, None)


def test_a_response_to_an_earlier_request_for_names_says_nothing() -> None:
    names = Names()
    names.sent = 4
    play = told(names).client(request(1, {HOT: [10]}))
    names.answered = 4
    play.at(1).to_broker().to_client()
    names.learn(HOT)
    play.at(2).to_broker(request(1, {HOT: [10]}))


def test_what_is_rejected_is_charged_to_its_client_as_a_broker_does() -> None:
    names = Names()
    limited = {EVERYONE: {"producer_byte_rate": 1000.0}}
    asked = request(1, {"made up": [5000]})
    play = told(names, quotas=limited).client(asked)
    names.learn()
    play.at(FIRST_LOOK_SECONDS)
    wait = (len(asked) - 4 - 1000) / 1000
    assert read(play).throttle_time.total_seconds() == pytest.approx(wait, abs=0.001)
    play.muted(FIRST_LOOK_SECONDS + wait)


def test_rejections_of_a_quota_and_of_an_unknown_topic_are_told_apart() -> None:
    names = Names(HOT)
    play = told(names, REJECTING).client(request(1, {HOT: [5000]})).to_broker(request(1, {HOT: [5000]}))
    play.broker(response(1, {HOT: [0]})).to_client(response(1, {HOT: [0]}))
    play.client(request(2, {HOT: [10], "made up": [10]})).to_broker()
    names.learn()
    both = read(play.at(0.1).to_broker())
    found = {
        TOPICS[topic.topic_id]: [(each.error_code, each.error_message) for each in topic.partition_responses]
        for topic in both.responses
    }
    assert found["made up"] == [(UNKNOWN, None)]
    [(code, message)] = found[HOT]
    assert (code, bool(message)) == (ErrorCode.not_enough_replicas, True)


def test_bytes_that_a_quota_rejects_are_not_charged_though_all_others_are_of_an_unknown_topic() -> None:
    names = Names(HOT)
    limits = engine({EVERYONE: {"producer_byte_rate": 1e6}}, resources=REJECTING)
    play = Playbook(drive(limits, Ports(), Traffic(), topic_names=names)).client(request(1, {HOT: [5000]}))
    play.to_broker(request(1, {HOT: [5000]}))
    [bucket] = [bucket for bucket in live_buckets(limits) if bucket.quota == "producer_byte_rate"]
    used = bucket.used
    asked = request(2, {HOT: [3000], "made up": [200]})
    play.client(asked)
    names.learn()
    play.at(FIRST_LOOK_SECONDS).to_broker()
    assert bucket.used == used + len(asked) - LENGTH_SIZE - 3000


def test_without_responses_the_producer_loses_its_connection_as_at_a_broker() -> None:
    names = Names(COLD)
    play = told(names).client(request(1, {"made up": [10], COLD: [30]}, acks=0)).to_broker()
    names.learn()
    play.at(0.1).to_broker(request(1, {COLD: [30]}, acks=1)).to_client()
    play.fails_at(2, UNKNOWN_TOPIC, "id")


def test_a_large_request_waits_too_and_is_charged() -> None:
    names = Names()
    asked = request(1, {HOT: [MIB // 2] * 5})
    play = told(names, Resources({HOT: {RATE: str(MIB // 4)}}), traffic=Traffic())
    play.client(asked[: MIB + MIB // 4]).to_broker()
    names.learn(HOT)
    play.at(FIRST_LOOK_SECONDS).client(asked[MIB + MIB // 4 :]).to_broker(asked)
    buckets = live_buckets(play.relay._engine)
    assert sorted(bucket.partition for bucket in buckets) == [0, 1, 2, 3, 4]


def test_a_large_request_waits_where_its_unknown_topic_ends() -> None:
    names = Names(HOT)
    asked = request(1, {HOT: [10], COLD: [2 * MIB]})
    play = told(names).client(asked[: 2 * MIB]).client(asked[2 * MIB :])
    assert len(b"".join(play.relay.take_to_broker())) < len(asked)
    names.learn(COLD)
    play.at(0.1)
    assert asked.endswith(b"".join(play.relay.take_to_broker()))
    play.broker(response(1, {HOT: [0], COLD: [0]})).to_client(response(1, {HOT: [0], COLD: [0]})).idle()


@pytest.mark.parametrize("sizes", [{"made up": [MIB // 2] * 4}, {HOT: [10], "made up": [2 * MIB]}])
def test_a_large_request_to_an_unknown_topic_ends_its_connection(sizes: dict[str, list[int]]) -> None:
    names = Names(HOT)
    asked = request(1, sizes)
    play = told(names).client(asked[: MIB + MIB // 4], asked[MIB + MIB // 4 :])
    names.learn()
    play.fails_at(0.1, UNKNOWN_TOPIC, "AAAAAAAAAAAAAAAAAAAAAw")
    assert len(b"".join(play.relay.take_to_broker())) < len(asked)


def test_a_large_request_that_is_buffered_is_rejected_in_part() -> None:
    names = Names(COLD)
    asked = request(1, {"made up": [2 * MIB], COLD: [30]})
    play = told(names, REJECTING).client(asked[:MIB], asked[MIB:]).to_broker()
    names.learn()
    play.at(0.1).to_broker(request(1, {COLD: [30]}))


def test_a_buffered_request_keeps_its_shared_memory_while_it_waits() -> None:
    names = Names()
    asked = request(1, {HOT: [17 * MIB]})
    play = told(names, REJECTING).client(asked[: 2 * MIB]).client(asked[2 * MIB :]).to_broker()
    large = play.relay._requests.buffer._large
    assert large.size == len(asked)
    names.learn()
    play.at(0.1).to_broker()
    assert large.size == 0
    assert codes(play) == {HOT: {0: UNKNOWN}}


def test_a_small_request_that_is_rejected_leaves_an_earlier_request_its_memory() -> None:
    names = Names(HOT)
    large = request(1, {HOT: [17 * MIB]})
    play = told(names, REJECTING).client(large[: 2 * MIB]).client(large[2 * MIB :])
    memory = play.relay._requests.buffer._large
    play.client(request(2, {"made up": [10]}))
    names.learn()
    play.at(0.1).busy()
    assert play.relay.next_timer == 0.0
    assert memory.size == len(large), "the broker has not taken it"
    play.to_broker(large)
    assert memory.size == 0


@pytest.mark.parametrize(
    "resources",
    [
        Resources({}),
        Resources({HOT: {"consumer.byte.rate": "1000"}}),
        Resources({HOT: {BYTES_IN_THRESHOLD.name: "1000"}}),
    ],
)
def test_without_a_limit_by_topic_nothing_waits(resources: Resources) -> None:
    asked = request(1, {HOT: [10]})
    told(Names(), resources).client(asked).to_broker(asked)


def test_the_quota_of_a_broker_is_by_topic() -> None:
    resources = Resources(
        {HOT: {BYTES_IN_THRESHOLD.name: "1000"}}, {"-1": {TOTAL_BYTES_IN_THRESHOLD.name: "10"}}
    )
    told(Names(), resources).client(request(1, {HOT: [10]})).to_broker()


def test_where_the_proxy_may_not_ask_requests_pass() -> None:
    names = Names()
    names.may_ask = False
    asked = request(1, {HOT: [10]})
    told(names).client(asked).to_broker(asked)


def test_a_topic_that_the_proxy_may_not_describe_passes() -> None:
    asked = request(1, {"secret": [10]})
    told(Names()).client(asked).to_broker(asked)


def test_observed_quotas_delay_nothing() -> None:
    asked = request(1, {HOT: [10]})
    limits = engine({}, resources=LIMITED, mode=OBSERVE)
    Playbook(drive(limits, Ports(), Traffic(), topic_names=Names())).client(asked).to_broker(asked)


def test_empty_partitions_and_requests_without_topics_do_not_wait() -> None:
    for asked in (request(1, {}), request(1, {HOT: [0, 0]}), request(1, {UUID(int=0): [10]})):
        told(Names()).client(asked).to_broker(asked)


def test_a_client_that_hangs_up_costs_nothing() -> None:
    play = told(Names()).client(request(1, {HOT: [10]}))
    play.relay.end()
    play.to_broker()
    assert live_buckets(play.relay._engine) == []
