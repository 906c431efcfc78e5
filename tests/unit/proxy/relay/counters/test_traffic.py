from proxy.quota.usage import API_KEYS, REST
from proxy.relay.counters.traffic import MAX_CLIENTS, MAX_FAILED_LOGINS, MAX_PARTITIONS, Bytes, Traffic
from proxy.wire.cursor import NO_ID
from proxy.wire.views import Item

ID = bytes(range(16))


def counted(counters: Bytes) -> tuple[int, int]:
    return (counters.bytes_in, counters.bytes_out)


def test_requests_are_counted_by_key_and_unknown_keys_as_the_last() -> None:
    traffic = Traffic()
    for key in (0, 0, 18, API_KEYS - 1, API_KEYS, 32767):
        traffic.count_request(key)
    assert len(traffic.requests) == API_KEYS
    assert [traffic.requests[key] for key in (0, 1, 18, API_KEYS - 1)] == [2, 0, 1, 3]


def test_a_clients_counters_are_one_object() -> None:
    traffic = Traffic()
    one = traffic.client("u", "c")
    one.bytes_in += 5
    assert traffic.client("u", "c") is one
    assert traffic.client("u", "d") is not one
    assert {key: counted(value) for key, value in traffic.clients.items()} == {
        ("u", "c"): (5, 0),
        ("u", "d"): (0, 0),
    }


def test_every_connected_client_is_counted_by_name_however_many_there_are() -> None:
    """A tenant that connects when there are many is not lost for as long as its connection lasts."""
    traffic = Traffic()
    for number in range(2 * MAX_CLIENTS):
        traffic.client("u", str(number)).bytes_in += 1
    assert all(("u", str(number)) in traffic.clients for number in range(2 * MAX_CLIENTS))
    assert traffic.clients.get((REST, REST)) is None or counted(traffic.clients[REST, REST]) == (0, 0)
    for counters in traffic.clients.values():
        counters.connections = 0
    for number in range(MAX_CLIENTS):
        traffic.release(traffic.client("more", str(number)))
    assert len(traffic.clients) <= 2 * MAX_CLIENTS + 1
    assert sum(each.bytes_in for each in traffic.clients.values()) == 2 * MAX_CLIENTS


def test_a_new_client_is_named_however_many_there_were() -> None:
    """The smallest of those that have left go to the rest, and no byte is lost."""
    traffic = Traffic()
    open_one = traffic.client("u", "open")
    large = traffic.client("u", "large")
    large.bytes_in += 1_000_000
    traffic.release(large)
    for number in range(2 * MAX_CLIENTS):
        counters = traffic.client("u", str(number))
        counters.bytes_in += 1
        counters.bytes_out += 2
        traffic.release(counters)
    newcomer = traffic.client("u", "newcomer")
    assert traffic.clients["u", "newcomer"] is newcomer
    assert traffic.clients["u", "open"] is open_one
    assert traffic.clients["u", "large"] is large
    assert len(traffic.clients) <= MAX_CLIENTS + 1
    assert sum(each.bytes_in for each in traffic.clients.values()) == 1_000_000 + 2 * MAX_CLIENTS
    assert sum(each.bytes_out for each in traffic.clients.values()) == 4 * MAX_CLIENTS


def test_room_is_not_looked_for_with_each_client() -> None:
    """To look for it takes milliseconds where all are connected."""
    traffic = Traffic()
    first, *_ = [traffic.client("u", str(number)) for number in range(MAX_CLIENTS)]
    traffic.client("u", "a")
    traffic.release(first)
    traffic.client("u", "b")
    assert ("u", "0") in traffic.clients
    for number in range(MAX_CLIENTS // 8):
        traffic.client("more", str(number))
    assert ("u", "0") not in traffic.clients


def test_partitions_are_counted_by_name_or_by_id() -> None:
    traffic = Traffic(topic_partitions=True)
    traffic.count_in([Item("t", NO_ID, 0, 10), Item("t", NO_ID, 1, 20), Item("t", NO_ID, 0, 3)])
    traffic.count_out([Item("", ID, 0, 7), Item("t", NO_ID, 0, 5)])
    assert {key: counted(value) for key, value in traffic.partitions.items()} == {
        ("t", NO_ID, 0): (13, 5),
        ("t", NO_ID, 1): (20, 0),
        ("", ID, 0): (0, 7),
    }


def test_partitions_beyond_the_bound_are_counted_as_one() -> None:
    traffic = Traffic(topic_partitions=True)
    traffic.count_in([Item("t", NO_ID, number, 1) for number in range(MAX_PARTITIONS)])
    traffic.count_in(
        [Item("t", NO_ID, MAX_PARTITIONS, 5), Item("other", NO_ID, 0, 6), Item("t", NO_ID, 3, 1)]
    )
    assert len(traffic.partitions) == MAX_PARTITIONS + 1
    assert counted(traffic.partitions[(REST, NO_ID, -1)]) == (11, 0)
    assert counted(traffic.partitions[("t", NO_ID, 3)]) == (2, 0)


def test_a_name_that_no_topic_can_have_is_counted_with_the_rest() -> None:
    """Clients may name what they like; only names that Kafka allows are kept."""
    traffic = Traffic(topic_partitions=True)
    traffic.count_in(
        [Item("t" * 249, NO_ID, 0, 1), Item("t" * 250, NO_ID, 0, 2), Item("x" * 30_000, NO_ID, 1, 3)]
    )
    assert {key: counted(value) for key, value in traffic.partitions.items()} == {
        ("t" * 249, NO_ID, 0): (1, 0),
        (REST, NO_ID, -1): (5, 0),
    }


def test_whether_partitions_are_counted_is_said_once() -> None:
    assert Traffic(topic_partitions=True).topic_partitions
    assert not Traffic().topic_partitions


def test_failed_logins_are_counted_by_address_and_those_beyond_the_maximum_by_mechanism() -> None:
    traffic = Traffic()
    for number in range(MAX_FAILED_LOGINS + 2):
        traffic.count_failed_login("PLAIN", str(number))
    traffic.count_failed_login("PLAIN", "0")
    traffic.count_failed_login("other", "0")
    counts = traffic.failed_logins
    assert (counts["PLAIN", "0"], counts["PLAIN", REST], counts["other", REST]) == (2, 2, 1)
    assert len(counts) == MAX_FAILED_LOGINS + 2
