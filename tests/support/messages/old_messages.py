"""Produce v0-2 and Fetch v0-3 as frames, which kio lacks. Source: the tables of Kafka's protocol guide."""

from tests.support.messages.kio_messages import framed

Sizes = dict[str, dict[int, int]]
Records = dict[str, dict[int, bytes]]


def number(value: int, size: int) -> bytes:
    return value.to_bytes(size, "big", signed=True)


def string(value: str | None) -> bytes:
    return number(-1, 2) if value is None else number(len(value.encode()), 2) + value.encode()


def length_and(value: bytes) -> bytes:
    return number(len(value), 4) + value


def array(elements: list[bytes]) -> bytes:
    return number(len(elements), 4) + b"".join(elements)


def request(api_key: int, version: int, correlation_id: int, client_id: str | None, body: bytes) -> bytes:
    header = number(api_key, 2) + number(version, 2) + number(correlation_id, 4) + string(client_id)
    return framed(header + body)


def produce_request(
    version: int, correlation_id: int, client_id: str | None, acks: int, topics: Records
) -> bytes:
    """acks, timeout_ms, [name, [index, records]]; v0-2."""
    assert 0 <= version <= 2
    data = [
        string(name) + array([number(index, 4) + length_and(records) for index, records in parts.items()])
        for name, parts in topics.items()
    ]
    return request(0, version, correlation_id, client_id, number(acks, 2) + number(30_000, 4) + array(data))


def produce_response(
    version: int, correlation_id: int, topics: Sizes, throttle_ms: int = 0, error_code: int = 0
) -> bytes:
    """[name, [index, error_code, base_offset, v2: log_append_time_ms]], v1: throttle_time_ms; v0-2."""
    assert 0 <= version <= 2
    time = number(-1, 8) if version >= 2 else b""
    data = [
        string(name)
        + array(
            [number(index, 4) + number(error_code, 2) + number(at, 8) + time for index, at in parts.items()]
        )
        for name, parts in topics.items()
    ]
    throttle = number(throttle_ms, 4) if version >= 1 else b""
    return framed(number(correlation_id, 4) + array(data) + throttle)


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
        string(name)
        + array([number(index, 4) + number(offset, 8) + number(most, 4) for index, most in parts.items()])
        for name, parts in topics.items()
    ]
    head = number(-1, 4) + number(500, 4) + number(min_bytes, 4)
    if version >= 3:
        head += number(max_bytes, 4)
    return request(1, version, correlation_id, "client", head + array(data))


def fetch_response(version: int, correlation_id: int, topics: Records, throttle_ms: int = 0) -> bytes:
    """v1: throttle_time_ms, [name, [index, error_code, high_watermark, records]]; v0-3."""
    assert 0 <= version <= 3
    data = [
        string(name)
        + array(
            [
                number(index, 4) + number(0, 2) + number(9, 8) + length_and(records)
                for index, records in parts.items()
            ]
        )
        for name, parts in topics.items()
    ]
    throttle = number(throttle_ms, 4) if version >= 1 else b""
    return framed(number(correlation_id, 4) + throttle + array(data))
