"""Omitted partitions of a fetch that names all its partitions: one that opens a session, or has none."""

from dataclasses import replace
from itertools import pairwise

import pytest

from proxy.quota.fetch.consumer_plan import ConsumerItem, ConsumerPlan
from proxy.quota.identity import Identity
from proxy.quota.measure.fetch_queue import FetchQueue
from proxy.relay.close_reasons import CLIENT_PROTOCOL_ERROR
from proxy.relay.counters.traffic import Traffic
from proxy.relay.fetch import plan_turns
from proxy.relay.fetch.plan_turns import PAUSE_SECONDS_PER_PARTITION, PlanTurns
from proxy.relay.fetch.session_update import AT_ONCE
from proxy.relay.fetch.sessions import MAX_PARTITIONS, SESSION_MASK
from proxy.relay.frame_buffer import MAX_BUFFERED_FRAME_BYTES
from proxy.wire.edit import i32, uvarint
from proxy.wire.frames import CUT_THROUGH_BYTES
from tests.support.messages.exchanges import opaque
from tests.support.messages.kio_messages import Ports, read_frame, response_type, versions
from tests.support.present import present
from tests.support.stories.fetching import (
    ALL,
    BATCH,
    COLD,
    HOT,
    MAX_WAIT_MS,
    NOTHING_NEW,
    OURS,
    THEIRS,
    UPDATED_MS,
    UPDATED_SECONDS,
    Omitting,
    Story,
    fetch,
    fetched,
    opened,
)
from tests.support.stories.playbook import START, Playbook, drive

SESSIONLESS = [version for version in versions(1) if version < 7]


@pytest.mark.parametrize("version", [7, 12, 13])
def test_who_opens_a_session_sees_all_partitions(version: int) -> None:
    story, _ = opened(version)
    # Of the omitted partitions it is known what the broker has told on another connection.
    story.quota.omit(1.0, 0, 1)
    story.connect()
    play = Playbook(story.relay)
    play.client(fetch(1, ALL, version, session=(0, 0)))
    play.to_broker(fetch(1, {(COLD, 0): 30}, version, session=(0, 0)))
    play.broker(fetched(1, {(COLD, 0): (70, b"")}, version, session_id=OURS))
    play.to_client(fetched(1, NOTHING_NEW, version, session_id=THEIRS))
    play.client(fetch(2, {}, version, session=(THEIRS, 1)))
    play.to_broker(fetch(2, {}, version, session=(OURS, 1)))
    play.broker(fetched(2, {}, version, session_id=OURS)).to_client(
        fetched(2, {}, version, session_id=THEIRS)
    )
    # It opens another: the omitted partition is known, and not asked for. It comes first in the response.
    play.client(fetch(3, ALL, version, session=(THEIRS, 0)))
    play.to_broker(fetch(3, {(COLD, 0): 30}, version, session=(OURS, 0)))
    play.broker(fetched(3, {(COLD, 0): (71, BATCH)}, version, session_id=OURS + 1))
    told = {(HOT, 0): (70, b""), (HOT, 1): (70, b""), (COLD, 0): (71, BATCH)}
    play.to_client(fetched(3, told, version, session_id=(OURS + 1) ^ SESSION_MASK))
    play.at(1.0)
    play.client(fetch(4, {}, version, session=((OURS + 1) ^ SESSION_MASK, 1)))
    play.to_broker(fetch(4, {(HOT, 0): 10, (HOT, 1): 20}, version, session=(OURS + 1, 1)))


def test_another_leader_epoch_brings_no_batch_of_an_omitted_partition() -> None:
    story, play = opened()
    story.quota.omit(1.0, 0)
    play.client(fetch(2, ALL, session=(THEIRS, 0), leader_epoch=4))
    play.to_broker(fetch(2, {(HOT, 1): 20, (COLD, 0): 30}, session=(OURS, 0), leader_epoch=4))


def test_a_partition_of_which_nothing_is_known_is_waited_for() -> None:
    """To ask for its watermarks would bring a batch of it, on each new connection."""
    story = Story()
    story.quota.omit(0.3, 0)
    play = Playbook(story.relay).client(fetch(1, ALL)).to_broker()
    play.at(0.29).to_broker().at(0.3).to_broker(fetch(1, ALL, max_wait_ms=200))


