"""The proxy's topics where its user has too few rights: a real broker with an authorizer rejects it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import confluent_kafka.admin
import pytest

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.secured_kafka import BARE, PASSWORDS
from tests.support.kafka.topics import make_topic
from tests.support.process.proxy_process import ProxyProcess, ProxyRunner
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka
admin: Final[Any] = confluent_kafka.admin
QUOTA: Final = 500_000
JAAS: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@pytest.fixture(scope="module")
def guarded() -> Iterator[EmbeddedKafka]:
    """A broker with an authorizer. User `proxy` may do what no rule denies; `admin` may do everything."""
    users = " ".join(f'user_{name}="{PASSWORDS[name]}"' for name in ("proxy", "admin"))
    properties = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
        "super.users": "User:ANONYMOUS;User:admin",
        "sasl.enabled.mechanisms": "PLAIN",
        f"listener.name.{BARE.lower()}.plain.sasl.jaas.config": f"{JAAS} {users};",
    }
    with EmbeddedKafka(properties=properties, listeners={BARE: "SASL_PLAINTEXT"}) as kafka:
        yield kafka


def rules(operation: str, topic: str) -> list[Any]:
    """That the user `proxy` may not do this with the topic. All else needs a rule then that allows it."""
    of_topic = (admin.ResourceType.TOPIC, topic)
    # Who may create topics in the cluster may create each.
    resources = (
        [of_topic, (admin.ResourceType.BROKER, "kafka-cluster")] if operation == "CREATE" else [of_topic]
    )
    of_users = [
        ("User:proxy", operation, admin.AclPermissionType.DENY),
        ("User:*", "ALL", admin.AclPermissionType.ALLOW),
    ]
    literal = admin.ResourcePatternType.LITERAL
    return [
        admin.AclBinding(kind, name, literal, user, "*", getattr(admin.AclOperation, what), permission)
        for kind, name in resources
        for user, what, permission in of_users
    ]


def deny(kafka: EmbeddedKafka, operation: str, topic: str) -> None:
    client = admin.AdminClient({"bootstrap.servers": kafka.bootstrap})
    for future in client.create_acls(rules(operation, topic)).values():
        future.result(30)
    wait_until(lambda: set(rules(operation, topic)) <= in_force(client), "the broker's knowing the rules")


def in_force(client: Any) -> set[Any]:
    """The rules that the broker applies: the controller responds to a change a moment earlier."""
    every = admin.AclBindingFilter(
        admin.ResourceType.ANY,
        None,
        admin.ResourcePatternType.ANY,
        *(None, None),
        *(admin.AclOperation.ANY, admin.AclPermissionType.ANY),
    )
    return set(client.describe_acls(every).result(30))


def allow(kafka: EmbeddedKafka, operation: str, topic: str) -> None:
    """Undo deny()."""
    client = admin.AdminClient({"bootstrap.servers": kafka.bootstrap})
    denied = [
        rule for rule in rules(operation, topic) if rule.permission_type == admin.AclPermissionType.DENY
    ]
    filters = [
        admin.AclBindingFilter(
            rule.restype,
            rule.name,
            rule.resource_pattern_type,
            *(rule.principal, rule.host),
            *(rule.operation, rule.permission_type),
        )
        for rule in denied
    ]
    for future in client.delete_acls(filters).values():
        future.result(30)
    wait_until(lambda: in_force(client).isdisjoint(denied), "the broker's knowing the end of the rules")


class Front:
    """Starts proxies whose user is `proxy`, or another one."""

    def __init__(self, kafka: EmbeddedKafka, run_proxy: ProxyRunner, folder: Path) -> None:
        self._kafka = kafka
        self._run_proxy = run_proxy
        self._folder = folder

    def start(self, user: str = "proxy", **settings: Any) -> ProxyProcess:
        password = self._folder / user
        password.write_text(PASSWORDS[user])
        sasl = {"mechanism": "PLAIN", "username": user, "password_file": str(password)}
        upstream = f"127.0.0.1:{self._kafka.port(1, BARE)}"
        quotas = [{"entity": {"client-id": "rights"}, "producer_byte_rate": QUOTA}]
        listener = {"principal": {"from": "sasl"}, "upstream": {"bootstrap": [upstream], "sasl": sasl}}
        proxy = self._run_proxy.prepare(upstream, quotas, listener=listener, settings=settings)
        return proxy.start()


@pytest.fixture
def front(guarded: EmbeddedKafka, run_proxy: ProxyRunner, tmp_path: Path) -> Front:
    return Front(guarded, run_proxy, tmp_path)


def said(proxy: ProxyProcess, what: str) -> str:
    """What /readyz says, as problems or warnings."""
    return "; ".join(json.loads(proxy.get("/readyz")[1])[what])


def options(proxy: ProxyProcess) -> dict[str, Any]:
    """A client of the user `admin`."""
    login = {"sasl.mechanism": "PLAIN", "sasl.username": "admin", "sasl.password": PASSWORDS["admin"]}
    return {
        "bootstrap.servers": proxy.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "log_level": 0,
        "client.id": "rights",
        **login,
    }


def share(proxy: ProxyProcess, topic: str) -> float:
    """What a proxy lets a client use, after a first record."""
    producer = confluent_kafka.Producer(options(proxy))
    producer.produce(topic, b"x")
    assert producer.flush(60) == 0
    [row] = [row for row in proxy.buckets() if row["kind"] == "producer_byte_rate"]
    found: float = row["share"]
    return found


@pytest.mark.parametrize("right", ["CREATE", "READ", "DESCRIBE"])
def test_a_shares_topic_that_the_proxy_may_not_use(right: str, guarded: EmbeddedKafka, front: Front) -> None:
    topic, used = f"shares-{right.lower()}", f"used-{right.lower()}"
    make_topic(guarded, used)
    if right != "CREATE":
        make_topic(guarded, topic, message_timestamp_type="LogAppendTime")
    deny(guarded, right, topic)
    proxy = front.start(quotas={"store": "none"}, sharing={"topic": topic}).wait_ready()
    wait_until(lambda: topic in said(proxy, "warnings"), "a warning about the topic")
    assert "grant the proxy" in said(proxy, "warnings")
    assert proxy.metric("quota_proxy_sharing_degraded") == 1
    assert len(proxy.log_lines(f"sharing: topic {topic}: ")) <= 2
    assert share(proxy, used) == QUOTA, "it is alone, as far as it knows"


def test_a_shares_topic_that_one_proxy_may_not_write(guarded: EmbeddedKafka, front: Front) -> None:
    topic, used = "shares-write", "used-write"
    for name in (topic, used):
        make_topic(guarded, name, message_timestamp_type="LogAppendTime")
    deny(guarded, "WRITE", topic)
    may = front.start("admin", quotas={"store": "none"}, sharing={"topic": topic}).wait_ready()
    may_not = front.start(quotas={"store": "none"}, sharing={"topic": topic}).wait_ready()
    wait_until(lambda: "reserve" in said(may_not, "warnings"), "a warning about the topic")
    assert "grant the proxy" in said(may_not, "warnings")
    wait_until(lambda: share(may_not, used) <= 0.02 * QUOTA, "next to nothing")
    assert share(may, used) + share(may_not, used) <= 1.02 * QUOTA
    assert said(may, "warnings") == ""


def set_quota(proxy: ProxyProcess, topic: str) -> str:
    """Set a topic's quota with an admin client; return why it was rejected, empty if it was not."""
    entry = admin.ConfigEntry(
        "producer.byte.rate", "1000000", incremental_operation=admin.AlterConfigOpType.SET
    )
    resource = admin.ConfigResource(admin.ResourceType.TOPIC, topic, incremental_configs=[entry])
    client = admin.AdminClient(options(proxy))
    [future] = client.incremental_alter_configs([resource]).values()
    try:
        future.result(30)
    except confluent_kafka.KafkaException as error:
        return str(error)
    return ""


