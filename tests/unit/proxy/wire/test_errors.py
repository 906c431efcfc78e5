import pytest

from proxy.wire.errors import FrameTooLarge, Malformed, ProtocolError, Short, UnsupportedVersion


@pytest.mark.parametrize("error", [Malformed, Short, UnsupportedVersion])
def test_whatever_is_wrong_with_bytes_is_a_protocol_error(error: type[ProtocolError]) -> None:
    assert issubclass(error, ProtocolError)
    assert str(error("what is wrong")) == "what is wrong"


def test_short_is_malformed_for_a_frame_that_is_whole() -> None:
    assert issubclass(Short, Malformed)


def test_a_frame_that_is_too_large_shows_its_head() -> None:
    error = FrameTooLarge("too large", b"GET ")
    assert isinstance(error, ProtocolError)
    assert not isinstance(error, Malformed)
    assert (str(error), error.head) == ("too large", b"GET ")
