from proxy.wire.cursor import NO_ID
from proxy.wire.views import Item, RequestView, ResponseView


def test_a_request_view_starts_with_what_most_requests_have() -> None:
    view = RequestView(0, 9, 7, "client", 100, flexible=True, want_items=True)
    assert (view.api_key, view.api_version, view.correlation_id, view.client_id, view.size) == (
        0,
        9,
        7,
        "client",
        100,
    )
    assert (view.flexible, view.want_items, view.cursor.done, view.partial) == (True, True, False, False)
    assert view.acks == 1, "a response comes"
    assert view.replica_id == -1, "a consumer"
    assert (view.max_bytes, view.max_bytes_at, view.min_bytes_at) == (-1, -1, -1)


def test_a_response_view_starts_without_a_wait() -> None:
    view = ResponseView(9, True, 100)
    assert (view.api_version, view.body_size, view.want_items) == (9, 100, False)
    assert (view.throttle_at, view.throttle_time_ms) == (-1, 0)


def test_views_share_no_lists() -> None:
    first, second = ResponseView(0, False, 0, True), ResponseView(0, False, 0, True)
    items = [Item("t", NO_ID, partition, 1) for partition in range(2)]
    for item in items:
        first.add(item)
    assert (first.items, second.items, ResponseView(0, False, 0, True).items) == (items, [], [])
    assert second.edits is not first.edits


def test_an_item_is_one_partitions_part() -> None:
    item = Item("orders", NO_ID, 3, 100)
    assert (item.topic, item.topic_id, item.partition, item.size) == ("orders", bytes(16), 3, 100)
