"""Requests that a broker takes: bounded in entities and in ops."""

import pytest

from proxy.cli.quotas.batches import MAX_OPS, batches
from proxy.cli.quotas.changes import EntityAlteration

CONTROLLER_RECORDS = 10_000
"""Kafka's controller answers POLICY_VIOLATION to a request that writes more."""


def entry(number: int, ops: int = 1) -> EntityAlteration:
    return EntityAlteration((("user", str(number)),), {f"key-{op}": 1.0 for op in range(ops)})


@pytest.mark.parametrize(("count", "sizes"), [(0, []), (1, [1]), (3, [3]), (4, [3, 1]), (7, [3, 3, 1])])
def test_as_many_entities_as_may_go_together(count: int, sizes: list[int]) -> None:
    entries = [entry(number) for number in range(count)]
    cut = list(batches(entries, max_entities=3))
    assert [len(batch) for batch in cut] == sizes
    assert [one for batch in cut for one in batch] == entries


def test_as_many_ops_as_may_go_together() -> None:
    entries = [entry(number, ops=2) for number in range(5)]
    assert [len(batch) for batch in batches(entries, max_ops=5)] == [2, 2, 1]


def test_an_entity_with_more_ops_goes_alone() -> None:
    entries = [entry(1), entry(2, ops=9), entry(3)]
    assert [len(batch) for batch in batches(entries, max_ops=5)] == [1, 1, 1]


def test_the_controller_s_limit_is_far() -> None:
    assert MAX_OPS <= CONTROLLER_RECORDS / 2
