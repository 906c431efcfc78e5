import pytest

from proxy.admin.messages.fields import frame, open_request, open_response, read_nullable, write_nullable
from proxy.wire.apis.api import read_request_header
from proxy.wire.errors import Malformed
from proxy.wire.reader import Reader
from tests.support.messages.kio_messages import LENGTH, request_frame
from tests.support.messages.mutations import create_topics


@pytest.mark.parametrize("client_id", [None, "", "client", "ü" * 300])
@pytest.mark.parametrize(("version", "flexible"), [(4, False), (5, True)])
def test_reader_of_a_request_stands_at_the_body(client_id: str | None, version: int, flexible: bool) -> None:
    payload = request_frame(create_topics({"a": 1, "b": 1}, version), 7, client_id)[LENGTH:]
    header = read_request_header(Reader([payload]))
    assert open_request(header, payload, flexible).count(flexible) == 2


def test_request_without_a_body_is_malformed() -> None:
    payload = request_frame(create_topics({}), 7, "client")[LENGTH:]
    header = read_request_header(Reader([payload]))
    with pytest.raises(Malformed):
        open_request(header, payload[: header.size], True)


def test_reader_of_a_response_stands_at_the_body() -> None:
    assert open_response(b"\0\0\0\7" + b"\0" + b"\5", True).u8() == 5
    assert open_response(b"\0\0\0\7" + b"\5", False).u8() == 5


@pytest.mark.parametrize("flexible", [False, True])
@pytest.mark.parametrize("value", [None, "", "x", "ü" * 200])
def test_nullable_string_round_trip(value: str | None, flexible: bool) -> None:
    assert read_nullable(Reader([write_nullable(value, flexible)]), flexible) == value


def test_frame_has_its_length_in_front() -> None:
    assert frame([b"ab", b"", b"c"]) == b"\0\0\0\3abc"
