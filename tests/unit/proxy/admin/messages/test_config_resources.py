import pytest

from proxy.admin.messages.config_resources import (
    check_number,
    read_result_head,
    write_response_head,
    write_result_head,
)
from proxy.wire.errors import Malformed
from proxy.wire.reader import Reader


@pytest.mark.parametrize("flexible", [False, True])
@pytest.mark.parametrize("message", [None, "because"])
def test_result_head_round_trip(message: str | None, flexible: bool) -> None:
    head = write_result_head((2, "orders"), 40, message, flexible)
    reader = Reader([head])
    assert read_result_head(reader, flexible) == (40, (2, "orders"))
    assert reader.offset == len(head)


def test_response_head_has_tags_in_flexible_versions() -> None:
    assert write_response_head(7, 500, False) == b"\0\0\0\7" + b"\0\0\1\xf4"
    assert write_response_head(7, 500, True) == b"\0\0\0\7" + b"\0" + b"\0\0\1\xf4"


def test_a_number_beyond_the_bound_is_malformed() -> None:
    check_number(5, 5, "resources")
    with pytest.raises(Malformed, match="6 resources"):
        check_number(6, 5, "resources")