def test_another_principal_does_not_learn_how_much_others_write() -> None:
    """It may have no right to read the topic. It waits as if nothing were known of the partition."""
    story, _ = opened()
    story.quota.omit(2.0, 0)
    story.connect("mallory")
    play = Playbook(story.relay).client(fetch(1, ALL)).at(0.5).to_broker()
    play.to_client(fetched(1, {}, throttle_ms=1500)).unmuted()
    story.connect()
    Playbook(story.relay).client(fetch(1, ALL)).to_broker(fetch(1, {(HOT, 1): 20, (COLD, 0): 30}))


def test_a_partition_of_which_nothing_is_known_throttles_its_client() -> None:
    story = Story()
    story.quota.omit(2.0, 0)
    play = Playbook(story.relay).client(fetch(1, ALL)).at(0.5).to_broker()
    play.to_client(fetched(1, {}, throttle_ms=1500)).unmuted()


@pytest.mark.parametrize("version", [*SESSIONLESS, 7, 11, 12, 13, 18])
def test_outside_a_session_too(version: int) -> None:
    story = Story()
    play = Playbook(story.relay)
    play.client(fetch(1, ALL, version)).to_broker(fetch(1, ALL, version))
    play.broker(fetched(1, NOTHING_NEW, version)).to_client(fetched(1, NOTHING_NEW, version))
    story.quota.omit(1.0, 1)
    play.client(fetch(2, ALL, version)).to_broker(fetch(2, {(HOT, 0): 10, (COLD, 0): 30}, version))
    rest = {(HOT, 0): (71, BATCH), (COLD, 0): (72, b"")}
    play.broker(fetched(2, rest, version))
    got = read_frame(response_type(1, version), b"".join(story.relay.take_to_client()))
    first, last = (read_frame(type(got), fetched(2, told, version)) for told in ({(HOT, 1): (70, b"")}, rest))
    assert got == replace(last, responses=first.responses + last.responses)


def test_outside_a_session_all_may_be_omitted() -> None:
    story = Story()
    play = Playbook(story.relay)
    hot = {(HOT, 0): 10, (HOT, 1): 20}
    told = {(HOT, 0): (70, b""), (HOT, 1): (70, b"")}
    play.client(fetch(1, hot)).to_broker(fetch(1, hot)).broker(fetched(1, told)).to_client(fetched(1, told))
    story.quota.omit(0.7, 0, 1)
    play.client(fetch(2, hot)).to_broker().muted(0.5)
    play.at(0.5).to_client(fetched(2, told)).to_broker()
    play.client(fetch(3, hot)).at(0.7).to_broker(fetch(3, hot, max_wait_ms=300))


def test_a_throttled_response_to_a_full_request_stays_empty() -> None:
    story, play = opened()
    story.quota.omit(1.0, 0)
    play.client(fetch(2, ALL, session=(THEIRS, 0)))
    play.to_broker(fetch(2, {(HOT, 1): 20, (COLD, 0): 30}, session=(OURS, 0)))
    play.broker(fetched(2, {}, throttle_ms=100)).to_client(fetched(2, {}, throttle_ms=100))


def test_a_large_response_is_learned_from_as_it_passes() -> None:
    story = Story()
    play = Playbook(story.relay)
    play.client(fetch(1, ALL)).to_broker(fetch(1, ALL))
    large = {(HOT, 0): (70, bytes(2 << 20)), (HOT, 1): (71, b""), (COLD, 0): (72, bytes(5000))}
    response = fetched(1, large)
    play.broker(*[response[at : at + 100_000] for at in range(0, len(response), 100_000)]).to_client(response)
    story.quota.omit(9.0, 0, 1)
    play.client(fetch(2, ALL)).to_broker(fetch(2, {(COLD, 0): 30}))
    response = fetched(2, {(COLD, 0): (72, bytes(2 << 20))})
    play.broker(response[:100_000])
    play.broker(*[response[at : at + 100_000] for at in range(100_000, len(response), 100_000)])
    told = {(HOT, 0): (70, b""), (HOT, 1): (71, b""), (COLD, 0): (72, bytes(2 << 20))}
    play.to_client(fetched(2, told)).idle()


