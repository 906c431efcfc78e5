"""Counts the records of Produce requests by partition, when the broker has accepted them.

Records that the broker rejects, such as batches that are too large, are in no partition. They count as the
client's usage of Produce, without a partition. Records with acks=0 have no response, and count when they are
sent. If the connection ends before a response arrives, its records count as accepted, because the broker may
have them.
"""

from typing import Final

from mypy_extensions import i64 as native

from proxy.relay.counters.traffic import Traffic
from proxy.relay.exchange import Client, Exchange
from proxy.wire.api_keys import PRODUCE
from proxy.wire.error_codes import appended
from proxy.wire.views import UNKNOWN, Item, RequestView, partition_key

SENT_AT_MOST: Final = 10_000
"""Items of a large request that are kept until its response. Further items count when they are sent: one
request of 100 MB may have millions of empty items.
"""


def send_records(traffic: Traffic, client: Client, request: RequestView) -> None:
    """Note that a whole request has been forwarded; its frame has been counted."""
    usage = client.usage
    if request.acks == 0:
        traffic.count_in(request.items)
        if usage is not None:
            usage.divide_in(PRODUCE, request.items)
    elif usage is not None:
        size = request.items_size
        usage.count_in(PRODUCE, -(_bytes(request.items) if size == UNKNOWN else size))


def send_items(traffic: Traffic, client: Client, request: RequestView) -> int:
    """Note that the view's items of a large request are forwarded; return their bytes."""
    items = request.items
    if request.acks != 0 and len(request.sent) + len(items) <= SENT_AT_MOST:
        kept = [
            Item(item.topic, item.topic_id, item.partition, item.size, b"", item.error_code) for item in items
        ]
        request.sent = request.sent + kept if request.sent else kept
        return _bytes(items)
    traffic.count_in(items)
    usage = client.usage
    return 0 if usage is None else usage.records_in(PRODUCE, items)


def settle_records(traffic: Traffic, client: Client, request: RequestView, results: list[Item]) -> None:
    """Count the records of a request by the broker's results."""
    sent = request.sent if request.sent else request.items
    rejected: set[tuple[bytes, str, int]] | None = None
    for result in results:
        if not appended(result.error_code):
            if rejected is None:
                rejected = set()
            rejected.add(partition_key(result))
    if rejected is None:
        _accept(traffic, client, sent)
        return
    accepted: list[Item] = []
    size = 0
    for item in sent:
        if partition_key(item) in rejected:
            size += item.size
        else:
            accepted.append(item)
    _accept(traffic, client, accepted)
    if client.usage is not None:
        client.usage.count_in(PRODUCE, size)


def abandon_records(traffic: Traffic, first: Exchange | None) -> None:
    """Count the records that await a response when the connection ends; `first` is the oldest
    exchange.
    """
    exchange = first
    while exchange is not None:
        abandon_request(traffic, exchange)
        exchange = exchange.next


def abandon_request(traffic: Traffic, exchange: Exchange | None) -> None:
    """Count the records of a request whose response has not arrived completely."""
    if exchange is None or exchange.local or exchange.counted or exchange.api_key != PRODUCE:
        return
    request = exchange.request
    if request is not None:
        _accept(traffic, exchange.client, request.sent if request.sent else request.items)
        # Nothing counts twice, even if both sides end the connection, or one side twice.
        exchange.counted = True


def _accept(traffic: Traffic, client: Client, items: list[Item]) -> None:
    traffic.count_in(items)
    if client.usage is not None:
        client.usage.records_in(PRODUCE, items)


def _bytes(items: list[Item]) -> native:
    size: native = 0
    for item in items:
        size += item.size
    return size
