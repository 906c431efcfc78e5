import pytest
from kio.schema.errors import ErrorCode

from proxy.wire.apis.sasl_apis import MAX_ERROR_MESSAGE, SASL_AUTHENTICATE, authentication_failed
from tests.support.messages.kio_messages import read_frame, response_frame, response_type, versions


@pytest.mark.parametrize("version", versions(SASL_AUTHENTICATE.key))
@pytest.mark.parametrize("why", ["no", "李" * 100_000])
def test_a_rejection(version: int, why: str) -> None:
    frame = authentication_failed(7, version, why)
    response = read_frame(response_type(SASL_AUTHENTICATE.key, version), frame)
    assert response_frame(response, 7) == frame
    assert response.error_code is ErrorCode.sasl_authentication_failed
    assert response.error_message == why[:MAX_ERROR_MESSAGE]
    assert response.auth_bytes == b""
