"""HOST:PORT as text, in both directions."""

import pytest

from proxy.upstream.addresses import is_address, join_address, split_address


@pytest.mark.parametrize("text", ["k:9092", "10.0.0.7:1", "[fd00::1]:9092", "[::ffff:10.0.0.7]:65535"])
def test_both_directions_agree(text: str) -> None:
    assert join_address(*split_address(text)) == text
    assert is_address(text)


def test_address_may_be_ipv6() -> None:
    assert split_address("[fd00::1]:9092") == ("fd00::1", 9092)


@pytest.mark.parametrize(
    "address", ["k", "k:", ":9092", "k:0", "k:65536", "k:x", "http://k:9092", "::1:9092", "a b:1"]
)
def test_address_has_a_host_and_a_port(address: str) -> None:
    with pytest.raises(ValueError, match="HOST:PORT"):
        split_address(address)
    assert not is_address(address)
