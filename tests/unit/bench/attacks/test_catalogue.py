import pytest

from bench.attacks.catalogue import ATTACKS, Target

TARGET = Target(0, "topic", bytes(range(16)))


@pytest.mark.parametrize("name", ATTACKS)
def test_every_attack_makes_requests(name: str) -> None:
    flood = ATTACKS[name](TARGET)
    assert (flood.tls_handshakes or flood.connections == 0) == (not flood.requests)
    assert ATTACKS[name].__doc__
