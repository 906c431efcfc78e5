"""What the attacks send."""

import pytest

from bench.attacks import frames
from proxy.wire.apis.api import read_request_header
from proxy.wire.reader import Reader
from tests.support.messages.kio_messages import read_frame, request_type


@pytest.mark.parametrize("frame", [
    frames.alter_client_quotas(3),
    frames.describe_client_quotas(3),
    frames.fetch("topic", 3),
    frames.metadata(["a", "b"]),
    frames.list_offsets("topic", 3),
    frames.offset_for_leader_epoch("topic", 3),
    frames.delete_records("topic", 3),
    frames.init_producer_id("id"),
    frames.add_partitions_to_txn("id", "topic", 3),
    frames.end_txn("id"),
    frames.share_fetch("group", "AAAAAAAAAAAAAAAAAAAAAQ", 0),
    frames.share_acknowledge("group", "AAAAAAAAAAAAAAAAAAAAAQ", bytes(range(16)), 200),
    frames.produce("topic", 0, b"", "neighbour"),
    frames.create_topics(["a", "b"]),
    frames.incremental_alter_configs(["a", "b"]),
    frames.heartbeat("group"),
    frames.join_group("group"),
    frames.consumer_group_heartbeat("group", ["a", "b"]),
    frames.push_telemetry(300),
])  # fmt: skip
def test_frames_are_kafkas(frame: bytes) -> None:
    """kio reads them to their end."""
    header = read_request_header(Reader([frame], 4))
    read_frame(request_type(header.api_key, header.api_version), frame)
    assert len(frame) == 4 + int.from_bytes(frame[:4], "big")


@pytest.mark.parametrize("client_id", ["", "attacker-of-a-kind"])
def test_another_client_id(client_id: str) -> None:
    frame = frames.sent_by(frames.push_telemetry(300), client_id)
    header = read_request_header(Reader([frame], 4))
    assert header.raw_client_id == client_id.encode()
    read_frame(request_type(header.api_key, header.api_version), frame)
    assert len(frame) == 4 + int.from_bytes(frame[:4], "big")
