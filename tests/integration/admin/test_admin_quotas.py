"""Client quotas set with Kafka's own tools: responses equal a broker's, and no broker stores the quotas."""

import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.admin_requests import alter, describe
from tests.support.kafka.configs_tool import ConfigsTool
from tests.support.kafka.raw_client import RawClient
from tests.support.kafka.topics import make_topic
from tests.support.messages.client_quotas import (
    ANY,
    DEFAULT_NAME,
    EXACT,
    Quotas,
    alter_request,
    describe_request,
    described,
)
from tests.support.messages.kio_messages import framed, read_frame, response_type
from tests.support.messages.requests import api_versions, batch, metadata, produce
from tests.support.process.proxy_process import ProxyProcess, ProxyRunner
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka
RATE = "producer_byte_rate"
IP_RATE = "connection_creation_rate"
INVALID = ErrorCode.invalid_request


def tool_of(kafka: EmbeddedKafka, *arguments: str) -> str:
    """The output of kafka-configs."""
    return kafka.run_tool("kafka-configs", *arguments, timeout=120).stdout


def own_topic() -> dict[str, Any]:
    """Settings with a store that no other proxy of the session has."""
    return {"quotas": {"store": {"topic": f"quotas-{uuid.uuid4().hex[:8]}"}}}


@pytest.fixture(scope="module", params=["kafka", "kafka_391"])
def cluster(request: pytest.FixtureRequest) -> EmbeddedKafka:
    kafka: EmbeddedKafka = request.getfixturevalue(request.param)
    return kafka


@pytest.fixture(scope="module")
def proxy(cluster: EmbeddedKafka, run_proxy: ProxyRunner) -> ProxyProcess:
    return run_proxy(cluster.bootstrap, settings=own_topic())


@pytest.fixture
def tool(cluster: EmbeddedKafka, proxy: ProxyProcess) -> ConfigsTool:
    return ConfigsTool(cluster, proxy)


ALICE = ("--entity-type", "users", "--entity-name", "alice")
USERS = ("--entity-type", "users")
CLIENTS = ("--entity-type", "clients")
IPS = ("--entity-type", "ips")
DEFAULT = "--entity-default"


def test_users(tool: ConfigsTool, cluster: EmbeddedKafka) -> None:
    said = tool.alter(*ALICE, add="producer_byte_rate=1024,request_percentage=50.5")
    assert "Completed updating config for user alice." in said
    tool.alter(*USERS, DEFAULT, add="consumer_byte_rate=2048")
    assert tool.describe(*USERS) == {
        "Quota configs for user-principal 'alice' are producer_byte_rate=1024.0 are request_percentage=50.5",
        "Quota configs for the default user-principal are consumer_byte_rate=2048.0",
    }
    tool.alter(*ALICE, delete="producer_byte_rate")
    assert tool.describe(*ALICE) == {"Quota configs for user-principal 'alice' are request_percentage=50.5"}
    assert "Invalid config(s): producer_byte_rate" in tool.alter(
        *ALICE, delete="producer_byte_rate", check=False
    )
    said = tool.alter(*ALICE, add="producer_byte_rate=-1", check=False)
    assert "InvalidRequestException: producer_byte_rate is -1.0; it must be greater than 0" in said
    assert describe(cluster.port(1)) == {}, "a broker has learned of it"


def test_clients_and_both(tool: ConfigsTool, cluster: EmbeddedKafka) -> None:
    tool.alter(*CLIENTS, "--entity-name", "etl", add="producer_byte_rate=1,controller_mutation_rate=0.5")
    tool.alter(*USERS, "--entity-name", "bob", *CLIENTS, "--entity-name", "etl", add="consumer_byte_rate=3")
    tool.alter(*USERS, DEFAULT, *CLIENTS, DEFAULT, add="consumer_byte_rate=4")
    assert tool.describe(*CLIENTS) == {
        "Quota configs for client-id 'etl' are controller_mutation_rate=0.5 are producer_byte_rate=1.0"
    }
    assert tool.describe(*USERS, *CLIENTS) == {
        "Quota configs for user-principal 'bob', client-id 'etl' are consumer_byte_rate=3.0",
        "Quota configs for the default user-principal, the default client-id are consumer_byte_rate=4.0",
    }
    assert describe(cluster.port(1)) == {}, "a broker has learned of it"


