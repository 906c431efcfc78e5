import pytest

from proxy.wire.apis.api import Api, read_request_header
from proxy.wire.errors import Malformed
from proxy.wire.reader import Reader
from proxy.wire.views import RequestView, ResponseView
from tests.support.messages.kio_messages import Ports


def header(api_key: int, version: int, correlation_id: int, client_id: bytes) -> bytes:
    return (
        api_key.to_bytes(2, "big", signed=True)
        + version.to_bytes(2, "big", signed=True)
        + correlation_id.to_bytes(4, "big", signed=True)
        + client_id
    )


def test_a_header_reads_alike_however_it_is_split() -> None:
    data = header(0, 9, -7, b"\0\6gr\xc3\xbcn!") + b"rest"
    for first in range(len(data)):
        reader = Reader([data[:first], data[first:]])
        read = read_request_header(reader)
        assert (read.api_key, read.api_version, read.correlation_id) == (0, 9, -7)
        assert read.raw_client_id.decode() == "grün!"
        assert reader.offset == len(data) - len(b"rest"), "tags are left to the caller"


def test_a_null_client_id_reads_as_empty() -> None:
    assert read_request_header(Reader([header(18, 0, 1, b"\xff\xff")])).raw_client_id == b""


@pytest.mark.parametrize(("api_key", "version"), [(-1, 0), (0, -1), (-32768, -1)])
def test_negative_numbers_are_malformed(api_key: int, version: int) -> None:
    with pytest.raises(Malformed, match=f"api_key {api_key} and api_version {version}"):
        read_request_header(Reader([header(api_key, version, 1, b"\0\0")]))


def test_an_api_that_overrides_nothing_wants_nothing() -> None:
    api = Api()
    request = RequestView(50, 0, 1, "", 0)
    api.read_request(Reader([b""]), request)
    response = ResponseView(0, False, 0)
    api.read_response(Reader([b""]), request, response, Ports())
    assert (request.cursor.done, response.cursor.done) == (True, True)


def test_the_response_header_has_tags_from_the_first_flexible_version_on() -> None:
    api = Api()
    api.flexible_from = 9
    assert [api.flexible_response_header(version) for version in (0, 8, 9, 10)] == [False, False, True, True]
