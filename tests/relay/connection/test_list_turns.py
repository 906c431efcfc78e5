"""Lists of one client: how many a broker has at a time."""

from collections.abc import Callable
from typing import Any

import pytest

from proxy.quota.engine import QuotaEngine
from proxy.relay.budgets.list_turns import LIST_BYTES, LONGEST_SECONDS, ListTurns, work_seconds
from proxy.relay.counters.traffic import Traffic
from proxy.wire.api_keys import (
    CREATE_TOPICS,
    FETCH,
    JOIN_GROUP,
    LIST_OFFSETS,
    METADATA,
    NO_LISTS,
    OFFSET_FETCH,
    PRODUCE,
    SHARE_FETCH,
)
from tests.support.messages.exchanges import chunks, fetch, fetched, opaque, produce, produced, responded
from tests.support.messages.kio_messages import Ports
from tests.support.quotas.buckets import live_buckets
from tests.support.stories.playbook import EVERYONE, START, Playbook, Quotas, drive, engine

MOST = 200_000
SIZE = 150_000


class Process:
    """Connections of clients to brokers through one process."""

    def __init__(self) -> None:
        self._calls: list[Callable[[], None]] = []
        self._turns = ListTurns(MOST, self._calls.append)

    def connect(
        self,
        principal: str = "alice",
        quotas: Quotas | None = None,
        limits: QuotaEngine | None = None,
        **settings: Any,
    ) -> "Story":
        """A connection of a client, with quotas of its own or with shared `limits`."""
        settings = {"node_id": 1, **settings}
        relay = drive(
            engine(quotas or {}) if limits is None else limits,
            Ports(),
            Traffic(),
            principal=principal,
            list_turns=self._turns,
            **settings,
        )
        return Story(relay)

    def several(self, number: int, **settings: Any) -> list["Story"]:
        return [self.connect(**settings) for _ in range(number)]

    def next_turn(self) -> None:
        """Run what is due in the next turn of the event loop."""
        while self._calls:
            self._calls.pop(0)()


class Story(Playbook):
    """A connection whose shell lets the relay wake it."""

    def client(self, *chunks: bytes) -> "Story":
        super().client(*chunks)
        return self._listen()

    def at(self, seconds: float) -> "Story":
        super().at(seconds)
        return self._listen()

    def _listen(self) -> "Story":
        if self.relay.status.waits_for_turn:
            self.relay.call_at_turn(self._wake)
        return self

    def _wake(self) -> None:
        self.turn()
        self._listen()


@pytest.fixture
def process() -> Process:
    return Process()


def a_list(correlation_id: int, api_key: int = OFFSET_FETCH, size: int = SIZE) -> bytes:
    return opaque(correlation_id, api_key, 1, bytes(size))


def test_of_ten_connections_with_large_lists_a_broker_has_one_at_a_time(process: Process) -> None:
    stories = process.several(10)
    for number, story in enumerate(stories):
        story.client(*chunks(a_list(number), 40_000))
    for number, story in enumerate(stories):
        process.next_turn()
        story.to_broker(a_list(number))
        for other in stories[number + 1 :]:
            other.to_broker()
            assert other.relay.status.waits_for_turn
            assert other.relay.client_muted
        story.broker(responded(number)).to_client(responded(number)).unmuted().timer(None).idle()


def test_of_a_hundred_connections_with_smaller_lists_it_has_few(process: Process) -> None:
    small = a_list(1, size=10_000)
    stories = process.several(100)
    sent = [len(story.client(small).relay.take_to_broker()) for story in stories]
    process.next_turn()
    assert sum(sent) == MOST // len(small)
    assert not any(story.relay.take_to_broker() for story in stories)


def test_small_lists_and_other_requests_of_the_client_do_not_wait(process: Process) -> None:
    one, other = process.several(2)
    one.client(a_list(1)).to_broker(a_list(1))
    small = a_list(1, size=LIST_BYTES - 100)
    other.client(small).to_broker(small).broker(responded(1)).to_client(responded(1))
    other.client(produce(2, size=SIZE)).to_broker(produce(2, size=SIZE)).unmuted()


