from kio.schema.errors import ErrorCode

from proxy.relay.requests.unsupported_version import unsupported_api_versions
from tests.support.messages.kio_messages import read_frame, response_type


def test_a_version_that_is_too_new_gets_the_oldest_form() -> None:
    """Kafka's clients read error 35 in v0's form whatever version they asked with (KIP-511)."""
    frame = unsupported_api_versions(0x01020304, 0, 4)
    assert frame[4:8] == b"\1\2\3\4"
    message = read_frame(response_type(18, 0), frame)
    assert message.error_code is ErrorCode.unsupported_version
    (key,) = message.api_keys
    assert (key.api_key, key.min_version, key.max_version) == (18, 0, 4)


def test_a_correlation_id_below_zero() -> None:
    assert unsupported_api_versions(-1, 0, 4)[4:8] == b"\xff\xff\xff\xff"