def test_the_partitions_of_a_large_fetch_are_taken_in_several_turns_of_the_event_loop() -> None:
    """All at once, 10,000 take up to 40 ms, and all other connections wait."""
    partitions = {(HOT, number): 1 for number in range(MAX_PARTITIONS)}
    story = Story()
    play = Playbook(story.relay).client(fetch(1, partitions, session=(0, 0)) + opaque(2))
    sizes: list[int] = []
    while not (sent := play.relay.take_to_broker()):
        assert not story.quota.plans or len(sizes) == MAX_PARTITIONS // AT_ONCE
        sizes.append(present(present(story.fetches)._last).size)
        play.at(play.relay.next_timer - START)
    assert [later - size for size, later in pairwise([0, *sizes])] == [AT_ONCE] * len(sizes[:-1]) + [0]
    assert len(story.quota.plans) == 1
    assert b"".join(sent).endswith(opaque(2))


@pytest.mark.parametrize("end", ["drain", "close"])
def test_a_large_fetch_that_ends_before_its_session_is_updated(end: str) -> None:
    partitions = {(HOT, number): 1 for number in range(MAX_PARTITIONS)}
    _, play = of_many_partitions(Omitting())
    play.client(fetch(2, partitions, session=(0, -1))).to_broker()
    if end == "close":
        play.relay.end()
        play.to_broker()
        return
    assert play.drain().relay.take_to_client()
    play.client(fetch(3, partitions, session=(0, -1))).at(2.0)
    assert play.relay.take_to_broker()


def test_a_large_fetch_is_read_whole() -> None:
    partitions = {(HOT, number): 1 for number in range(MAX_PARTITIONS)}
    story = Story()
    play = Playbook(story.relay)
    rack_id = bytes(2 * CUT_THROUGH_BYTES)

    def asked(max_wait_ms: int) -> bytes:
        # v12 ends with rack_id, here empty, and no tags.
        whole = fetch(1, partitions, session=(0, 0), max_wait_ms=max_wait_ms)
        body = whole[4:-2] + uvarint(len(rack_id) + 1) + rack_id + b"\0"
        return i32(len(body)) + body

    request = asked(MAX_WAIT_MS)
    half = len(request) // 2
    play.client(request[:half]).to_broker().client(request[half:]).at(UPDATED_SECONDS)
    play.to_broker(asked(MAX_WAIT_MS - UPDATED_MS))
    response = fetched(1, {(HOT, 0): (5, b""), (HOT, MAX_PARTITIONS - 1): (6, b"")}, session_id=OURS)
    play.broker(response)
    play.relay.take_to_client()
    story.quota.omit(2.0, MAX_PARTITIONS - 1)
    play.at(1.0).client(fetch(2, {}, session=(THEIRS, 1))).at(1.0 + UPDATED_SECONDS)
    forgotten = ((HOT, MAX_PARTITIONS - 1),)
    play.to_broker(fetch(2, {}, session=(OURS, 1), forgotten=forgotten, max_wait_ms=MAX_WAIT_MS - 1))


class Crowded(Omitting):
    """Omits everything: when a partition is due, others have used its tokens."""

    def plan_consumer_fetch(self, plan: ConsumerPlan, who: Identity, now: float) -> None:
        super().plan_consumer_fetch(plan, who, now)
        if now > START + UPDATED_SECONDS:
            for item in plan.items:
                plan.omit(item, now + 0.001)


def of_many_partitions(quota: Omitting) -> tuple[Story, Playbook]:
    """A session with so many partitions; the broker has told of their watermarks."""
    story = Story(quota)
    play = Playbook(story.relay)
    partitions = {(HOT, each): 1 for each in range(MAX_PARTITIONS)}
    play.client(fetch(1, partitions, session=(0, 0))).at(UPDATED_SECONDS)
    play.to_broker(fetch(1, partitions, session=(0, 0), max_wait_ms=MAX_WAIT_MS - UPDATED_MS))
    play.broker(fetched(1, dict.fromkeys(partitions, (5, b"")), session_id=OURS)).relay.take_to_client()
    return story, play.at(1.0)


def test_a_waiting_fetch_of_many_partitions_is_planned_seldom() -> None:
    """Each plan takes time of the event loop."""
    story, play = of_many_partitions(Crowded())
    story.quota.plans.clear()
    play.client(fetch(2, {}, session=(THEIRS, 1))).at(1.7).to_broker()
    play.to_client(fetched(2, {}, session_id=THEIRS)).unmuted()
    assert len(story.quota.plans) <= 1 + 0.7 / (MAX_PARTITIONS * PAUSE_SECONDS_PER_PARTITION)


