"""Produce requests over 1 MiB while quotas reject: buffered in shared memory, and rejected in part."""

import sys

import pytest

from proxy.quota.cluster_view import ClusterView
from proxy.quota.engines import QuotaEngines
from proxy.quota.kinds import load_kinds
from proxy.quota.limits.config_keys import (
    BYTES_IN_THRESHOLD,
    PRODUCER_BYTE_RATE,
    PRODUCER_BYTE_RATE_ACTION,
    REJECT,
    TOTAL_BYTES_IN_THRESHOLD,
)
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import Resources
from proxy.relay.budgets.large_frames import RETRY_SECONDS, LargeFrames
from proxy.relay.close_reasons import CLIENT_PROTOCOL_ERROR, SLOW_REQUEST
from proxy.relay.counters.traffic import Traffic
from proxy.relay.requests.buffer import LARGE_FRAME_SECONDS
from proxy.wire.apis.api_00_produce import MAX_READ
from tests.relay.produce.test_rejecting import COLD, HOT, over, request, response, told
from tests.support.messages.exchanges import chunks, opaque
from tests.support.messages.kio_messages import Ports
from tests.support.stories.playbook import START, Playbook, drive, engine, new_relay

MIB = 1 << 20
SIZE = 18 * MIB
LIMITED = Resources({HOT: {PRODUCER_BYTE_RATE.name: "1000", PRODUCER_BYTE_RATE_ACTION.name: REJECT}})
MIXED = {HOT: [SIZE // 2], COLD: [SIZE // 2]}
LARGE = request(2, MIXED, sequence=10)
WITHOUT_HOT = request(2, {COLD: [SIZE // 2]}, sequence=10)


def story(frames: LargeFrames | None = None, resources: Resources = LIMITED) -> Playbook:
    return over(Playbook(new_relay(resources=resources, large_frames=frames)))


def for_one() -> LargeFrames:
    """Memory for one large request."""
    return LargeFrames(SIZE + MIB)


def test_a_partition_over_its_quota_is_rejected_in_a_request_of_any_size() -> None:
    frames = for_one()
    told_story = story(frames).client(*chunks(LARGE[:-1])).to_broker()
    assert frames.reserved == len(LARGE)
    told_story.client(LARGE[-1:]).to_broker(WITHOUT_HOT)
    told_story.broker(response(2, {COLD: {0: (0, 5)}}))
    assert told(told_story)[0] == {COLD: {0: 0}, HOT: {0: 19}}
    assert frames.reserved == 0


def test_a_request_of_which_nothing_is_left_needs_no_memory_any_longer() -> None:
    frames = for_one()
    told_story = story(frames).client(*chunks(request(2, {HOT: [SIZE]}, sequence=10)))
    assert frames.reserved == 0
    assert told(told_story.to_broker())[0] == {HOT: {0: 19}}


def test_so_it_is_with_the_broker_quota() -> None:
    """Broker and topic are far over their thresholds after the first ticks of their rates."""
    resources = Resources(
        {HOT: {BYTES_IN_THRESHOLD.name: "10"}}, {"1": {TOTAL_BYTES_IN_THRESHOLD.name: "1000"}}
    )
    engines = QuotaEngines(load_kinds(), Limits({}, resources=resources))
    one = engines.engine(1, START)
    one.see_cluster(ClusterView("", {}, {}, {(HOT, 0): 1, (COLD, 0): 1}), START)
    told_story = Playbook(drive(one, Ports(), Traffic(), node_id=1))
    first = request(1, {HOT: [1_000_000]})
    told_story.client(first).to_broker(first).broker(response(1, {HOT: {0: (0, 1)}})).at(10.0)
    told_story.relay.take_to_client()
    told_story.client(*chunks(LARGE)).to_broker(WITHOUT_HOT)


def test_a_second_request_waits_for_memory_and_then_passes() -> None:
    frames = for_one()
    first, second = story(frames), story(frames)
    first.client(LARGE[:MIB]).unmuted()
    second.client(LARGE[:MIB]).muted(RETRY_SECONDS).at(0.1).muted(0.1 + RETRY_SECONDS).busy().to_broker()
    first.client(LARGE[MIB:])
    second.at(0.2)
    assert second.relay.client_muted, "the broker has not taken the first"
    first.to_broker(WITHOUT_HOT)
    assert frames.reserved == 0
    second.at(0.3).unmuted().client(LARGE[MIB:]).to_broker(WITHOUT_HOT)
    assert frames.reserved == 0


def test_the_end_of_a_connection_gives_its_memory_back() -> None:
    frames = for_one()
    first, second, third = story(frames), story(frames), story(frames)
    first.client(LARGE[:MIB])
    second.client(LARGE[:MIB])
    third.client(LARGE[:MIB])
    second.relay.end()
    first.relay.end()
    assert frames.reserved == 0
    third.at(0.1).unmuted().client(LARGE[MIB:]).to_broker(WITHOUT_HOT)
    third.relay.end()
    assert (frames.reserved, frames.wanted) == (0, False)


def test_what_waits_passes_when_nothing_is_rejected_any_more() -> None:
    frames = for_one()
    first, second = story(frames), story(frames)
    first.client(LARGE[:MIB])
    second.client(LARGE[:MIB])
    second.relay._engine.configure(Limits({}), second._now)
    second.at(1.0).unmuted().to_broker(LARGE[:MIB]).client(LARGE[MIB:]).to_broker(LARGE[MIB:])
    assert (frames.reserved, frames.wanted) == (len(LARGE), False)


def test_a_request_that_ceases_to_come_does_not_keep_the_memory_from_others() -> None:
    frames = for_one()
    first, second = story(frames), story(frames)
    first.client(LARGE[:MIB]).at(LARGE_FRAME_SECONDS + 10).client(LARGE[MIB : 2 * MIB]).unmuted()
    second.client(LARGE[:MIB])
    first.fails_at(LARGE_FRAME_SECONDS + 12, SLOW_REQUEST, f"{len(LARGE)} bytes has not arrived within 30 s")


def test_requests_that_cease_to_come_on_many_connections_take_half_of_the_memory() -> None:
    frames = LargeFrames(12 * MIB)
    first_part = request(2, {HOT: [2 * MIB]}, sequence=10)[:MIB]
    stories = [story(frames).client(first_part) for _ in range(10)]
    assert [told_story.relay.client_muted for told_story in stories] == [False] * 2 + [True] * 8
    assert frames.reserved < 6 * MIB
    limited = engine({}, resources=LIMITED)
    other = over(Playbook(drive(limited, Ports(), Traffic(), client_address="10.0.0.2", large_frames=frames)))
    other.client(first_part).unmuted()


def test_requests_behind_a_large_one_keep_their_place() -> None:
    frames = for_one()
    story(frames).client(*chunks(LARGE + opaque(3))).to_broker(WITHOUT_HOT, opaque(3)).muted(0.5)


def test_two_large_requests_of_one_connection_have_the_memory_in_turn() -> None:
    frames = for_one()
    told_story = story(frames).client(*chunks(LARGE), LARGE[:MIB])
    assert told_story.relay.client_muted
    told_story.to_broker(WITHOUT_HOT).at(1.0).unmuted().client(LARGE[MIB:]).to_broker(LARGE)


def test_large_requests_of_nobody_s_quota_need_no_memory() -> None:
    frames = for_one()
    one = Playbook(new_relay(large_frames=frames)).client(LARGE[:MIB]).to_broker(LARGE[:MIB])
    assert frames.reserved == 0
    one.client(LARGE[MIB:]).to_broker(LARGE[MIB:])


def test_the_memory_is_really_free_when_it_is_given_back() -> None:
    frames = for_one()
    told_story = story(frames)
    parts = [LARGE[at : at + MIB] for at in range(0, len(LARGE), MIB)]
    before = [sys.getrefcount(part) for part in parts]
    told_story.client(*parts).to_broker(WITHOUT_HOT)
    assert [sys.getrefcount(part) for part in parts] == before


@pytest.mark.parametrize("kind", ["topics", "partitions"])
def test_a_request_of_very_many_topics_or_partitions_does_not_stop_the_loop(kind: str) -> None:
    many = MAX_READ + 1
    sizes = {f"t{at}": [] for at in range(many)} if kind == "topics" else {HOT: [100] * many}
    story().client_fails(request(2, sizes), reason=CLIENT_PROTOCOL_ERROR, says="takes 10000")


def test_as_many_partitions_as_the_bound_pass() -> None:
    most = request(2, {COLD: [100] * MAX_READ}, sequence=10)
    story().client(*chunks(most)).to_broker(most)
