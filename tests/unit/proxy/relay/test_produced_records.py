"""Produced records: the bound of what is kept; the rest is in tests/relay/counting/test_counting.py."""

from proxy.quota.identity import Identity
from proxy.quota.usage import UsageLedger
from proxy.relay.counters.traffic import Traffic
from proxy.relay.exchange import new_client
from proxy.relay.produced_records import SENT_AT_MOST, send_items, settle_records
from proxy.wire.api_keys import PRODUCE
from proxy.wire.cursor import NO_ID
from proxy.wire.views import Item, RequestView


def test_beyond_the_bound_records_count_when_they_are_sent() -> None:
    traffic = Traffic(topic_partitions=True, usage=UsageLedger())
    client = new_client(Identity("u", "", "a"), b"c", traffic, 1)
    request = RequestView(PRODUCE, 9, 1, "c", 100, flexible=True, want_items=True)
    request.items = [Item("kept", NO_ID, 0, 1, b"head")] * SENT_AT_MOST
    assert send_items(traffic, client, request) == SENT_AT_MOST
    assert [item.head for item in request.sent[:2]] == [b"", b""]
    request.items = [Item("more", NO_ID, 0, 1)] * 3
    assert send_items(traffic, client, request) == 3
    assert {key[0]: count.bytes_in for key, count in traffic.partitions.items()} == {"more": 3}
    assert len(request.sent) == SENT_AT_MOST
    settle_records(traffic, client, request, [Item("kept", NO_ID, 0, 0, error_code=10)])
    assert {key[0]: count.bytes_in for key, count in traffic.partitions.items()} == {"more": 3}
