"""What clients have used, by API and partition, until an interval is closed."""

from collections import Counter
from random import Random

from proxy.quota.usage import (
    API_KEYS,
    MAX_CLIENT_NAME,
    MAX_CLIENTS,
    MAX_TALLIES,
    REST,
    Tally,
    Usage,
    UsageLedger,
)
from proxy.wire.cursor import NO_ID, NO_PARTITION
from proxy.wire.long_names import MAX_TOPIC_NAME
from proxy.wire.views import Item

PRODUCE, FETCH = 0, 1
ID = bytes(range(16))


def item(partition: int, size: int, topic: str = "t", topic_id: bytes = NO_ID) -> Item:
    return Item(topic, topic_id, partition, size)


def taken(ledger: UsageLedger) -> list[Usage]:
    return [usage for client in ledger.close_interval() for usage in client.take()]


def by_place(ledger: UsageLedger) -> dict[tuple[int, str, bytes, int], tuple[int, int, int]]:
    return {
        (usage.api_key, usage.topic, usage.topic_id, usage.partition): (
            usage.tally.requests,
            usage.tally.bytes_in,
            usage.tally.bytes_out,
        )
        for usage in taken(ledger)
    }


def test_bytes_are_divided_between_partitions_and_the_rest() -> None:
    ledger = UsageLedger()
    client = ledger.client(1, "u", "c")
    client.count_request(PRODUCE, 1000)
    client.divide_in(PRODUCE, [item(0, 300), item(1, 400), item(0, 50)])
    client.count_out(PRODUCE, 70)
    client.count_request(FETCH, 80)
    client.count_out(FETCH, 900)
    client.divide_out(FETCH, [item(0, 0), item(1, 500, "", ID)])
    assert by_place(ledger) == {
        (PRODUCE, "", NO_ID, NO_PARTITION): (1, 250, 70),
        (PRODUCE, "t", NO_ID, 0): (0, 350, 0),
        (PRODUCE, "t", NO_ID, 1): (0, 400, 0),
        (FETCH, "", NO_ID, NO_PARTITION): (1, 80, 400),
        (FETCH, "", ID, 1): (0, 0, 500),
    }


def test_apis_in_turn_count_apart() -> None:
    ledger = UsageLedger()
    client = ledger.client(1, "u", "c")
    for api_key in (PRODUCE, FETCH, PRODUCE, API_KEYS, FETCH, API_KEYS + 7, API_KEYS - 1):
        client.count_request(api_key, 10)
    assert {key[0]: counts[:2] for key, counts in by_place(ledger).items()} == {
        PRODUCE: (2, 20),
        FETCH: (2, 20),
        API_KEYS - 1: (3, 30),
    }


def test_topics_and_apis_in_turn_count_apart() -> None:
    ledger = UsageLedger()
    client = ledger.client(1, "u", "c")
    other = bytes(reversed(ID))
    for _ in range(2):
        client.records_in(PRODUCE, [item(0, 1), item(0, 2, "s"), item(0, 4), item(1, 8, "s")])
        client.records_in(FETCH, [item(0, 16, "s"), item(0, 32, "", ID), item(0, 64, "", other)])
        # A topic whose name is known counts by name, with or without its id.
        client.records_in(PRODUCE, [item(0, 128, "s", ID)])
    assert {place: counts[1] // 2 for place, counts in by_place(ledger).items()} == {
        (PRODUCE, "t", NO_ID, 0): 5,
        (PRODUCE, "s", NO_ID, 0): 130,
        (PRODUCE, "s", NO_ID, 1): 8,
        (FETCH, "s", NO_ID, 0): 16,
        (FETCH, "", ID, 0): 32,
        (FETCH, "", other, 0): 64,
    }


def test_a_large_frame_counts_as_it_passes() -> None:
    ledger = UsageLedger()
    client = ledger.client(1, "u", "c")
    client.count_request(PRODUCE, 5000)
    client.count_in(PRODUCE, -5000)
    assert client.records_in(PRODUCE, [item(0, 3000), item(1, 500)]) == 3500
    assert sum(count[1] for count in by_place(ledger).values()) == 3500
    client.count_in(PRODUCE, 1500)
    assert by_place(ledger) == {(PRODUCE, "", NO_ID, NO_PARTITION): (0, 1500, 0)}


def test_an_interval_has_only_what_was_used_in_it() -> None:
    ledger = UsageLedger()
    one, other = ledger.client(1, "u", "c"), ledger.client(2, "u", "c")
    one.count_request(PRODUCE, 10)
    assert [(usage.node_id, usage.user, usage.client_id) for usage in taken(ledger)] == [(1, "u", "c")]
    other.count_request(PRODUCE, 10)
    assert [usage.node_id for usage in taken(ledger)] == [2]
    assert taken(ledger) == []
    # A connection keeps its ClientUsage however long it was idle.
    one.records_in(PRODUCE, [item(0, 7)])
    assert [usage.tally.bytes_in for usage in taken(ledger)] == [7]


def test_what_is_counted_before_it_is_taken_is_not_lost() -> None:
    ledger = UsageLedger()
    client = ledger.client(1, "u", "c")
    client.count_request(PRODUCE, 10)
    (closed,) = ledger.close_interval()
    client.count_request(PRODUCE, 5)
    assert [usage.tally.bytes_in for usage in closed.take()] == [15]
    assert taken(ledger) == []
    client.count_request(PRODUCE, 3)
    assert [usage.tally.bytes_in for usage in taken(ledger)] == [3]


