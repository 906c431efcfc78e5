"""The admin port of a proxy before a real Kafka: metrics, quotas and readiness match what happened."""

import http.client
import json
import re
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from kio.schema.errors import ErrorCode
from prometheus_client.openmetrics.parser import text_string_to_metric_families

import proxy as package
from proxy.demo.embedded_kafka import EmbeddedKafka
from proxy.demo.ports import free_ports
from tests.support.kafka.raw_client import RawClient
from tests.support.kafka.tool_server import ServedKafka
from tests.support.kafka.topics import drop_topic, make_topic
from tests.support.messages.kio_messages import request_frame
from tests.support.messages.requests import TOPIC_IDS_FROM, api_versions, batch, fetch, metadata, produce
from tests.support.process.proxy_process import COMMAND, HOST, ProxyProcess, ProxyRunner
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka
PREFIX = "quota_proxy_"
FAMILIES = {
    "build_info": {"version", "compiled"},
    "connections": {"listener"},
    "connections_closed_total": {"listener", "reason"},
    "requests_total": {"listener", "api"},
    "bytes_total": {"listener", "direction"},
    "throttled_requests_total": {"quota", "user", "client_id"},
    "throttle_seconds_total": {"quota", "user", "client_id"},
    "quota_limit": {"quota", "user", "client_id"},
    "client_bytes_total": {"direction", "user", "client_id"},
    "topic_partition_bytes_total": {"direction", "topic", "partition"},
}
QUOTA = 1000


@pytest.fixture(scope="module")
def proxy(kafka: EmbeddedKafka, run_proxy: ProxyRunner) -> ProxyProcess:
    quotas = [{"entity": {"client-id": "limited"}, "producer_byte_rate": QUOTA, "consumer_byte_rate": QUOTA}]
    return run_proxy(kafka.bootstrap, quotas, settings={"metrics": {"topic_partitions": True}})


def _partition_bytes(proxy: ProxyProcess, topic: str, partition: int = 0) -> list[float]:
    """Bytes in and bytes out of a partition."""
    return [
        proxy.metric(
            PREFIX + "topic_partition_bytes_total", direction=way, topic=topic, partition=str(partition)
        )
        for way in ("in", "out")
    ]


