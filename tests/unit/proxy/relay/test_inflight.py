import pytest

from proxy.quota.engine import QuotaEngine
from proxy.relay.budgets.list_turns import ListTurns, work_seconds
from proxy.relay.counters.traffic import Bytes, Traffic
from proxy.relay.exchange import Client, Exchange
from proxy.relay.inflight import (
    FREE_IN_FLIGHT,
    LOCAL_PARTITION_SECONDS,
    LOCAL_SECONDS,
    MAX_IN_FLIGHT,
    SHARED_IN_FLIGHT,
    InFlight,
    InFlightRoom,
)
from proxy.relay.output import RelayOutput
from proxy.wire.api_keys import PRODUCE
from proxy.wire.errors import Malformed
from proxy.wire.frames import Frame
from proxy.wire.views import RequestView
from tests.support.quotas.buckets import live_buckets
from tests.support.stories.playbook import EVERYONE, START, engine


def in_flight(room: InFlightRoom | None = None) -> InFlight:
    return InFlight(QuotaEngine([]), Traffic(), RelayOutput(), room)


def fill(order: InFlight) -> int:
    """Add requests until the connection may have no more; return how many."""
    count = 0
    while not order.full:
        order.add(brokers(count))
        count += 1
    return count


def taken(order: InFlight) -> list[bytes]:
    output = order._output
    pieces = output.to_client
    output.clear()
    return pieces


def client() -> Client:
    return Client("u", "c", "a", Bytes(), b"c")


def brokers(number: int) -> Exchange:
    return Exchange(number, client())


def own(number: int) -> Exchange:
    return Exchange(number, client(), local=True)


def with_local_response(number: int, response: bytes) -> Exchange:
    exchange = own(number)
    exchange.local_response = response
    return exchange


def test_responses_come_in_the_order_of_requests() -> None:
    order = in_flight()
    first, second = brokers(1), brokers(2)
    order.add(first)
    order.add(second)
    assert order.take_response(1) is first
    with pytest.raises(Malformed, match=r"correlation_id 3; .* 2"):
        order.take_response(3)


def test_a_response_to_nothing() -> None:
    with pytest.raises(Malformed, match="correlation_id 5"):
        in_flight().take_response(5)


def test_a_response_while_the_proxys_own_is_due() -> None:
    order = in_flight()
    order.add(own(5))
    with pytest.raises(Malformed, match="correlation_id 5"):
        order.take_response(5)


def test_an_local_response_is_awaited_and_leaves_in_its_turn() -> None:
    order = in_flight()
    mine = own(2)
    order.add(brokers(1))
    order.add(mine)
    assert order.awaiting_response
    order.respond(mine, b"mine")
    assert not order.awaiting_response
    assert taken(order) == []
    order.take_response(1)
    order.send([b"brokers"])
    order.send_local()
    assert taken(order) == [b"brokers", b"mine"]
    assert order.empty
    assert taken(order) == []


def test_an_local_response_that_is_there_already_is_not_awaited() -> None:
    order = in_flight()
    order.add(with_local_response(1, b"mine"))
    assert not order.awaiting_response
    assert taken(order) == [b"mine"]


def test_an_local_response_is_counted() -> None:
    traffic = Traffic()
    total = traffic.total
    order = InFlight(QuotaEngine([]), traffic, RelayOutput())
    mine = with_local_response(1, b"mine")
    order.add(mine)
    assert (total.bytes_out, mine.client.traffic.bytes_out) == (4, 4)


def test_nothing_comes_between_the_parts_of_a_response() -> None:
    order = in_flight()
    order.begin_response()
    assert not order.empty
    order.add(with_local_response(1, b"mine"))
    assert taken(order) == []
    order.end_response()
    order.send_local()
    assert taken(order) == [b"mine"]
    assert order.empty


def test_a_hold_keeps_all_that_comes_after_it() -> None:
    order = in_flight()
    order.send([b"before"])
    order.delay(5.0)
    order.delay(3.0)
    order.send([b"after"])
    order.add(with_local_response(1, b"mine"))
    order.send_frame(Frame([b"frame"], 5, True))
    assert taken(order) == [b"before"]
    assert (order.delayed_until, order.empty) == (5.0, False)
    order.end_delay()
    order.send_frame(Frame([b"later"], 5, True))
    assert taken(order) == [b"after", b"mine", b"frame", b"later"]
    assert (order.delayed_until, order.empty) == (0.0, True)


def test_the_longest_mute_holds() -> None:
    order = in_flight()
    order.mute(5.0)
    order.mute(3.0)
    assert order.muted_until == 5.0
    order.mute(6.0)
    assert order.muted_until == 6.0


