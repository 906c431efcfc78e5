"""A proxy before a secured Kafka: a client has the quota of the principal that the broker authenticated."""

import contextlib
import http.client
import json
import socket
import ssl
import subprocess
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from kio.schema.errors import ErrorCode

from proxy.demo.embedded_kafka import EmbeddedKafka
from proxy.quota.identity import USER
from proxy.wire.api_keys import LIST_GROUPS
from tests.support.kafka.raw_client import RawClient
from tests.support.kafka.secured_clients import (
    COUNT,
    OAUTHBEARER,
    PYTHON_CLIENTS,
    Client,
    Way,
    java,
    tool_config,
)
from tests.support.kafka.secured_kafka import PASSWORDS, SECRET
from tests.support.kafka.topics import make_topic
from tests.support.kafka.usage_topic import events_of
from tests.support.messages.client_quotas import EXACT, alter_request, describe_request
from tests.support.messages.kio_messages import framed, request_type
from tests.support.messages.logins import AUTHENTICATE, HANDSHAKE
from tests.support.messages.requests import metadata
from tests.support.process.certificates import Authority
from tests.support.process.proxy_process import COMMAND, ProxyProcess
from tests.support.process.secured_proxy import ADMIN_TOKEN, ROOT, SecuredProxy
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka
MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", OAUTHBEARER]
SHARED = "shared-client-id"
ALICE_S_RATE = 100_000
USAGE = "__quota_proxy_usage"


@pytest.fixture(scope="module")
def front(
    secured: EmbeddedKafka, authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredProxy]:
    quotas = [{"entity": {"user": "alice", "client-id": SHARED}, "producer_byte_rate": ALICE_S_RATE}]
    usage = {"interval_seconds": 1, "kafka": {"topic": USAGE}}
    front = SecuredProxy(tmp_path_factory.mktemp("secured"), secured, authority, quotas, {"usage": usage})
    with front.process:
        yield front
        shown = [front.process.get(path)[1] for path in ("/metrics", "/readyz", "/api/quotas")]
        for text in (front.process.log, *shown):
            assert SECRET not in text
            assert SECRET.encode().hex() not in text


@pytest.fixture(scope="module")
def proxy(front: SecuredProxy) -> ProxyProcess:
    return front.process


@pytest.fixture
def topic(secured: EmbeddedKafka) -> str:
    name = f"topic-{uuid.uuid4().hex[:8]}"
    make_topic(secured, name)
    return name


def way_of(user: str, mechanism: str | None, authority: Authority) -> Way:
    if mechanism is None:
        return Way(user, authority.ca, certificate=authority.sign(user, user))
    return Way(user, authority.ca, mechanism, PASSWORDS[user])


def spent(proxy: ProxyProcess, user: str, client_id: str) -> float:
    return proxy.metric("quota_proxy_client_bytes_total", user=user, client_id=client_id, direction="in")


@pytest.mark.parametrize("mechanism", [None, *MECHANISMS])
@pytest.mark.parametrize("client", PYTHON_CLIENTS.values(), ids=PYTHON_CLIENTS)
def test_clients(
    client: Client,
    mechanism: str | None,
    front: SecuredProxy,
    authority: Authority,
    topic: str,
) -> None:
    way = way_of("alice", mechanism, authority)
    bootstrap = front.bootstrap["certificates" if mechanism is None else "logins"]
    assert client(bootstrap, way, topic, topic) == COUNT
    assert spent(front.process, "alice", topic) > 0
    assert spent(front.process, "bob", topic) == 0


@pytest.mark.parametrize("mechanism", [None, *MECHANISMS])
def test_java_s_tools(
    mechanism: str | None, secured: EmbeddedKafka, front: SecuredProxy, authority: Authority, topic: str
) -> None:
    way = way_of("bob", mechanism, authority)
    bootstrap = front.bootstrap["certificates" if mechanism is None else "logins"]
    assert java(secured, bootstrap, way, topic, topic) == COUNT
    assert spent(front.process, "bob", topic) > 0


