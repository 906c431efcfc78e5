"""Quotas that are configs of topics and brokers, set and read with Kafka's own tools and clients. The brokers
store none of them.
"""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewTopic,
    ResourceType,
)
from kio.schema.errors import ErrorCode

from proxy.demo.embedded_kafka import EmbeddedKafka
from proxy.quota.kinds import load_kinds
from tests.support.kafka.admin_requests import ask, shown_of
from tests.support.kafka.configs_tool import ConfigsTool
from tests.support.kafka.topics import describe_topic, drop_topic, make_topic
from tests.support.messages.configs import (
    ALTER,
    BROKER,
    DELETE,
    DESCRIBE,
    INCREMENTAL,
    SET,
    TOPIC,
    alter_request,
    describe_request,
    described,
    incremental_request,
    results,
)
from tests.support.messages.kio_messages import versions
from tests.support.process.proxy_process import ProxyProcess, ProxyRunner
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka
RATE, ACTION = "producer.byte.rate", "producer.byte.rate.action"
TOTAL, THEIRS, CLEANERS = "total.bytes.in.per.sec.threshold", "retention.ms", "log.cleaner.threads"
OURS = {key.name for kind in load_kinds() for key in kind.configs}
BROKER_1, DEFAULT_BROKER, DEFAULT_TOPIC = (BROKER, "1"), (BROKER, ""), (TOPIC, "<default>")


@pytest.fixture(scope="module", params=["kafka", "kafka_391"])
def cluster(request: pytest.FixtureRequest) -> EmbeddedKafka:
    kafka: EmbeddedKafka = request.getfixturevalue(request.param)
    return kafka


@pytest.fixture(scope="module")
def settings() -> dict[str, Any]:
    """A store that no other proxy of the session has."""
    return {"quotas": {"store": {"topic": f"configs-{uuid.uuid4().hex[:8]}"}}}


@pytest.fixture(scope="module")
def proxy(cluster: EmbeddedKafka, run_proxy: ProxyRunner, settings: dict[str, Any]) -> ProxyProcess:
    return run_proxy(cluster.bootstrap, settings=settings)


@pytest.fixture(scope="module")
def other(cluster: EmbeddedKafka, run_proxy: ProxyRunner, settings: dict[str, Any]) -> ProxyProcess:
    """Another proxy of the same cluster."""
    return run_proxy(cluster.bootstrap, settings=settings)


@pytest.fixture
def tool(cluster: EmbeddedKafka, proxy: ProxyProcess) -> ConfigsTool:
    return ConfigsTool(cluster, proxy)


@pytest.fixture
def topic(cluster: EmbeddedKafka) -> Iterator[str]:
    name = f"configs-{uuid.uuid4().hex[:8]}"
    make_topic(cluster, name)
    yield name
    drop_topic(cluster, name)


def own(port: int, resource: tuple[int, str], *names: str) -> dict[str, str | None]:
    """The values that are set, without defaults."""
    shown = shown_of(port, resource, *names)
    return {name: config.value for name, config in shown.items() if config.source in (1, 2, 3)}


def wait_for(port: int, resource: tuple[int, str], expected: dict[str, str | None], *others: str) -> None:
    """Wait until these values are set, and none of the `others`. A broker shows its own configs, and another
    proxy its quotas, a moment after their change.
    """
    wait_until(lambda: own(port, resource, *expected, *others) == expected, f"{expected} at port {port}")


def natively(cluster: EmbeddedKafka, resource: tuple[int, str]) -> set[str]:
    """Which of our configs the broker itself has for a resource."""
    return OURS & set(own(cluster.port(1), resource))


def test_topics(tool: ConfigsTool, cluster: EmbeddedKafka, other: ProxyProcess, topic: str) -> None:
    of_topic = ("--entity-type", "topics", "--entity-name", topic)
    said = tool.alter(*of_topic, add=f"{RATE}=1048576,{THEIRS}=60000")
    assert f"Completed updating config for topic {topic}." in said
    wait_for(cluster.port(1), (TOPIC, topic), {THEIRS: "60000"})
    said = tool("--describe", *of_topic)
    assert f"{RATE}=1048576 sensitive=false synonyms={{DYNAMIC_TOPIC_CONFIG:{RATE}=1048576}}" in said
    assert f"{THEIRS}=60000 sensitive=false" in said
    wait_for(other.broker_port(1), (TOPIC, topic), {RATE: "1048576", THEIRS: "60000"})
    assert natively(cluster, (TOPIC, topic)) == set()
    tool.alter(*of_topic, delete=RATE)
    wait_for(other.broker_port(1), (TOPIC, topic), {THEIRS: "60000"}, RATE)
    said = tool.alter(*of_topic, add=f"{ACTION}=drop,{THEIRS}=5", check=False)
    assert (
        f"InvalidConfigurationException: Invalid value drop for configuration {ACTION}: String must" in said
    )
    assert own(cluster.port(1), (TOPIC, topic), THEIRS) == {THEIRS: "60000"}


