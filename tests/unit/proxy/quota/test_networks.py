import re

import pytest

from proxy.quota.networks import (
    REMEMBERED_AT_MOST,
    Networks,
    canonical_address,
    canonical_network,
    networks_around,
    one_spelling,
    prefix_lengths,
)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("2001:DB8:0:0::1", "2001:db8::1"),
        ("::1", "::1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("fe80::1%eth0", "fe80::1"),
    ],
)
def test_an_address_has_one_spelling(text: str, address: str) -> None:
    assert canonical_address(text) == one_spelling(text) == address


@pytest.mark.parametrize("text", ["localhost", "", "10.0.0", "10.0.0.256", "10.0.0.1/32", "?"])
def test_text_that_is_not_an_address_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(repr(text))):
        canonical_address(text)
    assert one_spelling(text) == text


@pytest.mark.parametrize(
    ("text", "network"),
    [
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("10.0.0.0/255.255.0.0", "10.0.0.0/16"),
        ("10.0.0.1", "10.0.0.1/32"),
        ("0.0.0.0/0", "0.0.0.0/0"),
        ("2001:DB8::/32", "2001:db8::/32"),
        ("::1", "::1/128"),
        ("::/0", "::/0"),
        ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
        ("::ffff:0.0.0.0/96", "0.0.0.0/0"),
    ],
)
def test_a_network_has_one_spelling(text: str, network: str) -> None:
    assert canonical_network(text) == network


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("localhost/8", "'localhost/8'"),
        ("10.0.0.0/33", "'10.0.0.0/33'"),
        ("10.0.0.1/8", "the network is 10.0.0.0/8"),
        ("2001:db8::1/32", "the network is 2001:db8::/32"),
    ],
)
def test_text_that_is_not_a_network_is_rejected(text: str, cause: str) -> None:
    with pytest.raises(ValueError, match=re.escape(cause)):
        canonical_network(text)


@pytest.mark.parametrize(
    ("address", "lengths", "around"),
    [
        ("10.1.2.3", [32, 24, 12, 0], ["10.1.2.3/32", "10.1.2.0/24", "10.0.0.0/12", "0.0.0.0/0"]),
        ("10.1.2.3", [128, 64, 8], ["10.0.0.0/8"]),
        ("2001:db8::1", [128, 32, 0], ["2001:db8::1/128", "2001:db8::/32", "::/0"]),
        ("::1", [8], ["::/8"]),
        ("::ffff:10.1.2.3", [16], ["10.1.0.0/16"]),
        ("10.1.2.3", [], []),
        ("?", [8], []),
    ],
)
def test_the_networks_around_an_address(address: str, lengths: list[int], around: list[str]) -> None:
    assert networks_around(address, lengths) == around


def test_lengths_are_the_longest_first_and_each_once() -> None:
    assert prefix_lengths({"10.0.0.0/8", "::/0", "11.0.0.0/8", "10.0.0.1/32"}) == [32, 8, 0]


@pytest.mark.parametrize(
    ("address", "inside"),
    [
        ("10.0.0.1", True),
        ("10.255.255.255", True),
        ("11.0.0.0", False),
        ("192.168.0.7", True),
        ("192.168.0.8", False),
        ("::ffff:10.0.0.1", True),
        ("2001:db8::5%eth0", True),
        ("2001:db9::5", False),
        ("?", False),
    ],
)
def test_an_address_is_in_the_set_or_not(address: str, inside: bool) -> None:
    networks = Networks(["10.0.0.0/8", "192.168.0.7", "2001:db8::/32"])
    assert networks.contain(address) == inside
    assert networks.contain(address) == inside


def test_nothing_is_in_an_empty_set() -> None:
    assert not Networks([]).contain("10.0.0.1")


def test_a_set_takes_networks_only() -> None:
    with pytest.raises(ValueError, match="'localhost'"):
        Networks(["10.0.0.0/8", "localhost"])


def test_the_remembered_addresses_are_bounded() -> None:
    networks = Networks(["10.0.0.0/8"])
    for number in range(REMEMBERED_AT_MOST + 1):
        networks.contain(f"name {number}")
    assert len(networks._remembered) == 1
