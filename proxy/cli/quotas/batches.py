"""Requests of a size that a broker takes.

Kafka's controller rejects a request that would write more than 10,000 records, one per key, and a broker that
is asked for less has an answer long before the client's patience ends.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from proxy.cli.quotas.changes import EntityAlteration

MAX_ENTITIES: Final = 1000
MAX_OPS: Final = 5000


def batches(
    entries: Iterable[EntityAlteration], max_entities: int = MAX_ENTITIES, max_ops: int = MAX_OPS
) -> Iterator[list[EntityAlteration]]:
    """The alterations in their order, cut into requests; one with more ops than `max_ops` goes alone."""
    batch: list[EntityAlteration] = []
    ops = 0
    for entry in entries:
        if batch and (len(batch) == max_entities or ops + len(entry.values) > max_ops):
            yield batch
            batch, ops = [], 0
        batch.append(entry)
        ops += len(entry.values)
    if batch:
        yield batch
