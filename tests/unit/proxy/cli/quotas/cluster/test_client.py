"""QuotaClient with a broker that the test makes fail."""

import asyncio
from collections.abc import Sequence

import pytest
from kio.schema.errors import ErrorCode

from proxy.cli.quotas.changes import EntityAlteration
from proxy.cli.quotas.cluster.client import QuotaClient, QuotasRejected
from proxy.cli.quotas.cluster.retries import RejectedAlteration
from proxy.cli.quotas.entity import Entity
from proxy.errors import UpstreamUnavailable
from proxy.upstream.cluster_access import ClusterAccess
from proxy.upstream.failures import explain
from tests.unit.proxy.cli.quotas.fake_broker import ALTER, DESCRIBE, FakeBroker, Fault

ALICE: Entity = (("user", "alice"), ("client-id", None))
BOB: Entity = (("user", "bob"),)
PAUSES = (0.0, 0.0)


REQUEST_SECONDS = 10.0


def client_of(broker: FakeBroker) -> QuotaClient:
    return QuotaClient(
        ClusterAccess((("127.0.0.1", broker.port),), 5.0), request_seconds=REQUEST_SECONDS, pauses=PAUSES
    )


async def alter(client: QuotaClient, entries: Sequence[EntityAlteration]) -> list[RejectedAlteration]:
    return [rejection async for _, rejections in client.alter(entries) for rejection in rejections]


def many(count: int) -> list[EntityAlteration]:
    return [
        EntityAlteration((("user", f"user-{number}"),), {"producer_byte_rate": 1.0})
        for number in range(count)
    ]


async def test_alter_sets_and_removes(broker: FakeBroker) -> None:
    broker.quotas = {ALICE: {"consumer_byte_rate": 1.0}}
    async with client_of(broker) as client:
        entries = [
            EntityAlteration(ALICE, {"consumer_byte_rate": None, "request_percentage": 12.5}),
            EntityAlteration(BOB, {"producer_byte_rate": 2.0}),
        ]
        assert await alter(client, entries) == []
        assert await client.describe() == {
            ALICE: {"request_percentage": 12.5},
            BOB: {"producer_byte_rate": 2.0},
        }


async def test_lasting_quotas_are_requested_by_a_filter(broker: FakeBroker) -> None:
    broker.quotas = {ALICE: {"producer_byte_rate": 5.0}}
    async with client_of(broker) as client:
        # A plain broker is asked again, without the filter that it does not know.
        assert await client.describe_lasting() == broker.quotas
        broker.lasting = {ALICE: {"producer_byte_rate": 9.0}}
        assert await client.describe_lasting() == broker.lasting
        assert await client.describe() == broker.quotas
    assert [len(request.components) for request in broker.describes] == [1, 0, 1, 0]


async def test_rejected_request_for_lasting_quotas_raises(broker: FakeBroker) -> None:
    broker.describe_faults.append((ErrorCode.cluster_authorization_failed, None))
    async with client_of(broker) as client:
        with pytest.raises(QuotasRejected, match="CLUSTER_AUTHORIZATION_FAILED"):
            await client.describe_lasting()


async def test_describes_by_parts_or_exactly(broker: FakeBroker) -> None:
    user: Entity = (("user", "alice"),)
    broker.quotas = {entity: {"producer_byte_rate": 1.0} for entity in (ALICE, BOB, user)}
    async with client_of(broker) as client:
        assert set(await client.describe(user)) == {ALICE, user}
        assert set(await client.describe(user, exact=True)) == {user}
        assert set(await client.describe(ALICE)) == {ALICE}
    matches = [(part.match_type, part.match) for part in broker.describes[-1].components]
    assert matches == [(0, "alice"), (1, None)]


async def test_rejection_does_not_stop_the_rest(broker: FakeBroker) -> None:
    entries = many(2500)
    rejected = {entries[0].entity, entries[1700].entity}
    broker.fault = lambda entity: (ErrorCode.invalid_request, "no such key") if entity in rejected else None
    async with client_of(broker) as client:
        steps = [step async for step in client.alter(entries)]
    assert [settled for settled, _ in steps] == [1000, 2000, 2500]
    reason = "no such key (INVALID_REQUEST)"
    assert [rejections for _, rejections in steps] == [
        [RejectedAlteration(entries[0].entity, reason)],
        [RejectedAlteration(entries[1700].entity, reason)],
        [],
    ]
    assert len(broker.quotas) == 2498