def test_families_and_labels(kafka: EmbeddedKafka, proxy: ProxyProcess) -> None:
    make_topic(kafka, "admin-families")
    with RawClient(proxy.broker_port(1), "limited") as client:
        client.ask(produce("admin-families", batch([b"x" * 2 * QUOTA])))
    wait_until(lambda: proxy.metric(PREFIX + "connections_closed_total") > 0, "the connection's end")
    top = subprocess.run(
        [COMMAND, "top", "--admin", f"http://{HOST}:{proxy.admin_port}"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert re.search(r"producer_byte_rate +client-id limited +1 ", top.stdout), top
    shown: dict[str, set[str]] = {}
    for family in proxy.metrics().values():
        for sample in family.samples:
            shown.setdefault(sample.name, set()).update(sample.labels)
    assert {name: shown.get(PREFIX + name) for name in FAMILIES} == FAMILIES
    assert proxy.metric(PREFIX + "build_info", version=package.__version__) == 1


def test_open_metrics(proxy: ProxyProcess) -> None:
    status, text = proxy.get("/metrics", {"Accept": "application/openmetrics-text; version=1.0.0"})
    assert status == 200
    families = text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
    assert PREFIX + "requests" in {family.name for family in families}


def test_a_page_of_another_site_reads_nothing(proxy: ProxyProcess) -> None:
    """Its name resolves to the loopback address, so a browser on this host sends it the proxy's pages."""
    for path in ("/metrics", "/api/quotas", "/api/overview"):
        assert proxy.get(path, {"Host": f"evil.example:{proxy.admin_port}"})[0] == 403
        assert proxy.get(path, {"Host": f"localhost:{proxy.admin_port}"})[0] == 200


def test_bytes_of_a_client(kafka: EmbeddedKafka, proxy: ProxyProcess) -> None:
    """Bytes are counted as frames on the wire, with their lengths."""
    make_topic(kafka, "admin-bytes")
    requests = [produce("admin-bytes", batch([b"x" * 5000])), fetch("admin-bytes"), metadata(["admin-bytes"])]
    name = PREFIX + "client_bytes_total"
    with RawClient(proxy.broker_port(1), "admin-bytes") as client:
        received = 0
        for request in requests:
            client.send(request)
            received += client.receive().size
    sent = sum(len(request_frame(request, 1, "admin-bytes")) for request in requests)
    assert proxy.metric(name, user="ANONYMOUS", client_id="admin-bytes", direction="in") == sent
    assert proxy.metric(name, user="ANONYMOUS", client_id="admin-bytes", direction="out") == received


def test_connections(proxy: ProxyProcess) -> None:
    name, ended = PREFIX + "connections", PREFIX + "connections_closed_total"
    wait_until(lambda: proxy.metric(name, listener="clients") == 0, "no connection of another test")
    before = proxy.metric(ended, reason="client_closed")
    with RawClient(proxy.broker_port(1)) as one, RawClient(proxy.bootstrap_port) as other:
        for client in (one, other):
            client.ask(api_versions())
        assert proxy.metric(name, listener="clients") == 2
    wait_until(lambda: proxy.metric(name, listener="clients") == 0, "the connections' end")
    assert proxy.metric(ended, reason="client_closed") == before + 2


def test_what_the_broker_rejects_is_in_no_partition(
    kafka: EmbeddedKafka, proxy: ProxyProcess, run_proxy: ProxyRunner
) -> None:
    """Cut through or, with a broker quota, buffered; the quota's log names it."""
    total = {"<default>": {"total.bytes.in.per.sec.threshold": 10**12}}
    quotas = {"store": "none", "brokers": total}
    with_quota = run_proxy(
        kafka.bootstrap, settings={"metrics": {"topic_partitions": True}, "quotas": quotas}
    )
    topic = "admin-rejected"
    make_topic(kafka, topic)
    large, small = batch([b"x" * (3 << 20)]), batch([b"x" * 5000])
    for each in (proxy, with_quota):
        with RawClient(each.broker_port(1)) as client:
            codes = [
                client.ask(produce(topic, records)).responses[0].partition_responses[0].error_code
                for records in (large, small)
            ]
        assert codes == [ErrorCode.message_too_large, ErrorCode.none]
        assert _partition_bytes(each, topic) == [len(small), 0]
    assert with_quota.metric(PREFIX + "broker_error_bytes_total", broker="1") == len(large)
    line = f"broker 1, topic {topic}: the broker itself rejected {len(large)} bytes .* MESSAGE_TOO_LARGE"
    wait_until(lambda: with_quota.log_lines(line), "the log's line")


@pytest.mark.parametrize("version", [TOPIC_IDS_FROM - 1, TOPIC_IDS_FROM])
def test_bytes_of_a_partition(version: int, kafka: EmbeddedKafka, proxy: ProxyProcess) -> None:
    """Bytes are counted under the topic's name, also for requests with its id, and if it is recreated."""
    topic = f"admin-partitions-{version}"
    records = batch([b"x" * 5000])
    for times in (1, 2):
        topic_id = make_topic(kafka, topic, partitions=2)
        with RawClient(proxy.broker_port(1)) as client:
            client.ask(produce(topic, records, version, topic_id=topic_id, partition=1))
            client.ask(fetch(topic, version=version, topic_id=topic_id, partition=1))
        expected = [times * len(records)] * 2
        wait_until(lambda expected=expected: _partition_bytes(proxy, topic, 1) == expected, "bytes by name")
        assert _partition_bytes(proxy, topic, 0) == [0, 0]
        drop_topic(kafka, topic)
    assert _partition_bytes(proxy, topic_id.bytes.hex(), 1) == [0, 0]


def test_partitions_are_counted_only_where_asked_for(kafka: EmbeddedKafka, run_proxy: ProxyRunner) -> None:
    proxy = run_proxy(kafka.bootstrap)
    make_topic(kafka, "admin-uncounted")
    with RawClient(proxy.broker_port(1)) as client:
        client.ask(produce("admin-uncounted", batch([b"x"])))
    assert "topic_partition" not in proxy.get("/metrics")[1]


def test_quotas_as_json(kafka: EmbeddedKafka, proxy: ProxyProcess) -> None:
    make_topic(kafka, "admin-quotas")
    with RawClient(proxy.broker_port(1), "limited") as client:
        client.ask(produce("admin-quotas", batch([b"x" * 5 * QUOTA])))
        (bucket,) = (found for found in proxy.buckets() if found["kind"] == "producer_byte_rate")
    assert bucket["entity"] == {"client-id": "limited"}
    assert bucket["broker"] == 1
    assert bucket["limit"] == QUOTA
    assert bucket["throttled"] is True
    assert bucket["rate"] > 0
    labels = {"quota": "producer_byte_rate", "client_id": "limited"}
    assert bucket["throttled_requests"] == proxy.metric(PREFIX + "throttled_requests_total", **labels) > 0
    assert bucket["throttle_seconds"] == proxy.metric(PREFIX + "throttle_seconds_total", **labels) > 2


def _readiness(proxy: ProxyProcess) -> tuple[int, Any]:
    status, text = proxy.get("/readyz")
    return status, json.loads(text)


def test_readiness_follows_the_cluster(run_proxy: ProxyRunner) -> None:
    """The proxy is always alive, and ready while the cluster is reachable."""
    (port,) = free_ports(1)
    proxy = run_proxy.prepare(f"{HOST}:{port}").start()
    assert proxy.get("/healthz")[0] == 200
    wait_until(lambda: _says(proxy, f"{HOST}:{port}"), "a reason that names the broker")
    wait_until(proxy.rejects_clients, "clients to be rejected")
    with ServedKafka(ports={1: port}) as kafka:
        proxy.wait_ready()
        status, detail = _readiness(proxy)
        assert (status, detail["ready"], detail["problems"], detail["warnings"]) == (200, True, [], [])
        make_topic(kafka, "ready")
        kafka.stop(1)
        wait_until(lambda: _says(proxy, f"{HOST}:{port}"), "a reason, when the broker is gone")
        assert proxy.get("/healthz")[0] == 200
        kafka.start(1)
        proxy.wait_ready()
        with RawClient(proxy.broker_port(1)) as client:
            client.ask(api_versions())


def _says(proxy: ProxyProcess, what: str) -> bool:
    status, detail = _readiness(proxy)
    return status == 503 and not detail["ready"] and what in " ".join(detail["problems"])


@pytest.mark.parametrize("workers", [1, 2])
def test_a_quota_is_set_explained_and_returned_to_the_file(
    kafka: EmbeddedKafka, run_proxy: ProxyRunner, tmp_path: Path, workers: int
) -> None:
    """At the admin port, with the token; the log of changes has it."""
    token = tmp_path / "token"
    token.write_text("s3cret")
    topic = f"admin-console-{workers}"
    make_topic(kafka, topic)
    settings = {
        "workers": workers,
        "admin": {"token_file": str(token)},
        "quotas": {
            "store": {"topic": f"admin-store-{workers}"},
            "topics": {topic: {"producer.byte.rate": 5}},
        },
    }
    proxy = run_proxy(kafka.bootstrap, settings=settings)

    def change(body: object, shown: str = "s3cret") -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {shown}", "Content-Type": "application/json"}
        with closing(http.client.HTTPConnection(HOST, proxy.admin_port, timeout=60)) as connection:
            connection.request("POST", "/api/change", json.dumps(body), headers)
            response = connection.getresponse()
            return response.status, json.load(response)

    def explained(**query: str) -> dict[str, Any]:
        found = json.loads(proxy.get(f"/api/explain?{urlencode(query)}")[1])["quotas"]
        return {quota["quota"]: quota["limit"] for quota in found}

    rate = {"producer.byte.rate": 9}
    assert change({"entity": {"topic": topic}, "values": rate}, "wrong")[0] == 401
    assert change({"entity": {"topic": "no-such-topic"}, "values": rate})[0] == 400
    assert change({"entity": {"topic": topic}, "values": rate}) == (200, {"changed": True})
    assert change({"entity": {"user": "alice"}, "values": {"producer_byte_rate": 7}})[0] == 200
    wait_until(lambda: explained(topic=topic)["producer.byte.rate"] == "9", "the change at every worker")
    wait_until(lambda: explained(user="alice")["producer_byte_rate"] == 7, "the change at every worker")
    address = f"http://{HOST}:{proxy.admin_port}"
    command: list[str | Path] = [COMMAND, "explain", "--admin", address, "--topic", topic]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert f"producer.byte.rate: 9 of topic {topic}" in printed.splitlines()
    assert change({"entity": {"topic": topic}, "back_to_file": True})[0] == 200
    wait_until(lambda: explained(topic=topic)["producer.byte.rate"] == "5", "the file's value again")
    assert change({"entity": {"topic": topic}, "values": {"producer.byte.rate": None}})[0] == 200
    # A worker that does not reply in time does not count.
    wait_until(lambda: json.loads(proxy.get("/api/overview")[1])["workers"] == workers, "all workers")
    command = [COMMAND, "quotas", "log", "--bootstrap", proxy.bootstrap, "--topic", f"admin-store-{workers}"]
    log = subprocess.run(
        [*command, "--format", "json"], capture_output=True, text=True, timeout=60, check=True
    )
    entries = [json.loads(line) for line in log.stdout.splitlines()]
    assert {(entry["by"], entry["address"]) for entry in entries} == {("admin-port", HOST)}
    removals = [entry["overrides_file"] for entry in entries if entry["value"] is None]
    assert (len(entries), removals) == (4, [False, True])
