import math

import pytest

from proxy.quota.identity import DEFAULT, Identity, QuotaEntity
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import LONG
from proxy.quota.quota import DOUBLE, INT, Quota, QuotaKey
from proxy.quota.verdict import ALLOW
from proxy.wire.views import RequestView, ResponseView


@pytest.mark.parametrize(
    ("type", "value"),
    [
        (LONG, 1),
        (LONG, 1048576.0),
        (LONG, 5.0000001),
        (LONG, 2**63 - 1),
        (LONG, float(2**63 - 1)),
        (INT, 2**31 - 1),
        (DOUBLE, 0.01),
        (DOUBLE, 1e300),
    ],
)
def test_a_value_that_kafka_takes_is_fine(type: str, value: float) -> None:
    assert QuotaKey("q", type).problem(value) == ""


@pytest.mark.parametrize(
    ("type", "value", "sentence"),
    [
        (LONG, 0, "q is 0; it must be greater than 0"),
        (DOUBLE, -0.5, "q is -0.5; it must be greater than 0"),
        (DOUBLE, math.nan, "q is nan; it must be greater than 0"),
        (DOUBLE, math.inf, "q is inf; it is too large for Kafka's DOUBLE"),
        (LONG, 4.9999999, "q is 4.9999999; it must be a whole number"),
        (LONG, 1.5, "q is 1.5; it must be a whole number"),
        (INT, 1.00001, "q is 1.00001; it must be a whole number"),
        (INT, 2**31, "q is 2147483648; it is too large for Kafka's INT"),
        (LONG, 1e19, "q is 1e+19; it is too large for Kafka's LONG"),
        (LONG, 10**400, f"q is {10**400}; it is too large for Kafka's LONG"),
        (DOUBLE, 10**400, f"q is {10**400}; it is too large for Kafka's DOUBLE"),
        (LONG, "10", "q is '10'; it must be a number greater than 0"),
        (LONG, True, "q is True; it must be a number greater than 0"),
        (DOUBLE, None, "q is None; it must be a number greater than 0"),
    ],
)
def test_an_invalid_value_is_rejected(type: str, value: str | bool | float | None, sentence: str) -> None:
    assert QuotaKey("q", type).problem(value) == sentence


@pytest.mark.parametrize(
    ("for_ip", "entity", "sentence"),
    [
        (False, QuotaEntity("u", None), ""),
        (False, QuotaEntity(None, DEFAULT), ""),
        (True, QuotaEntity(None, None, "10.0.0.1"), ""),
        (True, QuotaEntity(None, None, DEFAULT), ""),
        (
            True,
            QuotaEntity("u", DEFAULT),
            "q is a quota of an ip; user u, client-id <default> cannot have it",
        ),
        (
            False,
            QuotaEntity(None, None, DEFAULT),
            "q is a quota of users and client ids; ip <default> cannot have it",
        ),
    ],
)
def test_a_quota_is_one_of_clients_or_one_of_addresses(
    for_ip: bool, entity: QuotaEntity, sentence: str
) -> None:
    assert QuotaKey("q", LONG, for_ip=for_ip).misplaced(entity) == sentence


def test_the_base_class_allows_everything() -> None:
    quota, who = Quota((0,)), Identity("u", "c", "127.0.0.1")
    request = RequestView(0, 9, 1, "c", 100)
    quota.configure(Limits({}), 0.0)
    assert quota.connect("127.0.0.1", 0.0) is ALLOW
    assert quota.admit(request, who, 0.0) is ALLOW
    assert quota.charge(request, ResponseView(9, True, 50), who, 0.0) is ALLOW
    assert not quota.forget_idle(0.0)
    assert quota.live() == []
    assert quota.active
