"""SessionPartition: the entry that the broker gets for it."""

import pytest

from proxy.quota.fetch.consumer_plan import ConsumerItem
from proxy.relay.fetch.partition import PROBE_BYTES, SessionPartition
from proxy.wire.fetch.request import NO_BOUND, with_max_bytes
from proxy.wire.fetch.rewrite import Watermarks
from tests.support.messages.reading import read_fetch
from tests.support.stories.fetching import HOT, fetch

VERSION = 12


def partition(leader_epoch: int = 3) -> SessionPartition:
    [entry] = read_fetch(fetch(1, {(HOT, 0): 10}, VERSION, leader_epoch=leader_epoch)).entries
    return SessionPartition(entry)


def test_without_a_quota_the_broker_gets_the_client_s_entry() -> None:
    found = partition()
    assert found.raw(VERSION) == found.entry.raw
    assert (found.at_broker, found.most, found.probed, found.omitted) == (True, NO_BOUND, False, False)


# whether it is omitted, its bound, the partition_max_bytes for the broker
BOUNDS = [(False, NO_BOUND, None), (False, 500, 500), (True, NO_BOUND, PROBE_BYTES), (True, 500, PROBE_BYTES)]


@pytest.mark.parametrize(("omitted", "bound", "most"), BOUNDS)
def test_an_omitted_partition_is_probed_and_a_bound_is_its_partition_max_bytes(
    omitted: bool, bound: int, most: int | None
) -> None:
    found = partition()
    found.item = ConsumerItem(HOT, 0, Watermarks())
    found.item.omitted = omitted
    found.item.bound = bound
    raw = found.entry.raw
    assert found.raw(VERSION) == (raw if most is None else with_max_bytes(raw, VERSION, most))
    assert (found.omitted, found.probed) == (omitted, omitted)


def test_watermarks_of_another_leader_epoch_are_outdated() -> None:
    found = partition(leader_epoch=4)
    found.marks = Watermarks()
    found.marks.leader_epoch = 3
    found.raw(VERSION)
    assert (found.marks.leader_epoch, found.marks.outdated) == (4, True)
