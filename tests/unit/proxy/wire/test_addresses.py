from collections.abc import Callable
from typing import Any

import pytest

from proxy.wire.addresses import (
    UNKNOWN_TAG,
    Address,
    Addresses,
    BrokerAddress,
    RewrittenBroker,
    Unchanged,
    UnknownBrokers,
    rewrite_address,
    rewrite_endpoints_array,
    rewrite_endpoints_tag,
    rewrite_repeated,
)
from proxy.wire.edit import apply, i32, string, uvarint
from proxy.wire.errors import Malformed, Short
from proxy.wire.reader import Reader
from proxy.wire.views import ResponseView
from tests.support.messages.kio_messages import BROKER_HOST, PROXY_HOST, PROXY_PORT, Ports

NO_TAGS = b"\0"


def view(flexible: bool = True, length_sent: bool = False) -> ResponseView:
    made = ResponseView(1, flexible, 100)
    made.cursor.length_sent = length_sent
    return made


def address(node_id: int, host: str, port: int, flexible: bool = True) -> bytes:
    return i32(node_id) + string(host, flexible) + i32(port)


def proxys(node_id: int, flexible: bool = True) -> bytes:
    return address(node_id, PROXY_HOST, PROXY_PORT + node_id, flexible)


def endpoint(node_id: int, host: str = BROKER_HOST, port: int = 9092, rack: bytes = b"\0") -> bytes:
    return address(node_id, host, port) + rack + NO_TAGS


def rewritten(
    rewrite: Callable[..., Any],
    data: bytes,
    response: ResponseView,
    before: bytes = b"\xaa\xbb",
    after: bytes = b"\xcc",
) -> bytes:
    """What `data` becomes, the same for every split; and that the reader stands right behind it."""
    results = set()
    frame = before + data + after
    for first in range(len(before), len(frame)):
        response.edits.clear()
        pieces = [frame[:first], frame[first:]]
        reader = Reader(pieces, len(before))
        rewrite(reader, response, Ports())
        assert reader.offset == len(before + data)
        results.add(b"".join(apply(pieces, response.edits)))
    (result,) = results
    assert result.startswith(before)
    assert result.endswith(after)
    return result[len(before) : len(result) - len(after)]


@pytest.mark.parametrize("flexible", [False, True])
def test_an_address_becomes_the_proxys(flexible: bool) -> None:
    data = address(3, BROKER_HOST, 9092, flexible)
    assert rewritten(rewrite_address, data, view(flexible)) == proxys(3, flexible)


@pytest.mark.parametrize("flexible", [False, True])
@pytest.mark.parametrize(("node_id", "host"), [(-1, ""), (-1, BROKER_HOST), (0, "")])
def test_what_is_no_node_is_left_alone(flexible: bool, node_id: int, host: str) -> None:
    data = address(node_id, host, -1, flexible)
    assert rewritten(rewrite_address, data, view(flexible)) == data


def test_a_null_host_is_no_node() -> None:
    data = i32(3) + b"\0" + i32(9092)
    assert rewritten(rewrite_address, data, view()) == data


def test_an_unknown_broker_is_named_with_its_own_address() -> None:
    addresses = Addresses()
    rewrite_address(Reader([address(7, "grün", 9092)]), view(), addresses)
    rewrite_address(Reader([address(8, "h", 9093)]), view(), addresses)
    with pytest.raises(UnknownBrokers) as caught:
        addresses.require()
    brokers = [(broker.node_id, broker.host, broker.port) for broker in caught.value.brokers]
    assert brokers == [(7, "grün", 9092), (8, "h", 9093)]
    addresses.require()


def test_a_broker_is_known_at_the_address_of_its_own_that_the_shell_was_told() -> None:
    addresses = Addresses()

    advertised = Address("p", 1)
    addresses.put(BrokerAddress(7, "h", 9092), advertised)
    assert addresses.find(7, "h", 9092) is advertised
    for other in ((8, "h", 9092), (7, "g", 9092), (7, "h", 9093)):
        assert addresses.find(*other) is None
    addresses.require()


def test_between_brokers_no_address_is_replaced() -> None:
    seen = view()
    rewrite_address(Reader([address(7, "h", 9092)]), seen, Unchanged())
    assert not seen.edited


def tag_section(*tags: tuple[int, bytes]) -> bytes:
    return uvarint(len(tags)) + b"".join(uvarint(tag) + uvarint(len(data)) + data for tag, data in tags)


def endpoints(*nodes: bytes) -> bytes:
    return uvarint(len(nodes) + 1) + b"".join(nodes)


BOTH = endpoints(endpoint(1), endpoint(2, rack=b"\x05rack"))
BOTH_PROXYS = endpoints(proxys(1) + b"\0\0", proxys(2) + b"\x05rack" + NO_TAGS)


def test_a_section_without_tags() -> None:
    assert rewritten(rewrite_endpoints_tag, NO_TAGS, view()) == NO_TAGS


def test_endpoints_in_a_tag_are_rewritten_and_the_tags_size_with_them() -> None:
    data = tag_section((0, BOTH), (5, b"other"))
    assert rewritten(rewrite_endpoints_tag, data, view()) == tag_section((0, BOTH_PROXYS), (5, b"other"))


@pytest.mark.parametrize("host", ["b", "b" * 100, "b" * 127, "b" * 200, "b" * 17_000])
def test_a_tag_may_need_another_number_of_bytes_for_its_size(host: str) -> None:
    data = tag_section((0, endpoints(*[endpoint(node, host=host) for node in range(8)])))
    wanted = tag_section((0, endpoints(*[proxys(node) + b"\0\0" for node in range(8)])))
    reader = Reader([data])
    response = view()
    rewrite_endpoints_tag(reader, response, Ports())
    assert b"".join(apply([data], response.edits)) == wanted


