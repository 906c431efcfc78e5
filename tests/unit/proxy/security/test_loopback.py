import pytest

from proxy.security.loopback import is_loopback


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("example.com", False),
        ("?", False),
    ],
)
def test_whose_address_it_is(host: str, own: bool) -> None:
    assert is_loopback(host) is own
