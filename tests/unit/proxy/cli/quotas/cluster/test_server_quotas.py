"""What the report of a proxy says about topics and brokers."""

from proxy.cli.quotas.cluster.client import QuotaClient
from proxy.cli.quotas.cluster.config_client import ConfigClient
from proxy.cli.quotas.cluster.server_quotas import (
    effective_configs,
    effective_rows,
    file_configs,
    lasting_configs,
    read_server,
    show_source,
)
from proxy.cli.quotas.entity import CLIENTS, SECTIONS
from proxy.store.layer_report import ConfigReport, LayerValue
from proxy.upstream.cluster_access import ClusterAccess
from tests.unit.proxy.cli.quotas.commands_kit import ALICE, QUOTAS
from tests.unit.proxy.cli.quotas.fake_broker import FakeBroker

RATE, READ = "producer.byte.rate", "consumer.byte.rate"
ORDERS, ANY_TOPIC, BROKER_2 = (("topic", "orders"),), (("topic", None),), (("broker", "2"),)
REPORT = ConfigReport(
    names={"topic": [RATE, READ], "broker": ["flag"]},
    topics={
        "orders": {RATE: [LayerValue("tools", "4", 1000), LayerValue("tools", "3"), LayerValue("file", "1")]},
        "freed": {RATE: [LayerValue("tools", None), LayerValue("file", "1")]},
        "<default>": {RATE: [LayerValue("file", "7")], READ: [LayerValue("file", "8")]},
    },
    brokers={"2": {"flag": [LayerValue("tools", "true")]}},
)


def test_values_in_force_lasting_values_and_those_of_the_file() -> None:
    default = {RATE: "7", READ: "8"}
    assert effective_configs(REPORT) == {
        ORDERS: {RATE: "4"},
        ANY_TOPIC: default,
        BROKER_2: {"flag": "true"},
    }
    assert lasting_configs(REPORT)[ORDERS] == {RATE: "3"}
    assert file_configs(REPORT) == {
        ORDERS: {RATE: "1"},
        (("topic", "freed"),): {RATE: "1"},
        ANY_TOPIC: default,
    }


def test_what_applies_to_a_topic_has_its_source() -> None:
    assert effective_rows(REPORT, ORDERS) == [
        (READ, "8", "topic <default>, file"),
        (RATE, "4", "topic orders, tools until 1970-01-01T00:00:01Z"),
    ]
    own_removed = effective_rows(REPORT, (("topic", "freed"),))
    assert [row[2] for row in own_removed] == ["topic <default>, file"] * 2
    assert effective_rows(REPORT, (("broker", "3"),)) == []
    assert show_source(LayerValue("file", "1")) == "file"


async def test_a_proxy_has_all_sections_and_a_broker_has_clients(filled: FakeBroker) -> None:
    cluster = ClusterAccess((("127.0.0.1", filled.port),), 5.0)
    async with QuotaClient(cluster) as client:
        configs = ConfigClient(client, cluster)
        plain = await read_server(client, configs)
        assert (plain.lasting, plain.of_file, plain.sections) == (QUOTAS, None, (CLIENTS,))
        filled.report, filled.lasting, filled.of_file = REPORT, QUOTAS, {ALICE: {"producer_byte_rate": 1.0}}
        server = await read_server(client, configs)
    assert server.sections == SECTIONS
    assert server.lasting == {**QUOTAS, **lasting_configs(REPORT)}
    assert server.of_file == {ALICE: {"producer_byte_rate": 1.0}, **file_configs(REPORT)}
    assert server.names == {RATE, READ, "flag"}