def test_connections_of_a_client_share() -> None:
    ledger = UsageLedger()
    assert ledger.client(1, "u", "c") is ledger.client(1, "u", "c")
    assert ledger.client(1, "u", "c") is not ledger.client(1, "u", "d")


def test_a_tally_names_the_quota_that_throttled_longest() -> None:
    ledger = UsageLedger()
    client = ledger.client(1, "u", "c")
    client.count_throttle(PRODUCE, "producer_byte_rate", 0.5, 1)
    client.count_throttle(PRODUCE, "request_percentage", 0.4, 0)
    client.count_throttle(PRODUCE, "request_percentage", 0.4, 1)
    (usage,) = taken(ledger)
    assert usage.tally.throttled_requests == 2
    assert round(usage.tally.throttle_seconds, 6) == 1.3
    assert usage.tally.quota == "request_percentage"
    assert Tally().quota == ""


def test_a_rejection_is_its_partitions() -> None:
    ledger = UsageLedger()
    client = ledger.client(1, "u", "c")
    client.count_rejected(PRODUCE, "bytes.in.per.sec.threshold", item(3, 200), 1)
    (usage,) = taken(ledger)
    assert (usage.topic, usage.partition) == ("t", 3)
    assert (usage.tally.rejected_requests, usage.tally.rejected_bytes) == (1, 200)
    assert usage.tally.quota == "bytes.in.per.sec.threshold"


def test_tallies_add_up() -> None:
    one, other = Tally(), Tally()
    for tally, number in ((one, 1), (other, 10)):
        tally.requests = tally.bytes_in = tally.bytes_out = number
        tally.throttled_requests = tally.rejected_requests = tally.rejected_bytes = number
        tally.throttle_seconds = float(number)
        tally.bind("q", float(number))
    one.add(other)
    assert (one.requests, one.bytes_in, one.bytes_out) == (11, 11, 11)
    assert (one.throttled_requests, one.rejected_requests, one.rejected_bytes) == (11, 11, 11)
    assert (one.throttle_seconds, one.quotas) == (11.0, {"q": 11.0})


def test_invented_topics_are_bounded() -> None:
    ledger = UsageLedger()
    client = ledger.client(1, "u", "c")
    for api_key in (API_KEYS - 1, API_KEYS, 32767):
        client.count_request(api_key, 1)
    client.records_in(PRODUCE, [item(0, 5, "x" * (MAX_TOPIC_NAME + 1))])
    assert by_place(ledger) == {
        (API_KEYS - 1, "", NO_ID, NO_PARTITION): (3, 3, 0),
        (PRODUCE, REST, NO_ID, NO_PARTITION): (0, 5, 0),
    }
    rest = ledger.client(1, "u", "c" * (MAX_CLIENT_NAME + 1))
    assert (rest.user, rest.client_id) == (REST, REST)
    assert ledger.client(1, "u" * (MAX_CLIENT_NAME + 1), "c") is rest


def test_too_many_clients_share_one() -> None:
    ledger = UsageLedger()
    clients = [ledger.client(1, "u", str(number)) for number in range(MAX_CLIENTS)]
    assert ledger.client(1, "u", "one too many").client_id == REST
    assert ledger.client(2, "v", "another") is ledger.client(2, REST, REST)
    assert ledger.client(1, "u", "5") is clients[5]
    clients[5].count_request(PRODUCE, 1)
    ledger.close_interval()
    # Nobody else has used anything: there is room again.
    assert ledger.client(1, "u", "one too many").client_id == "one too many"
    assert ledger.client(1, "u", "5") is clients[5]


def test_too_many_partitions_are_counted_as_one() -> None:
    ledger = UsageLedger()
    client = ledger.client(1, "u", "c")
    client.records_in(PRODUCE, [item(number, 1) for number in range(MAX_TALLIES + 5)])
    assert ledger.excluded == 5
    usages = taken(ledger)
    assert len(usages) == MAX_TALLIES + 1
    (rest,) = [usage for usage in usages if usage.topic == REST]
    assert (rest.partition, rest.tally.bytes_in) == (NO_PARTITION, 5)
    client.records_in(PRODUCE, [item(1, 1)])
    assert ledger.excluded == 5


def test_partitions_in_any_order_count_for_themselves() -> None:
    random = Random(7)
    ledger = UsageLedger()
    names = [("t", NO_ID), ("u", NO_ID), ("", ID)]
    for _ in range(20):
        client = ledger.client(1, "u", "c")
        ledger.tallies = MAX_TALLIES - 12
        expected: Counter[tuple[int, str, bytes, int]] = Counter()
        for _ in range(30):
            items = [
                item(
                    random.randrange(5), random.randrange(3), *random.choice(names[: random.randrange(1, 4)])
                )
                for _ in range(random.randrange(6))
            ]
            (client.divide_in if random.random() < 0.5 else client.divide_out)(FETCH, items)
            for one in items:
                expected[FETCH, one.topic, one.topic_id, one.partition] += one.size
        found: Counter[tuple[int, str, bytes, int]] = Counter()
        for place, (_, bytes_in, bytes_out) in by_place(ledger).items():
            found[place] += bytes_in + bytes_out
        rest = found.pop((FETCH, REST, NO_ID, NO_PARTITION), 0)
        found.pop((FETCH, "", NO_ID, NO_PARTITION), None)
        assert all(found[place] <= expected[place] for place in found)
        assert found.total() + rest == expected.total()
