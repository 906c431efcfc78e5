import pytest

from bench.attacks.attacker import address, client_id
from bench.attacks.catalogue import ATTACKS
from bench.attacks.quotas import attacker_quotas, in_yaml, key_and_value


def test_each_attacker_has_the_quotas_of_clients_and_its_address_that_of_addresses() -> None:
    quotas = in_yaml(attacker_quotas([("request_percentage", 1.0), ("connection_creation_rate", 5.0)]))
    assert {"entity": {"ip": address("metadata")}, "connection_creation_rate": 5.0} in quotas
    attacker = {"user": "<default>", "client-id": client_id("metadata")}
    assert {"entity": attacker, "request_percentage": 1.0} in quotas
    assert len(quotas) == 2 * len(ATTACKS)


def test_no_quotas() -> None:
    assert attacker_quotas([]) == []


def test_a_setting_is_a_key_and_a_number() -> None:
    assert key_and_value("request_percentage=1") == ("request_percentage", 1.0)
    with pytest.raises(ValueError, match="could not convert"):
        key_and_value("request_percentage")
