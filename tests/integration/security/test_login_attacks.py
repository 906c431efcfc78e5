"""Logins that are shaped to be counted as another user's, or as nobody's, on a real Kafka.

The broker tells who a client is: each user has a topic that no other user may write.
"""

import base64
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any, Final

import confluent_kafka.admin
import pytest
from kio.schema.errors import ErrorCode

from proxy.demo.embedded_kafka import EmbeddedKafka
from proxy.demo.ports import free_port_range
from tests.support.kafka.raw_client import RawClient
from tests.support.kafka.sasl_client import authenticate, bearer, log_in, scram, shake_hands
from tests.support.kafka.secured_kafka import BARE, PASSWORDS, token
from tests.support.kafka.topics import make_topic
from tests.support.messages.kio_messages import framed, request_frame, request_type
from tests.support.messages.requests import batch, fetch, produce
from tests.support.process.proxy_process import ProxyProcess
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka
admin: Final[Any] = confluent_kafka.admin
ATTACKER: Final = "bob"
VICTIM: Final = "alice"
TOKENS: Final = "tokens"
"""The principal of logins that name nobody, on the listener that serves them."""
RATE: Final = 100_000
TOPIC_RATE: Final = 150_000
"""Of the victim's topic. Three seconds' worth are less than a broker reads before a login (512 KiB)."""
CLOCK: Final = 0.01
"""The clock of the proxy's event loop has whole milliseconds."""
CREATE_DELEGATION_TOKEN: Final = 38
LOGIN_BYTES: Final = 5_000
"""More than the requests of a login have, which are ANONYMOUS's."""
PORTS: Final = 12
SCRIPTS: Final = 12


@pytest.fixture(scope="module")
def kafka(secured: EmbeddedKafka) -> EmbeddedKafka:
    """With a topic of each user."""
    for user in (ATTACKER, VICTIM):
        make_topic(secured, topic_of(user))
    rules = [
        admin.AclBinding(
            admin.ResourceType.TOPIC,
            topic_of(user),
            admin.ResourcePatternType.LITERAL,
            f"User:{user}",
            "*",
            admin.AclOperation.ALL,
            admin.AclPermissionType.ALLOW,
        )
        for user in (ATTACKER, VICTIM)
    ]
    client = admin.AdminClient({"bootstrap.servers": secured.bootstrap})
    for future in client.create_acls(rules).values():
        future.result(30)
    return secured


def topic_of(user: str) -> str:
    return f"only-{user}"


class Front:
    """A proxy with two listeners: one rejects logins that name nobody, the other counts them as TOKENS."""

    def __init__(self, kafka: EmbeddedKafka, folder: Any) -> None:
        ports = free_port_range(2 * PORTS)
        self.strict: Final = ports
        self.lenient: Final = ports + PORTS
        (folder / "password").write_text(PASSWORDS["proxy"])
        sasl = {"mechanism": "SCRAM-SHA-512", "username": "proxy", "password_file": "password"}
        upstream = {"bootstrap": [f"127.0.0.1:{kafka.port(1, BARE)}"], "sasl": sasl}
        listeners = [
            {
                "name": name,
                "bootstrap_port": port,
                "broker_port_base": port + 1,
                "broker_port_count": PORTS - 2,
                "principal": {"from": "sasl", **keys},
                "upstream": upstream,
            }
            for name, port, keys in (
                ("strict", self.strict, {}),
                ("lenient", self.lenient, {"unreadable": TOKENS}),
            )
        ]
        quotas = [
            {"entity": {"user": user}, "producer_byte_rate": RATE} for user in (ATTACKER, VICTIM, TOKENS)
        ]
        topics = {topic_of(VICTIM): {"topic.producer.byte.rate": TOPIC_RATE}}
        settings = {
            "listeners": listeners,
            "quotas": {"store": {"topic": "quotas-of-login-attacks"}, "topics": topics},
        }
        self.process: Final = ProxyProcess(folder, "unused:1", quotas, settings=settings)

    def spent(self, user: str, client_id: str) -> float:
        return self.process.metric(
            "quota_proxy_client_bytes_total", user=user, client_id=client_id, direction="in"
        )