def test_fetches_of_many_partitions_in_a_row_are_planned_seldom() -> None:
    story, play = of_many_partitions(Omitting())
    story.quota.plans.clear()
    play.client(*[fetch(2 + number, {}, session=(THEIRS, 1 + number)) for number in range(5)])
    play.at(1.002).to_broker(fetch(2, {}, session=(OURS, 1), max_wait_ms=MAX_WAIT_MS - 1))
    play.muted(1.0 + MAX_PARTITIONS * PAUSE_SECONDS_PER_PARTITION)
    assert len(story.quota.plans) == 1
    play.at(2.0).unmuted()
    # The broker waits for the rest of the client's time only.
    rest = [fetch(3 + number, {}, session=(OURS, 2 + number), max_wait_ms=300) for number in range(4)]
    play.to_broker(*rest)


def test_many_connections_of_a_client_are_planned_in_turn() -> None:
    """A pause for each of them would leave no time to others."""
    engine, turns = Story().engine, PlanTurns()
    partitions = {(HOT, each): 1 for each in range(MAX_PARTITIONS)}
    plays = []
    for number in range(20):
        user = "other" if number == 19 else "many"
        play = Playbook(drive(engine, Ports(), Traffic(), principal=user, plan_turns=turns))
        plays.append(play.client(fetch(1, partitions, session=(0, 0))).at(UPDATED_SECONDS))
    sent = [bool(play.relay.take_to_broker()) for play in plays]
    assert sent == [True] + [False] * 18 + [True], "one of each user"
    turn = MAX_PARTITIONS * plan_turns.SECONDS_PER_PARTITION
    for number, play in enumerate(plays[1:19], 1):
        play.at(number * turn * 0.99)
        assert not play.relay.take_to_broker()
        play.at(number * turn + UPDATED_SECONDS)
        assert play.relay.take_to_broker()


def test_a_connection_that_ends_while_it_waits_gives_its_turn_back() -> None:
    engine, turns = Story().engine, PlanTurns()
    partitions = {(HOT, each): 1 for each in range(MAX_PARTITIONS)}
    plays = []
    for number in range(3):
        play = Playbook(drive(engine, Ports(), Traffic(), plan_turns=turns))
        plays.append(play.client(fetch(number, partitions, session=(0, 0))))
    plays[2].relay.end()
    late = Playbook(drive(engine, Ports(), Traffic(), plan_turns=turns))
    late.client(fetch(1, partitions, session=(0, 0)))
    late.at(MAX_PARTITIONS * plan_turns.SECONDS_PER_PARTITION * 2 + UPDATED_SECONDS)
    assert late.relay.take_to_broker()


def test_a_fetch_that_is_too_large_to_be_buffered_ends_the_connection() -> None:
    """It could not be thinned, and would get what the quota omits."""
    request = fetch(1, ALL)
    padded = (MAX_BUFFERED_FRAME_BYTES + 1).to_bytes(4, "big") + request[4:] + bytes(CUT_THROUGH_BYTES)
    Playbook(Story().relay).client_fails(
        padded, reason=CLIENT_PROTOCOL_ERROR, says=str(MAX_BUFFERED_FRAME_BYTES)
    )


def test_fetches_that_no_quota_is_about_pass_as_they_are() -> None:
    story = Story()
    play = Playbook(story.relay)
    request = fetch(1, {(COLD, 0): 5}, session=(0, 0))
    response = fetched(1, {(COLD, 0): (9, BATCH)}, session_id=OURS)
    play.client(request).to_broker(request).broker(response).to_client(response)
    assert story.quota.plans == []


def test_a_fetch_that_does_not_parse_ends_the_connection() -> None:
    story = Story()
    request = fetch(1, ALL)
    cut = (len(request) - 14).to_bytes(4, "big") + request[4:-10]
    Playbook(story.relay).client_fails(
        cut, reason=CLIENT_PROTOCOL_ERROR, says="no byte at offset|bytes wanted|a length"
    )


def test_the_next_fetch_of_a_client_without_sessions_has_what_the_last_one_has_reserved() -> None:
    """Or it would wait for its own reservation to end."""
    story = Story()
    play = Playbook(story.relay)
    play.client(fetch(1, ALL)).to_broker(fetch(1, ALL))
    queue = FetchQueue()
    ticket = queue.newcomer()
    first = story.quota.items[0]
    assert isinstance(first, ConsumerItem)
    first.set_ticket(queue, ticket)
    play.broker(fetched(1, NOTHING_NEW)).client(fetch(2, ALL))
    second = story.quota.items[0]
    assert isinstance(second, ConsumerItem)
    assert second is not first
    assert second.ticket(queue) is ticket
