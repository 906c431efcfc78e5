"""throttle_time_ms as the first field of a response, compared with kio's message definitions."""

from dataclasses import fields, replace
from datetime import timedelta

import pytest
from kio.schema.index import api_key_map

from proxy.wire.api_keys import NAMES, api_name
from proxy.wire.apis.throttle_times import FIRST, announce
from proxy.wire.reader import Reader
from tests.support.messages.kio_messages import response_frame, response_type, versions
from tests.support.messages.random_messages import sample

CORRELATION_ID_END = 8
READ_ON_THE_WAY = {"Fetch", "FindCoordinator", "DescribeCluster", "ShareFetch", "ShareAcknowledge"}
OF_BROKERS = {
    *("AlterPartition", "FetchSnapshot", "BrokerRegistration", "BrokerHeartbeat", "AllocateProducerIds"),
    *("ControllerRegistration", "AssignReplicasToDirs", "UpdateRaftVoter"),
}
"""Controllers receive them."""
EACH = [(name, version) for name in FIRST for version in versions(NAMES.index(name))]


def begins_with_it(api_key: int, version: int) -> bool:
    return fields(response_type(api_key, version))[0].name == "throttle_time"


def test_the_table_has_every_response_that_begins_with_it() -> None:
    begin = {api_name(key) for key in api_key_map if begins_with_it(key, max(versions(key)))}
    assert {*FIRST} == begin - READ_ON_THE_WAY - OF_BROKERS


@pytest.mark.parametrize("name", FIRST)
def test_versions_are_kafkas(name: str) -> None:
    key = NAMES.index(name)
    known = versions(key)
    with_it = [version for version in known if begins_with_it(key, version)]
    flexible = [version for version in with_it if response_type(key, version).__flexible__]
    assert with_it == [version for version in known if version >= with_it[0]]
    first, first_flexible, newest = FIRST[name]
    assert (first, newest) == (with_it[0], known[-1])
    assert [version for version in with_it if version >= first_flexible] == flexible


def announced(name: str, version: int, milliseconds: int, frame: bytes, cut: int = 0) -> bytes:
    pieces = [frame[:cut], frame[cut:]] if cut else [frame]
    announce(pieces, Reader(pieces, CORRELATION_ID_END), NAMES.index(name), version, milliseconds)
    return b"".join(pieces)


@pytest.mark.parametrize(("name", "version"), EACH)
def test_the_larger_wait_is_announced(name: str, version: int) -> None:
    response = sample(response_type(NAMES.index(name), version))
    if not begins_with_it(NAMES.index(name), version):
        frame = response_frame(response)
        assert announced(name, version, 70_000, frame) == frame
        return
    for theirs, ours in ((0, 1234), (70_000, 1234), (1234, 70_000)):
        frame = response_frame(replace(response, throttle_time=timedelta(milliseconds=theirs)))
        larger = replace(response, throttle_time=timedelta(milliseconds=max(theirs, ours)))
        for cut in (0, CORRELATION_ID_END + 2):
            assert announced(name, version, ours, frame, cut) == response_frame(larger)


@pytest.mark.parametrize(
    ("name", "version", "body"),
    [
        ("Heartbeat", 1, b"\0\0\0"),
        ("Heartbeat", 4, b""),
        ("Heartbeat", 4, b"\x7f" * 12),
        ("Heartbeat", FIRST["Heartbeat"][2] + 1, b"\0" * 12),
    ],
)
def test_what_does_not_parse_or_is_newer_stays(name: str, version: int, body: bytes) -> None:
    frame = (4 + len(body)).to_bytes(4, "big") + bytes(4) + body
    assert announced(name, version, 1000, frame) == frame