def test_what_follows_a_list_that_waits_waits_too(process: Process) -> None:
    one, other = process.several(2)
    one.client(a_list(1)).to_broker(a_list(1))
    other.client(opaque(1) + a_list(2) + opaque(3), opaque(4)).to_broker(opaque(1))
    one.broker(responded(1))
    process.next_turn()
    other.to_broker(a_list(2), opaque(3), opaque(4)).unmuted().timer(None)
    other.broker(responded(1) + responded(2)).to_client(responded(1), responded(2))
    one.client(a_list(2)).to_broker(a_list(2))


@pytest.mark.parametrize("cut", [3, 7, 20, 100_000])
def test_a_list_that_waits_is_forwarded_however_it_came(process: Process, cut: int) -> None:
    one, other = process.several(2)
    one.client(a_list(1)).to_broker(a_list(1))
    request = opaque(1) + a_list(2) + opaque(3)
    other.client(request[:cut], request[cut:-5], request[-5:])
    one.broker(responded(1))
    process.next_turn()
    other.to_broker(request).unmuted()


def test_lists_on_one_connection_have_their_turns(process: Process) -> None:
    one, other = process.several(2)
    one.client(a_list(1) + a_list(2)).to_broker(a_list(1))
    other.client(a_list(1)).to_broker()
    one.broker(responded(1))
    process.next_turn()
    one.to_broker(a_list(2))
    other.to_broker()
    one.broker(responded(2))
    process.next_turn()
    other.to_broker(a_list(1))


