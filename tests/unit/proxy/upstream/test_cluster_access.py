"""ClusterAccess: what clients of the cluster get from it."""

from dataclasses import replace

import pytest

from proxy.errors import UpstreamUnavailable
from proxy.upstream.cluster_access import FAILED_AT_MOST, ClusterAccess
from tests.support.process.metadata_broker import MetadataBroker


def test_aiokafka_gets_ipv6_addresses_in_brackets() -> None:
    cluster = ClusterAccess((("fd00::1", 9092), ("k", 9093)), 5.0)
    arguments = cluster.for_aiokafka()
    assert arguments["bootstrap_servers"] == ["[fd00::1]:9092", "k:9093"]
    assert arguments["security_protocol"] == "PLAINTEXT"


def test_brokers_of_the_metadata_come_before_those_of_the_settings() -> None:
    now = [("k", 9094)]
    cluster = ClusterAccess((("k", 9092), ("k", 9093)), 5.0, known=lambda: now)
    assert cluster.addresses == [("k", 9094), ("k", 9092), ("k", 9093)]
    now += [("k", 9093), ("", 9095), ("a]b", 9096)]
    servers = cluster.for_aiokafka()["bootstrap_servers"]
    assert servers == ["k:9094", "k:9093", "k:9092"], "each once, and none that cannot be one"


async def test_brokers_that_failed_are_tried_last_by_all_parts_until_they_respond() -> None:
    async with MetadataBroker() as broker:
        closed, open_, other = ("127.0.0.1", 1), broker.address, ("127.0.0.1", 2)
        cluster = ClusterAccess((closed, open_), 5.0)
        part = replace(cluster, known=lambda: [other])
        (await cluster.connect(cluster.addresses)).close()
        assert part.addresses == [other, open_, closed]
        part.note_failure(other)
        part.note_failure(open_)
        part.note_failure(None)
        assert cluster.addresses == [closed, open_]
        (await cluster.connect([open_])).close()
        assert part.addresses == [open_, other, closed]
        assert cluster.for_aiokafka()["bootstrap_servers"] == [f"127.0.0.1:{open_[1]}"], "it shuffles them"
        part.note_failure(open_)
        assert len(part.for_aiokafka()["bootstrap_servers"]) == 3, "all, because all have failed"


async def test_addresses_that_a_hostile_broker_makes_up_do_not_add_up() -> None:
    cluster = ClusterAccess((), 5.0)
    for number in range(2 * FAILED_AT_MOST):
        cluster.note_failure((f"broker-{number}", 9092))
    with pytest.raises(UpstreamUnavailable):
        await cluster.connect([("127.0.0.1", 1)])
    assert cluster.failed == {("127.0.0.1", 1)}
