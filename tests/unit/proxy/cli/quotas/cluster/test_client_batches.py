"""Alterations are split into requests that are bounded in entities and in ops."""

import pytest

from proxy.cli.quotas.changes import EntityAlteration
from proxy.cli.quotas.cluster.client import MAX_OPS, batches

CONTROLLER_RECORDS = 10_000
"""Kafka's controller returns POLICY_VIOLATION for a request that writes more."""


def entry(number: int, ops: int = 1) -> EntityAlteration:
    return EntityAlteration((("user", str(number)),), {f"key-{op}": 1.0 for op in range(ops)})


@pytest.mark.parametrize(("count", "sizes"), [(0, []), (1, [1]), (3, [3]), (4, [3, 1]), (7, [3, 3, 1])])
def test_requests_are_bounded_in_entities(count: int, sizes: list[int]) -> None:
    entries = [entry(number) for number in range(count)]
    cut = list(batches(entries, max_entities=3))
    assert [len(batch) for batch in cut] == sizes
    assert [one for batch in cut for one in batch] == entries


def test_requests_are_bounded_in_ops() -> None:
    entries = [entry(number, ops=2) for number in range(5)]
    assert [len(batch) for batch in batches(entries, max_ops=5)] == [2, 2, 1]


def test_entity_with_more_ops_than_the_bound_is_sent_alone() -> None:
    entries = [entry(1), entry(2, ops=9), entry(3)]
    assert [len(batch) for batch in batches(entries, max_ops=5)] == [1, 1, 1]


def test_bound_is_below_that_of_the_controller() -> None:
    assert MAX_OPS <= CONTROLLER_RECORDS / 2
