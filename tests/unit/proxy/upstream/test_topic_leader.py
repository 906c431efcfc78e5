"""until_it_responds(): a leader that hangs, one that returns, and one that is elected meanwhile."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator

import pytest

from proxy.errors import UpstreamUnavailable
from proxy.upstream import topic_leader
from proxy.upstream.broker_connection import BrokerConnection
from proxy.upstream.cluster_access import ClusterAccess
from proxy.upstream.topic_leader import leader_of, look_up, until_it_responds
from tests.support.process.metadata_broker import MetadataBroker
from tests.support.waiting import reached

Address = tuple[str, int]
LEADER = 2
"""The node id of the leader; that of the broker that is asked is 1."""


@pytest.fixture
async def broker() -> AsyncIterator[MetadataBroker]:
    async with MetadataBroker() as broker:
        yield broker


@pytest.fixture
async def connection(broker: MetadataBroker) -> AsyncIterator[BrokerConnection]:
    connection = await BrokerConnection.open(*broker.address)
    yield connection
    connection.close()


@pytest.fixture
def hung() -> Iterator[Address]:
    """The address of a broker that accepts connections and does not respond."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()


def lead(broker: MetadataBroker, address: Address) -> None:
    """Have the broker name this leader of the first partition."""
    broker.others = {LEADER: address}
    broker.partitions = [(LEADER, (LEADER,), (LEADER,))]


async def test_the_leader_is_that_of_the_first_partition(
    broker: MetadataBroker, connection: BrokerConnection
) -> None:
    assert leader_of(*await look_up(connection, "orders")) == broker.address
    broker.partitions.reverse()
    assert leader_of(*await look_up(connection, "orders")) is None
    broker.partitions.clear()
    assert leader_of(*await look_up(connection, "orders")) is None


async def test_a_leader_that_responds_has_not_failed(
    broker: MetadataBroker, connection: BrokerConnection
) -> None:
    async with MetadataBroker() as other:
        lead(broker, other.address)
        cluster = ClusterAccess((broker.address,), 30.0, failed={other.address})
        await until_it_responds(other.address, connection, "orders", cluster)
        assert not cluster.failed


async def test_a_leader_that_does_not_respond(
    broker: MetadataBroker, connection: BrokerConnection, hung: Address
) -> None:
    lead(broker, hung)
    cluster = ClusterAccess((broker.address,), 0.2)
    with pytest.raises(UpstreamUnavailable, match=rf"its leader .*:{hung[1]}: no response"):
        await until_it_responds(hung, connection, "orders", cluster)
    assert cluster.failed == {hung}


@pytest.mark.parametrize("elected", [True, False])
async def test_a_new_leader_is_found_while_the_old_one_hangs(
    broker: MetadataBroker,
    connection: BrokerConnection,
    hung: Address,
    elected: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Or that there is none any more."""
    monkeypatch.setattr(topic_leader, "LOOK_SECONDS", 0.01)
    lead(broker, hung)
    cluster = ClusterAccess((broker.address,), 600.0, failed={hung})
    waiting = asyncio.ensure_future(until_it_responds(hung, connection, "orders", cluster))
    await reached(lambda: len(broker.asked) > 1, "two looks for a new leader")
    assert not waiting.done()
    broker.partitions = [(1 if elected else -1, (1, LEADER), (1,))]
    await asyncio.wait_for(waiting, 60)
    assert cluster.failed == {hung}