def test_a_listener_that_learns_from_its_clients(front: SecuredProxy, topic: str) -> None:
    way = Way("bob", None, "SCRAM-SHA-256", PASSWORDS["bob"])
    assert PYTHON_CLIENTS["confluent-kafka"](front.bootstrap["learning"], way, topic, topic) == COUNT
    assert spent(front.process, "bob", topic) > 0
    assert front.process.log_lines("learning: port of broker 1 is")


@pytest.mark.parametrize("mechanism", [None, "PLAIN"])
def test_one_s_quota_is_not_another_s(
    mechanism: str | None, front: SecuredProxy, authority: Authority, topic: str
) -> None:
    """Both use one client id; alice has a quota, bob has none."""
    bootstrap = front.bootstrap["certificates" if mechanism is None else "logins"]
    waits = {}
    for user in ("bob", "alice"):
        config = way_of(user, mechanism, authority).librdkafka()
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": bootstrap, "client.id": SHARED, "linger.ms": 0, **config}
        )
        before = front.process.metric("quota_proxy_throttle_seconds_total", client_id=SHARED)
        for _ in range(3):
            producer.produce(topic, bytes(ALICE_S_RATE))
            assert producer.flush(30) == 0
        after = front.process.metric("quota_proxy_throttle_seconds_total", client_id=SHARED)
        waits[user] = after - before
    assert waits["bob"] == 0
    assert waits["alice"] > 0.5


def test_usage_events_reach_a_cluster_that_wants_a_login(
    secured: EmbeddedKafka, front: SecuredProxy, authority: Authority, topic: str
) -> None:
    way = way_of("alice", "PLAIN", authority)
    assert PYTHON_CLIENTS["confluent-kafka"](front.bootstrap["logins"], way, topic, topic) == COUNT
    wait_until(
        lambda: (
            {"alice"} == {event["user"] for event in events_of(secured, USAGE) if event["topic"] == topic}
        ),
        "the events of what alice has used",
    )


def test_a_wrong_password(front: SecuredProxy, authority: Authority, topic: str) -> None:
    errors: list[confluent_kafka.KafkaError] = []
    way = Way("bob", authority.ca, "PLAIN", "wrong-" + SECRET)
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": front.bootstrap["logins"],
            "client.id": topic,
            "error_cb": errors.append,
            **way.librdkafka(),
        }
    )
    wait_until(lambda: producer.poll(0.1) >= 0 and bool(errors), "the broker's rejection")
    assert errors[0].code() == confluent_kafka.KafkaError._AUTHENTICATION
    assert spent(front.process, "bob", topic) == 0
    counted = {"listener": "logins", "mechanism": "PLAIN", "ip": "127.0.0.1"}
    assert front.process.metric("quota_proxy_authentication_failures_total", **counted) >= 1


def test_another_login_on_the_same_connection(front: SecuredProxy, topic: str) -> None:
    """A client may authenticate again as the same user, and as no other."""
    handshake = request_type(HANDSHAKE, 1)(mechanism="PLAIN")

    def token(user: str) -> bytes:
        return f"\0{user}\0{PASSWORDS[user]}".encode()

    with RawClient(front.ports["learning"], client_id=topic) as client:
        codes = []
        for user in ("alice", "alice", "bob"):
            # Kafka rejects another login within a second, and the session goes on.
            wait_until(lambda: client.ask(handshake).error_code is ErrorCode.none, "the handshake")
            response = client.ask(request_type(AUTHENTICATE, 2)(auth_bytes=token(user)))
            codes.append(response.error_code)
            if user == "alice":
                client.ask(request_type(LIST_GROUPS, 0)())
        assert codes == [ErrorCode.none, ErrorCode.none, ErrorCode.sasl_authentication_failed]
        assert client.ended()
    assert spent(front.process, "alice", topic) > 0
    assert spent(front.process, "bob", topic) == 0


