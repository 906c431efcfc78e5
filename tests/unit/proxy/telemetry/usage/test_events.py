"""An event as text: every field, in the order of the contract, and a key that its client's events share."""

import json

from msgspec.structs import replace

from proxy.telemetry.usage.events import UsageEvent, encode

EVENT = UsageEvent(
    cluster="prod",
    proxy="host-1",
    broker=3,
    listener="clients",
    interval_start_ms=1_700_000_010_000,
    interval_ms=10_000,
    user="alice",
    client_id='bill"ing',
    api="Produce",
    topic=None,
    partition=None,
    requests=1,
    bytes_in=2,
    bytes_out=3,
    throttled_requests=4,
    throttle_ms=5,
    rejected_requests=6,
    rejected_bytes=7,
    quota=None,
)


def test_an_event_is_one_line_of_json() -> None:
    encoded = encode(EVENT)
    assert b"\n" not in encoded.value
    found = json.loads(encoded.value)
    assert list(found.items())[:4] == [("v", 1), ("cluster", "prod"), ("proxy", "host-1"), ("broker", 3)]
    assert (found["client_id"], found["topic"], found["partition"], found["quota"]) == (
        'bill"ing',
        None,
        None,
        None,
    )
    assert len(found) == 20


def test_a_clients_events_have_one_key() -> None:
    other = replace(EVENT, topic="orders", partition=1, api="Fetch", broker=1)
    assert encode(other).key == encode(EVENT).key != encode(replace(EVENT, user="bob")).key
