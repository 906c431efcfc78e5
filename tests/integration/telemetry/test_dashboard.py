"""The dashboard and the alerts, compared with the metrics of a real proxy in front of a real Kafka."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from proxy.demo.embedded_kafka import EmbeddedKafka
from proxy.demo.kafka.broker_properties import INTERNAL
from tests.support.kafka.raw_client import RawClient
from tests.support.kafka.topics import make_topic
from tests.support.messages.mutations import create_topics
from tests.support.messages.requests import batch, fetch, produce
from tests.support.process.prometheus import PROMETHEUS, Prometheus
from tests.support.process.proxy_process import HOST, ProxyProcess, ProxyRunner
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka
DEPLOY = Path(__file__).parents[3] / "deploy"
TOPIC, REJECTED = "dashboard", "dashboard-rejected"
CLIENT = "dashboard"
SELECTOR = re.compile(r"\b((?:quota_proxy|process|python)_\w+|up)\b(?:\{([^}]*)\})?")
MATCHER = re.compile(r"(\w+)(?:=~|!~|!=|=)")
GROUPED = re.compile(r"\b(?:by|without) \(([^)]*)\)")
NAMED = re.compile(r"\{\{ ?(?:\$labels\.)?(\w+) ?\}\}")
PROMETHEUS_S = {"instance", "job"}
"""Labels that Prometheus adds."""
ABSENT = {
    'outcome="failed"': "no broker fails",
    "quota_proxy_usage_events_total": "no usage events",
    "quota_proxy_certificate_expires_timestamp_seconds": "no TLS",
}
"""What is in queries without having a series here."""
SETTLING_SECONDS = 60.0
ROW = re.compile(r"^\| `(quota_proxy_\w+)` \|((?:[ ,]*`[\w, ]+`)*) *\|", re.MULTILINE)
"""A metric and its labels, in a table of the page."""
LEAST_COMPARED = 45
PROMQL = re.compile(r"^```promql\n(.*?)^```$", re.MULTILINE | re.DOTALL)

Query = tuple[str, frozenset[str]]
"""An expression, and the labels that its legend or its annotations name."""


def dashboard() -> list[Query]:
    panels = json.loads((DEPLOY / "grafana/quota-proxy.json").read_text())["panels"]
    targets = [target for panel in panels for target in panel.get("targets", ())]
    return [
        (target["expr"].replace("$instance", ".*"), frozenset(NAMED.findall(target["legendFormat"])))
        for target in targets
    ]


def alerts() -> list[Query]:
    groups = yaml.safe_load((DEPLOY / "prometheus/alerts.yaml").read_text())["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    used = re.compile(r"\$labels\.(\w+)")
    return [(rule["expr"], frozenset(used.findall(rule["annotations"]["summary"]))) for rule in rules]


def examples() -> list[Query]:
    """The queries of the pages."""
    pages = sorted((DEPLOY.parent / "docs").glob("*.md"))
    blocks = [block for page in pages for block in PROMQL.findall(page.read_text())]
    queries = [line.partition("  #")[0].strip() for block in blocks for line in block.splitlines()]
    assert len(queries) >= 6
    return [(query, frozenset()) for query in queries]


@pytest.fixture(scope="module")
def proxy(kafka: EmbeddedKafka, run_proxy: ProxyRunner) -> ProxyProcess:
    """A proxy with every kind of quota, and a replication listener."""
    limits = {"producer_byte_rate": 1000, "consumer_byte_rate": 1000, "controller_mutation_rate": 5}
    clients: list[dict[str, Any]] = [
        {"entity": {"client-id": CLIENT}, **limits},
        {"entity": {"ip": "<default>"}, "connection_creation_rate": 1000},
    ]
    brokers = {"total.bytes.in.per.sec.threshold": 10**9, "leader.replication.throttled.rate": 10**9}
    quotas = {
        "store": {"topic": "dashboard-store"},
        "brokers": {"<default>": brokers},
        "topics": {REJECTED: {"producer.byte.rate": 100, "producer.byte.rate.action": "reject"}},
    }
    listener = {
        "name": "replication",
        "replication": True,
        "broker_port_base": 0,
        "upstream": {"brokers": {"1": f"{HOST}:{kafka.port(1, INTERNAL)}"}},
    }
    proxy = run_proxy(kafka.bootstrap, clients, settings={"quotas": quotas}, more_listeners=[listener])
    for topic in (TOPIC, REJECTED):
        make_topic(kafka, topic)
    return proxy


def use(proxy: ProxyProcess) -> None:
    """Have the proxy throttle, reject and forward, with an error of the broker."""
    with RawClient(proxy.broker_port(1), "free") as client:
        for topic in (TOPIC, TOPIC, REJECTED, REJECTED, "dashboard-no-such-topic"):
            client.ask(produce(topic, batch([b"x" * 500]), 12))
        client.ask(fetch(TOPIC))
    with RawClient(proxy.broker_port(1), CLIENT) as client:
        client.ask(create_topics({f"{TOPIC}-other": 1}))
        client.ask(produce(TOPIC, batch([b"x" * 2500])))


def test_queries_use_metrics_and_labels_that_a_scrape_has(proxy: ProxyProcess) -> None:
    use(proxy)
    families = proxy.metrics()
    shown: dict[str, set[str]] = {"up": set()}
    for family in families.values():
        for sample in family.samples:
            shown.setdefault(sample.name, set()).update(sample.labels)
    wrong: list[str] = []
    for query, named in (*dashboard(), *alerts(), *examples()):
        labels: set[str] = set()
        for name, matchers in SELECTOR.findall(query):
            if name not in shown and name not in ABSENT:
                wrong.append(f"{query}: there is no {name}")
            known = shown.get(name, set())
            unknown = set(MATCHER.findall(matchers)) - known - PROMETHEUS_S
            if unknown and name not in ABSENT:
                wrong.append(f"{query}: {name} has no labels {unknown}")
            labels |= known
        used = named.union(*(each.replace(" ", "").split(",") for each in GROUPED.findall(query)))
        absent = any(each in query for each in ABSENT if each.startswith("quota_proxy"))
        if not used <= labels | PROMETHEUS_S and not absent:
            wrong.append(f"{query}: labels {used - labels}")
    assert wrong == []


def test_the_page_has_the_labels_of_each_metric(proxy: ProxyProcess) -> None:
    use(proxy)
    shown: dict[str, set[frozenset[str]]] = {}
    for family in proxy.metrics().values():
        for sample in family.samples:
            name = sample.name.removesuffix("_bucket")
            if name == sample.name or "le" in sample.labels:
                shown.setdefault(name, set()).add(frozenset(sample.labels))
    stated = {
        name: frozenset(part for part in re.split(r"[`, ]+", labels) if part)
        for name, labels in ROW.findall((DEPLOY.parent / "docs/metrics.md").read_text())
    }
    compared = stated.keys() & shown.keys()
    assert len(compared) >= LEAST_COMPARED
    wrong = {name: shown[name] for name in compared if shown[name] != {stated[name]}}
    assert wrong == {}


@pytest.mark.skipif(PROMETHEUS is None, reason="prometheus is not installed (Debian: prometheus)")
def test_every_query_has_a_result_in_prometheus(proxy: ProxyProcess, tmp_path: Path) -> None:
    empty = [query.replace("$__rate_interval", "30s") for query, _ in (*dashboard(), *examples())]
    empty = [query for query in empty if not any(each in query for each in ABSENT)]
    with Prometheus(tmp_path, proxy.admin_port) as prometheus:

        def all_have_results() -> bool:
            use(proxy)
            empty[:] = [query for query in empty if not prometheus.query(query)]
            return not empty

        try:
            wait_until(all_have_results, "results", SETTLING_SECONDS)
        except AssertionError:
            assert empty == [], "queries without a result"
        for query, _ in alerts():
            prometheus.query(query)
