from kio.schema.errors import ErrorCode

from proxy.wire.error_codes import THROTTLING_QUOTA_EXCEEDED, UNSUPPORTED_VERSION


def test_the_codes_are_kafkas() -> None:
    assert ErrorCode.unsupported_version.value == UNSUPPORTED_VERSION
    assert ErrorCode.throttling_quota_exceeded.value == THROTTLING_QUOTA_EXCEEDED