def test_ips(tool: ConfigsTool, cluster: EmbeddedKafka) -> None:
    tool.alter(*IPS, "--entity-name", "192.0.2.7", add="connection_creation_rate=7")
    tool.alter(*IPS, DEFAULT, add="connection_creation_rate=2000")
    assert tool.describe(*IPS) == {
        "Quota configs for ip '192.0.2.7' are connection_creation_rate=7.0",
        "Quota configs for the default ip are connection_creation_rate=2000.0",
    }
    tool.alter(*IPS, DEFAULT, delete="connection_creation_rate")
    assert tool.describe(*IPS) == {"Quota configs for ip '192.0.2.7' are connection_creation_rate=7.0"}
    assert describe(cluster.port(1)) == {}, "a broker has learned of it"


def test_odd_names_and_values_are_described_as_at_a_broker(
    cluster: EmbeddedKafka, proxy: ProxyProcess, tool: ConfigsTool
) -> None:
    names = [
        "a,b",
        'a"b',
        "a=b",
        "CN=x,O=y",
        "a b",
        "a\\b",
        "müller",
        "\u7528\u6237",
        "\U0001f600",
        "%2C",
        "x" * 300,
    ]
    values = ["1", str(2**63 - 1), "1e18", "1048576.0000001"]
    changes = [(name, values[number % len(values)]) for number, name in enumerate(names)]

    def at_broker(*arguments: str) -> set[str]:
        return set(tool_of(cluster, "--bootstrap-server", cluster.bootstrap, *arguments).splitlines())

    try:
        for name, value in changes:
            odd = (*USERS, "--entity-name", name)
            tool.alter(*odd, add=f"{RATE}={value}")
            at_broker("--alter", *odd, "--add-config", f"{RATE}={value}")
        shown = {line for line in tool.describe(*USERS) if RATE in line}
        assert len(shown) >= len(names)
        wait_until(lambda: at_broker("--describe", *USERS) <= shown, "the broker's lines among the proxy's")
        assert len(at_broker("--describe", *USERS)) == len(names)
    finally:
        for name, _ in changes:
            alter(cluster.port(1), {"user": name}, **{RATE: None})
            alter(proxy.broker_port(1), {"user": name}, **{RATE: None})


CHECKED: list[tuple[list[tuple[str, str | None]], list[tuple[str, float | None]]]] = [
    ([("user", "a")], [(RATE, 1.0)]),
    ([("user", "a")], [(RATE, None)]),
    ([("user", "a")], []),
    ([("user", "a")], [("no such key", None)]),
    ([("user", None), ("client-id", None)], [(RATE, 1024.0000001)]),
    ([("user", "a"), ("user", "b")], [(RATE, 1.0)]),
    ([("ip", "127.0.0.1")], [(IP_RATE, 1.0)]),
    ([("ip", "localhost")], [(IP_RATE, 1.0)]),
    ([("ip", "::1")], [(IP_RATE, 1.0)]),
    ([("ip", None)], [(IP_RATE, 2.0**31 - 1)]),
    ([("client-id", "c")], [("request_percentage", 0.001)]),
    ([], [(RATE, 1.0)]),
    ([("group", "g")], [(RATE, 1.0)]),
    ([("user", "")], [(RATE, 1.0)]),
    ([("user", "a"), ("ip", "127.0.0.1")], [(IP_RATE, 1.0)]),
    ([("ip", "no such host")], [(IP_RATE, 1.0)]),
    ([("ip", "127.0.0.1")], [(RATE, 1.0)]),
    ([("user", "a")], [(IP_RATE, 1.0)]),
    ([("user", "a")], [("no such key", 1.0)]),
    ([("user", "a")], [(RATE, 0.0)]),
    ([("user", "a")], [(RATE, -1.0)]),
    ([("user", "a")], [(RATE, 1.5)]),
    ([("user", "a")], [(RATE, 1e19)]),
    ([("ip", None)], [(IP_RATE, 2.0**31)]),
    ([("user", "a")], [(RATE, 1.0), (RATE, 2.0)]),
]