def test_a_tag_without_endpoints_stays() -> None:
    data = tag_section((0, endpoints()))
    assert rewritten(rewrite_endpoints_tag, data, view()) == data


@pytest.mark.parametrize("size", [0, 2, len(BOTH) - 1, len(BOTH) + 1])
def test_endpoints_that_do_not_fill_their_tag_are_malformed(size: int) -> None:
    data = b"\x01\x00" + uvarint(size) + BOTH + b"more"
    with pytest.raises(Malformed, match=rf"NodeEndpoints .*\b{len(BOTH)}\b.*\b{size}\b"):
        rewrite_endpoints_tag(Reader([data]), view(), Ports())


def test_when_the_length_is_sent_the_tag_becomes_one_that_nobody_knows() -> None:
    data = tag_section((0, BOTH), (5, b"other"))
    changed = rewritten(rewrite_endpoints_tag, data, view(length_sent=True))
    assert changed == tag_section((UNKNOWN_TAG, bytes(len(BOTH))), (5, b"other"))


@pytest.mark.parametrize("length_sent", [False, True])
def test_a_tag_that_is_not_all_there_is_short(length_sent: bool) -> None:
    data = tag_section((0, BOTH))
    for size in range(len(data)):
        with pytest.raises(Short):
            rewrite_endpoints_tag(Reader([data[:size]]), view(length_sent=length_sent), Ports())


def test_endpoints_in_an_array_are_rewritten() -> None:
    data = BOTH + tag_section((3, b"tag"))
    assert rewritten(rewrite_endpoints_array, data, view()) == BOTH_PROXYS + tag_section((3, b"tag"))


@pytest.mark.parametrize("length_sent", [False, True])
def test_an_array_without_addresses_stays(length_sent: bool) -> None:
    for data in (endpoints() + NO_TAGS, b"\0" + NO_TAGS, endpoints(endpoint(-1, host="", port=-1)) + NO_TAGS):
        assert rewritten(rewrite_endpoints_array, data, view(length_sent=length_sent)) == data


@pytest.mark.parametrize("nodes", [1, 2, 5, 9, 100, 2000])
@pytest.mark.parametrize("host", ["b", BROKER_HOST])
def test_when_the_length_is_sent_the_array_becomes_empty(nodes: int, host: str) -> None:
    data = endpoints(*[endpoint(node, host=host) for node in range(nodes)]) + NO_TAGS
    response = view(length_sent=True)
    rewrite_endpoints_array(Reader([data]), response, Ports())
    changed = b"".join(apply([data], response.edits))
    assert len(changed) == len(data)
    reader = Reader([changed])
    assert reader.count(True) == 0
    assert (reader.uvarint(), reader.uvarint()) == (1, UNKNOWN_TAG)
    size = reader.uvarint()
    assert changed[reader.offset :] == bytes(size)


class Counting(Addresses):
    """Counts the look-ups; only the nodes below 3 are known, at one address each."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []

    def find(self, node_id: int, host: str, port: int) -> Address | None:
        self.asked.append(node_id)
        known = node_id < 3 and (host, port) == (BROKER_HOST, 9092)
        return Address(PROXY_HOST, PROXY_PORT + node_id) if known else None


def repeated(places: list[bytes], addresses: Addresses, flexible: bool = True) -> bytes:
    """What a sequence of addresses becomes."""
    data = b"".join(places)
    brokers: dict[int, RewrittenBroker] = {}
    response = view(flexible)
    reader = Reader([data])
    for _ in places:
        rewrite_repeated(reader, response, addresses, brokers)
    assert reader.offset == len(data)
    return b"".join(apply([data], response.edits))


@pytest.mark.parametrize("flexible", [True, False])
def test_a_broker_of_many_places_is_looked_up_once(flexible: bool) -> None:
    counting = Counting()
    nodes = [index % 3 for index in range(10_000)]
    places = [address(node, BROKER_HOST, 9092, flexible) for node in nodes]
    changed = repeated(places, counting, flexible)
    assert changed == b"".join(address(node, PROXY_HOST, PROXY_PORT + node, flexible) for node in nodes)
    assert counting.asked == [0, 1, 2]


def test_places_without_a_node_among_many() -> None:
    none = address(-1, "", -1)
    places = [none, address(1, BROKER_HOST, 9092), none, none, address(1, BROKER_HOST, 9092)]
    assert repeated(places, Counting()) == none + proxys(1) + none + none + proxys(1)


def test_each_unknown_broker_is_named_once() -> None:
    counting = Counting()
    places = [address(node, "elsewhere", 9093) for node in (3, 3, 4, 3)]
    assert repeated(places, counting) == b"".join(places)
    with pytest.raises(UnknownBrokers) as caught:
        counting.require()
    assert [(broker.node_id, broker.host, broker.port) for broker in caught.value.brokers] == [
        (3, "elsewhere", 9093),
        (4, "elsewhere", 9093),
    ]


def test_a_broker_at_two_addresses_is_looked_up_at_each() -> None:
    counting = Counting()
    one, other = address(1, BROKER_HOST, 9092), address(1, BROKER_HOST, 9093)
    assert repeated([one, other, one], counting) == proxys(1) + other + proxys(1)
    with pytest.raises(UnknownBrokers):
        counting.require()


def test_many_places_between_brokers_stay() -> None:
    places = [address(1, BROKER_HOST, 9092)] * 2
    assert repeated(places, Unchanged()) == b"".join(places)
