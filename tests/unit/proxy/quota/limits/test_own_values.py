"""OwnValues: the numbers that topics or brokers have set, in order and in all."""

from random import Random

import pytest

from proxy.quota.limits.own_values import OwnValues


def test_values_that_nothing_has_changed() -> None:
    values = OwnValues({"a": "5", "b": "7", "c": "6"}, largest=True)
    assert (values.total, values.count, values.get("b"), values.get("d")) == (18, 3, 7, None)
    assert values.first(2) == [(7, "b"), (6, "c")]
    assert values.first(9) == [(7, "b"), (6, "c"), (5, "a")]


@pytest.mark.parametrize("largest", [True, False])
def test_changed_values_are_in_order(largest: bool) -> None:
    random = Random(largest)
    expected = {f"n{number}": number for number in range(20)}
    values = OwnValues({name: str(value) for name, value in expected.items()}, largest=largest)
    sign = -1 if largest else 1
    for _ in range(1000):
        name, value = f"n{random.randrange(30)}", random.choice([None, random.randrange(12)])
        values.put(name, value)
        expected.pop(name, None)
        if value is not None:
            expected[name] = value
        assert values.get(name) == value
        assert (values.total, values.count) == (sum(expected.values()), len(expected))
        if random.random() < 0.5:
            ordered = sorted((sign * number, name) for name, number in expected.items())
            assert values.first(3) == [(sign * number, name) for number, name in ordered[:3]]


def test_large_numbers_are_exact() -> None:
    values = OwnValues({"a": str(2**63 - 1)}, largest=True)
    for number in range(100):
        values.put(f"n{number}", 1)
    assert values.total == 2**63 + 99