def test_a_quota_topic_that_the_proxy_may_not_create(guarded: EmbeddedKafka, front: Front) -> None:
    topic = "quotas-create"
    deny(guarded, "CREATE", topic)
    proxy = front.start(workers=2, quotas={"store": {"topic": topic}}, sharing=False)
    wait_until(lambda: f"Create, Describe, Read and Write on topic {topic}" in said(proxy, "problems"), "why")
    assert proxy.get("/readyz")[0] == 503
    wait_until(lambda: proxy.log_lines(f"worker 1.*grant.* Create.* on topic {topic}"), "a line of worker 1")
    allow(guarded, "CREATE", topic)
    proxy.wait_ready()
    assert len(proxy.log_lines(f"worker 1.*grant.* Create.* on topic {topic}")) == 1


def test_a_quota_topic_that_the_proxy_may_not_read(guarded: EmbeddedKafka, front: Front) -> None:
    """It is empty, so the proxy knows all quotas."""
    topic = "quotas-read"
    make_topic(guarded, topic, cleanup_policy="compact")
    deny(guarded, "READ", topic)
    proxy = front.start(quotas={"store": {"topic": topic}}, sharing=False).wait_ready()
    wait_until(lambda: f"Read and Write on topic {topic}" in said(proxy, "warnings"), "a warning")
    assert len(proxy.log_lines(f"grant.* Read .*on topic {topic}")) == 1
    allow(guarded, "READ", topic)
    wait_until(lambda: said(proxy, "warnings") == "", "the end of the warning")
    assert len(proxy.log_lines(f"grant.* Read .*on topic {topic}")) == 1


def test_a_quota_topic_that_the_proxy_may_not_write(guarded: EmbeddedKafka, front: Front) -> None:
    topic = "quotas-write"
    make_topic(guarded, topic, cleanup_policy="compact")
    make_topic(guarded, "limited")
    deny(guarded, "WRITE", topic)
    quotas = {"store": {"topic": topic}, "changes": {"without_authorizer": "loopback"}}
    proxy = front.start(quotas=quotas, sharing=False).wait_ready()
    assert said(proxy, "warnings") == ""
    assert f"Write on topic {topic}" in set_quota(proxy, "limited")
    assert f"Write on topic {topic}" in said(proxy, "warnings")
    assert len(proxy.log_lines(f"grant.* Write on topic {topic}")) == 1
    allow(guarded, "WRITE", topic)
    assert set_quota(proxy, "limited") == ""
    assert said(proxy, "warnings") == ""