def test_so_many_requests_and_no_more() -> None:
    order = in_flight()
    for number in range(MAX_IN_FLIGHT):
        assert not order.full
        order.add(brokers(number))
    assert order.full
    order.take_response(0)
    assert not order.full


def test_connections_share_the_room_for_more_than_a_few_requests() -> None:
    room = InFlightRoom()
    greedy = [in_flight(room) for _ in range(10)]
    taken = [fill(order) for order in greedy]
    assert taken[:2] == [MAX_IN_FLIGHT] * 2
    assert sum(taken) == SHARED_IN_FLIGHT + FREE_IN_FLIGHT * 10
    late = in_flight(room)
    assert fill(late) == FREE_IN_FLIGHT
    late.take_response(0)
    assert not late.full
    greedy[0].end()
    assert fill(late) == MAX_IN_FLIGHT - FREE_IN_FLIGHT + 1


def test_room_is_given_back_once() -> None:
    room = InFlightRoom()
    order = in_flight(room)
    fill(order)
    for number in range(MAX_IN_FLIGHT // 2):
        order.take_response(number)
    assert room.taken == MAX_IN_FLIGHT // 2 - FREE_IN_FLIGHT
    order.end()
    assert room.taken == 0
    order.end()
    order.take_late_response(MAX_IN_FLIGHT // 2)
    assert room.taken == 0


def test_a_response_to_what_the_proxy_asked_leaves_its_own_still_due() -> None:
    order = in_flight()
    mine = own(2)
    order.add(brokers(1))
    order.add(mine)
    order.ask(mine)
    assert order.take_response(1).correlation_id == 1
    assert order.take_response(2) is mine
    assert order.awaiting_response
    with pytest.raises(Malformed, match="correlation_id 2"):
        order.take_response(2)
    order.respond(mine, b"mine")
    assert taken(order) == [b"mine"]


def test_a_response_to_what_the_proxy_asked_has_its_correlation_id() -> None:
    order = in_flight()
    mine = own(2)
    order.add(mine)
    order.ask(mine)
    with pytest.raises(Malformed, match=r"correlation_id 3; .* 2"):
        order.take_response(3)


@pytest.mark.parametrize(
    ("seconds", "milliseconds"), [(-1.0, 0), (0.0, 0), (0.0001, 1), (1.5, 1500), (1e12, 2**31 - 1)]
)
def test_a_wait_in_milliseconds(seconds: float, milliseconds: int) -> None:
    assert in_flight().announced(seconds, 0.0) == milliseconds


def test_each_partition_of_a_local_response_costs_request_time() -> None:
    limits = engine({EVERYONE: {"request_percentage": 10.0}})
    order = InFlight(limits, Traffic(), RelayOutput())
    for number, partitions in enumerate((0, 1000)):
        exchange = with_local_response(number, b"response")
        order.answer(exchange, RequestView(PRODUCE, 9, number, "c", 100), partitions, START)
    (bucket,) = live_buckets(limits)
    assert bucket.used == pytest.approx(100.0 * (2 * LOCAL_SECONDS + 1000 * LOCAL_PARTITION_SECONDS))


def test_no_request_is_read_until_it_is_known_whether_records_are_appended() -> None:
    order = in_flight()
    first, second = brokers(1), brokers(2)
    order.add(first)
    order.add(second)
    order.await_append(second)
    for number in (1, 2):
        assert order.awaiting_response
        order.take_response(number)
    assert not order.awaiting_response


def test_which_responses_are_outstanding() -> None:
    order = in_flight()
    first, second, third = brokers(1), brokers(2), brokers(3)
    for exchange in (first, second):
        order.add(exchange)
    order.take_response(1)
    assert [order.has(exchange) for exchange in (first, second, third)] == [False, True, False]
    order.delayed_until = START
    assert order.has(first), "it is delayed"


def test_the_turns_of_lists_end_with_their_responses() -> None:
    turns = ListTurns(1000)
    order = in_flight()
    lists = []
    for number in range(4):
        order.add(brokers(number))
        if number != 1:
            turn = turns.join((1, ("u", "")), 10, START)
            assert turn.ask(1.0, START) == 0.0
            order.end_with_response(turn)
            lists.append(turn)
    for number, left in enumerate((2, 2, 1)):
        order.take_response(number)
        assert sum(turn.in_flight and turn.line is not None for turn in lists) == left
    order.leave_lists()
    assert lists[-1].until == START + work_seconds(10)
