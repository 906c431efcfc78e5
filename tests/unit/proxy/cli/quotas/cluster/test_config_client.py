"""ConfigClient with a server that the test makes fail."""

from kio.schema.errors import ErrorCode

from proxy.admin.messages.client_quotas import EXPIRES_AT_MS
from proxy.cli.quotas.changes import EntityAlteration
from proxy.cli.quotas.cluster.client import QuotaClient
from proxy.cli.quotas.cluster.config_client import ConfigClient
from proxy.cli.quotas.cluster.retries import RejectedAlteration
from proxy.store.layer_report import ConfigReport
from proxy.upstream.cluster_access import ClusterAccess
from tests.unit.proxy.cli.quotas.fake_broker import FakeBroker

ORDERS, ANY_TOPIC = (("topic", "orders"),), (("topic", None),)
ANY_BROKER, BROKER_1, BROKER_9 = (("broker", None),), (("broker", "1"),), (("broker", "9"),)
RATE = "producer.byte.rate"


async def alter(broker: FakeBroker, *entries: EntityAlteration) -> tuple[list[int], list[RejectedAlteration]]:
    cluster = ClusterAccess((("127.0.0.1", broker.port),), 5.0)
    done: list[int] = []
    rejected: list[RejectedAlteration] = []
    async with QuotaClient(cluster) as client:
        async for settled, rejections in ConfigClient(client, cluster, pauses=(0.01,)).alter(entries):
            done.append(settled)
            rejected += rejections
    return done, rejected


def sent(broker: FakeBroker) -> list[tuple[int, str, list[tuple[str, int, str | None]]]]:
    return [
        (
            int(resource.resource_type),
            resource.resource_name,
            [(config.name, int(config.config_operation), config.value) for config in resource.configs],
        )
        for request in broker.config_alterations
        for resource in request.resources
    ]


async def test_a_plain_broker_has_no_report(broker: FakeBroker) -> None:
    cluster = ClusterAccess((("127.0.0.1", broker.port),), 5.0)
    async with QuotaClient(cluster) as client:
        assert await ConfigClient(client, cluster).report() is None
        broker.report = ConfigReport(names={"topic": [RATE]}, topics={}, brokers={})
        assert await ConfigClient(client, cluster).report() == broker.report


async def test_alterations_as_kafka_names_the_resources(broker: FakeBroker) -> None:
    done, rejected = await alter(
        broker,
        EntityAlteration(ORDERS, {RATE: "5", EXPIRES_AT_MS: 1000.0}),
        EntityAlteration(ANY_TOPIC, {RATE: None}, back_to_file=True),
        EntityAlteration(ANY_BROKER, {"flag": "true"}),
        EntityAlteration(BROKER_1, {EXPIRES_AT_MS: None}),
    )
    assert (done, rejected) == ([3, 4], [])
    assert sent(broker) == [
        (2, "orders", [(RATE, 0, "5"), ("expires.at.ms", 0, "1000")]),
        (2, "<default>", [(RATE, 1, None), ("back.to.file", 0, "true")]),
        (4, "", [("flag", 0, "true")]),
        (4, "1", [("expires.at.ms", 1, None)]),
    ]


async def test_a_broker_gets_its_own_alteration_and_one_that_does_not_run_is_named(
    broker: FakeBroker,
) -> None:
    _, rejected = await alter(broker, EntityAlteration(BROKER_9, {"flag": "true"}))
    assert [each.entity for each in rejected] == [BROKER_9]
    assert broker.config_alterations == []


async def test_rejections_are_reported_and_retriable_ones_are_retried(broker: FakeBroker) -> None:
    faults = {
        "orders": (ErrorCode.request_timed_out, "later"),
        "gone": (ErrorCode.unknown_topic_or_partition, None),
    }
    broker.config_fault = lambda name: faults.get(name)
    both = [EntityAlteration((("topic", name),), {RATE: "5"}) for name in ("orders", "gone", "fine")]
    _, rejected = await alter(broker, *both)
    assert {each.entity[0][1]: each.reason for each in rejected} == {
        "orders": "later (REQUEST_TIMED_OUT)",
        "gone": "UNKNOWN_TOPIC_OR_PARTITION",
    }
    assert [name for _, name, _ in sent(broker)] == ["orders", "gone", "fine", "orders"]