@pytest.mark.parametrize("version", [0, 1])
def test_checks_are_those_of_a_broker(cluster: EmbeddedKafka, proxy: ProxyProcess, version: int) -> None:
    """Each row is sent to both with validate_only: they return the same code and entity."""
    with RawClient(cluster.port(1)) as broker, RawClient(proxy.broker_port(1)) as through:
        for entry in CHECKED:
            request = alter_request(entry, validate_only=True, version=version)
            theirs, ours = [
                [
                    (result.error_code, sorted(map(str, result.entity)))
                    for result in client.ask(request).entries
                ]
                for client in (broker, through)
            ]
            assert ours == theirs, entry
        twice = alter_request(CHECKED[0], CHECKED[0], CHECKED[19], validate_only=True, version=version)
        codes = [
            sorted(result.error_code for result in client.ask(twice).entries) for client in (broker, through)
        ]
        assert codes[0] == codes[1] == [INVALID]


SHOWN: list[dict[str, str | None]] = [
    {"user": "alice"},
    {"user": None},
    {"user": "c"},
    {"client-id": "c"},
    {"client-id": None},
    {"user": "alice", "client-id": "c"},
    {"user": "alice", "client-id": None},
    {"user": None, "client-id": "c"},
    {"ip": "192.0.2.1"},
    {"ip": None},
]
FILTERS: list[tuple[str, int, str | None]] = [
    ("user", EXACT, "alice"),
    ("user", EXACT, "nobody"),
    ("user", DEFAULT_NAME, None),
    ("user", ANY, None),
    ("client-id", EXACT, "c"),
    ("client-id", DEFAULT_NAME, None),
    ("client-id", ANY, None),
    ("ip", EXACT, "192.0.2.1"),
    ("ip", ANY, None),
    ("ip", DEFAULT_NAME, None),
    ("group", ANY, None),
    ("", EXACT, "alice"),
    ("user", EXACT, None),
    ("user", DEFAULT_NAME, "alice"),
    ("user", 7, None),
]


@pytest.fixture
def native_quotas(cluster: EmbeddedKafka) -> Iterator[None]:
    """Set the quotas of SHOWN at the broker itself, and remove them at the end."""
    for entity in SHOWN:
        key = IP_RATE if "ip" in entity else RATE
        assert alter(cluster.port(1), entity, **{key: 1e9}) == ErrorCode.none
    wait_until(lambda: len(describe(cluster.port(1))) == len(SHOWN), "the broker to show its quotas")
    yield
    for entity in SHOWN:
        alter(cluster.port(1), entity, **{IP_RATE if "ip" in entity else RATE: None})
    wait_until(lambda: describe(cluster.port(1)) == {}, "the broker to forget its quotas")


@pytest.mark.usefixtures("native_quotas")
def test_filters_are_those_of_a_broker(cluster: EmbeddedKafka, run_proxy: ProxyRunner) -> None:
    """Each filter, and each pair of filters, is sent to the broker and to the proxy."""
    proxy = run_proxy(cluster.bootstrap, settings=own_topic())
    for entity in SHOWN:
        assert (
            alter(proxy.broker_port(1), entity, **{IP_RATE if "ip" in entity else RATE: 1e9})
            == ErrorCode.none
        )

    def ask(client: RawClient, request: Any) -> tuple[ErrorCode, Quotas | None]:
        response = client.ask(request)
        return response.error_code, None if response.entries is None else described(response)

    with RawClient(cluster.port(1)) as broker, RawClient(proxy.broker_port(1)) as through:
        pairs = [(first, second) for first in FILTERS for second in FILTERS]
        for components in [(), *((each,) for each in FILTERS), *pairs]:
            for strict in (False, True):
                request = describe_request(*components, strict=strict, version=int(strict))
                theirs, ours = ask(broker, request), ask(through, request)
                assert ours == theirs, (components, strict)


