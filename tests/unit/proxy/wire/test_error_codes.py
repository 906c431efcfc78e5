from kio.schema.errors import ErrorCode

from proxy.wire.error_codes import UNSUPPORTED_VERSION


def test_the_codes_are_kafkas():
    assert ErrorCode.unsupported_version.value == UNSUPPORTED_VERSION