def test_the_default_topic(
    tool: ConfigsTool, cluster: EmbeddedKafka, proxy: ProxyProcess, topic: str
) -> None:
    """kafka-configs 4 alters the default topic, but rejects its name when it describes; 3.9 does both."""
    default = ("--entity-type", "topics", "--entity-name", "<default>")

    def set_default(operation: int, **tools: Any) -> None:
        if cluster.version.startswith("3."):
            request = incremental_request([(DEFAULT_TOPIC, [(RATE, operation, "777")])])
            assert results(ask(proxy.broker_port(1), request)) == [(DEFAULT_TOPIC, ErrorCode.none, None)]
        else:
            tool.alter(*default, **tools)

    set_default(SET, add=f"{RATE}=777")
    assert own(proxy.broker_port(1), DEFAULT_TOPIC) == {RATE: "777"}
    shown = shown_of(proxy.broker_port(1), (TOPIC, topic), RATE)
    assert shown[RATE].value == "777"
    assert shown[RATE].synonyms == (("777", 3),)
    set_default(DELETE, delete=RATE)
    assert own(proxy.broker_port(1), DEFAULT_TOPIC) == {}


def test_brokers(tool: ConfigsTool, cluster: EmbeddedKafka, proxy: ProxyProcess) -> None:
    """kafka-configs of 3.9 reads all configs, changes one and writes all back: the others are kept."""
    broker_1 = ("--entity-type", "brokers", "--entity-name", "1")
    default = ("--entity-type", "brokers", "--entity-default")
    tool.alter(*broker_1, add=f"{TOTAL}=2000000,{CLEANERS}=2")
    wait_for(proxy.broker_port(1), BROKER_1, {TOTAL: "2000000", CLEANERS: "2"})
    tool.alter(*broker_1, add=f"{CLEANERS}=3")
    tool.alter(*default, add=f"{TOTAL}=1000000")
    wait_for(proxy.broker_port(1), BROKER_1, {TOTAL: "2000000", CLEANERS: "3"})
    assert own(proxy.broker_port(1), DEFAULT_BROKER, TOTAL) == {TOTAL: "1000000"}
    assert f"{TOTAL}=1000000 sensitive=false" in tool("--describe", *default)
    assert natively(cluster, BROKER_1) | natively(cluster, DEFAULT_BROKER) == set()
    tool.alter(*broker_1, delete=f"{TOTAL},{CLEANERS}")
    tool.alter(*default, delete=TOTAL)
    wait_for(proxy.broker_port(1), BROKER_1, {}, TOTAL, CLEANERS)
    wait_for(cluster.port(1), BROKER_1, {}, CLEANERS)


def resource(name: str, kind: ResourceType = ResourceType.TOPIC, **configs: str) -> ConfigResource:
    named = {key.replace("_", "."): value for key, value in configs.items()}
    return ConfigResource(kind, name, set_config=named)