def change(user: str) -> Any:
    return alter_request((((USER, f"of-{user}"),), (("producer_byte_rate", 1000.0),)))


def test_a_login_by_bare_messages(front: SecuredProxy, topic: str) -> None:
    """The login of clients before Kafka 1.0: bare messages after SaslHandshake v0."""
    with RawClient(front.ports["learning"], client_id=topic) as client:
        assert client.ask(request_type(HANDSHAKE, 0)(mechanism="PLAIN")).error_code is ErrorCode.none
        client.send_bytes(framed(f"\0bob\0{PASSWORDS['bob']}".encode()))
        assert client.receive_frame() == framed(b"")
        client.ask(request_type(LIST_GROUPS, 0)())
    assert spent(front.process, "bob", topic) > 0


@pytest.mark.parametrize(("user", "may"), [("alice", False), ("admin", True)])
def test_who_may_change_quotas_is_the_cluster_s_to_say(front: SecuredProxy, user: str, may: bool) -> None:
    expected = ErrorCode.none if may else ErrorCode.cluster_authorization_failed
    with RawClient(front.ports["learning"]) as client:
        client.ask(request_type(HANDSHAKE, 1)(mechanism="PLAIN"))
        client.ask(request_type(AUTHENTICATE, 2)(auth_bytes=f"\0{user}\0{PASSWORDS[user]}".encode()))
        [entry] = client.ask(change(user)).entries
        assert entry.error_code is expected
        assert client.ask(describe_request((USER, EXACT, f"of-{user}"))).error_code is expected