@pytest.fixture(scope="module")
def front(kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    front = Front(kafka, tmp_path_factory.mktemp("attacked"))
    with front.process:
        yield front


@pytest.fixture
def client_id() -> str:
    return f"client-{uuid.uuid4().hex[:8]}"


def records(size: int) -> bytes:
    return batch([bytes(size)])


def writes(client: RawClient, user: str, size: int = 10) -> Any:
    """A Produce to the topic of a user; its response."""
    return client.ask(produce(topic_of(user), records(size)))


def error_of(response: Any) -> ErrorCode:
    code: ErrorCode = response.responses[0].partition_responses[0].error_code
    return code


def check_throttled(client: RawClient) -> None:
    """Write three seconds' worth: one is saved up, and two have to pass or are announced."""
    began = time.monotonic()
    for _ in range(3):
        response = writes(client, ATTACKER, RATE)
        assert error_of(response) is ErrorCode.none
    # The last response announces what is left of the wait.
    assert time.monotonic() - began + response.throttle_time.total_seconds() > 2 - CLOCK


def own() -> str:
    return token(ATTACKER)


ATTACKS: Final[dict[str, tuple[str, Any]]] = {
    "an extension AUTH": ("OAUTHBEARER", lambda: [bearer(own(), f"AUTH=Bearer {token(VICTIM)}")]),
    "a rejected token first": ("OAUTHBEARER", lambda: [bearer(token(VICTIM, -60)), bearer(own())]),
    "tokenauth in the nonce": (
        "SCRAM-SHA-256",
        lambda: scram(ATTACKER, PASSWORDS[ATTACKER], nonce="tokenauth=true"),
    ),
    "tokenauth in an extension": (
        "SCRAM-SHA-256",
        lambda: scram(ATTACKER, PASSWORDS[ATTACKER], extension=",x=tokenauth=true"),
    ),
    "a reserved m=": (
        "SCRAM-SHA-256",
        lambda: scram(ATTACKER, PASSWORDS[ATTACKER], reserved=f"m=n={VICTIM},"),
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attacker_spends_its_own_quota(attack: str, front: Front, client_id: str) -> None:
    mechanism, messages = ATTACKS[attack]
    with RawClient(front.strict, client_id) as client:
        assert log_in(client, mechanism, messages()).error_code is ErrorCode.none
        check_throttled(client)
    assert front.spent(ATTACKER, client_id) >= 3 * RATE
    assert front.spent(VICTIM, client_id) == 0
    assert front.spent("ANONYMOUS", client_id) < LOGIN_BYTES


def without_a_name() -> bytes:
    """A Produce to the victim's topic, and to one without a name, which no broker reads."""
    topic = topic_of(VICTIM).encode()
    name = len(topic).to_bytes(2, "big") + topic
    frame = request_frame(produce(topic_of(VICTIM), records(3 * TOPIC_RATE), version=8))
    one, two = (number.to_bytes(4, "big") + name for number in (1, 2))
    assert one in frame
    return framed(frame[4:].replace(one, two) + (-1).to_bytes(2, "big", signed=True) + bytes(4))


def end_with(client: RawClient, case: str) -> None:
    """Send a request for which the broker closes the connection."""
    if case == "amid a login":
        shake_hands(client, "PLAIN")
    if case == "a topic without a name":
        log_in(client, "PLAIN", [f"\0{ATTACKER}\0{PASSWORDS[ATTACKER]}".encode()])
        client.send_bytes(without_a_name())
    else:
        with suppress(ConnectionError):  # the broker may close it before it has read everything
            client.send(produce(topic_of(VICTIM), records(3 * TOPIC_RATE)))
    assert client.ended()


@pytest.mark.parametrize("case", ["before a login", "amid a login", "a topic without a name"])
def test_a_request_for_which_a_broker_closes_costs_its_writers_nothing(
    case: str, front: Front, kafka: EmbeddedKafka, client_id: str
) -> None:
    """The victim's topic has its whole limit afterwards."""
    for port in (kafka.port(1, BARE), front.strict, front.strict):
        with RawClient(port, client_id) as client:
            end_with(client, case)
    with RawClient(front.strict, client_id) as victim:
        log_in(victim, "PLAIN", [f"\0{VICTIM}\0{PASSWORDS[VICTIM]}".encode()])
        response = writes(victim, VICTIM, RATE // 4)
    assert error_of(response) is ErrorCode.none
    assert response.throttle_time.total_seconds() == 0


def test_records_behind_a_fetch_that_waits_cost_a_topic_s_writers_nothing(
    front: Front, client_id: str
) -> None:
    """The broker would reject them only when the Fetch has got its records, or after a minute."""
    with ExitStack() as connections:
        for _ in range(3):
            client = connections.enter_context(RawClient(front.strict, client_id))
            log_in(client, "PLAIN", [f"\0{ATTACKER}\0{PASSWORDS[ATTACKER]}".encode()])
            client.send(replace(fetch(topic_of(ATTACKER)), max_wait=timedelta(minutes=1), min_bytes=1 << 30))
            client.send(produce(topic_of(VICTIM), records(3 * TOPIC_RATE)))
        wait_until(lambda: front.spent(ATTACKER, client_id) > 9 * TOPIC_RATE, "the proxy's reading them")
        victim = connections.enter_context(RawClient(front.strict, client_id))
        log_in(victim, "PLAIN", [f"\0{VICTIM}\0{PASSWORDS[VICTIM]}".encode()])
        for _ in range(2):
            response = writes(victim, VICTIM, RATE // 4)
            assert error_of(response) is ErrorCode.none
            assert response.throttle_time.total_seconds() == 0


@pytest.fixture(scope="module")
def delegation_token(kafka: EmbeddedKafka) -> tuple[str, str]:
    """The attacker's own: what it has for a user and for a password."""
    schema = request_type(CREATE_DELEGATION_TOKEN, 1)
    with RawClient(kafka.port(1, BARE)) as client:
        log_in(client, "PLAIN", [f"\0{ATTACKER}\0{PASSWORDS[ATTACKER]}".encode()])
        made = client.ask(schema(renewers=(), max_lifetime=timedelta(hours=1)))
    assert made.error_code is ErrorCode.none
    password = base64.b64encode(made.hmac).decode()
    first, _ = scram(made.token_id, password, extension=",tokenauth=true")

    def known() -> bool:
        with RawClient(kafka.port(1, BARE)) as client:
            shake_hands(client, "SCRAM-SHA-256")
            return authenticate(client, first).error_code is ErrorCode.none

    wait_until(known, "the broker's knowing the token")
    return made.token_id, password


def test_a_delegation_token_is_rejected(
    front: Front, kafka: EmbeddedKafka, client_id: str, delegation_token: tuple[str, str]
) -> None:
    messages = scram(*delegation_token, extension=",tokenauth=true")

    def closed() -> float:
        name = "quota_proxy_connections_closed_total"
        return front.process.metric(name, listener="strict", reason="no_principal")

    before = closed()
    with RawClient(kafka.port(1, BARE), client_id) as client:
        assert log_in(client, "SCRAM-SHA-256", messages).error_code is ErrorCode.none
        assert error_of(writes(client, ATTACKER)) is ErrorCode.none
    with RawClient(front.strict, client_id) as client:
        response = log_in(client, "SCRAM-SHA-256", messages)
        assert response.error_code is ErrorCode.sasl_authentication_failed
        assert "delegation token" in response.error_message
        assert client.ended()
    wait_until(
        lambda: front.process.log_lines(
            "connection closed: the login names no user: the owner of a delegation"
        ),
        "the log's line",
    )
    assert closed() == before + 1


def test_a_delegation_token_takes_the_principal_that_is_set(
    front: Front, client_id: str, delegation_token: tuple[str, str]
) -> None:
    messages = scram(*delegation_token, extension=",tokenauth=true")
    with RawClient(front.lenient, client_id) as client:
        assert log_in(client, "SCRAM-SHA-256", messages).error_code is ErrorCode.none
        check_throttled(client)
    assert front.spent(TOKENS, client_id) >= 3 * RATE


def play(client: RawClient, random: Random) -> None:
    """A handshake, or none, and a message of a login, right or wrong. EOFError if the broker ends it."""
    user = random.choice([ATTACKER, ATTACKER, VICTIM])
    password = random.choice([PASSWORDS[user]] * 5 + ["wrong"])
    plain = f"\0{user}\0{password}".encode()
    kind = random.randrange(8)
    if kind == 0:
        authenticate(client, plain, random.choice([0, 1, 2]))
    elif kind == 1:
        shake_hands(client, random.choice(["PLAIN", "SCRAM-SHA-256", "NONE"]), random.choice([0, 1]))
    elif kind == 2 and shake_hands(client, "SCRAM-SHA-256") is ErrorCode.none:
        authenticate(client, scram(VICTIM, password)[0])
    elif kind == 3 and shake_hands(client, "OAUTHBEARER") is ErrorCode.none:
        authenticate(client, bearer(token(user), f"AUTH=Bearer {token(VICTIM)}"))
    elif kind in (4, 5):
        # Brokers reject another login within a second, and the session goes on.
        wait_until(lambda: shake_hands(client, "PLAIN", 0) is ErrorCode.none, "the handshake")
        client.send_bytes(framed(plain))
        client.receive_frame()
    else:
        wait_until(lambda: shake_hands(client, "PLAIN") is ErrorCode.none, "the handshake")
        authenticate(client, plain)


def whom_the_broker_sees(client: RawClient) -> str:
    [user] = [user for user in (ATTACKER, VICTIM) if error_of(writes(client, user)) is ErrorCode.none]
    return user


@pytest.mark.parametrize("seed", range(SCRIPTS))
def test_whatever_the_order_of_logins_the_name_is_the_broker_s(
    seed: int, front: Front, client_id: str
) -> None:
    """Messages without a handshake, handshakes without a message, other mechanisms and users, bare messages:
    while the broker keeps the connection, each request counts as the user whom the broker sees.
    """
    random = Random(seed)
    with RawClient(front.strict, client_id) as client:
        try:
            assert shake_hands(client, "PLAIN") is ErrorCode.none
            authenticate(client, f"\0{ATTACKER}\0{PASSWORDS[ATTACKER]}".encode())
            while True:
                before = {user: front.spent(user, client_id) for user in (ATTACKER, VICTIM)}
                user = whom_the_broker_sees(client)
                other = VICTIM if user == ATTACKER else ATTACKER
                assert front.spent(user, client_id) > before[user]
                assert front.spent(other, client_id) == before[other]
                play(client, random)
        except (EOFError, ConnectionError):
            pass