def test_nulls_are_mistakes_and_unknown_versions_end_the_connection(proxy: ProxyProcess) -> None:
    head = bytes([0, 49, 0, 1, 0, 0, 0, 9, 255, 255, 0])
    null_type = head + bytes([2, 2, 0, 2]) + b"a" + bytes([0, 1, 0, 0, 0])
    with RawClient(proxy.broker_port(1)) as client:
        client.send_bytes(framed(null_type))
        [result] = read_frame(response_type(49, 1), client.receive_frame()).entries
        assert result.error_code == INVALID
        assert client.ask(metadata()).brokers, "and the connection goes on"
        client.send_bytes(framed(bytes([0, 49, 0, 2]) + head[4:]))
        assert client.ended()
    said = "AlterClientQuotas|API with key 49 is asked at version 2"
    wait_until(lambda: proxy.log_lines(said), "the log's line")


def test_versions_are_offered(proxy: ProxyProcess) -> None:
    with RawClient(proxy.broker_port(1)) as client:
        offered = {int(api.api_key): api for api in client.ask(api_versions(0)).api_keys}
    for key in (48, 49):
        assert (offered[key].min_version, offered[key].max_version) == (0, 1)


def test_a_change_is_in_force_when_it_is_acknowledged(cluster: EmbeddedKafka, proxy: ProxyProcess) -> None:
    topic = f"admin-quotas-{uuid.uuid4().hex[:8]}"
    make_topic(cluster, topic)
    records = batch([b"x" * 200_000])

    def waits(client: RawClient) -> float:
        """The throttle time of a produce request, in seconds."""
        seconds: float = client.ask(produce(topic, records)).throttle_time.total_seconds()
        return seconds

    def waits_in_all(client: RawClient) -> float:
        """The same, and what has passed of the wait when the broker has responded."""
        began = time.monotonic()
        announced = waits(client)
        return time.monotonic() - began + announced

    with RawClient(proxy.broker_port(1), "tenant") as client:
        assert waits(client) == 0
        assert alter(proxy.broker_port(1), {"client-id": "tenant"}, producer_byte_rate=100_000.0) == 0
        assert waits_in_all(client) > 0.5
        assert alter(proxy.broker_port(1), {"client-id": "tenant"}, producer_byte_rate=1e9) == 0
        waits(client)
        assert waits(client) == 0
        assert alter(proxy.broker_port(1), {"client-id": "tenant"}, producer_byte_rate=None) == 0
        assert waits(client) == 0
    assert all(bucket["entity"] != {"client-id": "tenant"} for bucket in proxy.buckets())


def test_connections_over_the_rate_are_served_late_and_never_reset(proxy: ProxyProcess) -> None:
    """127.0.0.1 may open 5 connections per second: all 20 are served, at that rate."""
    assert alter(proxy.broker_port(1), {"ip": "127.0.0.1"}, connection_creation_rate=5.0) == ErrorCode.none
    try:
        started = time.monotonic()
        clients: list[RawClient] = []
        took: list[float] = []
        for _ in range(20):
            began = time.monotonic()
            clients.append(RawClient(proxy.broker_port(1)))
            took.append(time.monotonic() - began)
        for client in clients:
            client.send(api_versions(0))
        responses = [client.receive() for client in clients]
        for client in clients:
            client.close()
        # At the rate, all but the first would take 0.2 s. A busy machine delays only some.
        assert sorted(took)[-5] < 0.1, "connections are taken at once"
        assert max(response.at for response in responses) - started > 1
        assert proxy.metric("quota_proxy_connection_throttle_seconds_total", ip="127.0.0.1") > 1
    finally:
        alter(proxy.broker_port(1), {"ip": "127.0.0.1"}, connection_creation_rate=None)