async def test_retriable_entity_is_sent_again_alone(broker: FakeBroker) -> None:
    faults: list[Fault] = [(ErrorCode.not_controller, None)]
    broker.fault = lambda entity: faults.pop() if faults and entity == BOB else None
    entries = [
        EntityAlteration(ALICE, {"producer_byte_rate": 1.0}),
        EntityAlteration(BOB, {"producer_byte_rate": 2.0}),
    ]
    async with client_of(broker) as client:
        assert await alter(client, entries) == []
    assert set(broker.quotas) == {ALICE, BOB}
    assert [len(request.entries) for request in broker.alterations] == [2, 1]


async def test_entity_is_rejected_after_the_last_retry(broker: FakeBroker) -> None:
    broker.fault = lambda entity: (ErrorCode.coordinator_not_available, "the store is away")
    async with client_of(broker) as client:
        rejections = await alter(client, [EntityAlteration(BOB, {"producer_byte_rate": 2.0})])
    [rejection] = rejections
    assert rejection.entity == BOB
    assert "the store is away" in rejection.reason
    assert ErrorCode.coordinator_not_available.name.upper() in rejection.reason
    assert len(broker.alterations) == 1 + len(PAUSES)


async def test_entity_omitted_by_the_response_is_rejected(broker: FakeBroker) -> None:
    broker.forget = {BOB}
    async with client_of(broker) as client:
        entries = [
            EntityAlteration(ALICE, {"producer_byte_rate": 1.0}),
            EntityAlteration(BOB, {"producer_byte_rate": 2.0}),
        ]
        assert [rejection.entity for rejection in await alter(client, entries)] == [BOB]


async def test_lost_connection_is_reopened(broker: FakeBroker) -> None:
    drops = [True]
    broker.drop = lambda api_key: api_key == ALTER and bool(drops) and drops.pop()
    async with client_of(broker) as client:
        await client.describe()
        assert await alter(client, [EntityAlteration(BOB, {"producer_byte_rate": 2.0})]) == []
    assert broker.quotas == {BOB: {"producer_byte_rate": 2.0}}
    assert broker.connections == 2


async def test_requests_without_a_response_are_rejected_one_by_one(broker: FakeBroker) -> None:
    broker.drop = lambda api_key: api_key == ALTER
    async with client_of(broker) as client:
        await client.describe()
        rejections = await alter(client, many(1001))
    assert [rejection.entity for rejection in rejections] == [entry.entity for entry in many(1001)]
    assert {rejection.reason for rejection in rejections} == {explain(EOFError(), REQUEST_SECONDS)}


async def test_error_counts_the_entities_that_were_not_sent(broker: FakeBroker) -> None:
    def drop(api_key: int) -> bool:
        if api_key == ALTER and len(broker.alterations) == 1:
            broker.stop()
            return True
        return False

    broker.drop = drop
    async with client_of(broker) as client:
        await client.describe()
        with pytest.raises(UpstreamUnavailable, match="1500 of 2500"):
            await alter(client, many(2500))
    assert len(broker.quotas) == 1000


async def test_server_that_never_responded_is_not_retried(broker: FakeBroker) -> None:
    broker.drop = lambda api_key: api_key == DESCRIBE
    async with client_of(broker) as client:
        with pytest.raises(UpstreamUnavailable, match=r"\bTLS\b.*\bSASL\b"):
            await client.describe()
    assert broker.connections == 1


async def test_silent_server_times_out(broker: FakeBroker) -> None:
    release = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        await release.wait()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = QuotaClient(ClusterAccess((("127.0.0.1", port), ("127.0.0.1", broker.port)), 1.0))
    async with server, client:
        assert await client.describe() == {}
        release.set()


async def test_retriable_describe_is_retried(broker: FakeBroker) -> None:
    broker.describe_faults.append((ErrorCode.coordinator_load_in_progress, "reading the topic"))
    async with client_of(broker) as client:
        assert await client.describe() == {}


async def test_rejected_describe_raises(broker: FakeBroker) -> None:
    broker.describe_faults.append((ErrorCode.cluster_authorization_failed, None))
    async with client_of(broker) as client:
        with pytest.raises(QuotasRejected, match="CLUSTER_AUTHORIZATION_FAILED"):
            await client.describe()


async def test_error_names_every_address(broker: FakeBroker) -> None:
    broker.newest_version = 0
    closed = broker.port
    client = QuotaClient(ClusterAccess((("127.0.0.1", 1), ("127.0.0.1", closed)), 5.0))
    with pytest.raises(UpstreamUnavailable) as error:
        await client.__aenter__()
    assert "127.0.0.1:1: " in str(error.value)
    assert f"127.0.0.1:{closed}: " in str(error.value)
    assert "DescribeClientQuotas v1" in str(error.value)