def test_quotas_as_code(front: SecuredProxy, authority: Authority, tmp_path: Path) -> None:
    access = tmp_path / "access.yaml"
    sasl = {"mechanism": "SCRAM-SHA-256", "username": "admin", "password_file": "password"}
    access.write_text(json.dumps({"tls": {"ca": authority.ca}, "sasl": sasl}))
    (tmp_path / "password").write_text(PASSWORDS["admin"])

    def quotas(command: str, *arguments: str) -> str:
        server = ["--bootstrap", front.bootstrap["logins"], "--access", str(access)]
        done = subprocess.run(
            [str(COMMAND), "quotas", command, *server, *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return done.stdout

    assert "alice" in quotas("list")
    quotas("set", "--topic-default", "producer.byte.rate=123456789")
    quotas("set", "--broker", "1", "total.bytes.in.per.sec.threshold=987654321")
    file = tmp_path / "quotas.yaml"
    quotas("export", "--out", str(file))
    assert "producer.byte.rate: 123456789" in file.read_text()
    assert quotas("diff", str(file)) == ""
    quotas("set", "--topic-default", "--back-to-file")
    quotas("set", "--broker", "1", "--back-to-file")
    assert "123456789" not in quotas("list")
    assert "987654321" not in quotas("list")


def test_before_a_login_nobody_is_told_anything(front: SecuredProxy) -> None:
    with RawClient(front.ports["learning"]) as client:
        client.send(describe_request())
        assert client.ended()


@pytest.mark.parametrize(("user", "may"), [("admin", False), (ROOT, True)])
def test_a_client_whose_tls_ends_here_has_to_be_named(
    secured: EmbeddedKafka, front: SecuredProxy, authority: Authority, user: str, may: bool
) -> None:
    """Even a super user of the cluster needs a mapping: the broker sees only the proxy's principal."""
    config = tool_config(secured.folder, way_of(user, None, authority))
    done = secured.run_tool(
        "kafka-configs",
        *("--bootstrap-server", front.bootstrap["certificates"], "--command-config", config),
        *("--alter", "--entity-type", "users", "--entity-name", f"of-{user}"),
        *("--add-config", "producer_byte_rate=1000"),
        check=False,
    )
    said = done.stdout + done.stderr
    assert ("Completed updating config" in said) is may, said
    assert ("ClusterAuthorizationException" in said) is not may, said


def test_one_port_for_all_brokers(front: SecuredProxy, authority: Authority) -> None:
    """All brokers share a port: SNI tells which one is meant, and every address has its name."""
    port = front.ports["names"]
    context = ssl.create_default_context(cafile=authority.ca)
    with RawClient(port, tls=context, server_name="kafka.test") as client:
        [broker] = client.ask(metadata()).brokers
        assert (broker.node_id, broker.host, broker.port) == (1, "broker-1.kafka.test", port)
    with RawClient(port, tls=context, server_name=broker.host) as client:
        assert client.ask(metadata()).brokers == (broker,)
    with RawClient(port, tls=context, server_name="broker-9.kafka.test") as client:
        assert client.ended()
    says = "names: .* rejected: .*broker-9.kafka.test"
    wait_until(lambda: front.process.log_lines(says), "the log's line")


def peer_certificate(port: int, authority: Authority) -> bytes | None:
    context = ssl.create_default_context(cafile=authority.ca)
    with (
        socket.create_connection(("localhost", port), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as client,
    ):
        return client.getpeercert(binary_form=True)


def test_a_certificate_is_replaced_under_load(front: SecuredProxy, authority: Authority, topic: str) -> None:
    failures: list[object] = []
    way = way_of("bob", "PLAIN", authority)
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": front.bootstrap["logins"],
            "client.id": topic,
            "error_cb": failures.append,
            **way.librdkafka(),
        }
    )
    over = threading.Event()

    def load() -> None:
        while not over.is_set():
            producer.produce(
                topic, b"x", on_delivery=lambda error, _: failures.append(error) if error else None
            )
            producer.poll(0.005)

    thread = threading.Thread(target=load)
    thread.start()
    try:
        port = front.ports["logins"]
        before = peer_certificate(port, authority)
        authority.sign("proxy")
        wait_until(lambda: peer_certificate(port, authority) != before, "the new certificate")
    finally:
        over.set()
        thread.join()
    assert producer.flush(30) == 0
    assert failures == []
    assert front.process.metric("quota_proxy_certificate_days_left", file=front.certificate.certificate) > 90


def test_logins_that_nobody_reads_are_told(front: SecuredProxy, topic: str) -> None:
    way = Way("bob", None, "PLAIN", PASSWORDS["bob"])
    assert PYTHON_CLIENTS["confluent-kafka"](front.bootstrap["unnamed"], way, topic, topic) == COUNT
    assert spent(front.process, "ANONYMOUS", topic) > 0
    says = "unnamed: clients log in"
    wait_until(lambda: front.process.log_lines(says), "the log's line")
    assert says in front.process.get("/readyz")[1]


def test_what_changes_anything_at_the_admin_port_wants_the_token(front: SecuredProxy) -> None:
    statuses = []
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Bearer {ADMIN_TOKEN}"}):
        connection = http.client.HTTPConnection("127.0.0.1", front.process.admin_port, timeout=10)
        connection.request("POST", "/metrics", headers=headers)
        statuses.append(connection.getresponse().status)
        connection.close()
    no_such_method = 405
    assert statuses == [401, 401, no_such_method]


def test_a_client_without_tls(front: SecuredProxy, topic: str) -> None:
    with RawClient(front.ports["logins"]) as client:
        client.send(request_type(18, 0)())
        assert client.ended()
    wait_until(lambda: front.process.log_lines("logins: .* rejected: .*TLS"), "the log's line")


def test_a_client_without_a_certificate(front: SecuredProxy, authority: Authority) -> None:
    context = ssl.create_default_context(cafile=authority.ca)
    with (
        socket.create_connection(("localhost", front.ports["certificates"])) as plain,
        contextlib.suppress(OSError),
        context.wrap_socket(plain, server_hostname="localhost") as client,
    ):
        client.recv(1)
    says = "certificates: .* rejected: the TLS handshake failed: PEER_DID_NOT_RETURN_A_CERTIFICATE"
    wait_until(lambda: front.process.log_lines(says), "the log's line")