def test_each_response_ends_the_turn_of_its_own_request(process: Process) -> None:
    one, other, third = process.several(3)
    half = [a_list(number, size=MOST // 2 - 100) for number in range(2)]
    one.client(half[0] + opaque(7) + half[1]).to_broker(half[0], opaque(7), half[1])
    other.client(half[0]).to_broker()
    third.client(half[0]).to_broker()
    one.broker(responded(0))
    process.next_turn()
    other.to_broker(half[0])
    one.broker(responded(7))
    process.next_turn()
    third.to_broker()
    one.broker(responded(1))
    process.next_turn()
    third.to_broker(half[0])


def test_other_clients_and_other_brokers_do_not_wait(process: Process) -> None:
    for principal, node_id in (("alice", 1), ("bob", 1), ("alice", 2)):
        process.connect(principal, node_id=node_id).client(a_list(1)).to_broker(a_list(1))


def test_without_logins_an_address_is_a_client(process: Process) -> None:
    for address, goes in (("10.0.0.1", True), ("10.0.0.2", True), ("10.0.0.1", False)):
        story = process.connect("ANONYMOUS", client_address=address)
        story.client(a_list(1)).to_broker(*[a_list(1)] * goes)


@pytest.mark.parametrize("api_key", sorted(NO_LISTS))
def test_records_and_requests_of_groups_need_no_turn(process: Process, api_key: int) -> None:
    """A JoinGroup that waits for another member's must not keep it from the broker."""
    request = produce(1, size=SIZE) if api_key == PRODUCE else a_list(1, api_key)
    for story in process.several(2):
        story.client(request).to_broker(request).unmuted()
    process.connect().client(a_list(1)).to_broker(a_list(1))


def test_a_member_of_a_group_does_not_wait_behind_a_list_of_another(process: Process) -> None:
    one, other = process.several(2)
    one.client(a_list(1) + opaque(2, JOIN_GROUP, 1)).to_broker(a_list(1), opaque(2, JOIN_GROUP, 1))
    other.client(opaque(2, JOIN_GROUP, 1)).to_broker(opaque(2, JOIN_GROUP, 1))


@pytest.mark.parametrize("api_key", [LIST_OFFSETS, METADATA, 42, 127])
def test_a_broker_that_does_not_respond_keeps_others_waiting_for_a_second(
    process: Process, api_key: int
) -> None:
    one, other = process.several(2)
    one.client(a_list(1)).to_broker(a_list(1))
    request = opaque(1, api_key, 1, bytes(SIZE)) if api_key != METADATA else a_list(1)
    other.client(request).at(LONGEST_SECONDS - 0.001).to_broker()
    other.at(LONGEST_SECONDS).to_broker(request)


@pytest.mark.parametrize("api_key", [FETCH, SHARE_FETCH])
def test_a_fetch_that_waits_for_records_keeps_others_waiting_for_a_short_time(
    process: Process, api_key: int
) -> None:
    """Consumers of thousands of partitions without new records, which wait half a second at the broker."""
    stories = process.several(5)
    turn = work_seconds(SIZE + 100)
    request = a_list(1, api_key) if api_key == SHARE_FETCH else large_fetch()
    for story in stories:
        story.client(request)
    for place, story in enumerate(stories):
        for each in stories:
            each.at(place * turn)
        process.next_turn()
        story.to_broker(request)


def large_fetch(correlation_id: int = 1) -> bytes:
    """A Fetch with bytes behind what the proxy reads of it."""
    whole = fetch(correlation_id)
    return (len(whole) - 4 + SIZE).to_bytes(4, "big") + whole[4:] + bytes(SIZE)


def test_a_connection_that_closes_has_its_turn_for_a_short_time(process: Process) -> None:
    """Otherwise a client would have more turns if it closed its connections."""
    one, other, third = process.several(3)
    one.client(a_list(1)).to_broker(a_list(1))
    other.client(a_list(1))
    third.client(a_list(1))
    one.relay.end()
    other.relay.end()
    process.next_turn()
    third.at(work_seconds(SIZE)).to_broker()
    third.at(work_seconds(SIZE + 100)).to_broker(a_list(1))


def test_a_list_that_the_proxy_answers_has_its_turn_until_then(process: Process) -> None:
    one, other = process.several(2, intercepted_api_keys=frozenset([CREATE_TOPICS]))
    request = a_list(1, CREATE_TOPICS)
    one.client(request).to_broker()
    other.client(request)
    assert not other.relay.take_intercepted()
    one.own(responded(1)).to_client(responded(1))
    process.next_turn()
    other.own(responded(1)).to_client(responded(1)).unmuted().timer(None)


def test_a_list_that_the_proxy_rejects_ends_its_turn_at_once(process: Process) -> None:
    """An unsupported version of ApiVersions."""
    request = opaque(1, 18, 99, bytes(SIZE))
    for story in process.several(2):
        story.client(request).to_broker().unmuted()


def test_a_list_of_megabytes_waits_before_its_first_part_is_read(process: Process) -> None:
    one, other, third = process.several(3, intercepted_api_keys=frozenset([CREATE_TOPICS]))
    request = a_list(1, CREATE_TOPICS, 3 << 20)
    parts = chunks(request)
    one.client(a_list(1)).to_broker(a_list(1))
    other.client(*parts[: len(parts) // 2])
    assert other.relay.status.waits_for_turn
    one.broker(responded(1))
    process.next_turn()
    other.client(*parts[len(parts) // 2 :])
    third.client(a_list(1)).to_broker()
    other.own(responded(1)).to_client(responded(1))
    process.next_turn()
    third.to_broker(a_list(1))


def test_the_turn_is_not_that_of_a_large_request_behind_the_list(process: Process) -> None:
    one, other = process.several(2)
    one.client(a_list(1) + produce(2, size=SIZE)).to_broker(a_list(1), produce(2, size=SIZE))
    one.broker(responded(1)).to_client(responded(1))
    other.client(a_list(1)).to_broker(a_list(1))
    one.broker(produced(2)).to_client(produced(2)).idle()


def test_a_list_that_also_waits_for_a_quota_lets_others_go_first(process: Process) -> None:
    one, other = process.several(2)
    slow = process.connect(quotas={EVERYONE: {"request_percentage": 1.0}})
    slow.client(opaque(1)).to_broker(opaque(1))
    for story in (slow, one, other):
        story.at(9.5)
    one.client(a_list(1)).to_broker(a_list(1))
    slow.client(a_list(2)).to_broker()
    other.client(a_list(1)).to_broker()
    slow.at(10.0).broker(responded(1)).to_client(responded(1)).muted(11.0)
    one.broker(responded(1))
    process.next_turn()
    other.to_broker(a_list(1)).broker(responded(1))
    process.next_turn()
    slow.to_broker().at(11.0).to_broker(a_list(2))


def test_first_requests_that_have_waited_for_a_debt_go_in_turn(process: Process) -> None:
    """Otherwise all connections of the client would send their lists when the debt is paid."""
    limits = engine({EVERYONE: {"request_percentage": 1.0}})
    debtor, *others = (process.connect(limits=limits) for _ in range(4))
    debtor.client(opaque(1)).to_broker(opaque(1))
    debtor.at(0.5).broker(responded(1)).to_client(responded(1))
    for story in others:
        story.at(0.5).client(a_list(1)).to_broker()
    sent: list[int] = []
    seconds = 0.5
    while not any(sent):
        seconds += 0.5
        sent = [len(b"".join(story.at(seconds).relay.take_to_broker())) for story in others]
        process.next_turn()
    assert seconds > 10.0, "they have waited for the debt"
    assert sorted(sent) == [0, 0, len(a_list(1))]
    for story in others:
        story.at(seconds + 10.0)
        process.next_turn()
    for story, size in zip(others, sent, strict=True):
        story.to_broker(*[a_list(1)] * (size == 0))


def consumer_quota() -> QuotaEngine:
    return engine({EVERYONE: {"consumer_byte_rate": 1e6}})


def waiting_consumers(process: Process, number: int = 4, limits: QuotaEngine | None = None) -> list[Story]:
    """Connections with fetches of thousands of partitions, whose quota owes 0.4 s."""
    limits = limits or consumer_quota()
    stories = [process.connect(limits=limits) for _ in range(number)]
    debtor = process.connect(limits=limits)
    for story in (*stories, debtor):
        # The next fetch of each is expected to bring as little as this one.
        story.client(fetch(1)).broker(fetched(1, size=100))
        assert story.relay.take_to_broker()
        assert story.relay.take_to_client()
    debtor.client(fetch(2)).broker(fetched(2, size=700_000))
    debtor.client(fetch(3)).broker(fetched(3, size=700_000))
    for story in stories:
        story.client(large_fetch(2)).to_broker()
        assert not story.relay.status.waits_for_turn, "it waits for its quota"
    return stories


def at_broker(stories: list[Story]) -> list[Story]:
    """Those that have just forwarded something."""
    return [story for story in stories if story.relay.take_to_broker()]


def test_fetches_that_have_waited_for_their_quota_go_in_turn(process: Process) -> None:
    """Otherwise all connections of a consumer would send their lists when its debt is paid."""
    stories = waiting_consumers(process)
    gone: list[Story] = []
    for milliseconds in range(300, 480, 5):
        for story in stories:
            story.at(milliseconds / 1000)
        gone += at_broker(stories)
    assert len(gone) == 1
    waiting = [story for story in stories if story not in gone]
    assert all(story.relay.status.waits_for_turn and not story.relay.status.throttled for story in waiting)
    while waiting:
        gone[-1].broker(fetched(2, size=100))
        process.next_turn()
        gone += at_broker(waiting)
        waiting = [story for story in stories if story not in gone]
        assert len(gone) + len(waiting) == len(stories)
    gone[-1].broker(fetched(2, size=100)).unmuted().timer(None).idle()
    process.connect().client(a_list(1)).to_broker(a_list(1))


def test_a_fetch_behind_which_nothing_comes_back_leaves_its_turn_after_a_time(process: Process) -> None:
    stories = waiting_consumers(process, 2)
    for story in stories:
        story.at(0.48)
    assert len(at_broker(stories)) == 1
    for story in stories:
        story.at(0.48 + work_seconds(SIZE + 100))
    process.next_turn()
    assert len(at_broker(stories)) == 1


@pytest.mark.parametrize("end", ["close", "drain"])
def test_a_fetch_that_waits_for_its_turn_at_the_end(process: Process, end: str) -> None:
    """A client that hangs up is not charged for records that it never asked a broker for."""
    limits = consumer_quota()
    stories = waiting_consumers(process, 3, limits)
    for story in stories:
        story.at(0.48)
    gone = at_broker(stories)
    first, second = [story for story in stories if story not in gone]
    if end == "drain":
        first.drain()
        assert len(at_broker([first])) == 1
    else:
        [bucket] = live_buckets(limits)
        charged = bucket.state(START + 0.48).rate
        first.relay.end()
        first.to_broker()
        assert bucket.state(START + 0.48).rate == charged
    gone[0].broker(fetched(2, size=100))
    process.next_turn()
    assert len(at_broker([second])) == 1


def test_requests_behind_a_fetch_that_waits_for_its_turn_go_on_after_it(process: Process) -> None:
    stories = waiting_consumers(process, 2)
    for story in stories:
        story.at(0.48)
    gone = at_broker(stories)
    [other] = [story for story in stories if story not in gone]
    other.client(opaque(3)).to_broker()
    gone[0].broker(fetched(2, size=100))
    process.next_turn()
    assert b"".join(other.relay.take_to_broker()).endswith(opaque(3))


TENTH: Quotas = {EVERYONE: {"request_percentage": 10.0}}


def test_lists_on_many_connections_get_no_more_request_time_than_the_quota(process: Process) -> None:
    """Natively, each connection gets one list a second: 100 times this quota."""
    limits = engine({EVERYONE: {"request_percentage": 1.0}})
    stories = [process.connect(limits=limits, node_id=1) for _ in range(100)]
    in_flight: list[Story] = []
    used = 0.0
    for story in stories:
        story.client(opaque(1)).to_broker(opaque(1)).broker(responded(1)).to_client(responded(1))
        story.client(a_list(1, size=MOST))
    for tenth in range(1, 601):
        now = tenth / 10
        for story in in_flight:
            story.at(now).broker(responded(1))
            used += 0.1
        in_flight.clear()
        process.next_turn()
        for story in stories:
            story.at(now)
            if story.relay.take_to_broker():
                in_flight.append(story)
                story.client(a_list(1, size=MOST))
        process.next_turn()
    assert 0.5 <= used <= 0.01 * 60 + 0.2


def test_other_requests_of_a_client_do_not_wait_for_its_lists(process: Process) -> None:
    """Its heartbeats go on."""
    limits = engine(TENTH)
    one, other, busy = (process.connect(limits=limits) for _ in range(3))
    for story in (other, busy):
        story.client(opaque(1)).to_broker(opaque(1)).broker(responded(1)).to_client(responded(1))
    one.client(a_list(1)).to_broker(a_list(1)).at(0.5).broker(responded(1))
    other.at(0.5).client(a_list(2)).to_broker()
    busy.at(0.5).client(opaque(2)).to_broker(opaque(2))
    other.at(4.49).to_broker().at(4.51).to_broker(a_list(2))


def test_a_list_waits_only_for_what_lists_have_used(process: Process) -> None:
    """However much other requests use without an end, as Kafka lets them, lists get the quota's time."""
    limits = engine(TENTH)
    one, other, busy = (process.connect(limits=limits) for _ in range(3))
    other.client(opaque(1)).to_broker(opaque(1)).broker(responded(1))
    busy.client(opaque(1)).to_broker(opaque(1))
    one.client(a_list(1)).to_broker(a_list(1)).at(0.2).broker(responded(1))
    busy.at(1.0).broker(responded(1))
    other.at(1.0).client(a_list(2)).to_broker().at(1.19).to_broker().at(1.21).to_broker(a_list(2))


def test_a_list_whose_connection_is_closed_is_paid_for(process: Process) -> None:
    limits = engine(TENTH)
    one, other = (process.connect(limits=limits) for _ in range(2))
    other.client(opaque(1)).to_broker(opaque(1)).broker(responded(1)).to_client(responded(1))
    one.client(a_list(1)).to_broker(a_list(1))
    one.relay.relay.end()
    one.relay.relay.receive_late(responded(1), START + 0.5)
    other.at(0.5).client(a_list(2)).to_broker().at(4.49).to_broker().at(4.51).to_broker(a_list(2))


@pytest.mark.parametrize("quotas", [{}, TENTH])
def test_a_list_within_the_quota_waits_for_no_payment(process: Process, quotas: Quotas) -> None:
    limits = engine(quotas)
    one, other = (process.connect(limits=limits) for _ in range(2))
    other.client(opaque(1)).to_broker(opaque(1)).broker(responded(1)).to_client(responded(1))
    one.client(a_list(1)).to_broker(a_list(1)).at(0.05).broker(responded(1))
    other.at(0.05).client(a_list(2)).to_broker(a_list(2))
