"""Produce v0-2 and Fetch v0-3 as frames, which kio no longer has; written from the protocol's own tables."""

from tests.support.messages.kio_messages import framed

Sizes = dict[str, dict[int, int]]
Records = dict[str, dict[int, bytes]]


def _int(value: int, size: int) -> bytes:
    return value.to_bytes(size, "big", signed=True)


def _string(value: str | None) -> bytes:
    return _int(-1, 2) if value is None else _int(len(value.encode()), 2) + value.encode()


def _bytes(value: bytes) -> bytes:
    return _int(len(value), 4) + value


def _array(elements: list[bytes]) -> bytes:
    return _int(len(elements), 4) + b"".join(elements)


def _request(api_key: int, version: int, correlation_id: int, client_id: str | None, body: bytes) -> bytes:
    header = _int(api_key, 2) + _int(version, 2) + _int(correlation_id, 4) + _string(client_id)
    return framed(header + body)


def produce_request(
    version: int, correlation_id: int, client_id: str | None, acks: int, topics: Records
) -> bytes:
    """acks, timeout_ms, [name, [index, records]]; v0-2."""
    assert 0 <= version <= 2
    data = [
        _string(name) + _array([_int(index, 4) + _bytes(records) for index, records in partitions.items()])
        for name, partitions in topics.items()
    ]
    return _request(0, version, correlation_id, client_id, _int(acks, 2) + _int(30_000, 4) + _array(data))


def produce_response(version: int, correlation_id: int, topics: Sizes, throttle_ms: int = 0) -> bytes:
    """[name, [index, error_code, base_offset, v2: log_append_time_ms]], v1: throttle_time_ms; v0-2."""
    assert 0 <= version <= 2
    time = _int(-1, 8) if version >= 2 else b""
    data = [
        _string(name)
        + _array([_int(index, 4) + _int(0, 2) + _int(at, 8) + time for index, at in partitions.items()])
        for name, partitions in topics.items()
    ]
    throttle = _int(throttle_ms, 4) if version >= 1 else b""
    return framed(_int(correlation_id, 4) + _array(data) + throttle)


def fetch_request(
    version: int,
    correlation_id: int,
    topics: Sizes,
    min_bytes: int = 1,
    max_bytes: int = 0,
    offset: int = 77,
) -> bytes:
    """replica_id, max_wait_ms, min_bytes, v3: max_bytes, [name, [index, offset, partition_max_bytes]]."""
    assert 0 <= version <= 3
    data = [
        _string(name)
        + _array([_int(index, 4) + _int(offset, 8) + _int(most, 4) for index, most in partitions.items()])
        for name, partitions in topics.items()
    ]
    head = _int(-1, 4) + _int(500, 4) + _int(min_bytes, 4)
    if version >= 3:
        head += _int(max_bytes, 4)
    return _request(1, version, correlation_id, "client", head + _array(data))


def fetch_response(version: int, correlation_id: int, topics: Records, throttle_ms: int = 0) -> bytes:
    """v1: throttle_time_ms, [name, [index, error_code, high_watermark, records]]; v0-3."""
    assert 0 <= version <= 3
    data = [
        _string(name)
        + _array(
            [
                _int(index, 4) + _int(0, 2) + _int(9, 8) + _bytes(records)
                for index, records in partitions.items()
            ]
        )
        for name, partitions in topics.items()
    ]
    throttle = _int(throttle_ms, 4) if version >= 1 else b""
    return framed(_int(correlation_id, 4) + throttle + _array(data))