@pytest.mark.filterwarnings("ignore:alter_configs has been deprecated:DeprecationWarning")
def test_an_admin_client(cluster: EmbeddedKafka, proxy: ProxyProcess) -> None:
    admin = AdminClient({"bootstrap.servers": proxy.bootstrap})
    name = f"configs-{uuid.uuid4().hex[:8]}"
    configs = {RATE: "5", THEIRS: "60000", "bytes.in.per.sec.threshold": "7"}
    [made] = admin.create_topics([NewTopic(name, 1, 1, config=configs)]).values()
    made.result(30)
    wait_until(lambda: describe_topic(cluster.port(1), name).partitions, "the topic at the broker")
    asked = ConfigResource(ResourceType.TOPIC, name)
    [described_] = admin.describe_configs([asked]).values()
    entry = described_.result(30)[RATE]
    assert (entry.value, entry.source, entry.is_sensitive) == (
        "5",
        ConfigSource.DYNAMIC_TOPIC_CONFIG.value,
        False,
    )
    assert natively(cluster, (TOPIC, name)) == set()
    ops = ConfigResource(
        ResourceType.TOPIC,
        name,
        incremental_configs=[ConfigEntry(ACTION, "reject", incremental_operation=AlterConfigOpType.SET)],
    )
    [altered] = admin.incremental_alter_configs([ops]).values()
    altered.result(30)
    wait_for(proxy.broker_port(1), (TOPIC, name), {**configs, ACTION: "reject"})
    [altered] = admin.alter_configs([resource(name, retention_ms="70000")]).values()
    altered.result(30)
    # What is not named is erased.
    wait_for(proxy.broker_port(1), (TOPIC, name), {THEIRS: "70000"}, *configs, ACTION)
    [rejected] = admin.create_topics([NewTopic(f"{name}-x", 1, 1, config={RATE: "0"})]).values()
    with pytest.raises(KafkaException, match="Value must be at least 1") as caught:
        rejected.result(30)
    assert caught.value.args[0].code() == ErrorCode.invalid_config.value
    drop_topic(cluster, name)


def test_every_version(cluster: EmbeddedKafka, proxy: ProxyProcess, topic: str) -> None:
    port, asked = proxy.broker_port(1), (TOPIC, topic)
    for version in versions(INCREMENTAL):
        request = incremental_request([(asked, [(RATE, SET, f"{version + 1}")]), (BROKER_1, [])], version)
        assert [code for _, code, _ in results(ask(port, request))] == [ErrorCode.none] * 2
        assert own(port, asked, RATE) == {RATE: f"{version + 1}"}
    for version in versions(ALTER):
        request = alter_request([(asked, {RATE: f"{version + 7}", THEIRS: "5"})], version)
        assert [code for _, code, _ in results(ask(port, request))] == [ErrorCode.none]
        wait_for(port, asked, {RATE: f"{version + 7}", THEIRS: "5"})
    for version in versions(DESCRIBE):
        response = described(ask(port, describe_request([(asked, None), (BROKER_1, None)], version)))
        configs = response[asked]
        assert not isinstance(configs, ErrorCode)
        assert configs[RATE].value == "9"
        assert configs[THEIRS].value == "5"


def test_what_a_broker_rejects(cluster: EmbeddedKafka, proxy: ProxyProcess, topic: str) -> None:
    request = incremental_request(
        [
            ((TOPIC, "not-there"), [(RATE, SET, "5")]),
            ((TOPIC, topic), [(RATE, SET, "5"), (THEIRS, SET, "never")]),
            ((BROKER, "7"), [(TOTAL, SET, "5")]),
            ((BROKER, "x"), [(TOTAL, SET, "5")]),
        ]
    )
    codes = [code for _, code, _ in results(ask(proxy.broker_port(1), request))]
    assert codes == [
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.invalid_config,
        ErrorCode.invalid_request,
        ErrorCode.invalid_request,
    ]
    assert own(proxy.broker_port(1), (TOPIC, topic), RATE) == {}


def test_it_is_kept(
    cluster: EmbeddedKafka, run_proxy: ProxyRunner, settings: dict[str, Any], topic: str
) -> None:
    first = run_proxy(cluster.bootstrap, settings=settings)
    ask(first.broker_port(1), incremental_request([((TOPIC, topic), [(RATE, SET, "55")])]))
    assert first.stop() == 0
    with first:
        assert own(first.broker_port(1), (TOPIC, topic), RATE) == {RATE: "55"}


def test_a_deleted_topic_takes_its_configs_along(cluster: EmbeddedKafka, proxy: ProxyProcess) -> None:
    """Topics are deleted and created again at the broker: one at once, one when its configs are gone."""
    at_once, later = (f"configs-{uuid.uuid4().hex[:8]}" for _ in range(2))
    for name in (at_once, later):
        make_topic(cluster, name)
        ask(proxy.broker_port(1), incremental_request([((TOPIC, name), [(RATE, SET, "5")])]))
        assert own(proxy.broker_port(1), (TOPIC, name), RATE) == {RATE: "5"}
        drop_topic(cluster, name)
    make_topic(cluster, at_once)
    wait_until(lambda: own(proxy.broker_port(1), (TOPIC, at_once), RATE) == {}, "the configs' end")
    make_topic(cluster, later)
    wait_until(lambda: own(proxy.broker_port(1), (TOPIC, later), RATE) == {}, "the configs' end")
    for name in (at_once, later):
        drop_topic(cluster, name)
